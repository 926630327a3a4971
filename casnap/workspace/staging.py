"""Staging: every new inode of a rollback stands complete under a temporary name before anything is changed.

Whatever fails here leaves the workspace as it was.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping

from casnap.codec.hashing import ContentHasher
from casnap.errors import CasnapError, Damage, StorageFailed
from casnap.fs import placing
from casnap.fs.directories import Directories
from casnap.model.clock import Progress
from casnap.model.paths import ROOT, escape, join, split
from casnap.model.report import Problem
from casnap.model.tree import AnyNode, File, FileFlag
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

Content = Callable[[File], Iterator[bytes]]
"""Gives a file's bytes in pieces, each checked against its name."""


class Staging:
    """The temporary side of a rollback. Call :meth:`stage`; then the switch takes over, or :meth:`abandon`.

    ``staged`` maps a path to where its new inode stands (directory, name); ``unreachable`` are paths that have none,
    and why: something was swapped in for a directory above them. Nothing can be moved across ``borders``, which are
    mount points: bind mounts of one device have them too.
    """

    def __init__(
        self,
        directories: Directories,
        layout: Layout,
        signatures: Mapping[bytes, Signature],
        *,
        nonce: str,
        content: Content,
        progress: Progress,
        borders: frozenset[bytes] = frozenset(),
    ) -> None:
        self.directories = directories
        self.layout = layout
        self.signatures = signatures
        self.nonce = nonce
        self.content = content
        self.progress = progress
        self.borders = borders
        self.created = frozenset(layout.directories)
        self.synced = len(layout.staged) <= SYNCED_SINGLY
        self.staged: dict[bytes, tuple[bytes, bytes]] = {}
        self.loosened: dict[bytes, Signature] = {}
        self.faults: list[Problem] = []
        self.unreachable: dict[bytes, str] = {}
        self._homes: dict[bytes, bytes] = {}
        self._home_of: dict[bytes, bytes] = {}

    def stage(self) -> None:
        """Put every new inode, complete, under a temporary name.

        Raises:
            StorageFailed: the workspace's disk is full or refuses; nothing is changed then.
            Damage: an object is missing or does not match its name; nothing is changed then.
        """
        self._require_space()
        self.progress.begin("writing", sum(_size(node) for node in self.layout.staged.values()))
        path = ROOT
        try:
            for path in sorted(self.layout.parents() - self.created):
                try:
                    self._loosen(path)
                except OSError as error:
                    _raise_unless_gone(error)
            for path, node in self.layout.staged.items():
                try:
                    self._stage(path, node)
                except OSError as error:
                    _raise_unless_gone(error)
                    self.unreachable[path] = "a directory above it changed after the safety checkpoint was taken"
                self.progress.advance(_size(node))
        except OSError as error:
            self.abandon()
            cause = error.strerror or str(error)
            raise StorageFailed(
                f"cannot stage {escape(path)} in the workspace: {cause}; nothing was changed"
            ) from error
        except BaseException:
            self.abandon()
            raise
        finally:
            self.progress.end()

    def _require_space(self) -> None:
        for border in (ROOT, *sorted(self.borders)):
            staged = [node for path, node in self.layout.staged.items() if border_of(path, self.borders) == border]
            created = [path for path in self.created if border_of(path, self.borders) == border]
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

    def _stage(self, path: bytes, node: AnyNode) -> None:
        home = self.home(path)
        name = b"%d" % len(self.staged)
        directory = self.directories.fd(home)
        if isinstance(node, File):
            faults = placing.create_file(directory, name, node, self._checked(path, node), sync=self.synced)
        else:
            placing.create_special(directory, name, node)
            faults = placing.set_metadata(directory, name, node)
        self.staged[path] = (home, name)
        if faults:
            self.faults += [Problem(path, fault) for fault in faults]

    def _checked(self, path: bytes, node: File) -> Iterator[bytes]:
        """A file's bytes. Those of a single chunk were checked against its name, which is the file's own."""
        hasher = ContentHasher() if node.chunk_list else None
        try:
            for piece in self.content(node):
                if hasher is not None:
                    hasher.update(piece)
                yield piece
        except Damage as damage:
            raise Damage(
                f"cannot restore {escape(path)}: {damage.message}; nothing was changed",
                hint="choose another checkpoint, or restore other paths with -- PATH",
                details={**damage.details, "path": escape(path)},
            ) from damage
        if hasher is not None and hasher.id() != node.content:
            raise Damage(f"cannot restore {escape(path)}: its chunks do not add up to content {node.content.hex()}")

    def home(self, path: bytes) -> bytes:
        """The staging directory for ``path``: as high as one device and our rights reach, made on first use."""
        parent, _ = split(path)
        if parent not in self._home_of:
            self._home_of[parent] = self._home(parent)
        return self._home_of[parent]

    def _home(self, top: bytes) -> bytes:
        while top in self.created:
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
            self._homes[top] = join(top, name)
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


def _raise_unless_gone(error: OSError) -> None:
    """Go on where a path's directory is not what it was, instead of giving everything up."""
    if error.errno not in GONE:
        raise error


def _is_writable(fd: int) -> bool:
    return os.access(b".", os.W_OK | os.X_OK, dir_fd=fd, effective_ids=True)


def _size(node: AnyNode) -> int:
    return node.size if isinstance(node, File) else 0


def _is_sparse(node: AnyNode) -> bool:
    return isinstance(node, File) and bool(node.flags & FileFlag.SPARSE)
