"""``casnap expunge``."""

from __future__ import annotations

import os
from typing import Any

import click

from casnap.cli.as_json import path_fields, workspace_record
from casnap.cli.options import agreed, flag, verb
from casnap.cli.output import printable
from casnap.cli.session import Session
from casnap.cli.text import quantity, size
from casnap.engine.expunge import expunge, is_unfinished, wipe
from casnap.errors import CasnapError, Usage
from casnap.model.expunge import ExpungeReport
from casnap.model.ids import SHORT_ID
from casnap.model.paths import escape
from casnap.model.upkeep import GcReport

PARTIAL = 3
"""The status where bytes are in the store still that nothing names."""


@verb("expunge")
@click.argument("patterns", metavar="PATTERN...", nargs=-1)
@flag("--all", "everywhere", help="In all workspaces of the store, forgotten ones too.")
@flag("--dry-run", help="Only tell what would go.")
@agreed
def command(session: Session, patterns: tuple[str, ...], everywhere: bool, dry_run: bool, yes: bool) -> int:
    """Take paths out of every checkpoint, and their bytes out of the store: a secret that got in. It cannot be undone.

    A PATTERN is one of a .gitignore file at the workspace's root. Checkpoints that held such paths, and all that
    descend from these, get other ids; steps, names and pins stay. The files of the workspace stay as they are.
    """
    if not patterns:
        raise Usage("bad arguments: no pattern was given", hint="name what is to be taken out, as in a .gitignore file")
    if everywhere and session.options.workspaces:
        raise Usage("bad options: --all is about all workspaces, and -w about one", hint="leave one of them out")
    workspace = None if everywhere else session.workspace()
    wanted = [os.fsencode(pattern) for pattern in patterns]
    if not dry_run and not yes and session.may_ask:
        ahead = expunge(session.context(), workspace, wanted, dry_run=True)
        question = f"Take {_amount(ahead)} for good?"
        session.confirm(question, yes=not ahead.replaced)
    report = expunge(session.context(), workspace, wanted, dry_run=dry_run)
    if not session.as_json:
        _show(session, report)
    freed, left, error = _wiped(session, report)
    if session.as_json:
        session.document("expunge", workspace, **_fields(report, freed, left, error))
    else:
        _show_freed(session, freed, left, error)
    return error.exit_status if error else PARTIAL if left else 0


def _wiped(session: Session, report: ExpungeReport) -> tuple[GcReport | None, int, CasnapError | None]:
    """What became of the bytes. What was taken out is out even where they could not be given up yet."""
    if report.dry_run or not (report.replaced or is_unfinished(session.context())):
        return None, 0, None
    if not report.replaced:
        session.output.talk("note: an expunge before this one did not come to its end: its bytes go now")
    try:
        freed, left = wipe(session.context(), report)
    except CasnapError as error:
        return None, len(report.gone), error
    return freed, left, None


def _show(session: Session, report: ExpungeReport) -> None:
    for one in report.replaced:
        session.output.data(f"{one.old[:SHORT_ID]} -> {one.new[:SHORT_ID]}{_whose(one.step, one.name)}")
    for note in report.notes:
        session.output.talk(f"note: {printable(note)}")
    for holder in report.holders:
        where = f"{escape(holder.path)} in {holder.workspace.path} ({holder.checkpoint[:SHORT_ID]})"
        session.output.talk(f"note: the bytes are still held by {printable(where)}")
    if report.more_held:
        session.output.talk("note: the bytes are still held by more paths")
    session.output.data(_summary(report))


def _whose(step: int | None, name: str | None) -> str:
    return (f" step {step}" if step else " a safety checkpoint") + (f" {printable(name)}" if name else "")


def _summary(report: ExpungeReport) -> str:
    if not report.paths and not report.replaced:
        return "no checkpoint holds what matches: nothing was changed"
    took = "would take" if report.dry_run else "took"
    have = "would have" if report.dry_run else "has" if len(report.replaced) == 1 else "have"
    return f"{took} {_amount(report)}; {quantity(len(report.replaced), 'checkpoint')} {have} another id"


def _amount(report: ExpungeReport) -> str:
    return f"{quantity(len(report.paths), 'path')} out of {quantity(report.hit, 'checkpoint')}"


def _show_freed(session: Session, freed: GcReport | None, left: int, error: CasnapError | None) -> None:
    if error is not None:
        session.output.talk(f"note: the bytes are in the store still: {printable(error.message)}")
    elif left:
        session.output.talk(
            f"note: {quantity(left, 'object')} of it may be in the store still: others write to its packs"
        )
    if freed is not None:
        for note in freed.notes:
            session.output.talk(f"note: {printable(note)}")
        session.output.data(f"{size(max(0, freed.freed_bytes))} freed")
    if error is not None or left:
        session.output.talk("the same command once more takes the bytes away")


def _fields(report: ExpungeReport, freed: GcReport | None, left: int, error: CasnapError | None) -> dict[str, Any]:
    return {
        "replaced": [
            {
                "workspace": workspace_record(one.workspace),
                "old": one.old,
                "new": one.new,
                "step": one.step,
                "name": one.name,
                "held": one.held,
            }
            for one in report.replaced
        ],
        "paths": [{"workspace": workspace_record(workspace), **path_fields(path)} for workspace, path in report.paths],
        "checkpoints": report.hit,
        "holders": [
            {"workspace": workspace_record(one.workspace), **path_fields(one.path), "checkpoint": one.checkpoint}
            for one in report.holders
        ],
        "more_held": report.more_held,
        "dry_run": report.dry_run,
        "freed_bytes": freed.freed_bytes if freed else None,
        "left": left,
        "notes": [*report.notes, *(freed.notes if freed else ()), *([error.message] if error else ())],
    }
