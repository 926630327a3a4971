"""Hooks in a JSON file of the form that Claude Code introduced; comments, order and white space of others stay.

``{"hooks": {EVENT: [{"matcher": …, "hooks": [{"type": "command", "command": …}]}]}}``
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from casnap.agents.installing.command import is_ours
from casnap.errors import Usage

Groups = Mapping[str, Mapping[str, Any]]
"""For each event the group that is to be there."""

_BOM = "\ufeff"


def with_hooks(data: bytes, wanted: Groups, where: str) -> bytes:
    """A file with just these hooks of casnap in it; ``where`` is what an error calls it.

    Raises:
        Usage: it is no JSON, or not of this form; the message says what is wrong.
    """
    with _understood(where):
        document = _Document(data, where)
        present = document.ours()
        if len(present) == len(wanted) and dict(present) == {event: dict(group) for event, group in wanted.items()}:
            return data
        document.remove_ours(kept={"hooks", *wanted})
        for event, group in wanted.items():
            document.add(event, group)
        return _checked(data, document.text(), where)


def without_hooks(data: bytes, where: str, first: bytes | None = None) -> bytes:
    """A file without hooks of casnap; what held nothing else goes, too, if it was not in the file at ``first``.

    Raises:
        Usage: as for :func:`with_hooks`.
    """
    with _understood(where):
        document = _Document(data, where)
        kept = _Document(first, where).containers() if first is not None else set()
        return _checked(data, document.text(), where) if document.remove_ours(kept) else data


def our_hooks(data: bytes, where: str) -> list[tuple[str, dict[str, Any]]]:
    """The groups of casnap's hooks in a file, each with its event.

    Raises:
        Usage: as for :func:`with_hooks`.
    """
    with _understood(where):
        return _Document(data, where).ours()


def our_commands(data: bytes, where: str) -> list[str]:
    """The command lines of casnap's hooks in a file.

    Raises:
        Usage: as for :func:`with_hooks`.
    """
    handlers = [handler for _, group in our_hooks(data, where) for handler in group["hooks"]]
    return [one["command"] for one in handlers if isinstance(one, dict) and is_ours(one.get("command"))]


def hooks_are_off(data: bytes) -> bool:
    """Whether a file that was understood tells the agent to run no hooks at all."""
    from json5 import loads

    return loads(data.decode("utf-8").removeprefix(_BOM)).get("disableAllHooks") is True


@contextlib.contextmanager
def _understood(where: str) -> Iterator[None]:
    """What is nested deeper than the library can follow is no configuration."""
    try:
        yield
    except RecursionError:
        raise _bad(where, "it is nested too deep") from None
    except ValueError as error:  # Python reads no number of so many digits
        raise _bad(where, f"it is no JSON: {error}") from None


def _bad(where: str, cause: str) -> Usage:
    return Usage(
        f"cannot change {where}: {cause}",
        code="bad-config",
        hint="repair the file with an editor; it was left alone",
    )


def _checked(before: bytes, after: bytes, where: str) -> bytes:
    """What is to be written, if what is not casnap's is in it as it was."""
    if _Document(before, where).foreign() != _Document(after, where).foreign():
        raise Usage(
            f"cannot change {where}: something else in it would change, too",
            code="bad-config",
            hint="add the hooks by hand; casnap plugin install --dry-run shows them",
        )
    return after


