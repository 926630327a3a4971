"""Files of the store that only grow, and the few other changes that the store makes to its own files."""

from __future__ import annotations

import contextlib
import errno
import os
import weakref
from pathlib import Path

from casnap.errors import StorageFailed
from casnap.fs.durable import DIRECTORY_MODE, FILE_MODE, failed, sync_directory, sync_file, write_whole
from casnap.fs.locks import try_flock

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})

Owner = tuple[int, int]
"""The uid and gid that new files are given to, where that is not simply who runs."""

_open: weakref.WeakSet[AppendFile] = weakref.WeakSet()


class AppendFile:
    """A file that only grows at its end; ``size`` is where the next byte goes.

    Every method raises StorageFailed where the disk refuses.
    """

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self.size = os.fstat(fd).st_size
        self._fd = fd
        _open.add(self)

    @classmethod
    def create(cls, path: Path, owner: Owner | None) -> AppendFile:
        """Begin a new file; whatever has the name already is an error."""
        return cls._open(path, os.O_CREAT | os.O_EXCL, owner)

    @classmethod
    def open(cls, path: Path) -> AppendFile:
        """Go on with a file that exists."""
        return cls._open(path, 0, None)

    @classmethod
    def _open(cls, path: Path, flags: int, owner: Owner | None) -> AppendFile:
        try:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | flags, FILE_MODE)
            give(fd, owner)
            return cls(path, fd)
        except OSError as error:
            raise failed("open", path, error) from error

    def lock(self) -> bool:
        """Lock the file until it is closed; whether it was free, and its path still leads to it."""
        try:
            if not try_flock(self._fd, 0):
                return False
            mine, named = os.fstat(self._fd), os.stat(self.path, follow_symlinks=False)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise failed("lock", self.path, error) from error
        self.size = mine.st_size
        return os.path.samestat(mine, named)

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Write ``data`` at the end; what a failure has left of it is cut off again."""
        view, position = memoryview(data), self.size
        try:
            while view:
                written = os.pwrite(self._fd, view, position)
                view, position = view[written:], position + written
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self.size)
            raise failed("write", self.path, error) from error
        self.size = position

    def read(self, offset: int, size: int) -> bytes:
        """Up to ``size`` bytes from ``offset``."""
        try:
            return os.pread(self._fd, size, offset)
        except OSError as error:
            raise failed("read", self.path, error) from error

    def cut(self, size: int) -> None:
        """Drop what lies behind ``size``: bytes that no operation refers to."""
        try:
            os.ftruncate(self._fd, size)
        except OSError as error:
            raise failed("cut", self.path, error) from error
        self.size = size

    def sync(self) -> None:
        """Force the bytes out; a failure is final, the same bytes are never tried again."""
        sync_file(self._fd, self.path)

    def discard(self) -> None:
        """Remove the file; only while it is locked, so that nobody else has begun to use it."""
        remove(self.path)

    def close(self) -> None:
        """Let go of the file and of its lock."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def give(target: int | Path, owner: Owner | None) -> None:
    """Give a file, open or by its path, to ``owner``; to nobody else when that is None."""
    if owner is not None:
        os.chown(target, *owner)


def make_private_directory(path: Path, owner: Owner | None) -> None:
    """Create a directory that only its owner may enter, or close an existing one to all others."""
    try:
        try:
            os.mkdir(path, DIRECTORY_MODE)
            give(path, owner)
        except FileExistsError:
            if os.stat(path).st_mode & 0o077:
                os.chmod(path, DIRECTORY_MODE)
    except OSError as error:
        raise failed("create directory", path, error) from error


def make_file(path: Path, owner: Owner | None, size: int = 0) -> None:
    """Create a file of ``size`` bytes, space for them taken; harmless when it exists."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
    except FileExistsError:
        return
    except OSError as error:
        raise failed("create", path, error) from error
    try:
        give(fd, owner)
        if size:
            os.posix_fallocate(fd, 0, size)
    except OSError as error:
        raise failed("create", path, error) from error
    finally:
        os.close(fd)


def has_room(directory: Path, size: int) -> bool:
    """Whether ``size`` bytes can be written to the disk of a directory, as a nameless file that is gone at once."""
    try:
        fd = os.open(directory, os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, FILE_MODE)
    except OSError as error:
        return error.errno not in _FULL
    try:
        os.posix_fallocate(fd, 0, size)
    except OSError as error:
        return error.errno not in _FULL
    finally:
        os.close(fd)
    return True


def remove_abandoned(path: Path) -> int:
    """Remove a temporary file whose writer is gone: one that lives holds it locked. The bytes that it had."""
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            if try_flock(fd, 0) and os.path.samestat(status := os.fstat(fd), os.stat(path, follow_symlinks=False)):
                path.unlink()
                return status.st_size
        finally:
            os.close(fd)
    return 0


def note(path: Path, data: bytes, owner: Owner | None) -> None:
    """Keep a few bytes that may be lost at any time; a failure is no matter."""
    with contextlib.suppress(OSError, StorageFailed):
        if not path.parent.exists():
            make_private_directory(path.parent, owner)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
        try:
            give(fd, owner)
            os.pwrite(fd, data, 0)
        finally:
            os.close(fd)


def keep(path: Path, data: bytes, owner: Owner | None) -> None:
    """Put a file that may vanish at any time: a reader sees the old one or the new one.

    Raises:
        StorageFailed: it could not be written.
    """
    if not path.parent.exists():
        make_private_directory(path.parent, owner)
    write_whole(path, data, durable=False, owner=owner)


def move_aside(path: Path, target: Path) -> None:
    """Give a file another name; harmless when it is gone."""
    try:
        os.replace(path, target)
    except FileNotFoundError:
        return
    except OSError as error:
        raise failed("move", path, error) from error
    sync_directory(path.parent)


def remove(path: Path) -> None:
    """Unlink a file; harmless when it is gone."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise failed("remove", path, error) from error


def _close_after_fork() -> None:
    """A forked child must neither keep its parent's locks alive nor write beside it."""
    for file in list(_open):
        file.close()


os.register_at_fork(after_in_child=_close_after_fork)
