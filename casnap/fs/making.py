"""Making plain files and directories in a directory of our own, with no more calls than their state needs."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import NamedTuple

from casnap.fs.durable import DIRECTORY_MODE, write_all
from casnap.fs.placing import RESTORED_XATTRS
from casnap.model.tree import Directory, File, FileFlag

_RIGHTS = 0o777
_ODD_MODE = 0o604
_LEARNT_FROM = b"learn"
_SPARSE = FileFlag.SPARSE.value

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Given(NamedTuple):
    """What a new inode has by itself in some directory and in those made below it: owner, and no attributes.

    ``rights`` are the permission bits that it gets when it is made with all; ``group_bit``: a directory also gets the
    bit that hands its group down.
    """

    uid: int
    gid: int
    rights: int
    group_bit: bool


def learn(directory: int) -> Given | None:
    """See by an inode that comes and goes what is given in a directory of ours; what it would hand down is removed.

    None where modes do not come out as they are asked for, or attributes come by themselves: there each entry is to be
    looked at.
    """
    for attribute in _attributes(directory):
        with contextlib.suppress(OSError):
            os.removexattr(directory, attribute)
    fd = os.open(_LEARNT_FROM, _NEW_FILE, _RIGHTS, dir_fd=directory)
    try:
        status = os.fstat(fd)
        with contextlib.suppress(PermissionError):
            os.fchmod(fd, _ODD_MODE)
        keeps = stat.S_IMODE(os.fstat(fd).st_mode) == _ODD_MODE
        bare = not _attributes(fd)
    finally:
        os.close(fd)
        os.unlink(_LEARNT_FROM, dir_fd=directory)
    if not (keeps and bare):
        return None
    group_bit = bool(os.fstat(directory).st_mode & stat.S_ISGID)
    return Given(status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode), group_bit)


def _attributes(fd: int) -> list[str]:
    """The attributes of an entry that belong to its state."""
    try:
        return [name for name in os.listxattr(fd) if os.fsencode(name).startswith(RESTORED_XATTRS)]
    except OSError:  # a file system without any
        return []


def is_plain_file(node: File, given: Given) -> bool:
    """Whether a file has nothing but bytes of one chunk, permission bits, the given owner and a time."""
    return (
        node.uid == given.uid
        and node.gid == given.gid
        and node.mode <= _RIGHTS
        and not node.xattrs
        and not node.chunk_list
        and not node.flags & _SPARSE
    )


def is_plain_directory(node: Directory, given: Given) -> bool:
    """Whether a directory can have its final state, the time aside, from the beginning, and yet be filled."""
    return (
        node.uid == given.uid
        and node.gid == given.gid
        and not given.group_bit
        and not node.xattrs
        and node.mode & ~given.rights == 0
        and node.mode & DIRECTORY_MODE == DIRECTORY_MODE
    )


def make_file(directory: int, name: bytes, node: File, data: bytes, given: Given, *, sync: bool) -> None:
    """Make a file that :func:`is_plain_file`. With ``sync`` its bytes are forced out to the disk.

    Nobody else may be able to enter the directory: the file has its final mode before it has its bytes.
    """
    fd = os.open(name, _NEW_FILE, node.mode, dir_fd=directory)
    try:
        if (written := os.write(fd, data) if data else 0) < len(data):
            write_all(fd, data[written:])
        if node.mode & ~given.rights:
            os.fchmod(fd, node.mode)
        time = node.mtime_ns
        os.utime(fd, ns=(time, time))
        if sync:
            os.fdatasync(fd)
    finally:
        os.close(fd)


def make_plain_directory(directory: int, name: bytes, node: Directory) -> None:
    """Make a directory that :func:`is_plain_directory`; its time comes last."""
    os.mkdir(name, node.mode, dir_fd=directory)
