"""``casnap gc``."""

from __future__ import annotations

from typing import Any

import click

from casnap.cli.options import flag, verb
from casnap.cli.output import printable
from casnap.cli.session import Session
from casnap.cli.text import quantity, size
from casnap.engine.gc import collect
from casnap.engine.gc_terms import ASKED_FOR, AUTOMATIC
from casnap.model.ids import SHORT_ID
from casnap.model.upkeep import FreedCheckpoint, GcReport


@verb("gc")
@flag("--dry-run", help="Only tell what would be freed.")
@click.option("--automatic", is_flag=True, hidden=True)
def command(session: Session, dry_run: bool, automatic: bool) -> int:
    """Give back the space of checkpoints that were deleted; these cannot be undeleted after it.

    It is about the whole store, and may run beside anything else. What `casnap undo` and `casnap recover` need stays.
    """
    if session.options.workspaces:
        session.workspaces()  # it is about all of them; one that does not exist is a mistake nevertheless
    report = collect(session.context(), AUTOMATIC if automatic else ASKED_FOR, dry_run=dry_run)
    if session.as_json:
        session.document("gc", None, **_fields(report))
        return 0
    for freed in report.checkpoints:
        session.output.data(f"{'would free' if dry_run else 'freed'} {_tag(freed)}")
    for note in report.notes:
        session.output.talk(f"note: {printable(note)}")
    session.output.data(summary(report))
    return 0


def summary(report: GcReport) -> str:
    """What came of it, in a line."""
    packs = f"{quantity(report.removed, 'pack')} removed, {report.rewritten} rewritten"
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
        "dry_run": report.dry_run,
        "notes": list(report.notes),
    }
