"""Which directories are as the stat cache has them: told from stats alone, nothing listed and nothing opened.

One lstat of each name that is known, and a comparison of whole columns: 10,000 files take 20 ms. A directory is not
listed again when its own stat is as it was, on file systems that are known to change it with every name.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Collection
from itertools import compress, count
from operator import ne

from casnap.model.paths import ancestors, split
from casnap.workspace.cache import Trait
from casnap.workspace.cache_file import CacheFile, Patched, StoredDirectory
from casnap.workspace.garbage import no_collection
from casnap.workspace.stats import Stats

KEEP_TIMES = frozenset(
    {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "ramfs", "reiserfs", "tmpfs", "xfs", "zfs"}
)
"""File systems that change a directory's own times whenever a name in it comes, goes or changes."""

SHARED = 5_000
"""For so many rows it pays to fork a worker: that takes as long as looking at a thousand."""


class Proof:
    """What of a cache still holds: ``same`` has a byte for each directory of its file, 1 where it is as it was.

    ``holds_all`` says that nothing has changed at all. Of a cache that a scan has patched only what it took from the
    file can hold.
    """

    def __init__(self, directories: CacheFile | Patched, same: bytearray, *, holds_all: bool) -> None:
        self.file = _file_of(directories)
        self.holds_all = holds_all
        self._same = same
        self._children: dict[bytes, list[bytes]] | None = None
        if isinstance(directories, Patched):
            self._forget(directories)

    def later(self, directories: CacheFile | Patched) -> Proof | None:
        """What held, for whoever asks again without a look; None where ``directories`` come from another file.

        A scan that began with it has made ``directories`` of what it was proof of.
        """
        if _file_of(directories) is not self.file:
            return None
        return Proof(directories, bytearray(self._same), holds_all=self.holds_all)

    def doubt(self, paths: Collection[bytes]) -> None:
        """Let nothing hold that has one of these paths in it, or is at or below one of them."""
        if not paths:
            return
        self.holds_all = False
        doubted = frozenset(paths)
        parents = {split(path)[0] for path in doubted}
        for number, known in enumerate(self.file.paths):
            if known in parents or not doubted.isdisjoint((known, *ancestors(known))):
                self._same[number] = 0

    def note_touched(self, paths: Collection[bytes]) -> None:
        """Let nothing hold that is one of these paths or has one in it."""
        self.holds_all = self.holds_all and not paths
        for path in (*paths, *(split(path)[0] for path in paths)):
            if (number := self.file.numbers.get(path)) is not None:
                self._same[number] = 0

    def holds(self, path: bytes) -> bool:
        """Whether a directory, what is below it aside, can be taken as it is in the cache."""
        number = self.file.numbers.get(path)
        return number is not None and bool(self._same[number])

    def run(self, path: bytes) -> tuple[int, int] | None:
        """The numbers of the first and the last directory at and below ``path``, if all of them can be passed over.

        Something that must be said of a directory, though it is as it was, keeps it from being passed over.
        """
        first = self.file.numbers[path]
        last = self._last(first)
        if last < 0 or self._same.find(0, first, last + 1) >= 0:
            return None
        return None if any(map(_TOLD.__and__, self.file.traits[first : last + 1])) else (first, last)

    def _last(self, first: int) -> int:
        """The number of the last directory below another; -1 where they do not follow each other."""
        ends = self.file.ends
        return ends[first] if ends else -1

    def children(self, path: bytes) -> list[bytes]:
        """The names of the directories in one, as the cache has them."""
        if self._children is None:
            self._children = {}
            for known in self.file.paths[1:]:
                parent, name = split(known)
                self._children.setdefault(parent, []).append(name)
        return self._children.get(path, [])

    def _forget(self, directories: Patched) -> None:
        """Let nothing be the same that is not taken from the file."""
        taken = bytearray(len(self._same))
        for part in directories.parts.values():
            first, last = part if isinstance(part, tuple) else (0, -1)
            if isinstance(part, StoredDirectory) and part.file is directories.file:
                first = last = part.number
            taken[first : last + 1] = b"\1" * (last + 1 - first)
        for number, is_taken in enumerate(taken):
            self._same[number] &= is_taken
        self.holds_all = self.holds_all and all(taken)


