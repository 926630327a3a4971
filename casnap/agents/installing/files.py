"""Files of agents: read without waiting, looked at before anything is done, and replaced whole."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from casnap.agents.installing.plan import FileChange
from casnap.errors import CasnapError, Usage
from casnap.fs import durable

NEW_FILE, NEW_SETTINGS = 0o644, 0o600
"""Modes of files that are made anew."""


def read(path: Path) -> bytes | None:
    """What a regular file holds; None where there is nothing.

    Raises:
        Usage: something else is there, which is never waited for, read or replaced; or it cannot be read.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # asked first: to open a device may do something to it
            raise _unfit(path, "it is not a regular file")
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unfit(path, error.strerror or "it cannot be read") from None


def modified(path: Path) -> int | None:
    """When a file was changed last, in nanoseconds since the epoch; None where there is none."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def missing(path: Path) -> list[Path]:
    """The directories above a path, where links lead to, that do not exist; outer ones first."""
    return [above for above in reversed(real(path).parents) if not above.exists()]


def real(path: Path) -> Path:
    """Where links lead to."""
    return Path(os.path.realpath(path))


def require_fit(changes: Iterable[FileChange], *, linked: bool) -> None:
    """See, before anything is done, that files can be changed; with ``linked`` also those of several names.

    Raises:
        CasnapError: one cannot.
    """
    for change in changes:
        target = real(change.path)
        _require_unchanged(change, target)
        if change.before is not None and change.after is not None:
            _require_writable(target)
        if change.before is not None and change.shared and not linked and target.stat().st_nlink > 1:
            raise _unfit(change.path, "it has another name, a hard link, which would keep what it holds now")
        _require_place(change.path, next(above for above in target.parents if os.path.lexists(above)))


def put(change: FileChange) -> None:
    """Make a file hold what it is to hold: the one that a link leads to, with its owner, mode and attributes.

    Raises:
        CasnapError: it cannot be changed, or somebody else has changed it.
    """
    target = real(change.path)
    _require_unchanged(change, target)
    if change.after is None:
        durable.remove(target)
        return
    for directory in missing(target):
        durable.make_directory(directory)
    if change.before is None:
        durable.write_whole(target, change.after, mode=NEW_SETTINGS if change.shared else NEW_FILE)
        return
    _require_writable(target)
    status = target.stat()
    durable.write_whole(
        target,
        change.after,
        owner=(status.st_uid, status.st_gid),
        mode=stat.S_IMODE(status.st_mode),
        attributes=_attributes(target),
        modified=change.modified,
    )


def _attributes(path: Path) -> dict[str, bytes]:
    """Extended attributes of a file, access control lists among them; none where the file system has none."""
    try:
        return {name: os.getxattr(path, name) for name in os.listxattr(path)}
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return {}
        raise durable.failed("read the attributes of", path, error) from error


def _unfit(path: Path, cause: str) -> Usage:
    return Usage(
        f"cannot change {path}: {cause}", code="bad-config", hint="put a file there that can be read and written"
    )


def _require_unchanged(change: FileChange, target: Path) -> None:
    if read(target) != change.before:
        raise CasnapError(
            f"cannot change {change.path}: somebody else has changed it meanwhile",
            code="changed-meanwhile",
            hint="try again",
        )


def _require_writable(path: Path) -> None:
    """A file that its owner has made read-only is left alone; that we could replace it is no leave to."""
    if not path.stat().st_mode & stat.S_IWUSR:
        raise CasnapError(
            f"cannot change {path}: it is read-only", code="read-only", hint=f"make it writable with: chmod u+w {path}"
        )


def _require_place(path: Path, above: Path) -> None:
    """The nearest directory that exists above a file takes new names."""
    if not above.is_dir():
        raise _unfit(path, f"{above} is no directory")
    if not os.access(above, os.W_OK | os.X_OK):
        raise CasnapError(
            f"cannot change {path}: {above} is read-only for this user",
            code="read-only",
            hint="let this user write there",
        )
