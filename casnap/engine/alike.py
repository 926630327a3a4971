"""Whether what no scan reads, since a rule leaves it out, is nevertheless as a checkpoint has it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator

from casnap.codec.hashing import ContentHasher
from casnap.engine.compare import TreeView
from casnap.errors import Damage
from casnap.fs.directories import Directories
from casnap.model.paths import join, split
from casnap.model.tree import AnyEntry, AnyNode, Directory, File, OmitReason, Omitted, Symlink
from casnap.workspace.reader import open_file

_PIECE = 1 << 20
MAY_BE_READ = frozenset({OmitReason.IGNORED, OmitReason.TOO_LARGE, OmitReason.SENSITIVE})
"""A mount point, for one, may hang whoever looks at it."""


Pair = tuple[bytes, AnyEntry | None, AnyEntry | None]
"""A path, what the scan says of it, and what a checkpoint holds there."""

Wanted = tuple[bytes, AnyEntry | None]
"""A path, and what is to stand there; None: nothing."""


def alike_paths(pairs: Iterable[Pair], directories: Directories, recorded: TreeView) -> frozenset[bytes]:
    """The paths that a rule hid from the scan and that have the names, kinds, modes and bytes of a checkpoint.

    ``recorded`` is the checkpoint's tree; what cannot be compared is not alike.
    """
    comparison = _Comparison(directories, recorded)
    return frozenset(
        path
        for path, live, held in pairs
        if isinstance(live, Omitted) and live.reason in MAY_BE_READ
        if held is not None and not isinstance(held, Omitted) and comparison.is_alike(path, held)
    )


def unlike_paths(wanted: Iterable[Wanted], directories: Directories, recorded: TreeView) -> frozenset[bytes]:
    """The paths at which something else stands than is ``wanted``; of a directory what is in it does not count."""
    comparison = _Comparison(directories, recorded)
    return frozenset(path for path, held in wanted if not comparison.stands(path, held))


class _Comparison:
    """Stats first: most that differs does so in them, and no byte need be read."""

    def __init__(self, directories: Directories, recorded: TreeView) -> None:
        self.directories = directories
        self.recorded = recorded

    def is_alike(self, path: bytes, held: AnyNode) -> bool:
        try:
            entries = list(self._entries(path, held))
            return all(self._looks_alike(*entry) for entry in entries) and all(
                self._content(place) == node.content for place, node in entries if isinstance(node, File)
            )
        except (OSError, Damage):
            return False

    def stands(self, path: bytes, held: AnyEntry | None) -> bool:
        """Whether this stands at a path; of a directory its kind and mode count, of what is no file only its kind."""
        if isinstance(held, File | Symlink):
            return self.is_alike(path, held)
        try:
            parent, name = split(path)
            mode = os.lstat(name, dir_fd=self.directories.fd(parent)).st_mode
        except OSError:
            return held is None
        if isinstance(held, Directory):
            return stat.S_ISDIR(mode) and stat.S_IMODE(mode) == held.mode
        return held is not None and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))

    def _entries(self, path: bytes, held: AnyEntry) -> Iterator[tuple[bytes, AnyEntry]]:
        waiting = [(path, held)]
        while waiting:
            place, node = waiting.pop()
            yield place, node
            if isinstance(node, Directory):
                children = self.recorded.entries(node.tree)
                waiting += [(join(place, name), child) for name, child in children.items()]

    def _looks_alike(self, path: bytes, node: AnyEntry) -> bool:
        parent, name = split(path)
        status = os.lstat(name, dir_fd=self.directories.fd(parent))
        match node:
            case File():
                same = stat.S_ISREG(status.st_mode) and status.st_size == node.size
            case Directory():
                same = stat.S_ISDIR(status.st_mode) and self._names(path) == self.recorded.entries(node.tree).keys()
            case Symlink():
                return os.readlink(name, dir_fd=self.directories.fd(parent)) == node.target
            case _:
                return False  # not worth a look
        return same and stat.S_IMODE(status.st_mode) == node.mode

    def _names(self, path: bytes) -> set[bytes]:
        return set(map(os.fsencode, os.listdir(self.directories.fd(path))))

    def _content(self, path: bytes) -> bytes:
        parent, name = split(path)
        fd = open_file(self.directories.fd(parent), name)
        try:
            hasher, offset = ContentHasher(), 0
            while piece := os.pread(fd, _PIECE, offset):
                hasher.update(piece)
                offset += len(piece)
            return hasher.id()
        finally:
            os.close(fd)
