"""Sharing: which of the new inodes of a rollback a worker makes, and what it tells of them."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from casnap.fs.workers import Tell
from casnap.model.report import Problem
from casnap.model.tree import AnyNode, File

Entry = tuple[bytes, AnyNode]

Group = tuple[bytes, list[Entry]]
"""A directory, and what is new in it."""

_LIKE_A_FILE = 12 << 10
"""So many bytes take as long as making a file."""

_TOLD_AT_ONCE = 1 << 20


class Shares(NamedTuple):
    """What this process makes, and what a worker; a directory may have a part in both."""

    own: list[Group]
    workers: list[Group]


class Made(NamedTuple):
    """What came of a share: what could not be set, and the paths that have no new inode, with the reasons."""

    faults: list[Problem]
    unreachable: dict[bytes, str]


def divided(groups: Sequence[Group]) -> Shares:
    """Two shares that take about as long."""
    total = sum(_weight(node) for _, entries in groups for _, node in entries)
    shares, weight = Shares([], []), 0
    for directory, entries in groups:
        parts: tuple[list[Entry], list[Entry]] = ([], [])
        for entry in entries:
            parts[2 * weight >= total].append(entry)
            weight += _weight(entry[1])
        for share, part in zip(shares, parts, strict=True):
            if part:
                share.append((directory, part))
    return shares


def _weight(node: AnyNode) -> int:
    return _LIKE_A_FILE + node.size if isinstance(node, File) else _LIKE_A_FILE


class ToldProgress:
    """The progress of a worker, which is shown elsewhere."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._done = 0

    def begin(self, doing: str, total: int) -> None:
        """That is shown already."""

    def advance(self, amount: int) -> None:
        """Tell of it, not of every byte."""
        self._done += amount
        if self._done >= _TOLD_AT_ONCE:
            self.end()

    def end(self) -> None:
        """Tell the rest."""
        self._tell(marshal.dumps(self._done))
        self._done = 0


def tell_made(tell: Tell, made: Made) -> None:
    """What a worker says at last."""
    tell(marshal.dumps(([(fault.path, fault.message) for fault in made.faults], made.unreachable)))


def hear(told: Iterable[bytes], advance: Callable[[int], None]) -> Made:
    """Take in what a worker tells, to its end."""
    made = Made([], {})
    for data in told:
        said = marshal.loads(data)
        if isinstance(said, int):
            advance(said)
        else:
            made = Made([Problem(*fault) for fault in said[0]], said[1])
    return made
