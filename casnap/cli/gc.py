"""``casnap gc``."""

from __future__ import annotations

import signal
from typing import Any

import click

from casnap.cli.options import flag, verb
from casnap.cli.output import printable
from casnap.cli.session import Session
from casnap.cli.text import quantity, size
from casnap.engine.gc import collect
from casnap.engine.gc_terms import ASKED_FOR, AUTOMATIC, REPACKING
from casnap.model.ids import SHORT_ID
from casnap.model.upkeep import FreedCheckpoint, GcReport
from casnap.store.signals import DEFERRED


@verb("gc")
@flag("--dry-run", help="Only tell what would be freed.")
@flag("--repack", help="Bring all that is kept into a smaller form, which takes longer.")
@click.option("--automatic", is_flag=True, hidden=True)
def command(session: Session, dry_run: bool, repack: bool, automatic: bool) -> int:
    """Give back the space of checkpoints that were deleted; these cannot be undeleted after it.

    It is about the whole store, and may run beside anything else. What `casnap undo` and `casnap recover` need stays.

    With --repack what is kept takes less space afterwards: what resembles each other is compressed together, at a high
    level. Nothing ever needs that; it reads and writes the whole store the first time, and what is new after that.
    """
    if session.options.workspaces:
        session.workspaces()  # it is about all of them; one that does not exist is a mistake nevertheless
    if automatic:  # begun by a command in which signals waited for its report
        signal.pthread_sigmask(signal.SIG_UNBLOCK, DEFERRED)
    terms = REPACKING if repack else AUTOMATIC if automatic else ASKED_FOR
    report = collect(session.context(), terms, dry_run=dry_run)
    if session.as_json:
        session.document("gc", None, **_fields(report))
        return 0
    for freed in report.checkpoints:
        session.output.data(f"{'would free' if dry_run else 'freed'} {_tag(freed)}")
    for note in report.notes:
        session.output.talk(f"note: {printable(note)}")
    session.output.data(summary(report))
    if repack and not report.repacked and not report.notes:
        session.output.data("nothing was left to repack")
    return 0


def summary(report: GcReport) -> str:
    """What came of it, in a line."""
    packs = f"{quantity(report.removed, 'pack')} removed, {report.rewritten} rewritten"
    packs += f", {report.repacked} repacked" if report.repacked else ""
    amount = size(max(0, report.freed_bytes))
    done = f"{amount} would be freed" if report.dry_run else f"{amount} freed"
    return f"{done}, {size(report.store_bytes)} {'would be' if report.dry_run else 'are'} left ({packs})"


def _tag(freed: FreedCheckpoint) -> str:
    step = f"step {freed.step} " if freed.step else "a safety checkpoint "
    return f"{step}{printable(freed.name) + ' ' if freed.name else ''}{freed.id[:SHORT_ID]}"


def _fields(report: GcReport) -> dict[str, Any]:
    checkpoints = [
        {"id": freed.id, "workspace": freed.workspace, "name": freed.name, "step": freed.step}
        for freed in report.checkpoints
    ]
    return {
        "checkpoints": checkpoints,
        "freed_bytes": report.freed_bytes,
        "store_bytes": report.store_bytes,
        "packs_removed": report.removed,
        "packs_rewritten": report.rewritten,
        "packs_repacked": report.repacked,
        "dry_run": report.dry_run,
        "notes": list(report.notes),
    }
