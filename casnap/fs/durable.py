"""Files of the store: created whole, appended to, and forced out to the disk."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from casnap.errors import StorageFailed

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700
HINT_WHEN_FULL = "free some space on that disk; casnap delete and then casnap gc work while it is full, too"


def failed(doing: str, path: Path | str, error: OSError) -> StorageFailed:
    """The error for a store file that could not be read or written."""
    message = f"cannot {doing} {path}: {error.strerror or error}"
    hint = HINT_WHEN_FULL if error.errno in (errno.ENOSPC, errno.EDQUOT) else None
    return StorageFailed(message, hint=hint, details={"errno": error.errno})


def make_directory(path: Path) -> None:
    """Create a directory that only its owner may enter, parents included; harmless when it exists."""
    try:
        path.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    except OSError as error:
        raise failed("create directory", path, error) from error


def sync_directory(path: Path) -> None:
    """Force a directory's names out to the disk."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        raise failed("sync", path, error) from error


def sync_file(fd: int, path: Path) -> None:
    """Force a file's bytes out; a failure is final, the same bytes are never tried again."""
    try:
        os.fdatasync(fd)
    except OSError as error:
        raise failed("sync", path, error) from error


def write_whole(
    path: Path,
    data: bytes,
    *,
    durable: bool = True,
    owner: tuple[int, int] | None = None,
    mode: int = FILE_MODE,
    attributes: Mapping[str, bytes] | None = None,
    modified: int | None = None,
) -> None:
    """Put ``data`` at ``path`` so that a reader sees the old file or the new one, never a part.

    ``owner`` (user and group) is to own it; None: whoever we are. ``mode`` are its permission bits. ``attributes`` are
    the extended ones that it is to have, and no others; None: those that a new file has there. ``modified`` is when it
    is to have been changed last, in nanoseconds since the epoch; None: now.
    """
    temporary = path.with_name(f"{path.name}.{os.urandom(4).hex()}.tmp")
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        claim(fd)
        try:
            if owner is not None:
                os.fchown(fd, *owner)
            write_all(fd, data)
            if mode != FILE_MODE:
                os.fchmod(fd, mode)
            if attributes is not None:
                _set_attributes(fd, attributes)
            if modified is not None:
                os.utime(fd, ns=(os.fstat(fd).st_atime_ns, modified))
            if durable:
                os.fdatasync(fd)
        finally:
            os.close(fd)
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise failed("write", path, error) from error
    if durable:
        sync_directory(path.parent)


def _set_attributes(fd: int, wanted: Mapping[str, bytes]) -> None:
    """Give an open file these extended attributes; labels that the system gives may be the system's to keep."""
    present = {name: os.getxattr(fd, name) for name in _attribute_names(fd)}
    for name in present.keys() | wanted.keys():
        if present.get(name) == wanted.get(name):
            continue
        system = name.startswith(("security.", "trusted."))
        with contextlib.suppress(*([OSError] if system else [])):
            os.setxattr(fd, name, wanted[name]) if name in wanted else os.removexattr(fd, name)


def _attribute_names(fd: int) -> list[str]:
    try:
        return os.listxattr(fd)
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return []
        raise


def remove(path: Path) -> None:
    """Remove a file; harmless where none is."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise failed("remove", path, error) from error


def remove_empty(path: Path) -> None:
    """Remove a directory if nothing is in it; harmless where something is, or where none is."""
    with contextlib.suppress(OSError):
        path.rmdir()


def claim(fd: int) -> None:
    """Lock a temporary file, which tells whoever sweeps such files that its writer lives; where locks do not work, not.

    Between its creation and this a sweep may take it: then the writer finds it gone, which no harm comes of.
    """
    with contextlib.suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def write_all(fd: int, data: bytes | memoryview) -> None:
    """Write all of ``data`` at the file's position; a short write is continued."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def sync_names(fd: int) -> None:
    """Force out the names in an open directory, and its own metadata."""
    try:
        os.fsync(fd)
    except OSError as error:
        raise failed("sync a directory of", "the workspace", error) from error


def sync_filesystem(fd: int) -> None:
    """Force out everything written to the file system that ``fd`` lies on."""
    import ctypes

    syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if syncfs is None:
        os.sync()
    elif syncfs(fd) != 0:
        number = ctypes.get_errno()
        raise failed("sync the workspace's disk", f"(descriptor {fd})", OSError(number, os.strerror(number)))


@contextlib.contextmanager
def scratch_file(directory: Path) -> Iterator[tuple[Path, int]]:
    """A new empty file, whose name lives as long as the with block; the descriptor is the caller's to close.

    Raises:
        StorageFailed: it cannot be made.
    """
    path = directory / f"scratch-{os.urandom(8).hex()}"
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    except OSError as error:
        raise failed("create", path, error) from error
    claim(fd)
    try:
        yield path, fd
    except BaseException:
        os.close(fd)
        raise
    finally:
        path.unlink(missing_ok=True)
