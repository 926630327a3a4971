"""Placing entries: every call takes a directory's descriptor and a name in it, and follows no link."""

from __future__ import annotations

import contextlib
import errno
import functools
import itertools
import os
import stat
from collections.abc import Iterable, Iterator

from casnap.fs.durable import DIRECTORY_MODE, FILE_MODE, write_all
from casnap.model.tree import AnyNode, Device, Directory, Fifo, File, FileFlag, Symlink

_SET_ID = stat.S_ISUID | stat.S_ISGID

HOLE = 4096
"""Runs of zero bytes are left as holes in units of this many bytes."""

RESTORED_XATTRS = (b"user.", b"security.capability", b"system.posix_acl_")
"""Extended attributes that belong to an entry's state; all others are the system's own."""


def make_directory(directory: int, name: bytes) -> None:
    """Create a directory that only its owner may enter; its mode comes last."""
    os.mkdir(name, DIRECTORY_MODE, dir_fd=directory)


def make_root(path: bytes) -> None:
    """Create a workspace's directory, and the directories above it, where they are gone."""
    os.makedirs(path, DIRECTORY_MODE, exist_ok=True)


def remove_root(path: bytes) -> None:
    """Take a directory away again that :func:`make_root` made, if it is empty."""
    os.rmdir(path)


def create_file(directory: int, name: bytes, node: File, pieces: Iterable[bytes], *, sync: bool) -> list[str]:
    """Create a file with the bytes of ``pieces``, and the owner, mode, extended attributes and time of ``node``.

    Only its owner may read it until it has them all. With ``sync`` the bytes are forced out to the disk.

    Returns:
        What could not be set, as :func:`set_metadata` does.
    """
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE, dir_fd=directory)
    try:
        if node.flags & FileFlag.SPARSE.value:
            _write_with_holes(fd, pieces)
        else:
            for piece in pieces:
                write_all(fd, piece)
        faults: list[str] = []
        status = os.fstat(fd)
        if (status.st_uid, status.st_gid) != (node.uid, node.gid):
            try:
                os.chown(fd, node.uid, node.gid)
            except PermissionError as error:
                faults.append(_not_set(f"owner {node.uid}:{node.gid}", error))
        _set_state(fd, fd, node, faults)
        os.utime(fd, ns=(node.mtime_ns, node.mtime_ns))
        if sync:
            os.fdatasync(fd)
    finally:
        os.close(fd)
    return faults


def _write_with_holes(fd: int, pieces: Iterable[bytes]) -> None:
    size = 0
    for piece in pieces:
        for block in [piece] if _is_hole(piece) else _blocks(piece):
            if _is_hole(block):
                os.lseek(fd, len(block), os.SEEK_CUR)
            else:
                write_all(fd, block)
        size += len(piece)
    os.ftruncate(fd, size)


def _blocks(piece: bytes) -> Iterator[bytes]:
    return (piece[start : start + HOLE] for start in range(0, len(piece), HOLE))


def _is_hole(data: bytes) -> bool:
    return data == _zeros(len(data))


@functools.lru_cache(maxsize=4)
def _zeros(size: int) -> bytes:
    return bytes(size)


def create_special(directory: int, name: bytes, node: AnyNode) -> None:
    """Create a symbolic link, named pipe or device node.

    Raises:
        ValueError: the node is a file or a directory.
    """
    match node:
        case Symlink():
            os.symlink(node.target, name, dir_fd=directory)
        case Fifo():
            os.mkfifo(name, FILE_MODE, dir_fd=directory)
        case Device():
            kind = stat.S_IFBLK if node.block else stat.S_IFCHR
            os.mknod(name, FILE_MODE | kind, os.makedev(node.major, node.minor), dir_fd=directory)
        case File() | Directory():
            raise ValueError(f"{type(node).__name__} is not made by this function")


def replace(source: tuple[int, bytes], target: tuple[int, bytes]) -> None:
    """Move an entry over whatever non-directory stands at the target."""
    os.rename(source[1], target[1], src_dir_fd=source[0], dst_dir_fd=target[0])


def place_new(source: tuple[int, bytes], target: tuple[int, bytes]) -> None:
    """Move an entry to a name that must be free.

    Raises:
        FileExistsError: something stands there.
    """
    try:
        os.link(source[1], target[1], src_dir_fd=source[0], dst_dir_fd=target[0], follow_symlinks=False)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS):
            raise
        if exists(*target):  # a file system without hard links: look, then move
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        replace(source, target)
    else:
        os.unlink(source[1], dir_fd=source[0])


def link(source: tuple[int, bytes], target: tuple[int, bytes]) -> None:
    """Give a non-directory a further name, which must be free."""
    os.link(source[1], target[1], src_dir_fd=source[0], dst_dir_fd=target[0], follow_symlinks=False)


def exists(directory: int, name: bytes) -> bool:
    """Whether the name is taken, a dangling link included."""
    try:
        os.lstat(name, dir_fd=directory)
    except FileNotFoundError:
        return False
    return True


def remove_file(directory: int, name: bytes) -> None:
    """Remove a name that is no directory."""
    os.unlink(name, dir_fd=directory)


def remove_directory(directory: int, name: bytes) -> None:
    """Remove an empty directory."""
    os.rmdir(name, dir_fd=directory)


