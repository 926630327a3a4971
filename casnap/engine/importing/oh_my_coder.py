"""The history of Oh My Coder: ``.omc/checkpoints`` a directory for each task, in it one for each checkpoint."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from casnap.engine.importing.history import Entry, Findings, History
from casnap.engine.importing.source import Fault, Source, text_of
from casnap.engine.importing.times import instant
from casnap.model.paths import escape, join
from casnap.model.report import Problem

SYSTEM = "oh-my-coder"
STATE, CHECKPOINTS = b".omc", b"checkpoints"
INDEX, MANIFEST, SNAPSHOT = b"index.json", b"manifest.json", b"snapshot"
LOOKED_FOR = ".omc/checkpoints"

_ID = re.compile(r"(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)-(\d{1,18})(-.*)?", re.ASCII | re.DOTALL)


def find(directory: bytes) -> bytes | None:
    """Where below ``directory`` the checkpoints lie; None where none do."""
    if os.path.lexists(os.path.join(directory, STATE, CHECKPOINTS)):
        return join(STATE, CHECKPOINTS)
    above, name = os.path.split(directory)
    if name == STATE and os.path.lexists(os.path.join(directory, CHECKPOINTS)):
        return CHECKPOINTS
    return b"" if name == CHECKPOINTS and os.path.basename(above) == STATE else None


def read(directory: bytes, base: bytes) -> History:
    """The history whose checkpoints lie at ``base`` below ``directory``."""
    whole = os.path.join(directory, base) if base else directory
    above = os.path.dirname(whole)
    source = Source(directory)
    findings = Findings()
    entries = _entries(source, base, findings)
    return History(
        system=SYSTEM,
        source=source,
        workspace=os.path.dirname(above) if os.path.basename(above) == STATE else None,
        head=entries[-1].id if entries else None,
        entries=lambda: iter(entries),
        uncaptured=(STATE, b".git"),
        findings=findings,
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """A checkpoint's directory, and when its snapshot's directory was changed last."""

    id: str
    place: bytes
    modified: int

    @property
    def serial(self) -> int:
        """The running number in its id, 0 without one."""
        match = _ID.fullmatch(self.id)
        return int(match[7]) if match else 0


def _entries(source: Source, base: bytes, findings: Findings) -> list[Entry]:
    """All checkpoints, oldest first."""
    index = _index(source, base, findings)
    found = list(_found(source, base, findings))
    for lost in sorted(index.keys() - {one.id for one in found}):
        findings.notes.append(f"the index names {lost}, which is not there")
    dated = [(_entry(source, one, index.get(one.id), findings), one.serial) for one in found]
    dated.sort(key=lambda pair: (pair[0].created, pair[1], pair[0].id))
    return [entry for entry, _ in dated]


def _index(source: Source, base: bytes, findings: Findings) -> dict[str, Any]:
    try:
        return source.document(join(base, INDEX))
    except Fault as fault:
        if not fault.missing:
            findings.problems.append(fault.problem)
        return {}


def _found(source: Source, base: bytes, findings: Findings) -> Iterator[_Found]:
    for task in source.required(base):
        if task == INDEX:
            continue
        try:
            names = source.names(join(base, task))
        except Fault as fault:
            findings.problems.append(fault.problem)
            continue
        for name in names:
            place = join(join(base, task), name)
            try:
                modified = source.check_directory(join(place, SNAPSHOT))
            except Fault as fault:
                if fault.missing:
                    findings.notes.append(f"{escape(place)} has no snapshot, and is left out")
                else:
                    path = fault.problem.path
                    findings.problems.append(Problem(path, f"{escape(name)} is not imported: {fault}"))
                continue
            yield _Found(escape(name), place, modified)


def _entry(source: Source, found: _Found, indexed: object, findings: Findings) -> Entry:
    """A checkpoint by its manifest; the index is asked only where there is none."""
    facts: dict[str, Any] = indexed if isinstance(indexed, dict) else {}
    sound = True
    try:
        facts = source.document(join(found.place, MANIFEST))
    except Fault as fault:
        sound = fault.missing
        if sound:
            findings.notes.append(f"{found.id} has no manifest: what lies in its snapshot is imported")
        else:
            findings.problems.append(fault.problem)
    said = text_of(facts, "created_at")
    created = instant(said, serial=found.serial)
    if created is None:
        created = _time_in(found.id)
    if created is None:
        created = found.modified
        findings.notes.append(f"{found.id}: its time cannot be told, that of its directory is taken")
    kept = {key: value for key in ("task_id", "working_dir") if (value := text_of(facts, key))}
    return Entry(
        id=found.id,
        place=join(found.place, SNAPSHOT),
        created=created,
        said=said,
        name=found.id,
        message=text_of(facts, "description"),
        facts=kept,
        sound=sound,
    )


def _time_in(id: str) -> int | None:
    match = _ID.fullmatch(id)
    return instant("{}-{}-{}T{}:{}:{}".format(*match.groups())) if match else None
