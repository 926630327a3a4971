"""Mount points below a workspace's root, from ``/proc/self/mountinfo`` (proc(5))."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from casnap.errors import Refused
from casnap.fs.directories import Directories

_OCTAL = re.compile(rb"\\([0-7]{3})")
_SEPARATOR = b"-"


@dataclass(frozen=True, slots=True)
class Mount:
    """A line of mountinfo. ``id`` and ``parent`` number mounts; ``point`` is an absolute path."""

    id: int
    parent: int
    point: bytes
    file_system: str


@dataclass(frozen=True, slots=True)
class Mounts:
    """The type of the file system that a workspace's root is on, and the mount points below the root."""

    file_system: str
    points: frozenset[bytes]


def find_mounts(directories: Directories) -> Mounts:
    """Look up the mounts of a workspace.

    Raises:
        Refused: /proc is not there; without it a mounted disk cannot be told from a directory.
    """
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            mounts = list(parse_mountinfo(file.read()))
        with open(f"/proc/self/fdinfo/{directories.root_fd}", "rb") as file:
            fdinfo = file.read()
        root = os.readlink(b"/proc/self/fd/%d" % directories.root_fd)
    except OSError as error:
        raise Refused(
            f"cannot find the mount points in {os.fsdecode(directories.root_path)}: {error}", hint="mount /proc"
        ) from error
    own = _mount_id(fdinfo)
    return mounts_below(mounts, root, mount_of(mounts, root) if own is None else own)


def mount_of(mounts: list[Mount], path: bytes) -> int:
    """The id of the mount that an absolute path leads to, -1 if there is none."""
    around = [mount for mount in mounts if path.startswith(mount.point.rstrip(b"/") + b"/") or path == mount.point]
    deepest = max((len(mount.point) for mount in around), default=0)
    return next((mount.id for mount in reversed(around) if len(mount.point) == deepest), -1)


def mounts_below(mounts: list[Mount], root: bytes, own: int) -> Mounts:
    """The mounts that sit directly on the mount ``own``, below the absolute path ``root``.

    Others with such a path are hidden: they sit on something that another mount has covered.
    """
    prefix = root.rstrip(b"/") + b"/"
    points = (mount.point for mount in mounts if mount.parent == own and mount.id != own)
    types = [mount.file_system for mount in mounts if mount.id == own]
    return Mounts(
        types[0] if types else "",
        frozenset(point[len(prefix) :] for point in points if point.startswith(prefix) and point != prefix),
    )


def parse_mountinfo(data: bytes) -> Iterator[Mount]:
    """The mounts that ``data``, the text of mountinfo, lists."""
    for line in data.split(b"\n"):
        fields = line.split(b" ")
        if _SEPARATOR not in fields:
            continue
        kind = fields[fields.index(_SEPARATOR) + 1]
        yield Mount(int(fields[0]), int(fields[1]), _unescape(fields[4]), os.fsdecode(kind))


def _unescape(field: bytes) -> bytes:
    return _OCTAL.sub(lambda match: bytes([int(match[1], 8)]), field)


def _mount_id(fdinfo: bytes) -> int | None:
    """The mount that a descriptor is on; some sandboxes do not say."""
    for line in fdinfo.split(b"\n"):
        name, _, value = line.partition(b":")
        if name == b"mnt_id":
            return int(value)
    return None