class _Document:
    """The parsed file, whose nodes remember the white space and comments around them."""

    def __init__(self, data: bytes, where: str) -> None:
        from json5 import loads
        from json5.loader import ModelLoader
        from json5.utils import JSON5DecodeError

        self._where = where
        try:
            text = data.decode("utf-8")
            self._bom = text[:1] == _BOM
            text = text.removeprefix(_BOM)
            self._model: Any = loads(text if text.strip() else "{}\n", loader=ModelLoader())
        except (JSON5DecodeError, UnicodeDecodeError) as error:
            cause = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error).partition("\n")[0]
            raise _bad(self._where, f"it is no JSON: {cause}") from None
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._root = self._require(self._model.value, "JSONObject", "it is no object")
        self._unit = self._indentation()
        self._hooks = self._checked()

    def _require(self, node: Any, kind: str, fault: str) -> Any:
        if type(node).__name__ != kind:
            raise _bad(self._where, fault)
        return node

    def _checked(self) -> Any:
        """The object of hooks, None where there is none; all of it is of the form that this module knows."""
        hooks = _member(self._root, "hooks")
        if hooks is None:
            return None
        self._require(hooks, "JSONObject", '"hooks" is no object')
        for groups in hooks.values:
            self._require(groups, "JSONArray", 'an event in "hooks" has no list')
        return hooks

    def _indentation(self) -> str:
        """What one level is indented by, as far as the file shows it."""
        lead = "".join(piece for piece in self._root.leading_wsc if isinstance(piece, str))
        return lead.rpartition("\n")[2] or "  "

    def ours(self) -> list[tuple[str, dict[str, Any]]]:
        """What casnap has in it, as values."""
        return [
            (event, _value(group)) for event, groups in self._events() for group in groups.values if _is_ours(group)
        ]

    def _events(self) -> Iterator[tuple[str, Any]]:
        if self._hooks is not None:
            yield from zip(map(_name, self._hooks.keys), self._hooks.values, strict=True)

    def foreign(self) -> Any:
        """Everything else, as values; what casnap's hooks leave empty does not count."""
        from json5 import loads

        found = loads(self.text().decode("utf-8").removeprefix(_BOM))
        hooks = found.get("hooks")
        if isinstance(hooks, dict):
            kept = {event: [_without_ours(group) for group in groups] for event, groups in hooks.items()}
            hooks = {event: [group for group in groups if group != {}] for event, groups in kept.items()}
            found["hooks"] = {event: groups for event, groups in hooks.items() if groups}
        return {name: value for name, value in found.items() if name != "hooks" or value}

    def containers(self) -> set[str]:
        """``hooks`` if there is that, and the events in it."""
        return set() if self._hooks is None else {"hooks", *(event for event, _ in self._events())}

    def remove_ours(self, kept: Collection[str] = ()) -> bool:
        """Take out what is casnap's, and what is empty then and not to be ``kept``; whether anything was."""
        found = False
        for event, groups in list(self._events()):
            before = len(groups.values)
            for group in list(groups.values):
                handlers = _member(group, "hooks")
                if handlers is None or type(handlers).__name__ != "JSONArray":
                    continue
                for handler in list(handlers.values):
                    if is_ours(_value_of(handler, "command")):
                        _remove_item(handlers, handler)
                        found = True
                        if not handlers.values:
                            _remove_item(groups, group)
            if before and not groups.values and event not in kept:
                _remove_member(self._hooks, groups)
        if found and not self._hooks.values and "hooks" not in kept:
            _remove_member(self._root, self._hooks)
            self._hooks = None
        return found

    def add(self, event: str, group: Mapping[str, Any]) -> None:
        """Append a group to those of an event."""
        if self._hooks is None:
            self._append_member(self._root, "hooks", {}, 1)
            self._hooks = _member(self._root, "hooks")
        groups = _member(self._hooks, event)
        if groups is None:
            self._append_member(self._hooks, event, [], 2)
            groups = _member(self._hooks, event)
        self._append(groups, self._parsed(group, 3), 3)

    def _append_member(self, parent: Any, name: str, value: Any, depth: int) -> None:
        key, node = self._parsed(name, depth), self._parsed(value, depth)
        node.wsc_before = [" "]
        self._append(parent, node, depth, key)

    def _append(self, parent: Any, node: Any, depth: int, key: Any = None) -> None:
        """Add a node at the end, on a line of its own if the file has lines."""
        line = self._newline + self._unit * depth
        closing = self._newline + self._unit * (depth - 1)
        if not parent.values:
            parent.leading_wsc = [*_stripped(parent.leading_wsc), line]
            node.wsc_after = [closing]
        else:
            first, last = key or node, parent.values[-1]
            first.wsc_before = [line]
            if parent.trailing_comma is None:  # comments stay where they are: behind the comma that comes to be
                comments, rest = _split(last.wsc_after)
                first.wsc_before, last.wsc_after, node.wsc_after = [*comments, line], [], rest or [closing]
        if key is not None:
            parent.keys.append(key)
        parent.values.append(node)

    def _parsed(self, value: Any, depth: int) -> Any:
        from json5 import loads
        from json5.loader import ModelLoader

        text = json.dumps(value, indent=self._unit, ensure_ascii=False) if value not in ({}, []) else json.dumps(value)
        return loads(text.replace("\n", self._newline + self._unit * depth), loader=ModelLoader()).value

    def text(self) -> bytes:
        """The file."""
        from json5.dumper import ModelDumper, dumps

        dumper: Any = ModelDumper()
        written: str = dumps(self._model, dumper=dumper)
        return ((_BOM if self._bom else "") + written).encode("utf-8")