def prove(directories: CacheFile | Patched, root_fd: int, *, processes: int = 1) -> Proof:
    """Look at everything that a cache knows below ``root_fd``; with ``processes`` at work on much of it."""
    file = _file_of(directories)
    same = _unchanged(file, root_fd, processes)
    holds_all = all(same) and not any(traits & Trait.UNPROVABLE for traits in file.traits)
    for number, traits in enumerate(file.traits):
        if traits & (Trait.UNPROVABLE | Trait.RULES):
            same[number] = 0
    return Proof(directories, same, holds_all=holds_all)


def _file_of(directories: CacheFile | Patched) -> CacheFile:
    return directories.file if isinstance(directories, Patched) else directories


_TOLD = Trait.OMITS | Trait.LINKS | Trait.SIDE_FILES | Trait.GIT_ROOT


def _unchanged(file: CacheFile, root_fd: int, processes: int) -> bytearray:
    """A byte for each directory: 1 where its own stat and those of all its rows are as they were."""
    with no_collection():
        changed = _changed_rows(file, root_fd, processes)
        own = _looked(file.paths, root_fd)
        if own:
            own[0] = os.fstat(root_fd)
        same = bytearray(b"\1") * len(file.paths)
        for number in _differing(own, file.own):
            same[number] = 0
        for number, (stat, device) in enumerate(zip(own, file.devices, strict=True)):
            if stat is not None and stat.st_dev != device:  # what is new there has other numbers than what is known
                same[number] = 0
        starts, directory = file.starts, 0
        for row in sorted(changed):
            while starts[directory + 1] <= row:
                directory += 1
            same[directory] = 0
    return same


def _changed_rows(file: CacheFile, root_fd: int, processes: int) -> set[int]:
    """The rows that are not as they were: half of them are looked at by a worker, where there are many."""
    rows = len(file.row_paths)
    if processes < 2 or rows < SHARED:
        return _changed(file, root_fd, 0, rows)
    from casnap.fs.workers import Lost, at_work  # here, since most workspaces are small

    half = max(0, rows - len(file.paths)) // 2  # the directories themselves come on top of that
    with at_work(lambda tell: tell(array("Q", _changed(file, root_fd, half, rows)).tobytes())) as worker:
        if worker is None:
            return _changed(file, root_fd, 0, rows)
        changed = _changed(file, root_fd, 0, half)
        try:
            for told in worker.told():
                changed.update(memoryview(told).cast("Q"))
        except Lost:
            changed |= _changed(file, root_fd, half, rows)
    return changed


def _changed(file: CacheFile, root_fd: int, start: int, end: int) -> set[int]:
    """Those among the rows from ``start`` to ``end``."""
    known = Stats()
    known.extend(file.rows, start, end)
    return {start + row for row in _differing(_looked(file.row_paths[start:end], root_fd), known)}


def _looked(paths: list[bytes], root_fd: int) -> list[os.stat_result | None]:
    """The stat of each path, its last component not followed; None where there is none."""
    lstat = os.lstat  # in one thread: two hold each other up
    found: list[os.stat_result | None] = []
    take, ahead = found.append, iter(paths)
    while len(found) < len(paths):
        try:
            for path in ahead:
                take(lstat(path or b".", dir_fd=root_fd))
        except OSError:
            take(None)
    return found


def _differing(stats: list[os.stat_result | None], known: Stats) -> set[int]:
    """The rows that are not as they were."""
    gone = {row for row, stat in enumerate(stats) if stat is None} if None in stats else set()
    found = [stat or _NOTHING for stat in stats]
    columns = known.columns
    try:
        now = {
            "mtime": array("q", [stat.st_mtime_ns for stat in found]),
            "ctime": array("q", [stat.st_ctime_ns for stat in found]),
            "inode": array("Q", [stat.st_ino for stat in found]),
            "size": array("q", [stat.st_size for stat in found]),
            "mode": array("I", [stat.st_mode for stat in found]),
        }
    except OverflowError:
        return gone | {row for row, stat in enumerate(found) if not _equals(known, row, stat)}
    differing = gone
    for name, column in now.items():
        if column != columns[name]:
            differing.update(compress(count(), map(ne, column, columns[name])))
    return differing


_NOTHING = os.stat_result([0] * 19)
"""Stands where nothing is."""


def _equals(known: Stats, row: int, stat: os.stat_result) -> bool:
    found = known.get(row, 0)
    return found is not None and found.matches(stat)
