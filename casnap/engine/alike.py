"""Whether what no scan reads, since a rule leaves it out, is nevertheless as a checkpoint has it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from casnap.codec.hashing import ContentHasher
from casnap.engine.compare import TreeView
from casnap.fs.directories import Directories
from casnap.model.paths import join, split
from casnap.model.plan import Plan, Protected
from casnap.model.tree import AnyEntry, AnyNode, Directory, File, OmitReason, Omitted, Symlink
from casnap.workspace.reader import open_file

_PIECE = 1 << 20
_MAY_BE_READ = frozenset({OmitReason.IGNORED, OmitReason.TOO_LARGE, OmitReason.SENSITIVE})
"""A mount point, for one, may hang whoever looks at it."""


def alike_paths(plan: Plan, directories: Directories, recorded: TreeView) -> frozenset[bytes]:
    """The left-out entries of a plan that have the names, kinds, modes and bytes that ``recorded`` holds."""
    return frozenset(
        item.path
        for item in plan.protected
        if (held := _held(item)) is not None and _Comparison(directories, recorded).is_alike(item.path, held)
    )


def _held(item: Protected) -> AnyNode | None:
    """What one side holds while a rule leaves the other out."""
    sides: tuple[AnyEntry | None, AnyEntry | None] = (item.old, item.new)
    left_out = any(isinstance(side, Omitted) and side.reason in _MAY_BE_READ for side in sides)
    held = [side for side in sides if side is not None and not isinstance(side, Omitted)]
    return held[0] if left_out and held else None


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
        except OSError:
            return False

    def _entries(self, path: bytes, held: AnyEntry) -> Iterator[tuple[bytes, AnyEntry]]:
        waiting = [(path, held)]
        while waiting:
            place, node = waiting.pop()
            yield place, node
            if isinstance(node, Directory):
                children = self.recorded.entries(node.tree)
                if set(map(os.fsencode, os.listdir(self.directories.fd(place)))) != children.keys():
                    raise OSError("other names")
                waiting += [(join(place, name), child) for name, child in children.items()]

    def _looks_alike(self, path: bytes, node: AnyEntry) -> bool:
        parent, name = split(path)
        status = os.lstat(name, dir_fd=self.directories.fd(parent))
        match node:
            case File():
                same = stat.S_ISREG(status.st_mode) and status.st_size == node.size
            case Directory():
                same = stat.S_ISDIR(status.st_mode)
            case Symlink():
                return os.readlink(name, dir_fd=self.directories.fd(parent)) == node.target
            case _:
                return False  # not worth a look
        return same and stat.S_IMODE(status.st_mode) == node.mode

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
