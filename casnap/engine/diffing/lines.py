"""Which lines of two texts are the same, in time and memory that follow the size of the texts.

Lines that only one side has cannot match and are put aside; what is left is given to a compiled comparison,
which finds the longest common subsequence, as long as that is small enough. What is larger is first cut at
lines that occur once on each side. Where there are none of those either, it counts as replaced.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

CELLS = 400_000_000
"""The product of two lengths up to which lines are compared: 50 MB and a tenth of a second."""

LEVELS = 8
"""How often a part is cut at unique lines within unique lines."""


class Span(NamedTuple):
    """Lines of both sides that are equal, or that replace each other; either side may be empty then."""

    equal: bool
    old: int
    old_end: int
    new: int
    new_end: int


class _Run(NamedTuple):
    """So many equal lines, from these on."""

    old: int
    new: int
    length: int


class _Part(NamedTuple):
    """What is still to be compared."""

    old: int
    old_end: int
    new: int
    new_end: int
    level: int


def split_lines(data: bytes) -> list[bytes]:
    """Lines with their LF; nothing else ends a line."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    if lines[-1] == b"\n":
        lines.pop()
    else:
        lines[-1] = lines[-1][:-1]
    return lines


def compare(old: Sequence[bytes], new: Sequence[bytes]) -> list[Span]:
    """All of both sides in order, equal spans and others in turn."""
    numbers: dict[bytes, int] = {}
    before = [numbers.setdefault(line, len(numbers)) for line in old]
    after = [numbers.setdefault(line, len(numbers)) for line in new]
    return _slid(before, after, _spans(sorted(_runs(before, after)), len(before), len(after)))


def _runs(old: list[int], new: list[int]) -> Iterator[_Run]:
    waiting = [_Part(0, len(old), 0, len(new), 0)]
    while waiting:
        part, runs = _trimmed(old, new, waiting.pop())
        yield from runs
        if part.old == part.old_end or part.new == part.new_end:
            continue
        on_both = set(old[part.old : part.old_end]).intersection(new[part.new : part.new_end])
        before = [at for at in range(part.old, part.old_end) if old[at] in on_both]
        after = [at for at in range(part.new, part.new_end) if new[at] in on_both]
        if not on_both:
            continue
        if len(before) * len(after) <= CELLS:
            yield from _common(old, new, before, after)
        elif part.level < LEVELS:
            waiting += _cut(part, _anchors(old, new, before, after))


def _trimmed(old: list[int], new: list[int], part: _Part) -> tuple[_Part, list[_Run]]:
    """The part without what its sides begin and end with in common, and that."""
    runs = []
    start, new_start, end, new_end, level = part.old, part.new, part.old_end, part.new_end, part.level
    while start < end and new_start < new_end and old[start] == new[new_start]:
        start, new_start = start + 1, new_start + 1
    if start > part.old:
        runs.append(_Run(part.old, part.new, start - part.old))
    while start < end and new_start < new_end and old[end - 1] == new[new_end - 1]:
        end, new_end = end - 1, new_end - 1
    if end < part.old_end:
        runs.append(_Run(end, new_end, part.old_end - end))
    return _Part(start, end, new_start, new_end, level), runs


def _common(old: list[int], new: list[int], before: list[int], after: list[int]) -> Iterator[_Run]:
    """The longest common subsequence of the lines at these places."""
    from rapidfuzz.distance import Indel  # here: most changes are found without it, and it takes a while to import

    for code in Indel.opcodes([old[at] for at in before], [new[at] for at in after]):
        if code.tag == "equal":
            places = zip(before[code.src_start : code.src_end], after[code.dest_start : code.dest_end], strict=True)
            yield from (_Run(place, new_place, 1) for place, new_place in places)


def _anchors(old: list[int], new: list[int], before: list[int], after: list[int]) -> list[tuple[int, int]]:
    """Places of lines that occur once on each side: the longest ascending chain of them."""
    often, new_often = Counter(old[at] for at in before), Counter(new[at] for at in after)
    places = {new[at]: at for at in after if new_often[new[at]] == 1}
    pairs = [(at, places[old[at]]) for at in before if often[old[at]] == 1 and old[at] in places]
    ends: list[int] = []  # for each length of a chain, where the best chain ends, and its last pair
    last: list[int] = []
    previous: list[int] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        previous.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        last[length : length + 1] = [number]
    chain = []
    number = last[-1] if last else -1
    while number >= 0:
        chain.append(pairs[number])
        number = previous[number]
    return chain[::-1]


def _cut(part: _Part, anchors: list[tuple[int, int]]) -> list[_Part]:
    """The parts between anchors, each but the first beginning with one; none where there are no anchors."""
    if not anchors:
        return []
    starts = [(part.old, part.new), *anchors]
    ends = [*anchors, (part.old_end, part.new_end)]
    return [
        _Part(old, old_end, new, new_end, part.level + 1)
        for (old, new), (old_end, new_end) in zip(starts, ends, strict=True)
    ]


def _spans(runs: list[_Run], old_length: int, new_length: int) -> list[Span]:
    spans: list[Span] = []
    old = new = 0
    for run in [*runs, _Run(old_length, new_length, 0)]:
        if run.old > old or run.new > new:
            spans.append(Span(False, old, run.old, new, run.new))
        elif spans and spans[-1].equal:
            spans[-1] = spans[-1]._replace(old_end=old + run.length, new_end=new + run.length)
            old, new = old + run.length, new + run.length
            continue
        old, new = run.old + run.length, run.new + run.length
        if run.length:
            spans.append(Span(True, run.old, old, run.new, new))
    return spans


def _slid(old: list[int], new: list[int], spans: list[Span]) -> list[Span]:
    """Lines that are only added, or only removed, as far down as they can be said to stand: at the end of a block."""
    for at in range(1, len(spans) - 1):
        above, change, below = spans[at - 1 : at + 2]
        if change.equal or (change.old < change.old_end and change.new < change.new_end):
            continue
        lines, start, end = (
            (old, change.old, change.old_end) if change.old < change.old_end else (new, change.new, change.new_end)
        )
        by, most = 0, below.old_end - below.old - 1  # one equal line stays, so that spans go on to take turns
        while by < most and lines[start + by] == lines[end + by]:
            by += 1
        if by:
            spans[at - 1] = above._replace(old_end=above.old_end + by, new_end=above.new_end + by)
            spans[at] = Span(False, change.old + by, change.old_end + by, change.new + by, change.new_end + by)
            spans[at + 1] = below._replace(old=below.old + by, new=below.new + by)
    return spans
