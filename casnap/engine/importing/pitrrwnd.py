"""The history of pitrrwnd: ``.pitr`` with a full copy and a manifest for each step, and an audit log."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from casnap.engine.importing.history import Entry, Findings, History
from casnap.engine.importing.source import Fault, Source, as_object, object_of, text_of
from casnap.engine.importing.times import instant
from casnap.model.paths import components, escape, is_valid_name, join
from casnap.model.report import Problem

SYSTEM = "pitrrwnd"
STATE = b".pitr"
MANIFESTS, SNAPSHOTS, AUDIT = b"manifests", b"snapshots", b"audit.jsonl"
LOOKED_FOR = ".pitr/manifests and .pitr/snapshots"

_STEP = re.compile(rb"(\d{10,18})")
_MANIFEST = re.compile(rb"(\d{10,18})\.json")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_LOST_CHARACTER = "\ufffd"


def find(directory: bytes) -> bytes | None:
    """Where below ``directory`` the state lies; None where none does."""
    if os.path.lexists(os.path.join(directory, STATE)):
        return STATE
    here = all(os.path.lexists(os.path.join(directory, name)) for name in (MANIFESTS, SNAPSHOTS))
    return b"" if here or os.path.basename(directory) == STATE else None


def read(directory: bytes, base: bytes) -> History:
    """The history whose state lies at ``base`` below ``directory``."""
    above, name = os.path.split(directory)
    workspace = directory if base else above if name == STATE else None
    source = Source(directory)
    findings = Findings()
    steps = _steps(source, base, findings)
    return History(
        system=SYSTEM,
        source=source,
        workspace=workspace,
        head=steps[-1].id if steps else None,
        entries=lambda: _entries(source, steps, _audit(source, base, findings), findings),
        uncaptured=(STATE, b".git"),
        findings=findings,
    )


@dataclass(frozen=True, slots=True)
class _Step:
    number: int
    manifest: bytes
    snapshot: bytes
    modified: int

    @property
    def id(self) -> str:
        return str(self.number)


def _steps(source: Source, base: bytes, findings: Findings) -> list[_Step]:
    """The steps that have a manifest and a snapshot, in order; what is wrong with the others is said."""
    source.required(base)
    manifests = _numbered(source.required(join(base, MANIFESTS)), _MANIFEST)
    snapshots = _numbered(source.required(join(base, SNAPSHOTS)), _STEP)
    for number in sorted(snapshots.keys() - manifests.keys()):
        findings.notes.append(f"step {number} has no manifest: it failed there, and is left out")
    steps = []
    for number, name in sorted(manifests.items()):
        place = join(join(base, SNAPSHOTS), name.removesuffix(b".json"))
        try:
            modified = source.check_directory(place)
        except Fault as fault:
            findings.problems.append(Problem(place, f"step {number} is not imported: {fault}"))
        else:
            steps.append(_Step(number, join(join(base, MANIFESTS), name), place, modified))
    return steps


def _numbered(names: list[bytes], pattern: re.Pattern[bytes]) -> dict[int, bytes]:
    return {int(match[1]): name for name in names if (match := pattern.fullmatch(name))}


def _entries(
    source: Source, steps: list[_Step], audit: Mapping[int, dict[str, Any]], findings: Findings
) -> Iterator[Entry]:
    for step in steps:
        try:
            manifest = source.document(step.manifest)
        except Fault as fault:
            findings.problems.append(Problem(step.manifest, f"step {step.number} cannot be checked: {fault}"))
            yield _entry(step, {}, audit.get(step.number, {}), None, findings)
            continue
        faults = len(findings.problems)
        sums = _sums(step, manifest, findings)
        sound = len(findings.problems) == faults
        yield _entry(step, manifest, audit.get(step.number, {}), sums, findings, sound=sound)


def _entry(
    step: _Step,
    manifest: dict[str, Any],
    audited: dict[str, Any],
    sums: Mapping[bytes, str] | None,
    findings: Findings,
    *,
    sound: bool = False,
) -> Entry:
    said = text_of(manifest, "created_at") or text_of(audited, "iso_ts")
    created = instant(said)
    if created is None:
        created = step.modified
        findings.notes.append(f"step {step.number}: its time cannot be told, that of its directory is taken")
    label, actor = text_of(manifest, "label") or text_of(audited, "label"), text_of(manifest, "actor")
    return Entry(
        id=step.id,
        place=step.snapshot,
        created=created,
        said=said,
        name=label,
        message=label,
        step=step.number,
        user=text_of(audited, "user") or actor,
        host=text_of(audited, "hostname"),
        facts={"actor": actor} if actor else {},
        sums=sums,
        sound=sound,
    )


def _sums(step: _Step, manifest: dict[str, Any], findings: Findings) -> dict[bytes, str]:
    """The files that a manifest lists, by their paths; what it says and cannot be is a problem."""

    def problem(message: str) -> None:
        findings.problems.append(Problem(step.manifest, f"step {step.number}: {message}"))

    if manifest.get("step") != step.number:
        problem("its manifest is that of another step")
    listed = manifest.get("files")
    if not isinstance(listed, dict):
        problem("its manifest lists no files")
        return {}
    sums: dict[bytes, str] = {}
    for path, sha256 in listed.items():
        name = path.encode("utf-8", "surrogatepass")
        if not (name and all(map(is_valid_name, components(name)))):
            problem(f"its manifest names a path that cannot be: {escape(name)}")
        elif not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
            problem(f"its manifest has no SHA-256 of {escape(name)}")
        else:
            sums[name] = sha256.lower()
    if not _is_working_set(manifest, object_of(manifest, "files")):
        problem("the working_set_sha256 of its manifest is not that of its files")
    return sums


def _is_working_set(manifest: dict[str, Any], listed: dict[str, Any]) -> bool:
    """Whether the hash over the whole list is right. With names that JSON could not hold it cannot be told."""
    said = manifest.get("working_set_sha256")
    if said is None or any(_LOST_CHARACTER in path for path in listed):
        return True
    lines = sorted((path.encode("utf-8", "surrogatepass"), str(sha256)) for path, sha256 in listed.items())
    text = b"".join(b"%s\0%s\n" % (path, sha256.encode("utf-8", "surrogatepass")) for path, sha256 in lines)
    return bool(said == hashlib.sha256(text).hexdigest())


def _audit(source: Source, base: bytes, findings: Findings) -> dict[int, dict[str, Any]]:
    """What the audit log says of the making of each step."""
    path = join(base, AUDIT)
    try:
        lines = source.text(path).split(b"\n")
    except Fault as fault:
        if not fault.missing:
            findings.problems.append(fault.problem)
        return {}
    made: dict[int, dict[str, Any]] = {}
    bad = 0
    for line in filter(None, lines):
        try:
            record = as_object(path, line)
        except Fault:
            bad += 1
            continue
        if record.get("op") in ("init", "savepoint") and isinstance(step := record.get("step"), int):
            made[step] = record
    if bad:
        findings.problems.append(Problem(path, f"{bad} of its lines cannot be read"))
    return made
