"""Carrying out a plan: what was in files is kept first, and what fails on the way leaves nothing of it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from msgspec.structs import replace

from casnap.agents.installing.files import missing, modified, put, read, real, require_fit
from casnap.agents.installing.plan import CommandRun, FileChange, Plan
from casnap.agents.installing.records import KeptFile, Record, Records, place
from casnap.codec.hashing import checksum
from casnap.errors import CasnapError
from casnap.fs import durable

Run = Callable[[CommandRun], None]
"""Runs a command of an agent; raises :class:`CasnapError` where it fails."""

_TEMPORARY = re.compile(r"\.[0-9a-f]{8}\.tmp")
"""What a file is called besides its own name before it takes the place of the one before."""


def install(plan: Plan, records: Records, key: str, run: Run) -> None:
    """Do what a plan says; each file is the old one or the new one, whenever this is killed.

    Raises:
        CasnapError: a step failed; then all is as it was, unless a command of the agent has changed something before.
    """
    if not plan.needed:
        return
    first = records.read(key)
    _sweep(records, first)
    require_fit(_changes(plan.needed), linked=False)
    noted = _noted(first, plan, records)
    with _whole(records, key, first, noted) as progress:
        records.write(key, noted)
        for step in plan.needed:
            if isinstance(step, FileChange):
                progress.put(step)
            else:
                progress.run(step, run)


def uninstall(plan: Plan, records: Records, key: str, run: Run) -> None:
    """Do what a plan of removal says; what is as casnap left it becomes again what it was before.

    Raises:
        CasnapError: a step failed; those before it are done.
    """
    record = records.read(key)
    _sweep(records, record)
    require_fit(_changes(plan.needed), linked=True)
    for step in plan.needed:
        if isinstance(step, CommandRun):
            before = {path: read(path) for path in step.changes}
            run(step)
            for path, was in before.items():
                _put_back(record, path, was)
        else:
            put(step)
    emptied = {str(path.parent) for path in _own_of_no_record(plan, record)}
    _remove({*record.directories, *emptied})
    _hand_over(records, key, record)
    records.forget(key)
    _remove(record.directories)  # those above the record itself


class _Progress:
    """What an installation has done so far, for one that fails."""

    def __init__(self, records: Records, key: str) -> None:
        self._records, self._key = records, key
        self._done: list[tuple[FileChange, int | None]] = []
        self.settled = False

    def put(self, change: FileChange) -> None:
        """Change a file."""
        self._done.append((change, modified(change.path)))
        put(change)

    def run(self, step: CommandRun, run: Run) -> None:
        """Let the agent do its part; what has been done for it cannot be taken back when it has begun to use that."""
        before = {path: (read(path), modified(path)) for path in step.changes}
        try:
            run(step)
            self.settled = True
        finally:
            for path, (was, when) in before.items():
                if (now := read(path)) is not None and now != was:
                    self.settled = True
                    self._keep(FileChange(path, was, now, shared=True, without=was), when)

    def _keep(self, change: FileChange, when: int | None) -> None:
        record = self._records.read(self._key)
        self._records.write(self._key, _with(record, change, when))

    def undo(self) -> None:
        """Make files again what they were, the last one first.

        Raises:
            CasnapError: one cannot be changed back.
        """
        for change, when in reversed(self._done):
            if read(change.path) != change.before:
                put(FileChange(change.path, change.after, change.before, change.shared, modified=when))


@contextlib.contextmanager
def _whole(records: Records, key: str, first: Record, noted: Record) -> Iterator[_Progress]:
    """All of it or nothing; where even the way back fails, the record stays, so that uninstall can take it."""
    progress = _Progress(records, key)
    try:
        yield progress
    except BaseException:
        if not progress.settled:
            with contextlib.suppress(CasnapError):
                progress.undo()
                made = set(noted.directories) - set(first.directories)
                _remove(made)
                records.forget(key) if first == Record() else records.write(key, first)
                _remove(made)
        raise


def _noted(record: Record, plan: Plan, records: Records) -> Record:
    """The record of what files hold before they are changed, and of directories that are not there."""
    changes = [step for step in plan.steps if isinstance(step, FileChange)]
    for change in changes:
        if change.after is not None and (change.needed or record.known(change.path) is None):
            record = _with(record, change, modified(change.path))
    places = [records.directory / "record", *(change.path for change in changes if change.needed)]
    made = {str(directory): None for place in places for directory in missing(place)}
    return replace(record, directories=(*record.directories, *(one for one in made if one not in record.directories)))


def _with(record: Record, change: FileChange, when: int | None) -> Record:
    """A record that tells what a file holds; of one that casnap has changed before, what it held at first."""
    assert change.after is not None
    kept = record.original(change.path, change.before)
    if kept is None:
        kept = KeptFile(place(change.path), change.without if change.shared else change.before, b"", when)
    others = tuple(one for one in record.files if one.path != kept.path)
    return replace(record, files=(*others, replace(kept, after=checksum(change.after))))


def _changes(steps: Iterable[FileChange | CommandRun]) -> list[FileChange]:
    return [step for step in steps if isinstance(step, FileChange)]


def _put_back(record: Record, path: Path, was: bytes | None) -> None:
    """Give a file its first bytes again that was as casnap left it before the agent took casnap out of it."""
    known = record.original(path, was)
    if known is not None:
        put(FileChange(path, read(path), known.before, shared=True, modified=known.modified))


def _own_of_no_record(plan: Plan, record: Record) -> list[Path]:
    """Files of casnap's own, or made of them, of which nobody knows whether their directory was there before."""
    own = [step.path for step in _changes(plan.needed) if not step.shared and step.after is None]
    return [real(path) for path in own if record.known(path) is None]


def _remove(directories: Iterable[str]) -> None:
    """Remove directories in which nothing is, inner ones first."""
    for directory in sorted(directories, reverse=True):
        durable.remove_empty(Path(directory))


def _hand_over(records: Records, key: str, record: Record) -> None:
    """What others found there that casnap had made is theirs to take away, when they go last."""
    mine = {kept.path: kept for kept in record.files}
    left = [directory for directory in record.directories if Path(directory).is_dir()]
    for other, known in records.others(key).items():
        files = tuple(_inherited(kept, mine.get(kept.path)) for kept in known.files)
        directories = tuple(dict.fromkeys([*known.directories, *left]))
        if (inherited := Record(files, directories)) != known:
            records.write(other, inherited)
        left = []


def _inherited(kept: KeptFile, mine: KeptFile | None) -> KeptFile:
    if mine is None or kept.before is None or checksum(kept.before) != mine.after:
        return kept
    return replace(kept, before=mine.before, modified=mine.modified)


def _sweep(records: Records, record: Record) -> None:
    """Remove what a killed casnap had not yet given its name; nobody else writes such files at the same time."""
    names = {real(Path(kept.path)) for kept in record.files}
    for directory in {path.parent for path in names} | {records.directory}:
        for path in directory.glob("*.tmp"):
            stem = path.name[: -len(".12345678.tmp")]
            if _TEMPORARY.fullmatch(path.name[len(stem) :]) and (
                directory == records.directory or path.with_name(stem) in names
            ):
                durable.remove(path)
