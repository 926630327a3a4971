"""A name in the list ``plugins: enabled:`` of somebody's YAML; each other byte stays: comments, order, quotes.

The parser tells where things stand, and text is put in or taken out there. What came of it is parsed once more: all
else must be in it as it was.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from casnap.errors import Usage

OUTER, LIST = "plugins", "enabled"

_BOM = "\ufeff"


class Unsuitable(Usage):
    """It is YAML, and of a form in which nothing can be put in safely, such as ``plugins: null``."""


def with_name(data: bytes, name: str, where: str) -> bytes:
    """A file with the name in its list; ``where`` is what an error calls it.

    Raises:
        Unsuitable: it has a form that only a program that writes it anew can change.
        Usage: it is no YAML; the message says what is wrong.
    """
    document = _Document(data, where)
    if name in document.names():
        return data
    return _checked(document, document.added(name), name, present=True)


def without_name(data: bytes, name: str, where: str, first: bytes | None = None) -> bytes:
    """A file without the name; a list that is empty then goes, too. What was in the file at ``first`` stays.

    Raises:
        Unsuitable, Usage: as for :func:`with_name`.
    """
    document = _Document(data, where)
    start = None if first is None else _Document(first, where)
    if name not in document.names() or (start is not None and name in start.names()):
        return data
    kept = set() if start is None else start.containers()
    after = document.taken(name)
    try:
        for container in (LIST, OUTER):
            if container not in kept:
                after = _Document(after.encode("utf-8"), where).without_empty(container)
    except Usage:
        raise document.unsuitable() from None
    return _checked(document, after, name, present=False)


def names(data: bytes, where: str, container: str = LIST) -> list[str]:
    """The names in the list, or in the one that is called ``container``.

    Raises:
        Usage: it is no YAML.
    """
    return _Document(data, where).names(container)


def _checked(before: _Document, text: str, name: str, *, present: bool) -> bytes:
    data = ((_BOM if before.marked else "") + text).encode("utf-8")
    with contextlib.suppress(Usage):
        after = _Document(data, before.where)
        if (name in after.names()) == present and after.foreign(name) == before.foreign(name):
            return data
    raise before.unsuitable()


class _Document:
    """The parsed file, whose nodes know where in the text they stand."""

    def __init__(self, data: bytes, where: str) -> None:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import YAMLError

        self.where = where
        parser: Any = YAML(typ="safe", pure=True)
        try:
            text = data.decode("utf-8")
            self.marked = text[:1] == _BOM
            self.text = text.removeprefix(_BOM)
            self._root = parser.compose(self.text)
        except (YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
            raise Usage(
                f"cannot change {where}: it is no YAML: {_cause(error)}",
                code="bad-config",
                hint="repair the file with an editor; it was left alone",
            ) from None
        self._newline = "\r\n" if "\r\n" in self.text else "\n"

    def unsuitable(self) -> Unsuitable:
        """The error for a file that is to be changed in another way."""
        return Unsuitable(
            f"cannot change {self.where}: its {OUTER!r} has a form that cannot be changed without writing it anew",
            code="bad-config",
            hint=f"add casnap to {OUTER}.{LIST} with an editor",
        )

    def names(self, container: str = LIST) -> list[str]:
        """What is in the list."""
        _, found = self._list(container)
        return [item.value for item in found.value if _kind(item) == "scalar"] if _kind(found) == "sequence" else []

    def containers(self) -> set[str]:
        """Which of the two there are, in whatever form."""
        outer, inner = _member(self._root, OUTER), self._list()
        return {key for key, (found, _) in ((OUTER, outer), (LIST, inner)) if found is not None}

    def foreign(self, name: str) -> Any:
        """Everything but the name, as values; what it leaves empty does not count."""
        found = _value(self._root)
        if found is None:
            return {}
        outer = found.pop(_key(OUTER), None) if isinstance(found, dict) else None
        if isinstance(outer, dict):
            listed = outer.pop(_key(LIST), None)
            if isinstance(listed, list):
                listed = [item for item in listed if not (isinstance(item, tuple) and item[1] == name)]
            outer |= {_key(LIST): listed} if not _is_nothing(listed) else {}
        return found if _is_nothing(outer) else {**found, _key(OUTER): outer}

    def _list(self, container: str = LIST) -> tuple[Any, Any]:
        return _member(_member(self._root, OUTER)[1], container)

    def added(self, name: str) -> str:
        """The text with the name put in as the first of the list, which is made where there is none."""
        (outer_key, outer), (list_key, found) = _member(self._root, OUTER), self._list()
        if _kind(found) == "sequence":
            return self._opened(found, name) if found.flow_style else self._below(list_key, [f"- {name}"], found)
        if list_key is not None:
            return self._below(list_key, [f"- {name}"], found)
        if _kind(outer) == "mapping" and outer.flow_style:
            return self._opened(outer, f"{LIST}: [{name}]")
        if outer_key is not None:
            return self._below(outer_key, [f"{LIST}:", f"  - {name}"], outer)
        if self._root is not None and (_kind(self._root) != "mapping" or self._root.flow_style):
            raise self.unsuitable()
        return self._at_the_end([f"{OUTER}:", f"  {LIST}:", f"    - {name}"])

    def _opened(self, node: Any, text: str) -> str:
        """Put text into brackets, before what is in them."""
        if not node.value:
            at = node.start_mark.index + 1
            return self.text[:at] + text + self.text[at:]
        first = node.value[0][0] if _kind(node) == "mapping" else node.value[0]
        at = first.start_mark.index
        return f"{self.text[:at]}{text}, {self.text[at:]}"

    def _below(self, key: Any, lines: list[str], value: Any) -> str:
        """Put lines below that of a key, as far in as what is there already."""
        if _kind(value) == "scalar" and value.value:  # null, said in words
            raise self.unsuitable()
        column = value.start_mark.column if _kind(value) in ("mapping", "sequence") else key.start_mark.column + 2
        at = self._next_line(key.end_mark.index)
        head = self.text[:at] if self.text[:at].endswith("\n") else self.text[:at] + self._newline
        return head + "".join(" " * column + line + self._newline for line in lines) + self.text[at:]

    def _at_the_end(self, lines: list[str]) -> str:
        column = self._root.start_mark.column if self._root is not None else 0
        head = self.text if not self.text or self.text.endswith("\n") else self.text + self._newline
        return head + "".join(" " * column + line + self._newline for line in lines)

    def taken(self, name: str) -> str:
        """The text without the name in the list."""
        _, found = self._list()
        text = self.text
        for item in reversed([one for one in found.value if _kind(one) == "scalar" and one.value == name]):
            start, end = self._span(found, [(one, one) for one in found.value], item, lead="-")
            text = text[:start] + text[end:]
        return text

    def without_empty(self, container: str) -> str:
        """The text without a key of these, if that holds nothing."""
        parent = self._root if container == OUTER else _member(self._root, OUTER)[1]
        key, value = _member(parent, container)
        if key is None or not _is_nothing(_value(value)):
            return self.text
        start, end = self._span(parent, parent.value, key)
        return self.text[:start] + self.text[end:]

    def _span(self, parent: Any, members: list[tuple[Any, Any]], first: Any, lead: str = "") -> tuple[int, int]:
        """Where a member stands that begins with ``first``: whole lines, or what is between commas."""
        at = next(number for number, (begin, _) in enumerate(members) if begin is first)
        start, end = first.start_mark.index, members[at][1].end_mark.index
        if not parent.flow_style:
            line = self.text.rfind("\n", 0, start) + 1
            if self.text[line:start].strip() != lead:
                raise self.unsuitable()
            return line, self._next_line(first.end_mark.index)
        if at + 1 < len(members):
            return start, members[at + 1][0].start_mark.index
        return (members[at - 1][1].end_mark.index, end) if at else (start, end)

    def _next_line(self, at: int) -> int:
        found = self.text.find("\n", at)
        return len(self.text) if found < 0 else found + 1


def _cause(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if problem is None or mark is None:
        return str(error).partition("\n")[0] or "it is nested too deep"
    return f"{problem} (line {mark.line + 1})"


def _kind(node: Any) -> str:
    return type(node).__name__.removesuffix("Node").lower()


def _member(node: Any, name: str) -> tuple[Any, Any]:
    """The key and the value of a name in a mapping; the last where it is there twice, None where it is not."""
    pairs: Iterator[tuple[Any, Any]] = reversed(node.value) if _kind(node) == "mapping" else iter(())
    return next(((key, value) for key, value in pairs if _kind(key) == "scalar" and key.value == name), (None, None))


def _key(name: str) -> tuple[str, str]:
    return ("tag:yaml.org,2002:str", name)


def _value(node: Any) -> Any:
    """A node as something that can be compared: scalars with their tags."""
    match _kind(node):
        case "mapping":
            return {_hashable(_value(key)): _value(value) for key, value in node.value}
        case "sequence":
            return [_value(item) for item in node.value]
        case "scalar":
            return (str(node.tag), node.value)
    return None


def _hashable(value: Any) -> Any:
    return value if isinstance(value, tuple) else repr(value)


def _is_nothing(value: Any) -> bool:
    return value in (None, [], {}) or (isinstance(value, tuple) and value[0] == "tag:yaml.org,2002:null")
