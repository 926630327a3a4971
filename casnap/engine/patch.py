"""Patches as git writes them (git-diff(1), "generating patch text with -p"), so that ``git apply`` reads them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from casnap.model.change import Aspect, Change, ChangeKind
from casnap.model.report import Diff, LineCount
from casnap.model.tree import AnyEntry, Device, Directory, Fifo, File, Omitted, Symlink

TEXT_LIMIT = 1 << 20
"""Files above this many bytes are not compared line by line."""

COMPARED_LINES = 2000
"""Above this many lines on a side, the part that differs is shown as replaced whole: comparing is quadratic."""

_BINARY_PROBE = 8000
_KIND_BITS = {File: 0o100000, Symlink: 0o120000, Directory: 0o040000, Fifo: 0o010000}
_QUOTED = {
    0x07: "\\a",
    0x08: "\\b",
    0x09: "\\t",
    0x0A: "\\n",
    0x0B: "\\v",
    0x0C: "\\f",
    0x0D: "\\r",
    0x22: '\\"',
    0x5C: "\\\\",
}


@dataclass(frozen=True, slots=True)
class FilePatch:
    """The text for one change, and how many lines it adds and removes."""

    text: str
    count: LineCount


def patch_of(change: Change, old: bytes | None, new: bytes | None, context: int) -> FilePatch:
    """The patch of one change, from the files' bytes (None: too many to compare).

    A change of kind is a removal and an addition, as in git.
    """
    if change.kind is ChangeKind.RETYPED:
        removal = patch_of(Change(change.path, ChangeKind.REMOVED, change.old, None), old, b"", context)
        addition = patch_of(Change(change.path, ChangeKind.ADDED, None, change.new), b"", new, context)
        count = LineCount(addition.count.added, removal.count.removed, addition.count.shown and removal.count.shown)
        return FilePatch(removal.text + addition.text, count)
    header = _header(change)
    before, after = _text(change.old, old), _text(change.new, new)
    if before == after and before is not None:
        return FilePatch(header, LineCount())
    if before is None or after is None:
        return FilePatch(header + f"File too large to compare: {_sizes(change)}\n", LineCount(shown=False))
    names = _name(b"a/", change.path, change.old), _name(b"b/", change.path, change.new)
    if b"\0" in before[:_BINARY_PROBE] or b"\0" in after[:_BINARY_PROBE]:
        return FilePatch(header + f"Binary files {names[0]} and {names[1]} differ\n", LineCount(shown=False))
    lines = list(_hunks(_lines(before), _lines(after), context))
    count = LineCount(sum(line[0] == "+" for line in lines), sum(line[0] == "-" for line in lines))
    return FilePatch(f"{header}--- {names[0]}\n+++ {names[1]}\n{''.join(lines)}", count)


def _header(change: Change) -> str:
    old, new = change.old, change.new
    lines = [f"diff --git {_quote(b'a/' + change.path)} {_quote(b'b/' + change.path)}"]
    if new is None:
        lines.append(f"deleted {_what(old)} mode {_mode(old)}")
    elif old is None:
        lines.append(f"new {_what(new)} mode {_mode(new)}")
    elif Aspect.MODE in change.aspects:
        lines += [f"old mode {_mode(old)}", f"new mode {_mode(new)}"]
    other = {Aspect.OWNER: "owner", Aspect.XATTRS: "extended attributes", Aspect.LINKS: "hard links"}
    named = [word for aspect, word in other.items() if aspect in change.aspects]
    if named:
        lines.append(f"changed {', '.join(named)}")
    return "".join(f"{line}\n" for line in lines)


def _what(entry: AnyEntry | None) -> str:
    return "directory" if isinstance(entry, Directory) else "file"


def _mode(entry: AnyEntry | None) -> str:
    match entry:
        case None | Omitted():
            return "000000"
        case Symlink():
            return "120000"
        case Device(block=block):
            return f"{(0o060000 if block else 0o020000) | entry.mode:06o}"
        case _:
            return f"{_KIND_BITS[type(entry)] | entry.mode:06o}"


def _text(entry: AnyEntry | None, data: bytes | None) -> bytes | None:
    """What is compared: a file's bytes, a link's target."""
    return entry.target if isinstance(entry, Symlink) else data


def _sizes(change: Change) -> str:
    sizes = [str(entry.size) if isinstance(entry, File) else "0" for entry in (change.old, change.new)]
    return f"{sizes[0]} bytes before, {sizes[1]} bytes after"


def _name(prefix: bytes, path: bytes, entry: AnyEntry | None) -> str:
    return "/dev/null" if entry is None else _quote(prefix + path)


def _quote(path: bytes) -> str:
    """A path as git prints it: in C quotes where it holds anything odd."""
    try:
        text = path.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if text.isprintable() and text and '"' not in text and "\\" not in text:
        return text
    quoted = (_QUOTED.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}") for byte in path)
    return f'"{"".join(quoted)}"'


def _lines(data: bytes) -> list[str]:
    """Lines with their LF; only LF ends a line."""
    text = data.decode("utf-8", "surrogateescape")
    lines = [line + "\n" for line in text.split("\n")]
    if lines[-1] == "\n":
        lines.pop()
    else:
        lines[-1] = lines[-1][:-1]
    return lines


def _hunks(old: Sequence[str], new: Sequence[str], context: int) -> Iterator[str]:
    for group in _grouped(_spans(old, new), context):
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first.old, last.old_end)} +{_range(first.new, last.new_end)} @@\n"
        for span in group:
            if span.equal:
                yield from (_line(" ", line) for line in old[span.old : span.old_end])
                continue
            yield from (_line("-", line) for line in old[span.old : span.old_end])
            yield from (_line("+", line) for line in new[span.new : span.new_end])


def _line(mark: str, line: str) -> str:
    return mark + line if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"


def _range(start: int, end: int) -> str:
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


class _Span(NamedTuple):
    """Lines of both sides that are equal, or that replace each other; either may be empty then."""

    equal: bool
    old: int
    old_end: int
    new: int
    new_end: int


def _spans(old: Sequence[str], new: Sequence[str]) -> list[_Span]:
    """All of both sides in order; only what lies between their common beginning and end is compared."""
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    old_middle, new_middle = old[head : len(old) - tail], new[head : len(new) - tail]
    spans = [_Span(True, 0, head, 0, head)]
    if max(len(old_middle), len(new_middle)) > COMPARED_LINES:
        spans.append(_Span(False, head, len(old) - tail, head, len(new) - tail))
    else:
        matcher = difflib.SequenceMatcher(None, old_middle, new_middle, autojunk=False)
        spans += [
            _Span(tag == "equal", i1 + head, i2 + head, j1 + head, j2 + head)
            for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        ]
    spans.append(_Span(True, len(old) - tail, len(old), len(new) - tail, len(new)))
    return [span for span in spans if span.old < span.old_end or span.new < span.new_end]


def _grouped(spans: Sequence[_Span], context: int) -> Iterator[list[_Span]]:
    """Changes with ``context`` equal lines around them; those that are closer than that share a group."""
    group: list[_Span] = []
    for span in spans:
        length = span.old_end - span.old
        if not span.equal or (group and length <= 2 * context and span is not spans[-1]):
            group.append(span)
            continue
        if group:
            yield group + _part(span, 0, min(context, length))
        group = _part(span, max(length - context, 0), length)
    if group and not spans[-1].equal:
        yield group


def _part(span: _Span, start: int, end: int) -> list[_Span]:
    """The lines from ``start`` to ``end`` of equal ones; none when that is empty."""
    part = _Span(True, span.old + start, span.old + end, span.new + start, span.new + end)
    return [part] if start < end else []


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """How many items two sequences begin with in common."""
    for count, (before, after) in enumerate(zip(old, new, strict=False)):
        if before != after:
            return count
    return min(len(old), len(new))


def name_status_lines(diff: Diff) -> str:
    """One line a change: git's letter, a tab, the path."""
    return "".join(f"{change.kind.value}\t{_quote(change.path)}\n" for change in diff)


def stat_lines(diff: Diff) -> str:
    """One line a change: the path, and how many lines were added and removed; then their sums."""
    names = [_quote(change.path) for change in diff]
    width = max(map(len, names), default=0)
    lines = []
    for name, change, count in zip(names, diff, diff.lines, strict=True):
        shown = f"+{count.added} -{count.removed}" if count.shown else "binary"
        lines.append(f" {change.kind.value} {name:<{width}} | {shown}\n")
    added, removed = sum(count.added for count in diff.lines), sum(count.removed for count in diff.lines)
    return "".join(lines) + f" {len(diff)} paths changed, {added} lines added, {removed} lines removed\n"
