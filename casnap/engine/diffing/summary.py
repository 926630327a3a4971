"""A diff in one line a path, as ``git diff --name-status`` and ``git diff --stat`` have it."""

from __future__ import annotations

from casnap.engine.diffing.git_modes import is_in_patch
from casnap.engine.diffing.quoting import quote
from casnap.model.change import Aspect, Change, ChangeKind
from casnap.model.report import Diff, LineCount
from casnap.model.tree import AnyEntry, File

WIDTH = 80
"""Columns that a line of ``--stat`` takes, longer names aside."""

_LEAST_GRAPH = 10
_VERBS = {ChangeKind.ADDED: "new", ChangeKind.REMOVED: "deleted", ChangeKind.RETYPED: "another kind"}


def name_status_lines(diff: Diff) -> str:
    """One line a change: git's letter (of a rename with the similarity, and both paths), a tab, the path."""
    return "".join(f"{_status(change)}\t{_name(change.path)}\n" for change in diff)


def _status(change: Change) -> str:
    if change.renamed_from is None:
        return change.kind.value
    return f"{change.kind.value}{change.similarity:03d}\t{_name(change.renamed_from)}"


def _name(path: bytes) -> str:
    """A path as git prints it; the workspace itself, which git never prints, is a dot."""
    return quote(path) if path else "."


def stat_lines(diff: Diff) -> str:
    """One line a change: the path, and how many lines were added and removed; then their sums."""
    if not diff:
        return ""
    names = [_title(change) for change in diff]
    width = max(map(len, names))
    most = max(count.added + count.removed for count in diff.lines)
    digits = len(str(most))
    graph = max(WIDTH - width - digits - len(" | ") - len(" +-"), _LEAST_GRAPH)
    cut = set(diff.cut)
    lines = []
    for name, change, count in zip(names, diff, diff.lines, strict=True):
        amount = _amount(change, count, digits, most, graph, large=change.path in cut)
        lines.append(f" {name:<{width}} | {amount}\n")
    return "".join(lines) + _total(diff)


def _title(change: Change) -> str:
    origin = "" if change.renamed_from is None else f"{_name(change.renamed_from)} => "
    return origin + _name(change.path)


def _amount(change: Change, count: LineCount, digits: int, most: int, graph: int, *, large: bool) -> str:
    if not is_in_patch(change):
        return _words(change)
    if not count.shown:
        return f"{'Large' if large else 'Bin'} {_size(change.old)} -> {_size(change.new)} bytes"
    marks = "+" * _scaled(count.added, most, graph) + "-" * _scaled(count.removed, most, graph)
    return f"{count.added + count.removed:>{digits}} {marks}".rstrip()


def _words(change: Change) -> str:
    """What happened, for what git has no words for."""
    if verb := _VERBS.get(change.kind):
        entry = change.old if change.new is None else change.new
        return f"({verb}: {type(entry).__name__.lower()})"
    named = [str(aspect.name).lower() for aspect in Aspect if aspect in change.aspects and aspect is not Aspect.TIME]
    return f"({', '.join(named)})"


def _size(entry: AnyEntry | None) -> int:
    return entry.size if isinstance(entry, File) else 0


def _scaled(count: int, most: int, width: int) -> int:
    """How many marks stand for ``count``: at least one for anything, and ``width`` for ``most``."""
    if most <= width or not count:
        return count
    return 1 + count * (width - 1) // most


def _total(diff: Diff) -> str:
    files = sum(is_in_patch(change) for change in diff)
    added, removed = sum(count.added for count in diff.lines), sum(count.removed for count in diff.lines)
    parts = [f"{_counted(files, 'file')} changed"]
    if added or not removed:
        parts.append(f"{_counted(added, 'insertion')}(+)")
    if removed or not added:
        parts.append(f"{_counted(removed, 'deletion')}(-)")
    if others := len(diff) - files:
        parts.append(f"{_counted(others, 'other path')} changed")
    return f" {', '.join(parts)}\n"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
