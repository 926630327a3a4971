"""Staging: every new inode of a rollback stands complete under a temporary name before anything is changed.

Whatever fails here leaves the workspace as it was.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Mapping
from itertools import groupby

from casnap.errors import CasnapError, StorageFailed
from casnap.fs import making, placing
from casnap.fs.directories import Directories
from casnap.fs.making import Given
from casnap.model.clock import Progress
from casnap.model.paths import ROOT, escape, join, split
from casnap.model.tree import AnyNode, File, FileFlag
from casnap.workspace.building import Building
from casnap.workspace.inodes import Contents, NewInodes
from casnap.workspace.layout import Layout
from casnap.workspace.mounts import border_of
from casnap.workspace.reader import GONE
from casnap.workspace.signature import Signature
from casnap.workspace.temporaries import temporary_name

OWNER_MAY_CHANGE = 0o700
"""Permission bits that a directory needs for its owner to change what is in it."""

SYNCED_SINGLY = 64
"""Up to this many new inodes are forced out one by one; above, the whole file system is, which also writes what
others have left there."""

LEARNT_FOR = 8
"""For so many new inodes it pays to see first what is given there (:func:`casnap.fs.making.learn`)."""


class Staging:
    """The temporary side of a rollback. Call :meth:`stage`; then the switch takes over, or :meth:`abandon`.

    ``parents`` are the directories whose names change.
    ``staged`` maps a path to where its new inode stands (directory, name), or the topmost of new directories with all
    that is in it, which is left to ``building``; ``unreachable`` are paths that have none, and why: something
    was swapped in for a directory above them. Nothing can be moved across ``borders``, which are mount points: bind
    mounts of one device have them too.
    """

    def __init__(
        self,
        directories: Directories,
        layout: Layout,
        signatures: Mapping[bytes, Signature],
        *,
        nonce: str,
        contents: Contents,
        progress: Progress,
        borders: frozenset[bytes] = frozenset(),
    ) -> None:
        self.directories = directories
        self.layout = layout
        self.signatures = signatures
        self.nonce = nonce
        self.progress = progress
        self.borders = borders
        self.parents = frozenset(layout.parents())
        self.synced = len(layout.staged) <= SYNCED_SINGLY
        self.inodes = NewInodes(contents, sync=self.synced)
        self.building = Building(layout, directories, self._ground, self.inodes)
        self.staged: dict[bytes, tuple[bytes, bytes]] = {}
        self.loosened: dict[bytes, Signature] = {}
        self.unreachable: dict[bytes, str] = {}
        self._homes: dict[bytes, bytes] = {}
        self._home_of: dict[bytes, bytes] = {}
        self._given: dict[bytes, Given | None] = {}

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
                    self._loosen(path)
                except OSError as error:
                    _raise_unless_gone(path, error)
            for directory, entries in groupby(self.layout.staged.items(), key=lambda entry: split(entry[0])[0]):
                if directory in self.building:
                    self._build(directory, list(entries))
                else:
                    self._stage(entries)
            self._build_rest()
        except BaseException:
            self.abandon()
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

    def _stage(self, entries: Iterable[tuple[bytes, AnyNode]]) -> None:
        """Put new inodes of a directory that stays under temporary names."""
        for path, node in entries:
            try:
                home, name = self.home(path), b"%d" % len(self.staged)
                self.inodes.make(path, self.directories.fd(home), name, node, self._given[home])
                self.staged[path] = (home, name)
            except OSError as error:
                _raise_unless_gone(path, error)
                self.unreachable[path] = _UNREACHABLE
            self.progress.advance(_size(node))

    def _build(self, directory: bytes, entries: list[tuple[bytes, AnyNode]]) -> None:
        """Make what is in a new directory, all but the directories in it."""
        path = directory
        try:
            fd, given = self.building.enter(directory)
            for path, node in entries:
                self.inodes.make(path, fd, node.name, node, given)
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
        home, name = self.home(top), b"%d" % len(self.staged)
        self.staged[top] = (home, name)
        return join(home, name), self._given[home]

    def home(self, path: bytes) -> bytes:
        """The staging directory for ``path``: as high as one device and our rights reach, made on first use."""
        parent, _ = split(path)
        if parent not in self._home_of:
            self._home_of[parent] = self._home(parent)
        return self._home_of[parent]

    def _home(self, top: bytes) -> bytes:
        while top in self.building:
            top, _ = split(top)
        device = self.signatures[top].device
        while top != ROOT and top not in self.borders and self.signatures[split(top)[0]].device == device:
            if not self._may_use(split(top)[0]):
                break
            top, _ = split(top)
        if top not in self._homes:
            self._loosen(top)
            name = temporary_name(self.nonce, len(self._homes))
            placing.make_directory(self.directories.fd(top), name)
            self._homes[top] = home = join(top, name)
            many = len(self.layout.staged) + len(self.layout.directories) >= LEARNT_FOR
            self._given[home] = making.learn(self.directories.fd(home)) if many else None
        return self._homes[top]

    def _may_use(self, path: bytes) -> bool:
        """Whether names in a directory can be changed: now, or once its owner, who we are, has loosened it."""
        fd = self.directories.fd(path)
        return _is_writable(fd) or os.fstat(fd).st_uid == os.geteuid()

    def _loosen(self, path: bytes) -> None:
        """Let the owner change what is in a directory; its mode comes back at the end."""
        if path in self.loosened:
            return
        fd = self.directories.fd(path)
        if _is_writable(fd):
            return
        with contextlib.suppress(PermissionError):  # not ours: what cannot be done there will be reported
            placing.change_mode_of(fd, stat.S_IMODE(self.signatures[path].mode) | OWNER_MAY_CHANGE)
            self.loosened[path] = self.signatures[path]

    def abandon(self) -> None:
        """Take away what was staged; put back the modes and times of directories."""
        touched = self._homes.keys() | self.loosened.keys()
        self.remove_homes()
        for path in sorted(touched, reverse=True):
            signature = self.signatures[path]
            with contextlib.suppress(OSError, CasnapError):
                fd = self.directories.fd(path)
                placing.change_mode_of(fd, stat.S_IMODE(signature.mode))
                placing.set_times(fd, b".", signature.mtime_ns)

    @property
    def tops(self) -> frozenset[bytes]:
        """The directories that hold, or held, a staging directory."""
        return frozenset(self._homes)

    @property
    def touched(self) -> frozenset[bytes]:
        """What it changed by itself: staging directories that came and went, and directories that it loosened."""
        return frozenset((*self._homes.values(), *self.loosened))

    def remove_homes(self) -> None:
        """Take away the staging directories and what is left in them."""
        for home in self._homes.values():
            parent, name = split(home)
            self.directories.forget(home)
            with contextlib.suppress(OSError, CasnapError):
                placing.remove_staging(self.directories.fd(parent), name)


_SPARSE = FileFlag.SPARSE.value

_UNREACHABLE = "a directory above it changed after the safety checkpoint was taken"


def _raise_unless_gone(path: bytes, error: OSError) -> None:
    """Go on where a path's directory is not what it was, instead of giving everything up."""
    if error.errno not in GONE:
        cause = error.strerror or str(error)
        raise StorageFailed(f"cannot stage {escape(path)} in the workspace: {cause}; nothing was changed") from error


def _is_writable(fd: int) -> bool:
    return os.access(b".", os.W_OK | os.X_OK, dir_fd=fd, effective_ids=True)


def _size(node: AnyNode) -> int:
    return node.size if isinstance(node, File) else 0


def _is_sparse(node: AnyNode) -> bool:
    return isinstance(node, File) and bool(node.flags & _SPARSE)
