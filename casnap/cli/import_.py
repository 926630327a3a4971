"""``casnap import``; the module's name has an underscore because the word belongs to Python."""

from __future__ import annotations

import os

import click

from casnap.cli.as_json import checkpoint_record, problem_records
from casnap.cli.options import once, verb
from casnap.cli.output import printable
from casnap.cli.session import Session
from casnap.cli.text import checkpoint_line, problem_line, quantity
from casnap.engine.importing.adopt import import_history
from casnap.engine.importing.recognise import SYSTEMS, open_history
from casnap.errors import Usage
from casnap.model.checkpoint import Checkpoint
from casnap.model.report import ImportReport

LOST = 3
"""Exit status: something of the history could not be read, or is not what it should be."""


@verb("import")
@click.argument("directory", metavar="DIR")
@once(
    "--from",
    "system",
    metavar="SYSTEM",
    type=click.Choice(SYSTEMS),
    help="pitrrwnd, oh-my-coder or ws-ckpt, where it cannot be told.",
)
@once("--index", metavar="FILE", help="The index.json of ws-ckpt, where it is not found by itself.")
def command(session: Session, directory: str, system: str | None, index: str | None) -> int:
    """Make checkpoints of the history that another system left in DIR, which is only read.

    DIR is the workspace or its .pitr, the project or its .omc, an index.json of ws-ckpt or a directory of its
    snapshots. What was imported before is not imported again.
    """
    if not directory:
        raise Usage("bad directory '': it is empty", hint="name a directory")
    history = open_history(directory, system=system, index=index)
    try:
        if session.options.workspace is None and history.workspace is not None:
            session.options.workspaces = (os.fsdecode(history.workspace),)
        protected = session.protect()
        report = import_history(
            protected.context,
            protected.workspace,
            history,
            made=lambda checkpoint, seconds: _show_one(session, checkpoint, seconds),
        )
    finally:
        history.source.close()
    if session.as_json:
        session.document(
            "import",
            protected.workspace,
            system=report.system,
            imported=[checkpoint_record(one) for one in report.imported],
            skipped=[checkpoint_record(one) for one in report.skipped],
            problems=problem_records(report.problems),
            notes=list(report.notes),
        )
    _talk(session, report)
    left_out = session.options.strict and any(one.skipped for one in report.imported)
    return LOST if report.problems or left_out else 0


def _show_one(session: Session, checkpoint: Checkpoint, seconds: float) -> None:
    """Each as soon as it is made: the next one may fail."""
    if session.as_json:
        return
    session.output.data(checkpoint.id if session.options.quiet else checkpoint_line(checkpoint, seconds))


def _talk(session: Session, report: ImportReport) -> None:
    for note in report.notes:
        session.output.talk(f"note: {printable(note)}")
    for problem in report.problems:
        session.output.warn(f"problem: {problem_line(problem)}")
    before = f", {len(report.skipped)} had been imported before" if report.skipped else ""
    session.output.talk(f"imported {quantity(len(report.imported), 'checkpoint')} from {report.system}{before}")
