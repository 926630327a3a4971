"""Reading a file that a person may have replaced by anything: never waiting for a pipe, never more than is sane."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

LONGEST = 1 << 20
"""Bytes of the longest configuration file."""


def read_whole(path: Path) -> bytes:
    """The bytes of a regular file.

    Raises:
        OSError: it cannot be read, is no regular file, or is longer than ``LONGEST``.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        status = os.fstat(fd)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        data = os.pread(fd, LONGEST + 1, 0)
    finally:
        os.close(fd)
    if len(data) > LONGEST:
        raise OSError(errno.EFBIG, f"it has more than {LONGEST} bytes")
    return data
