"""Drawing what descends from what, newest on top, as ``git log --graph`` does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

Node = tuple[str, str | None, str]
"""An id, the id of its parent, and its label."""


def graph_lines(nodes: Sequence[Node]) -> Iterator[str]:
    """One line a node, each after those that descend from it; branches meet in lines of their own."""
    shown = {id for id, _, _ in nodes}
    lanes: list[str | None] = []  # what each column waits for
    for id, parent, label in nodes:
        if id not in lanes:
            lanes.append(id)
        at = lanes.index(id)
        for other in [column for column, waited in enumerate(lanes) if waited == id and column != at][::-1]:
            yield "".join("/ " if column == other else "| " for column in range(other + 1)).rstrip()
            del lanes[other]
        marks = ["*" if column == at else "|" for column in range(len(lanes))]
        yield f"{' '.join(marks)} {label}"
        if parent in shown:
            lanes[at] = parent
        else:
            del lanes[at]
