"""Whether a file that no scan reads, since a rule leaves it out, is nevertheless as a checkpoint has it."""

from __future__ import annotations

import os
import stat

from casnap.codec.hashing import ContentHasher
from casnap.fs.directories import Directories
from casnap.model.paths import split
from casnap.model.plan import Plan, Protected
from casnap.model.tree import AnyEntry, File, OmitReason, Omitted
from casnap.workspace.reader import open_file

_PIECE = 1 << 20


def alike_paths(plan: Plan, directories: Directories) -> frozenset[bytes]:
    """The left-out files of a plan that are, to the byte and the mode, what the other side holds."""
    return frozenset(item.path for item in plan.protected if _is_alike(item, directories))


def _is_alike(item: Protected, directories: Directories) -> bool:
    sides: tuple[AnyEntry | None, AnyEntry | None] = (item.old, item.new)
    held = next((side for side in sides if isinstance(side, File)), None)
    left_out = any(isinstance(side, Omitted) and OmitReason(side.reason).by_rule for side in sides)
    return held is not None and left_out and _matches(directories, item.path, held)


def _matches(directories: Directories, path: bytes, held: File) -> bool:
    parent, name = split(path)
    try:
        fd = open_file(directories.fd(parent), name)
    except OSError:
        return False
    try:
        status = os.fstat(fd)
        same = stat.S_ISREG(status.st_mode) and (status.st_size, stat.S_IMODE(status.st_mode)) == (held.size, held.mode)
        return same and _content(fd) == held.content
    except OSError:
        return False
    finally:
        os.close(fd)


def _content(fd: int) -> bytes:
    hasher, offset = ContentHasher(), 0
    while piece := os.pread(fd, _PIECE, offset):
        hasher.update(piece)
        offset += len(piece)
    return hasher.id()
