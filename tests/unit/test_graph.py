"""The drawing of ``log --graph``: git draws the same."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from casnap.cli.graph import Node, graph_lines

WHO = "A <a@example.org>"


def drawn_by_git(directory: Path, nodes: Sequence[Node]) -> list[str]:
    """The same history, one parent each, as commits: what git draws of it."""
    subprocess.run(["git", "init", "-q", "--bare", str(directory)], check=True)
    marks = {id: mark for mark, (id, _, _) in enumerate(reversed(nodes), 1)}
    stream = []
    for id, parent, label in reversed(nodes):
        mark = marks[id]
        stream += [f"commit refs/heads/{id}", f"mark :{mark}", f"committer {WHO} {mark * 60} +0000"]
        stream += [f"data {len(label)}", label]
        stream += [f"from :{marks[parent]}"] if parent else []
        stream += ["", f"reset refs/heads/{id}", f"from :{mark}", ""]
    text = "\n".join(stream).encode()
    subprocess.run(["git", "-C", str(directory), "fast-import", "--quiet"], input=text, check=True)
    show = ["git", "-C", str(directory), "log", "--graph", "--date-order", "--all", "--format=%s"]
    drawn = subprocess.run(show, check=True, capture_output=True, text=True).stdout
    return [line.rstrip() for line in drawn.splitlines()]


def history(*parents: int) -> list[Node]:
    """Nodes numbered from 1 in the order in which they were made, newest first; 0 is no parent."""
    nodes = [(f"n{at}", f"n{parent}" if parent else None, f"n{at}") for at, parent in enumerate(parents, 1)]
    return nodes[::-1]


def test_a_line_of_descent_is_one_lane() -> None:
    assert list(graph_lines(history(0, 1, 2))) == ["* n3", "* n2", "* n1"]


def test_nothing_is_drawn_of_nothing() -> None:
    assert list(graph_lines([])) == []


def test_a_rollback_makes_a_second_lane_that_joins_the_first() -> None:
    assert list(graph_lines(history(0, 1, 2, 1))) == ["* n4", "| * n3", "| * n2", "|/", "* n1"]


def test_what_lies_before_the_limit_is_not_drawn_but_its_lane_is() -> None:
    assert list(graph_lines(history(0, 1, 1, 2)[:2])) == ["* n4", "| * n3"]


def plain(lines: list[str]) -> list[str]:
    """Git slants the bar beside a star where the next line will slant it anyway."""
    return [line.replace("/", "|") if "*" in line else line for line in lines]


@pytest.mark.parametrize("seed", [0, 3, 9, 11, 20])
def test_git_draws_the_same(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    count = chance.randint(5, 40)
    near = chance.choice([2, 4, 40])
    parents = [0, *(max(1, at - chance.randint(0, near)) for at in range(1, count))]
    nodes = history(*parents)
    assert plain(list(graph_lines(nodes))) == plain(drawn_by_git(tmp_path / "repo", nodes))


def test_lanes_beside_a_root_move_up_as_with_git(tmp_path: Path) -> None:
    nodes = history(0, 0, 1, 2, 3, 4)
    drawn = list(graph_lines(nodes))
    assert plain(drawn) == plain(drawn_by_git(tmp_path / "repo", nodes))
