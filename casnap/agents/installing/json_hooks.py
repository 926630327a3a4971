"""Hooks in a JSON file of the form that Claude Code introduced; comments, order and white space of others stay.

``{"hooks": {EVENT: [{"matcher": …, "hooks": [{"type": "command", "command": …}]}]}}``
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from casnap.agents.installing.json_text import BOM, Masked, values
from casnap.agents.installing.our_entries import Place, handlers, ours, recognised
from casnap.errors import Usage

Groups = Mapping[str, Mapping[str, Any]]
"""For each event the group that is to be there."""


def with_hooks(data: bytes, wanted: Groups, where: str, first: bytes | None = None) -> bytes:
    """A file with just these hooks of casnap in it, beside those that were in it at ``first``.

    ``where`` is what an error calls it. ``first`` is None where nobody knows that.

    Raises:
        Usage: it is no JSON, or not of this form; the message says what is wrong.
    """
    with _understood(where):
        start = _start(first, where, wanted)
        document = _Document(data, where, start)
        present = document.ours()
        if len(present) == len(wanted) and dict(present) == {event: dict(group) for event, group in wanted.items()}:
            return data
        document.remove_ours(kept={"hooks", *wanted})
        for event, group in wanted.items():
            document.add(event, group)
        return _checked(data, document, start)


def without_hooks(data: bytes, where: str, first: bytes | None = None, events: Collection[str] = ()) -> bytes:
    """A file without hooks of casnap; what held nothing else goes, too. What was in the file at ``first`` stays.

    ``events`` are those that casnap puts hooks at.

    Raises:
        Usage: as for :func:`with_hooks`.
    """
    with _understood(where):
        start = _start(first, where, events)
        document = _Document(data, where, start)
        return _checked(data, document, start) if document.remove_ours(start.containers) else data


def all_hooks(data: bytes, where: str) -> list[dict[str, Any]]:
    """Whatever runs ``casnap hook`` in a file, whoever wrote it.

    Raises:
        Usage: as for :func:`with_hooks`.
    """
    with _understood(where):
        return [handler for _, groups in _Document(data, where).events() for _, _, handler in recognised(groups)]


def hooks_are_off(data: bytes) -> bool:
    """Whether a file that was understood tells the agent to run no hooks at all."""
    return values(data.decode("utf-8")).get("disableAllHooks") is True


def is_strict(data: bytes) -> bool:
    """Whether a file that was understood is JSON to every reader: without comments, with quotes around each name."""
    text = data.decode("utf-8").removeprefix(BOM)
    try:
        json.loads(text or "{}", parse_constant=_refuse)
    except ValueError:
        return False
    return True


def _refuse(name: str) -> None:
    raise ValueError(name)


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


class _Start(Struct, frozen=True):
    """What was in a file before casnap's first change, and the events that casnap has ``written`` hooks at since."""

    groups: Mapping[str, list[Any]] = {}
    containers: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()


_UNKNOWN = _Start()


def _start(first: bytes | None, where: str, events: Iterable[str]) -> _Start:
    if first is None:
        return _UNKNOWN
    document = _Document(first, where)
    return _Start(dict(document.events()), frozenset(document.containers()), frozenset(events))


def _checked(before: bytes, document: _Document, start: _Start) -> bytes:
    """What is to be written, if what is not casnap's is in it as it was."""
    after = document.text()
    left = replace(start, written=frozenset())  # where casnap's are out, whatever is left is the person's
    if _Document(before, document.where, start).foreign() != _Document(after, document.where, left).foreign():
        raise Usage(
            f"cannot change {document.where}: something else in it would change, too",
            code="bad-config",
            hint="add the hooks by hand; casnap plugin install --dry-run shows them",
        )
    return after


class _Document:
    """The parsed file, whose nodes remember the white space and comments around them."""

    def __init__(self, data: bytes, where: str, start: _Start = _UNKNOWN) -> None:
        from json5 import loads
        from json5.loader import ModelLoader
        from json5.utils import JSON5DecodeError

        self.where = where
        try:
            text = data.decode("utf-8")
            self._bom = text[:1] == BOM
            text = text.removeprefix(BOM)
            self._masked = Masked(text if text.strip() else "{}\n")
            self._model: Any = loads(self._masked.text, loader=ModelLoader())
        except (JSON5DecodeError, UnicodeDecodeError) as error:
            cause = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error).partition("\n")[0]
            raise _bad(self.where, f"it is no JSON: {cause}") from None
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._root = self._require(self._model.value, "JSONObject", "it is no object")
        self._unit = self._indentation()
        self._hooks = self._checked()
        self._start = start

    def _require(self, node: Any, kind: str, fault: str) -> Any:
        if type(node).__name__ != kind:
            raise _bad(self.where, fault)
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
            (event, groups[at])
            for event, groups in self.events()
            for at in sorted({at for at, _ in self._places(event, groups)})
        ]

    def events(self) -> Iterator[tuple[str, list[Any]]]:
        """Each event with its groups, as values."""
        yield from ((event, _value(groups)) for event, groups in self._events())

    def _events(self) -> Iterator[tuple[str, Any]]:
        if self._hooks is not None:
            yield from zip(map(_name, self._hooks.keys), self._hooks.values, strict=True)

    def _places(self, event: str, groups: list[Any]) -> set[Place]:
        return ours(groups, self._start.groups.get(event, []), written=event in self._start.written)

    def foreign(self) -> Any:
        """Everything else, as values; what casnap's hooks leave empty does not count."""
        found = values(self.text().decode("utf-8"))
        found.pop("hooks", None)
        kept = [(event, _without(groups, self._places(event, groups))) for event, groups in self.events()]
        return found, [(event, groups) for event, groups in kept if groups]

    def containers(self) -> set[str]:
        """``hooks`` if there is that, and the events in it."""
        return set() if self._hooks is None else {"hooks", *(event for event, _ in self._events())}

    def remove_ours(self, kept: Collection[str] = ()) -> bool:
        """Take out what is casnap's, and what is empty then and not to be ``kept``; whether anything was."""
        found = False
        for event, groups in list(self._events()):
            places = self._places(event, _value(groups))
            for at, number in sorted(places, reverse=True):  # from the end, so that the numbers of others stay
                group_handlers = _member(groups.values[at], "hooks")
                _remove_item(group_handlers, group_handlers.values[number])
                if not group_handlers.values:
                    _remove_item(groups, groups.values[at])
            found |= bool(places)
            if places and not groups.values and event not in kept:
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
        written = self._masked.unmasked(dumps(self._model, dumper=dumper))
        return ((BOM if self._bom else "") + written).encode("utf-8")


def _without(groups: list[Any], places: set[Place]) -> list[Any]:
    """Groups without what is at these places, nor those that nothing else is in."""
    kept = []
    for at, group in enumerate(groups):
        left = [one for number, one in enumerate(handlers(group)) if (at, number) not in places]
        if left == handlers(group):
            kept.append(group)
        elif left:
            kept.append({**group, "hooks": left})
    return kept


def _member(node: Any, name: str) -> Any:
    """The value of a key in an object; the last where it is there twice, None where it is not."""
    if type(node).__name__ != "JSONObject":
        return None
    pairs = zip(map(_name, node.keys), node.values, strict=True)
    return dict(pairs).get(name)


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
