"""Entries as they are on disk: metadata, extended attributes and link targets, by a directory's descriptor."""

from __future__ import annotations

import errno
import os
import stat

from casnap.codec.entries import MAX_XATTRS
from casnap.model.tree import Device, Directory, Fifo, File, Symlink, split_ns

Xattrs = tuple[tuple[bytes, bytes], ...]

CAPTURED_XATTRS = (b"security.capability", b"system.posix_acl_access", b"system.posix_acl_default")
"""Attributes outside ``user.`` that belong to an entry's state; labels and the like are the system's own."""

SPARSE_DIFFERENCE = 4096
"""Bytes that a file's blocks must fall short of its size before holes are looked for."""

_BLOCK = 512
_NO_XATTRS = frozenset({errno.ENOTSUP, errno.EPERM, errno.EACCES, errno.ENODATA, errno.ENOENT, errno.ENOSYS})


class ReadFailed(OSError):
    """The file system cannot give what an entry holds; errors of the store are never one of these."""


def read_failed(error: OSError) -> ReadFailed:
    """The same error, said to be the entry's."""
    return ReadFailed(error.errno, error.strerror)


def read_xattrs(target: int | bytes) -> Xattrs:
    """The extended attributes of an open file, or of what stands at a path, that belong to its state.

    Attributes that the file system does not have, or does not show to us, are none.

    Raises:
        ReadFailed: they exist and cannot be read, or are more than a tree can hold.
    """
    follow = isinstance(target, int)
    try:
        listed = os.listxattr(target, follow_symlinks=follow)
    except OSError as error:
        if error.errno in _NO_XATTRS:
            return ()
        raise read_failed(error) from error
    if not listed:  # as of most
        return ()
    found = []
    for name in sorted(map(os.fsencode, listed)):
        if name.startswith(b"user.") or name in CAPTURED_XATTRS:
            try:
                found.append((name, os.getxattr(target, name, follow_symlinks=follow)))
            except OSError as error:
                if error.errno not in _NO_XATTRS:
                    raise read_failed(error) from error
    if sum(len(name) + len(value) for name, value in found) > MAX_XATTRS:
        raise ReadFailed(errno.E2BIG, "extended attributes too long to record")
    return tuple(found)


def special_entry(directory_fd: int, name: bytes, status: os.stat_result) -> Symlink | Fifo | Device:
    """The entry of a symbolic link, named pipe or device; a link's target is read, nothing is followed.

    Raises:
        OSError: it is not what ``status`` says any more, or cannot be read.
    """
    mode = status.st_mode
    if stat.S_ISLNK(mode):
        # Linux keeps neither user attributes nor ACLs on links, so they are not asked for
        target = os.readlink(name, dir_fd=directory_fd)
        if not target:  # only a file system in user space gives that
            raise ReadFailed(errno.EIO, "a symbolic link without a target")
        return Symlink(name, *_metadata(status), (), target)
    xattrs = read_xattrs(b"/proc/self/fd/%d/%s" % (directory_fd, name))
    if stat.S_ISFIFO(mode):
        return Fifo(name, *_metadata(status), xattrs)
    block = stat.S_ISBLK(mode)
    if not block and not stat.S_ISCHR(mode):
        raise ReadFailed(errno.ENODEV, "of no known kind")
    return Device(name, *_metadata(status), xattrs, block, os.major(status.st_rdev), os.minor(status.st_rdev))


def file_entry(
    name: bytes, status: os.stat_result, xattrs: Xattrs, size: int, flags: int, content: bytes, chunk_list: bytes
) -> File:
    """The entry of a regular file whose ``size`` bytes have been read."""
    return File(name, *_metadata(status), xattrs, size, int(flags), content, chunk_list)


def directory_entry(
    name: bytes, status: os.stat_result, xattrs: Xattrs, tree: bytes = b"", digest: bytes = b""
) -> Directory:
    """The entry of a directory; without a tree and digest it stands for one that has not been looked into."""
    return Directory(name, *_metadata(status), xattrs, tree, digest)


def is_sparse(fd: int, status: os.stat_result) -> bool:
    """Whether an open file has holes. Blocks alone do not tell: compression saves them too."""
    if status.st_size - status.st_blocks * _BLOCK < SPARSE_DIFFERENCE:
        return False
    try:
        return os.lseek(fd, 0, os.SEEK_HOLE) < status.st_size
    except OSError:
        return False
    finally:
        os.lseek(fd, 0, os.SEEK_SET)


def _metadata(status: os.stat_result) -> tuple[int, int, int, int, int]:
    return (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid, *split_ns(status.st_mtime_ns))
