"""What is wrong with the files that a store consists of: its format, its log, its catalog, its packs."""

from __future__ import annotations

from collections.abc import Iterator

from casnap.model.check import Fault, Finding
from casnap.store.catalog_audit import audit_places
from casnap.store.inspection import Inspection
from casnap.store.pack_survey import PackSurvey

_REPAIR = "run `casnap check --repair`"


def structure_faults(
    inspection: Inspection, surveyed: PackSurvey, *, any_lost: bool
) -> tuple[list[Finding], list[Finding]]:
    """Damage, and notes. ``any_lost``: an object is missing, so a pack that is gone is the likely cause."""
    damage = [*_format(inspection), *_log(inspection), *_catalog(inspection, surveyed), *_unreadable(surveyed)]
    notes = [*_torn(inspection), *_harmless(surveyed), *_tails(inspection, surveyed)]
    for finding in _gone(surveyed, damage=any_lost):
        (damage if finding.damage else notes).append(finding)
    return damage, notes


def _format(inspection: Inspection) -> Iterator[Finding]:
    name = inspection.layout.format.name
    if inspection.format_fault is not None:
        message = f"the format file cannot be read: {inspection.format_fault}"
        yield Finding(Fault.FORMAT, message, file=name, next_step=_REPAIR)
        return
    if inspection.first_format not in (None, inspection.format):
        message = "the format file is not what the first line of the operation log says"
        yield Finding(Fault.FORMAT, message, file=name, next_step=_REPAIR)


def _log(inspection: Inspection) -> Iterator[Finding]:
    log = inspection.log
    for fault in log.faults:
        file = f"oplog/{inspection.layout.segment(fault.segment).name}" if fault.segment else "oplog"
        message = f"the operation log is damaged: {fault.cause}"
        if fault.lines > 1:
            message += f" (and {fault.lines - 1} more)"
        yield Finding(Fault.LOG, message, file=file, offset=fault.offset if fault.segment else None, next_step=_REPAIR)
    if log.whole and inspection.claimed > log.seq:
        message = f"the operation log ends with operation {log.seq}, and the catalog has seen {inspection.claimed}"
        yield Finding(Fault.LOG, message, file="oplog", next_step=_REPAIR)


def _torn(inspection: Inspection) -> Iterator[Finding]:
    if inspection.log.torn is not None:
        segment, offset, size = inspection.log.torn
        message = f"the last line is not whole ({size} bytes): what it says has not happened; the next commit moves it"
        file = f"oplog/{inspection.layout.segment(segment).name}"
        yield Finding(Fault.LEFTOVER, message, False, file, offset)


def _catalog(inspection: Inspection, surveyed: PackSurvey) -> Iterator[Finding]:
    doubtful = surveyed.gone | set(surveyed.unreadable)
    doubtful |= {pack for pack, account in surveyed.accounts.items() if account.faults or account.broken}
    known = inspection.catalog_faults
    told = {name for name, _ in known}
    more = [fault for fault in audit_places(inspection, frozenset(doubtful)) if fault[0] not in told]
    for name, cause in (*known, *more):
        yield Finding(Fault.CATALOG, f"the catalog is damaged: {cause}", file=name, next_step=_REPAIR)


def _gone(surveyed: PackSurvey, *, damage: bool) -> Iterator[Finding]:
    for pack in sorted(surveyed.gone):
        message = "the pack is gone" if damage else "the pack is gone; nothing that was in it is needed from there"
        yield Finding(Fault.PACK, message, damage, f"packs/{pack}.pack", next_step=_REPAIR if damage else None)
    for pack, account in sorted(surveyed.accounts.items()):
        if account.broken:
            message = f"the pack cannot be read: {account.broken}"
            yield Finding(Fault.PACK, message, damage, f"packs/{pack}.pack", next_step=_REPAIR if damage else None)


def _unreadable(surveyed: PackSurvey) -> Iterator[Finding]:
    for pack, cause in sorted(surveyed.unreadable.items()):
        step = "give yourself the right to read it, and check again"
        yield Finding(Fault.UNREADABLE, f"the pack cannot be read: {cause}", True, f"packs/{pack}.pack", next_step=step)


def _harmless(surveyed: PackSurvey) -> Iterator[Finding]:
    """Faults that take no object away: readers do without what is damaged."""
    for pack, account in sorted(surveyed.accounts.items()):
        for fault in account.faults:
            if not fault.lost:
                message = f"{fault.cause}; that takes nothing away"
                yield Finding(Fault.INDEX, message, False, f"packs/{pack}.pack", fault.offset)


def _tails(inspection: Inspection, surveyed: PackSurvey) -> Iterator[Finding]:
    lengths = {row.id: row.length for row in inspection.packs}
    if not inspection.log.whole:
        return
    for pack, size in sorted(surveyed.tails.items()):
        message = (
            f"{size} bytes here belong to no operation: a process is writing them or was stopped while it did; "
            "the next checkpoint takes what is good of them"
        )
        yield Finding(Fault.LEFTOVER, message, False, f"packs/{pack}.pack", lengths.get(pack, 0))
