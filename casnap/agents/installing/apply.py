"""Carrying out a plan: files are replaced whole, and what was in them is kept first."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from casnap.agents.installing.plan import CommandRun, FileChange, Plan
from casnap.agents.installing.records import KeptFile, Record, Records
from casnap.codec.hashing import checksum
from casnap.errors import CasnapError, Usage
from casnap.fs import durable

NEW_FILE = 0o644
"""Mode of a file that is made anew."""

Run = Callable[[CommandRun], None]
"""Runs a command of an agent; raises :class:`CasnapError` where it fails."""


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


def _unfit(path: Path, cause: str) -> Usage:
    return Usage(
        f"cannot change {path}: {cause}", code="bad-config", hint="put a file there that can be read and written"
    )


def install(plan: Plan, records: Records, key: str, run: Run) -> None:
    """Do what a plan says; each file is the old one or the new one, whenever this is killed.

    Raises:
        CasnapError: a step failed; those before it are done.
    """
    for step in plan.needed:
        if isinstance(step, FileChange):
            _keep(records, key, step)
            _put(step)
        else:
            _run_keeping(records, key, step, run)


def uninstall(plan: Plan, records: Records, key: str, run: Run) -> None:
    """Do what a plan of removal says; what is as casnap left it becomes again what it was before.

    Raises:
        CasnapError: a step failed; those before it are done.
    """
    record = records.read(key)
    for step in plan.needed:
        if isinstance(step, CommandRun):
            before = {path: read(path) for path in step.changes}
            run(step)
            for path, was in before.items():
                _put_back(record, path, was)
        else:
            _put(step)
    own = [step for step in plan.needed if isinstance(step, FileChange) and not step.shared]
    emptied = [str(step.path.parent) for step in own if step.after is None]
    for directory in sorted({*record.directories, *emptied}, reverse=True):  # inner ones first
        durable.remove_empty(Path(directory))
    records.forget(key)


def _put_back(record: Record, path: Path, was: bytes | None) -> None:
    """Give a file its first bytes again that was as casnap left it before the agent took casnap out of it."""
    known = record.original(path, was)
    if known is not None:
        _put(FileChange(path, read(path), known.before, shared=True))


def _run_keeping(records: Records, key: str, step: CommandRun, run: Run) -> None:
    before = {path: read(path) for path in step.changes}
    run(step)
    for path, was in before.items():
        now = read(path)
        if now is not None and now != was:
            _keep(records, key, FileChange(path, was, now, shared=True, without=was))


def _keep(records: Records, key: str, change: FileChange) -> None:
    """Note what a file holds before it is changed; of one that casnap has changed before, what it held at first."""
    record = records.read(key)
    if change.after is not None:
        first = record.original(change.path, change.before)
        before = first.before if first else change.without if change.shared else change.before
        kept = KeptFile(str(change.path), before, checksum(change.after))
        others = tuple(one for one in record.files if one.path != kept.path)
        record = replace(record, files=(*others, kept))
    made = tuple(str(path) for path in _missing(change.path) if str(path) not in record.directories)
    records.write(key, replace(record, directories=(*record.directories, *made)))


def _missing(path: Path) -> list[Path]:
    """The directories above a file that do not exist, outer ones first."""
    return [above for above in reversed(path.parents) if not above.exists()]


def _put(change: FileChange) -> None:
    """Make a file hold what it is to hold: the one that a link leads to, with the owner and the mode that it has."""
    target = Path(os.path.realpath(change.path))
    if read(target) != change.before:
        raise CasnapError(
            f"cannot change {change.path}: somebody else has changed it meanwhile",
            code="changed-meanwhile",
            hint="try again",
        )
    if change.after is None:
        durable.remove(target)
        return
    for directory in _missing(target):
        durable.make_directory(directory)
    status = target.stat() if change.before is not None else None
    if status is None:
        durable.write_whole(target, change.after, mode=_mode_of(change))
        return
    _require_writable(target)
    owner, mode = (status.st_uid, status.st_gid), stat.S_IMODE(status.st_mode)
    durable.write_whole(target, change.after, owner=owner, mode=mode)


def _mode_of(change: FileChange) -> int:
    return 0o600 if change.shared else NEW_FILE


def _require_writable(path: Path) -> None:
    """A file that its owner has made read-only is left alone; that we could replace it is no leave to."""
    if not path.stat().st_mode & stat.S_IWUSR:
        raise CasnapError(
            f"cannot change {path}: it is read-only", code="read-only", hint=f"make it writable with: chmod u+w {path}"
        )