def remove_staging(directory: int, name: bytes) -> None:
    """Remove a temporary entry of a rollback: a directory of staged entries and directories, or a single entry."""
    try:
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        os.unlink(name, dir_fd=directory)
        return
    try:
        _empty(fd)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=directory)


def _empty(top: int) -> None:
    """Remove all that is in a directory, however deep: directories rise to the top, so that two are open at once."""
    risen = itertools.count()
    waiting = _unlink_files(top)
    while waiting:
        name = waiting.pop()
        change_mode(top, name, DIRECTORY_MODE)
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
        try:
            for inner in _unlink_files(fd):
                change_mode(fd, inner, DIRECTORY_MODE)  # its parent cannot change without that
                while exists(top, outer := b"risen%d" % next(risen)):
                    pass
                os.rename(inner, outer, src_dir_fd=fd, dst_dir_fd=top)
                waiting.append(outer)
        finally:
            os.close(fd)
        os.rmdir(name, dir_fd=top)


def _unlink_files(directory: int) -> list[bytes]:
    """Remove what is no directory; the names of those that are."""
    inner = []
    with os.scandir(directory) as entries:
        found = [(os.fsencode(entry.name), entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_directory in found:
        if is_directory:
            inner.append(name)
        else:
            os.unlink(name, dir_fd=directory)
    return inner


@contextlib.contextmanager
def held(directory: int, name: bytes) -> Iterator[int]:
    """The entry itself, whatever its mode, held by a descriptor that can neither read nor write it."""
    fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        yield fd
    finally:
        os.close(fd)


def change_mode(directory: int, name: bytes, mode: int) -> None:
    """Set the permission bits of an entry that is no symbolic link."""
    with held(directory, name) as fd:
        os.chmod(f"/proc/self/fd/{fd}", mode)


def change_mode_of(fd: int, mode: int) -> None:
    """Set the permission bits of an open directory."""
    os.fchmod(fd, mode)


def set_times(directory: int, name: bytes, mtime_ns: int) -> None:
    """Set the modification time of an entry; its access time becomes the same."""
    os.utime(name, ns=(mtime_ns, mtime_ns), dir_fd=directory, follow_symlinks=False)


def set_metadata(directory: int, name: bytes, node: AnyNode) -> list[str]:
    """Give an entry the owner, mode, extended attributes and time of ``node``, in the order that keeps them.

    Returns:
        What could not be set, for a person; a foreign owner without root is such a case.
    """
    faults: list[str] = []
    with held(directory, name) as fd:
        status = os.fstat(fd)
        if (status.st_uid, status.st_gid) != (node.uid, node.gid):
            try:
                os.chown(name, node.uid, node.gid, dir_fd=directory, follow_symlinks=False)
            except PermissionError as error:
                faults.append(_not_set(f"owner {node.uid}:{node.gid}", error))
        if not isinstance(node, Symlink):
            _set_state(fd, f"/proc/self/fd/{fd}", node, faults)
    if status.st_mtime_ns != node.mtime_ns:
        try:
            set_times(directory, name, node.mtime_ns)
        except PermissionError as error:
            faults.append(_not_set("time", error))
    return faults


def _set_state(fd: int, itself: int | str, node: AnyNode, faults: list[str]) -> None:
    """Set mode and extended attributes of what is held open as ``fd`` and can be changed as ``itself``."""
    mode = node.mode
    if faults and mode & _SET_ID and not isinstance(node, Directory):
        mode &= ~_SET_ID  # or it would run with the rights of somebody who never had it do so
        faults.append(f"mode {node.mode:04o} not set: it would lend the rights of another owner")
    try:
        # before the attributes: an ACL's mask is part of the mode, and the attribute is the whole truth
        _set_mode(fd, itself, mode if mode & stat.S_IWUSR or not _has_xattrs(itself, node) else mode | stat.S_IWUSR)
        faults += _set_xattrs(itself, node)
        _set_mode(fd, itself, mode)
    except PermissionError as error:
        faults.append(_not_set(f"mode {node.mode:04o}", error))


def _not_set(what: str, error: OSError) -> str:
    return f"{what} not set: {error.strerror}"


def _set_mode(fd: int, itself: int | str, mode: int) -> None:
    if stat.S_IMODE(os.fstat(fd).st_mode) != mode:
        os.chmod(itself, mode)


def _has_xattrs(itself: int | str, node: AnyNode) -> bool:
    """Whether attributes may be set or removed: who owns the entry must be able to write to it for that, root aside."""
    try:
        return bool(node.xattrs or os.listxattr(itself))
    except OSError:
        return False


def _set_xattrs(itself: int | str, node: AnyNode) -> list[str]:
    wanted = dict(node.xattrs)
    try:
        listed = os.listxattr(itself)
    except OSError as error:
        return [_not_set("extended attributes", error)] if wanted else []
    if not listed and not wanted:
        return []
    present = set(map(os.fsencode, listed))
    faults = []
    for name in sorted(present):
        if name not in wanted and name.startswith(RESTORED_XATTRS):
            with contextlib.suppress(OSError):
                os.removexattr(itself, name)
    for name, value in wanted.items():
        try:
            if name not in present or os.getxattr(itself, name) != value:
                os.setxattr(itself, name, value)
        except OSError as error:
            faults.append(_not_set(f"attribute {os.fsdecode(name)}", error))
    return faults
