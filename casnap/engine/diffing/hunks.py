"""The differing lines of two texts with some equal ones around them, in the unified format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from casnap.engine.diffing.lines import Span, compare
from casnap.model.report import LineCount


def unified(old: Sequence[bytes], new: Sequence[bytes], context: int) -> tuple[bytes, LineCount]:
    """The hunks that turn ``old`` into ``new``, with ``context`` lines around, and how many lines they change."""
    text: list[bytes] = []
    added = removed = 0
    for group in _grouped(compare(old, new), context):
        first, last = group[0], group[-1]
        text.append(b"@@ -%s +%s @@\n" % (_range(first.old, last.old_end), _range(first.new, last.new_end)))
        for span in group:
            if span.equal:
                text += (_line(b" ", line) for line in old[span.old : span.old_end])
                continue
            text += (_line(b"-", line) for line in old[span.old : span.old_end])
            text += (_line(b"+", line) for line in new[span.new : span.new_end])
            added, removed = added + span.new_end - span.new, removed + span.old_end - span.old
    return b"".join(text), LineCount(added, removed)


def _line(mark: bytes, line: bytes) -> bytes:
    return mark + line if line.endswith(b"\n") else mark + line + b"\n\\ No newline at end of file\n"


def _range(start: int, end: int) -> bytes:
    length = end - start
    if length == 1:
        return b"%d" % (start + 1)
    return b"%d,%d" % (start + 1 if length else start, length)


def _grouped(spans: Sequence[Span], context: int) -> Iterator[list[Span]]:
    """Changes with ``context`` equal lines around them; those that are closer than that share a group."""
    group: list[Span] = []
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


def _part(span: Span, start: int, end: int) -> list[Span]:
    """The lines from ``start`` to ``end`` of equal ones; none when that is empty."""
    part = Span(True, span.old + start, span.old + end, span.new + start, span.new + end)
    return [part] if start < end else []
