"""Two directories change places, so that at any moment one of them bears the name."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

from casnap.fs.durable import failed, sync_directory

_AT_FDCWD = -100
_EXCHANGE = 2
_UNSUPPORTED = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)


def exchange(one: Path, other: Path) -> bool:
    """Let two entries of one directory change their names in one step; false where the file system cannot do that.

    Raises:
        StorageFailed: it failed.
    """
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _EXCHANGE) == 0:
        sync_directory(one.parent)
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise failed("exchange", one, OSError(number, os.strerror(number)))
