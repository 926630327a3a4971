"""What is to be reached: how much of the other's time or bytes casnap may take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.own_rows import FEW_CHECKPOINTS, FEW_FILES, LSTAT, PYTHON
from bench.results import Results

SMALL, LARGE = 10_000, 100_000
BOTH = (SMALL, LARGE)

KEEPERS = ("restic", "borg", "git", "bup", "casync")
"""The programs that keep each byte once: what a big file is measured against."""

MIB = 1 << 20

WORDS = {
    "first": "first checkpoint",
    "unchanged": "checkpoint, nothing changed",
    "changed": "checkpoint, 8 files edited, 1 added, 1 deleted",
    "rollback": "rollback of 8 edited, 1 added, 1 deleted file",
    "restore": "full restore into an empty directory",
    "check": "read all that is stored, and check it",
    "big-first": "1 GiB file, first",
    "big-changed": "1 GiB file, 1 KiB inserted and 64 KiB overwritten",
    "steps": "100 steps of an agent",
    "copies": "10 near-copies in one store",
    "in-process": "`manager.create()` in a running process, nothing changed",
    "version": "`--version`, beside a Python that does nothing",
    "list": "`list`, beside a Python that does nothing",
    "cost-files": "one changed file: among all files, beside a tenth of them",
    "cost-checkpoints": "one changed file: 1,000 checkpoints in the store, beside 10",
}
"""What each row is; the order is that of the tables."""

FIGURES = {
    "time": "time",
    "growth": "bytes more",
    "store": "whole store",
    "compacted": "whole store, compacted",
}


@dataclass(frozen=True)
class Goal:
    """casnap's ``figure`` of a row is at most ``factor`` times the best of ``others``; of none: so many bytes."""

    row: str
    figure: str
    factor: float
    others: tuple[str, ...] = ()
    sizes: tuple[int, ...] = BOTH


GOALS = (
    Goal("first", "time", 0.7, ("casync",), (SMALL,)),
    Goal("first", "time", 0.35, ("git",), (SMALL,)),
    Goal("first", "time", 0.25, ("restic",), (SMALL,)),
    Goal("first", "time", 0.25, ("borg",), (SMALL,)),
    Goal("first", "time", 0.6, ("restic",), (LARGE,)),
    Goal("unchanged", "time", 0.8, ("git",), (SMALL,)),
    Goal("unchanged", "time", 1.0, ("git-manyfiles",), (SMALL,)),
    Goal("unchanged", "time", 0.85, ("git", "jj"), (LARGE,)),
    Goal("unchanged", "time", 0.1, ("restic",)),
    Goal("unchanged", "time", 0.1, ("borg",)),
    Goal("changed", "time", 0.9, ("git", "jj")),
    Goal("rollback", "time", 0.9, ("git",), (SMALL,)),
    Goal("rollback", "time", 0.8, ("jj",), (LARGE,)),
    Goal("restore", "time", 1.0, ("cp",)),
    Goal("restore", "time", 0.7, ("git",)),
    Goal("check", "time", 0.5, ("git",)),
    Goal("check", "time", 0.5, ("restic",)),
    Goal("big-first", "time", 1.0, KEEPERS, sizes=(SMALL,)),
    Goal("big-changed", "time", 1.0, KEEPERS, sizes=(SMALL,)),
    Goal("big-changed", "growth", MIB, sizes=(SMALL,)),
    Goal("steps", "growth", 0.15, ("git",), sizes=(SMALL,)),
    Goal("steps", "store", 0.85, ("git",), sizes=(SMALL,)),
    Goal("steps", "compacted", 0.95, ("git",), sizes=(SMALL,)),
    Goal("copies", "store", 0.95, ("borg",), sizes=(SMALL,)),
    Goal("copies", "compacted", 0.95, ("git",), sizes=(SMALL,)),
    Goal("in-process", "time", 1.5, (LSTAT,), sizes=(SMALL,)),
    Goal("version", "time", 1.5, (PYTHON,), sizes=(SMALL,)),
    Goal("list", "time", 4.0, (PYTHON,), sizes=(SMALL,)),
    Goal("cost-files", "time", 11.0, (FEW_FILES,), sizes=(SMALL,)),
    Goal("cost-checkpoints", "time", 1.1, (FEW_CHECKPOINTS,), sizes=(SMALL,)),
)


@dataclass(frozen=True)
class Verdict:
    """A goal beside what was measured: casnap's figure and the ``other``'s, in seconds or bytes; ``ratio`` of the two.

    ``other`` is the name of the best program that was measured, empty where the goal is a number of bytes. ``cpu`` is
    the ratio of processor time, which a busy machine disturbs less; None where that says nothing.
    """

    goal: Goal
    ours: float
    other: str
    theirs: float
    cpu: float | None = None

    @property
    def ratio(self) -> float:
        """How much of the other's casnap takes."""
        return self.ours / self.theirs

    @property
    def met(self) -> bool:
        """Whether that is within the goal."""
        return self.ratio <= self.bound

    @property
    def bound(self) -> float:
        """The greatest ratio that is within the goal."""
        return 1.0 if not self.goal.others else self.goal.factor


def verdicts(results: Results, size: int) -> list[Verdict]:
    """The goals for a size that can be judged by what was measured; a size without goals has those of the nearest."""
    nearest = SMALL if size < LARGE else LARGE
    judged = (_judge(results, size, goal) for goal in GOALS if nearest in goal.sizes)
    return [verdict for verdict in judged if verdict is not None]


def _judge(results: Results, size: int, goal: Goal) -> Verdict | None:
    def figure(peer: str, what: str = goal.figure) -> float | None:
        result = results.get(goal.row, size, peer)
        return None if result is None else result.figure(what)

    ours = figure("casnap")
    if ours is None:
        return None
    if not goal.others:
        return Verdict(goal, ours, "", goal.factor)
    theirs = [(amount, other) for other in goal.others if (amount := figure(other)) is not None]
    if not theirs:
        return None
    best, name = min(theirs)
    our_cpu, their_cpu = figure("casnap", "cpu"), figure(name, "cpu")
    cpu = our_cpu / their_cpu if goal.figure == "time" and our_cpu and their_cpu else None
    return Verdict(goal, ours, name, best, cpu)


def missed(found: Sequence[Verdict]) -> list[Verdict]:
    """Those that were not met."""
    return [verdict for verdict in found if not verdict.met]
