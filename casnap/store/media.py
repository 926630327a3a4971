"""Whether a store can be written where it lies, and how much room is left there."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from casnap.fs.durable import failed

_MOUNTS = Path("/proc/self/mountinfo")
_DISTRIBUTED = {"afs", "beegfs", "ceph", "gfs2", "glusterfs", "gpfs", "lustre", "ocfs2", "pvfs2"}
_SHARED = {"cifs", "ncpfs", "nfs", "nfs4", "smb3", "smbfs"}
_THROUGH_FUSE = {"fuse.ceph", "fuse.davfs", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs"}
_NETWORK = frozenset(_DISTRIBUTED | _SHARED | _THROUGH_FUSE)
"""File systems of which another machine may hold a part in its memory: flock is not to be trusted there."""


def obstacle(root: Path, format_file: Path) -> str | None:
    """Why nothing can be written to the store; None when nothing speaks against it."""
    if os.statvfs(root).f_flag & os.ST_RDONLY:
        return "its file system is read only"
    for path in (root, root / "oplog", root / "packs", root / "locks"):
        if not path.is_dir():
            return f"its directory {path.name} is missing"
        if not os.access(path, os.W_OK | os.X_OK):
            return "permission denied"
    kind = file_system(root)
    if kind in _NETWORK:
        return f"it lies on a network file system ({kind})"
    return None if _has_locks(format_file) else "its file system has no locks"


def free_space(root: Path) -> tuple[int, int]:
    """Bytes that an unprivileged user may still write, and the size of the disk."""
    try:
        disk = os.statvfs(root)
    except OSError as error:
        raise failed("look at the disk of", root, error) from error
    return disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize


def disk_usage(root: Path) -> int:
    """Bytes of the disk that everything below ``root`` takes."""
    total, directories = 0, [os.fspath(root)]
    while directories:
        with os.scandir(directories.pop()) as entries:
            for entry in entries:
                try:
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                except FileNotFoundError:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    directories.append(entry.path)
    return total


def file_system(path: Path) -> str:
    """The kind of file system that ``path`` lies on; empty where that cannot be told."""
    try:
        mounts = _MOUNTS.read_bytes()
    except OSError:
        return ""
    here, best, kind = os.fsencode(path.resolve()), -1, ""
    for line in mounts.splitlines():
        fields, _, rest = line.partition(b" - ")
        mount_point = _unescape(fields.split()[4])
        if len(mount_point) >= best and (here + b"/").startswith(mount_point.rstrip(b"/") + b"/"):
            best, kind = len(mount_point), rest.split()[0].decode()
    return kind


def _unescape(text: bytes) -> bytes:
    for code, character in ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n"), (b"\\134", b"\\")):
        text = text.replace(code, character)
    return text


def _has_locks(path: Path) -> bool:
    """Whether flock works; a shared lock on a file that nobody locks exclusively disturbs nobody."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(fd)
    return True
