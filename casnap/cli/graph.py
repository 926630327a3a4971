"""Drawing what descends from what, newest on top, as ``git log --graph`` does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

Node = tuple[str, str | None, str]
"""An id, the id of its parent, and its label."""


def graph_lines(nodes: Sequence[Node]) -> Iterator[str]:
    """The nodes, each after those that descend from it, one line each; lanes meet in lines of their own.

    A lane whose parent is not among the nodes goes on to the end.
    """
    lanes: list[str] = []  # what each column waits for
    for id, parent, label in nodes:
        if id not in lanes:
            lanes.append(id)
        at = lanes.index(id)
        marks = ["*" if column == at else "|" for column in range(len(lanes))]
        yield f"{' '.join(marks)} {label}"
        if parent is None:
            del lanes[at]
            if at < len(lanes):
                yield _drawn(len(lanes), slanting=range(at, len(lanes)))
        elif parent in lanes:
            left, right = sorted((at, lanes.index(parent)))
            lanes[left] = parent
            del lanes[right]
            yield from _joining(left, right, len(lanes))
        else:
            lanes[at] = parent


def _joining(left: int, right: int, lanes: int) -> Iterator[str]:
    """The lane ``right`` runs into ``left``, across those between them; ``lanes`` are left, the outer ones move up."""
    if right == left + 1:
        yield _drawn(lanes, slanting=range(left, lanes), upright=right)
        return
    yield _drawn(lanes, slanting=range(right - 1, lanes), upright=right, level=range(left + 1, right - 1))
    yield _drawn(lanes, slanting=range(left, left + 1), upright=lanes)


def _drawn(lanes: int, *, slanting: range, upright: int | None = None, level: range = range(0)) -> str:
    """One line: a bar in the columns before ``upright``, and behind each column of ``slanting`` a slash."""
    cells = [" "] * (2 * lanes + 1)
    for column in range(slanting.start if upright is None else upright):
        cells[2 * column] = "|"
    for column in slanting:
        cells[2 * column + 1] = "/"
    for column in level:
        cells[2 * column + 1] = "_"
    return "".join(cells).rstrip()
