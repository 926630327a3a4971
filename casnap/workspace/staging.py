"""Staging: every new inode of a rollback stands complete under a temporary name before anything is changed.

Whatever fails here leaves the workspace as it was.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import count, groupby
from typing import TYPE_CHECKING

from casnap.errors import StorageFailed
from casnap.fs.directories import Directories
from casnap.fs.making import Given
from casnap.model.clock import Progress
from casnap.model.paths import ROOT, escape, join, split
from casnap.model.tree import AnyNode, File, FileFlag
from casnap.workspace.building import Building
from casnap.workspace.homes import Homes
from casnap.workspace.inodes import ContentsOf, NewInodes
from casnap.workspace.layout import Layout
from casnap.workspace.mounts import border_of
from casnap.workspace.reader import GONE
from casnap.workspace.signature import Signature

if TYPE_CHECKING:
    from casnap.fs.workers import Tell, Worker
    from casnap.workspace.sharing import Entry, Group

SHARED = 400
"""For so many new inodes it pays to fork a worker."""

SYNCED_SINGLY = 64
"""Up to this many new inodes are forced out one by one; above, the whole file system is, which also writes what
others have left there."""

LEARNT_FOR = 8
"""For so many new inodes it pays to see first what is given there (:func:`casnap.fs.making.learn`)."""


class Staging:
    """The temporary side of a rollback. Call :meth:`stage`; then the switch takes over.

    ``parents`` are the directories whose names change.
    ``staged`` maps a path to where its new inode stands (directory, name), or the topmost of new directories with all
    that is in it, which is left to ``building``; ``unreachable`` are paths that have none, and why: something
    was swapped in for a directory above them. Nothing can be moved across ``borders``, which are mount points: bind
    mounts of one device have them too. Where ``processes`` may be at work, a worker makes a part of what is much.
    """

    def __init__(
        self,
        directories: Directories,
        layout: Layout,
        signatures: Mapping[bytes, Signature],
        *,
        nonce: str,
        contents_of: ContentsOf,
        progress: Progress,
        borders: frozenset[bytes] = frozenset(),
        processes: int = 1,
    ) -> None:
        self.directories = directories
        self.layout = layout
        self.signatures = signatures
        self.progress = progress
        self.borders = borders
        self.parents = frozenset(layout.parents())
        self.synced = len(layout.staged) <= SYNCED_SINGLY
        self.inodes = NewInodes(contents_of, sync=self.synced)
        many = len(layout.staged) + len(layout.directories) >= LEARNT_FOR
        self.homes = Homes(directories, signatures, layout.directories, nonce=nonce, borders=borders, learns=many)
        self.building = Building(layout, directories, self._ground, self.inodes)
        self.staged: dict[bytes, tuple[bytes, bytes]] = {}
        self.unreachable: dict[bytes, str] = {}
        self._processes = processes
        self._shared: frozenset[bytes] = frozenset()
        self._numbers = count()

    def stage(self) -> None:
        """Put every new inode, complete, under a temporary name.

        Raises:
            StorageFailed: the workspace's disk is full or refuses; nothing is changed then.
            Damage: an object is missing or does not match its name; nothing is changed then.
        """
        self._require_space()
        self.progress.begin("writing", sum(_size(node) for node in self.layout.staged.values()))
        try:
            for path in sorted(self.parents - self.layout.directories.keys()):
                try:
                    self.homes.loosen(path)
                except OSError as error:
                    _raise_unless_gone(path, error)
            self._make_all()
            self._build_rest()
        except BaseException:
            self.homes.abandon()
            raise
        finally:
            self.progress.end()

    def _require_space(self) -> None:
        for border in (ROOT, *sorted(self.borders)):
            staged = [node for path, node in self.layout.staged.items() if border_of(path, self.borders) == border]
            created = [path for path in self.layout.directories if border_of(path, self.borders) == border]
            if staged or created:
                self._require_space_at(border, staged, len(staged) + len(created))

    def _require_space_at(self, border: bytes, staged: list[AnyNode], inodes: int) -> None:
        status = os.fstatvfs(self.directories.fd(border))
        wanted = sum(_size(node) for node in staged if not _is_sparse(node))
        if wanted > status.f_bavail * status.f_frsize:
            free = status.f_bavail * status.f_frsize
            raise StorageFailed(
                f"cannot write {wanted} bytes: the workspace's disk has {free} bytes free; nothing was changed",
                hint="free some space on the workspace's disk, then run the same command again",
            )
        if status.f_files and inodes > status.f_favail:
            raise StorageFailed("cannot write: the workspace's disk has too few inodes free; nothing was changed")

    def _make_all(self) -> None:
        """Make what is new, all but directories that have nothing else in them."""
        by_directory = groupby(self.layout.staged.items(), key=lambda entry: split(entry[0])[0])
        groups = [(directory, list(entries)) for directory, entries in by_directory]
        if self._processes < 2 or len(self.layout.staged) < SHARED:
            self._make(groups)
        else:
            self._share(groups)

    def _share(self, groups: list[Group]) -> None:
        """Have a worker make a part of them, in directories that are made before and left after."""
        from casnap.fs.workers import at_work  # here and below, since most rollbacks are of few files
        from casnap.workspace.sharing import divided

        own, workers = divided(groups)
        reached = [(directory, entries) for directory, entries in workers if self._prepare(directory, entries)]
        self._shared = frozenset(directory for directory, _ in reached)
        with at_work(partial(self._work, reached)) as worker:
            self._make(own if worker else [*own, *reached])
            if worker:
                self._take_over(worker)
        self._leave_shared()

    def _prepare(self, directory: bytes, entries: list[Entry]) -> bool:
        """See that a worker needs only make these; whether it can."""
        try:
            if directory in self.building:
                self.building.enter(directory)
            else:
                for path, _ in entries:
                    self._berth(path)
        except OSError as error:
            _raise_unless_gone(directory, error)
            self.unreachable.update((path, _UNREACHABLE) for path, _ in entries)
            return False
        return True

    def _work(self, groups: list[Group], tell: Tell) -> None:
        """What a worker does."""
        from casnap.workspace.sharing import Made, ToldProgress, tell_made

        self.progress = ToldProgress(tell)
        self.inodes.faults.clear()
        self.unreachable.clear()
        self._make(groups)
        self.progress.end()
        tell_made(tell, Made(self.inodes.faults, self.unreachable))

    def _take_over(self, worker: Worker) -> None:
        """Wait for what a worker makes."""
        from casnap.fs.workers import Lost
        from casnap.workspace.sharing import hear

        try:
            made = hear(worker.told(), self.progress.advance)
        except Lost:
            cause = "the process that made a part of it was killed; nothing was changed"
            raise StorageFailed(f"cannot write: {cause}", hint="run the same command again") from None
        self.inodes.faults += made.faults
        self.unreachable |= made.unreachable
        for path in made.unreachable:
            self.staged.pop(path, None)

    def _leave_shared(self) -> None:
        for directory in self._shared & self.building.made.keys():
            try:
                self.building.leave(directory)
            except OSError as error:
                _raise_unless_gone(directory, error)

    def _make(self, groups: list[Group]) -> None:
        self.inodes.announce(node for _, entries in groups for _, node in entries)
        for directory, entries in groups:
            if directory in self.building:
                self._build(directory, entries)
            else:
                self._stage(entries)

    def _stage(self, entries: Iterable[Entry]) -> None:
        """Put new inodes of a directory that stays under temporary names."""
        for path, node in entries:
            try:
                home, name = self._berth(path)
                self.inodes.make(path, self.directories.fd(home), name, node, self.homes.given[home])
            except OSError as error:
                _raise_unless_gone(path, error)
                self.staged.pop(path, None)
                self.unreachable[path] = _UNREACHABLE
            self.progress.advance(_size(node))

    def _berth(self, path: bytes) -> tuple[bytes, bytes]:
        """Where the new inode of a path stands until it gets its name."""
        if path not in self.staged:
            home = self.homes.of(path)
            self.staged[path] = (home, self._free_name())
        return self.staged[path]

    def _free_name(self) -> bytes:
        return b"%d" % next(self._numbers)

    def _build(self, directory: bytes, entries: list[Entry]) -> None:
        """Make what is in a new directory, all but the directories in it."""
        path = directory
        try:
            fd, given = self.building.enter(directory)
            for path, node in entries:
                self.inodes.make(path, fd, node.name, node, given)
            if directory not in self._shared:
                self.building.leave(directory)
        except OSError as error:
            _raise_unless_gone(path, error)
            self.unreachable.update((path, _UNREACHABLE) for path, _ in entries)
        self.progress.advance(sum(_size(node) for _, node in entries))

    def _build_rest(self) -> None:
        try:
            self.building.complete()
        except OSError as error:
            _raise_unless_gone(ROOT, error)
            missing = [path for path in self.layout.directories if path not in self.building.made]
            self.unreachable.update((path, _UNREACHABLE) for path in missing)

    def _ground(self, top: bytes) -> tuple[bytes, Given | None]:
        """Where a new directory is to be built, and what is given there."""
        home, name = self._berth(top)
        return join(home, name), self.homes.given[home]


_SPARSE = FileFlag.SPARSE.value

_UNREACHABLE = "a directory above it changed after the safety checkpoint was taken"


def _raise_unless_gone(path: bytes, error: OSError) -> None:
    """Go on where a path's directory is not what it was, instead of giving everything up."""
    if error.errno not in GONE:
        cause = error.strerror or str(error)
        raise StorageFailed(f"cannot stage {escape(path)} in the workspace: {cause}; nothing was changed") from error


def _size(node: AnyNode) -> int:
    return node.size if isinstance(node, File) else 0


def _is_sparse(node: AnyNode) -> bool:
    return isinstance(node, File) and bool(node.flags & _SPARSE)
