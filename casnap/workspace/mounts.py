"""Mount points below a workspace's root, from ``/proc/self/mountinfo`` (proc(5))."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Collection, Iterator, Mapping

from msgspec import Struct

from casnap.errors import Refused
from casnap.fs.directories import Directories
from casnap.model.paths import ROOT, ancestors

PSEUDO = frozenset(
    {
        "autofs",
        "binfmt_misc",
        "bpf",
        "cgroup",
        "cgroup2",
        "configfs",
        "debugfs",
        "devpts",
        "devtmpfs",
        "efivarfs",
        "fusectl",
        "hugetlbfs",
        "mqueue",
        "nfsd",
        "nsfs",
        "proc",
        "pstore",
        "rpc_pipefs",
        "securityfs",
        "selinuxfs",
        "sysfs",
        "tracefs",
    }
)
"""File systems that hold no files of anybody: they are windows into the kernel, and are never looked into."""

_HINTS = {
    errno.EMFILE: "let this process open more files: ulimit -n",
    errno.ENFILE: "let the system open more files: sysctl fs.file-max",
}
"""What to do where it is not /proc that is missing."""

_OCTAL = rb"\\([0-7]{3})"
_SEPARATOR = b"-"


class Mount(Struct, frozen=True):
    """A line of mountinfo. ``id`` and ``parent`` number mounts; ``point`` is an absolute path."""

    id: int
    parent: int
    point: bytes
    file_system: str


class Mounts(Struct, frozen=True):
    """The type of the file system that a workspace's root is on, and the mount points below the root.

    ``points`` are not to be looked at. ``inside`` are those that are looked into, with the types of what is mounted
    there.
    """

    file_system: str
    points: frozenset[bytes]
    inside: Mapping[bytes, str] = {}


def find_mounts(directories: Directories, *, one_file_system: bool = True) -> Mounts:
    """Look up the mounts of a workspace; unless ``one_file_system``, what is mounted in it is part of it.

    Raises:
        Refused: /proc is not there, or no more files can be opened; a mounted disk could not be told from a directory.
    """
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            mounts = list(parse_mountinfo(file.read()))
        with open(f"/proc/self/fdinfo/{directories.root_fd}", "rb") as file:
            fdinfo = file.read()
        root = os.readlink(b"/proc/self/fd/%d" % directories.root_fd)
    except OSError as error:
        what = f"cannot find the mount points in {os.fsdecode(directories.root_path)}: {error}"
        raise Refused(what, hint=_HINTS.get(error.errno or 0, "mount /proc")) from error
    own = _mount_id(fdinfo)
    own = mount_of(mounts, root) if own is None else own
    return mounts_below(mounts, root, own) if one_file_system else mounts_inside(mounts, root, own)


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


def mounts_inside(mounts: list[Mount], root: bytes, own: int) -> Mounts:
    """The same where what is mounted counts, and what is mounted in that; pseudo file systems are not looked into."""
    prefix = root.rstrip(b"/") + b"/"
    seen: dict[bytes, Mount] = {}
    ahead = [mount for mount in mounts if mount.id == own]
    while ahead:
        above = ahead.pop()
        for mount in mounts:
            if mount.parent != above.id or mount.id == above.id or not mount.point.startswith(prefix):
                continue
            path = mount.point[len(prefix) :]
            if path and path not in seen:
                seen[path] = uppermost = _uppermost(mounts, mount)
                ahead.append(uppermost)
    pseudo = {path for path, mount in seen.items() if mount.file_system in PSEUDO}
    return Mounts(
        mounts_below(mounts, root, own).file_system,
        frozenset(pseudo),
        {path: mount.file_system for path, mount in seen.items() if path not in pseudo},
    )


def _uppermost(mounts: list[Mount], mount: Mount) -> Mount:
    """What is seen at a mount's point: the last of those that were mounted over each other there."""
    covers = {other.parent: other for other in mounts if other.point == mount.point and other.id != other.parent}
    while mount.id in covers:
        mount = covers[mount.id]
    return mount


def border_of(path: bytes, borders: Collection[bytes]) -> bytes:
    """The deepest of these mount points that a path is, or lies below; the root where there is none."""
    if not borders:
        return ROOT
    return next((place for place in (path, *ancestors(path)) if place in borders), ROOT)


def parse_mountinfo(data: bytes) -> Iterator[Mount]:
    """The mounts that ``data``, the text of mountinfo, lists."""
    for line in data.split(b"\n"):
        fields = line.split(b" ")
        if _SEPARATOR not in fields:
            continue
        kind = fields[fields.index(_SEPARATOR) + 1]
        yield Mount(int(fields[0]), int(fields[1]), _unescape(fields[4]), os.fsdecode(kind))


def _unescape(field: bytes) -> bytes:
    if b"\\" not in field:
        return field
    return re.sub(_OCTAL, lambda match: bytes([int(match[1], 8)]), field)


def _mount_id(fdinfo: bytes) -> int | None:
    """The mount that a descriptor is on; some sandboxes do not say."""
    for line in fdinfo.split(b"\n"):
        name, _, value = line.partition(b":")
        if name == b"mnt_id":
            return int(value)
    return None
