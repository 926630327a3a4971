"""How large the directories of one tree are: each tree object is read once, also where it stands at many paths."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

from casnap.codec.trees import load_listing
from casnap.errors import Damage, TooNew
from casnap.model.objects import ObjectSource
from casnap.model.paths import ROOT, join, split
from casnap.model.report import Problem
from casnap.model.tree import Directory, File
from casnap.model.usage import DirectoryUsage

CHILD_SHARE = 0.9
"""A directory is not listed if one directory in it has this share of its bytes: that one is listed."""

GIT = b".git"


class _Listed(NamedTuple):
    """What stands in one directory itself: ``size`` and number of its files, and names and trees of its directories."""

    size: int
    files: int
    directories: tuple[tuple[bytes, bytes], ...]


class DirectorySizes:
    """The directories below one tree; what could not be read counts nothing and is a problem."""

    def __init__(self, source: ObjectSource, tree: bytes) -> None:
        self._source = source
        self._tree = tree
        self._listed: dict[bytes, _Listed] = {}
        self._totals: dict[bytes, tuple[int, int]] = {}
        self.problems: list[Problem] = []
        self._add_up()

    @property
    def total(self) -> tuple[int, int]:
        """Bytes and number of all files."""
        return self._totals[self._tree]

    def largest(self) -> Iterator[DirectoryUsage]:
        """Directories that hold anything, the largest first, of equal ones by path.

        One of which a directory in it has nine tenths is left out; what is in a git directory is not told apart.
        """
        waiting = [(-self.total[0], ROOT, self._tree)]
        while waiting:
            _, path, tree = heapq.heappop(waiting)
            size, files = self._totals[tree]
            below = () if split(path)[1] == GIT else self._listed[tree].directories
            largest_below = max((self._totals[child][0] for _, child in below), default=0)
            if path and size and largest_below < CHILD_SHARE * size:
                yield DirectoryUsage(path, size, files)
            for name, child in below:
                heapq.heappush(waiting, (-self._totals[child][0], join(path, name), child))

    def _add_up(self) -> None:
        waiting = [(ROOT, self._tree)]
        while waiting:
            path, tree = waiting[-1]
            listed = self._listed.get(tree)
            if listed is None:
                listed = self._listed[tree] = self._list(path, tree)
            missing = [(join(path, name), below) for name, below in listed.directories if below not in self._totals]
            if missing:
                waiting.extend(missing)
                continue
            waiting.pop()
            below = [self._totals[tree] for _, tree in listed.directories]
            self._totals[tree] = (
                listed.size + sum(size for size, _ in below),
                listed.files + sum(files for _, files in below),
            )

    def _list(self, path: bytes, tree: bytes) -> _Listed:
        try:
            listing = load_listing(self._source, tree)
        except (Damage, TooNew) as error:
            self.problems.append(Problem(path, error.message))
            return _Listed(0, 0, ())
        files = [entry.size for entry in listing if isinstance(entry, File)]
        directories = tuple((entry.name, entry.tree) for entry in listing if isinstance(entry, Directory))
        return _Listed(sum(files), len(files), directories)