def _is_ours(group: Any) -> bool:
    handlers = _member(group, "hooks")
    return type(handlers).__name__ == "JSONArray" and any(is_ours(_value_of(one, "command")) for one in handlers.values)


def _without_ours(group: Any) -> Any:
    """A group as a value, empty if all handlers in it were casnap's."""
    handlers = group.get("hooks") if isinstance(group, dict) else None
    if not isinstance(handlers, list):
        return group
    kept = [one for one in handlers if not (isinstance(one, dict) and is_ours(one.get("command")))]
    return group if kept == handlers else {**group, "hooks": kept} if kept else {}


def _member(node: Any, name: str) -> Any:
    """The value of a key in an object; the last where it is there twice, None where it is not."""
    if type(node).__name__ != "JSONObject":
        return None
    pairs = zip(map(_name, node.keys), node.values, strict=True)
    return dict(pairs).get(name)


def _value_of(node: Any, name: str) -> Any:
    found = _member(node, name)
    return None if found is None else _value(found)


def _name(key: Any) -> str:
    quoted = getattr(key, "characters", None)
    return str(getattr(key, "name", "") if quoted is None else quoted)


def _value(node: Any) -> Any:
    """A node as JSON has it."""
    match type(node).__name__:
        case "JSONObject":
            return {_name(key): _value(value) for key, value in zip(node.keys, node.values, strict=True)}
        case "JSONArray":
            return [_value(value) for value in node.values]
        case "DoubleQuotedString" | "SingleQuotedString":
            return node.characters
        case "NullLiteral":
            return None
        case "UnaryOp":
            return -_value(node.value) if node.op == "-" else _value(node.value)
    return node.value


def _remove_item(array: Any, node: Any) -> None:
    at = next(number for number, value in enumerate(array.values) if value is node)
    _close_gap(array, at, array.values)
    del array.values[at]


def _remove_member(parent: Any, node: Any) -> None:
    at = next(number for number, value in enumerate(parent.values) if value is node)
    _close_gap(parent, at, parent.keys)
    del parent.keys[at], parent.values[at]


def _close_gap(parent: Any, at: int, firsts: list[Any]) -> None:
    """Let what follows a node stand where the node stood; comments before it, and what is behind the last one, stay."""
    removed, before = parent.values[at], _stripped(firsts[at].wsc_before)
    if at < len(parent.values) - 1:
        following = firsts[at + 1]
        rest = _split(following.wsc_before)[0] if at == 0 else following.wsc_before
        following.wsc_before = _ended([*before, *rest])
    elif at:
        behind = removed.wsc_after
        if not _has_lines(parent.leading_wsc):  # it was in one line, until casnap's came
            behind = [piece for piece in behind if not _has_lines([piece])]
        parent.values[at - 1].wsc_after = _ended([*parent.values[at - 1].wsc_after, *before, *behind])
    else:
        comments = _stripped(parent.leading_wsc)
        parent.leading_wsc = _ended([*comments, *removed.wsc_after]) if comments else []
        parent.trailing_comma = None


def _ended(pieces: list[Any]) -> list[Any]:
    """The same with a line break behind each comment that would swallow what follows."""
    found: list[Any] = []
    for piece, following in zip(pieces, [*pieces[1:], None], strict=False):
        found.append(piece)
        if str(getattr(piece, "value", "")).startswith("//") and not (following and _has_lines([following])):
            found.append("\n")
    return found


def _has_lines(pieces: list[Any]) -> bool:
    return any(isinstance(piece, str) and "\n" in piece for piece in pieces)


def _stripped(pieces: list[Any]) -> list[Any]:
    """Comments, without white space behind the last one."""
    kept = list(pieces)
    while kept and isinstance(kept[-1], str):
        kept.pop()
    return kept


def _split(pieces: list[Any]) -> tuple[list[Any], list[Any]]:
    """What stands behind a value: comments stay with it, white space behind the last of them goes on."""
    kept = _stripped(pieces)
    return kept, list(pieces[len(kept) :])
