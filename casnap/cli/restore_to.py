"""``casnap restore-to``."""

from __future__ import annotations

import os

import click

from casnap.cli.as_json import checkpoint_record, path_fields, problem_records
from casnap.cli.options import verb
from casnap.cli.output import printable
from casnap.cli.revisions import choose, find_typed
from casnap.cli.session import Session
from casnap.cli.text import problem_line, quantity, size, tag
from casnap.engine.restore_to import restore_to
from casnap.errors import Usage
from casnap.fs.paths import canonical
from casnap.model.checkpoint import Checkpoint
from casnap.model.report import WorkspaceInfo

LOST = 3


@verb("restore-to", takes_paths=True)
@click.argument("directory", metavar="DIR")
@click.argument("revision", metavar="[REV]", required=False)
def command(session: Session, directory: str, revision: str | None) -> int:
    """Write a checkpoint, or the paths of it after --, into DIR, which must be empty or absent.

    The workspace is left alone.
    """
    wanted = choose(revision=revision)
    workspace = session.workspace()
    checkpoint = find_typed(session, workspace, wanted, revision, "restore-to DIR")
    return run_restore_to(session, workspace, checkpoint, directory)


def run_restore_to(session: Session, workspace: WorkspaceInfo, checkpoint: Checkpoint, directory: str) -> int:
    """Write ``checkpoint`` into ``directory`` and say so; the exit status."""
    if not directory:
        raise Usage("bad directory '': it is empty", hint="name a directory")
    paths = session.paths(workspace) or ()
    report = restore_to(session.context(), workspace, checkpoint, canonical(directory), paths=paths)
    if session.as_json:
        session.document(
            "restore-to",
            workspace,
            checkpoint=checkpoint_record(report.checkpoint),
            directory=path_fields(os.fsencode(report.directory)),
            entries=report.entries,
            bytes=report.bytes,
            problems=problem_records(report.problems),
        )
    else:
        amount = f"{quantity(report.entries, 'entry', 'entries')}, {size(report.bytes)}"
        session.output.data(f"restored {tag(report.checkpoint)} to {printable(report.directory)}: {amount}")
    for problem in report.problems:
        session.output.warn(f"problem: {problem_line(problem)}")
    return LOST if report.problems else 0
