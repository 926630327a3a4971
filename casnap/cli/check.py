"""``casnap check``."""

from __future__ import annotations

from typing import Any

from casnap.cli.as_json import path_fields, workspace_record
from casnap.cli.options import flag, verb
from casnap.cli.output import printable
from casnap.cli.session import Session
from casnap.cli.text import path_text, quantity, size
from casnap.model.check import CheckReport, Finding, Hit
from casnap.model.ids import SHORT_ID

DAMAGED, UNREADABLE = 15, 17

PATHS_SHOWN = 3
"""How many paths of one checkpoint a line names before the rest is counted."""

NOTES_SHOWN = 20


@verb("check")
@flag("--read-data", help="Read every byte, and compare it with its name.")
@flag("--repair", help="Mend what can be mended, from the store and from the workspaces.")
def command(session: Session, read_data: bool, repair: bool) -> int:
    """Look through the whole store: exit 0 when nothing is lost, 15 when something is. Other name: fsck.

    Each fault is named with the checkpoints and paths that it hurts, and with the next step.
    """
    from casnap.settings.store_check import check_store

    _ = session.options.workspace  # it is about all of them, and two make no sense
    report = check_store(session.settings, session.progress, read_data=read_data, repair=repair)
    if session.as_json:
        session.document("check", None, **_fields(report))
    else:
        _show(session, report)
    if report:
        return 0
    return UNREADABLE if report.unreadable else DAMAGED


def _show(session: Session, report: CheckReport) -> None:
    output = session.output
    for sentence in report.done:
        output.data(f"repaired: {printable(sentence)}")
    for finding in report.findings:
        output.data(f"damage: {_line(finding)}")
        for hit in finding.hits:
            output.data(f"  {_hit_line(hit)}")
        if finding.next_step:
            output.data(f"  next: {finding.next_step}")
    if (more := report.found - len(report.findings)) > 0:
        output.data(f"damage: {more} more")
    notes = report.notes if session.options.verbose else report.notes[:NOTES_SHOWN]
    for note in notes:
        output.talk(f"note: {_line(note)}")
    if (rest := len(report.notes) - len(notes)) > 0:
        output.talk(f"note: {quantity(rest, 'more note')}; --verbose shows them")
    output.data(_last_line(report))


def _line(finding: Finding) -> str:
    place = "" if finding.file is None else printable(finding.file)
    if place and finding.offset is not None:
        place += f" at byte {finding.offset}"
    about = "" if finding.object is None or finding.object in finding.message else f"{finding.object}: "
    return f"{place}: {about}{printable(finding.message)}" if place else f"{about}{printable(finding.message)}"


def _hit_line(hit: Hit) -> str:
    named = _tag(hit)
    where = printable(hit.workspace.path) or hit.workspace.id
    if not hit.paths:
        return f"{named} in {where}: the whole checkpoint"
    shown = ", ".join(map(path_text, hit.paths[:PATHS_SHOWN]))
    more = len(hit.paths) - PATHS_SHOWN + hit.more
    return f"{named} in {where}: {shown}" + (f" and {quantity(more, 'more path')}" if more > 0 else "")


def _tag(hit: Hit) -> str:
    step = () if hit.step is None else (f"step={hit.step}",)
    name = () if hit.name is None else (f"name={hit.name}",)
    return " ".join((*step, *name, f"id={hit.id[:SHORT_ID]}"))


def _last_line(report: CheckReport) -> str:
    totals = report.totals
    looked = (
        f"checked {quantity(totals.operations, 'operation')}, {quantity(totals.packs, 'pack')}, "
        f"{quantity(totals.objects, 'object')}, {quantity(totals.checkpoints, 'checkpoint')} "
        f"({size(totals.bytes)}{', every byte' if report.read_data else ''}) in {report.seconds:.2f} s"
    )
    if report:
        return f"{looked}: clean" + (f", {quantity(report.healed, 'object')} healed" if report.healed else "")
    found = f"{looked}: {quantity(report.found, 'fault')}"
    if report.unreadable:
        return f"{found}; make the files readable and check again"
    if not report.repaired:
        return f"{found}; mend what can be mended with `casnap check --repair`"
    if not (hits := report.hits):
        return f"{found} left"
    return f"{found} beyond help, in {quantity(len(hits), 'checkpoint')}: `casnap delete` lets them go"


def _fields(report: CheckReport) -> dict[str, Any]:
    totals = report.totals
    return {
        "clean": bool(report),
        "read_data": report.read_data,
        "found": report.found,
        "findings": [_record(finding) for finding in report.findings],
        "notes": [_record(finding) for finding in report.notes],
        "totals": {field: getattr(totals, field) for field in totals.__struct_fields__},
        "repaired": report.repaired,
        "healed": report.healed,
        "done": list(report.done),
        "seconds": round(report.seconds, 3),
    }


def _record(finding: Finding) -> dict[str, Any]:
    return {
        "fault": finding.fault.value,
        "message": finding.message,
        "file": finding.file,
        "offset": finding.offset,
        "object": finding.object,
        "checkpoints": [_hit_record(hit) for hit in finding.hits],
        "next": finding.next_step,
    }


def _hit_record(hit: Hit) -> dict[str, Any]:
    return {
        "workspace": workspace_record(hit.workspace),
        "id": hit.id,
        "step": hit.step,
        "name": hit.name,
        "paths": [path_fields(path) for path in hit.paths],
        "more": hit.more,
    }
