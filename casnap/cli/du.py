"""``casnap du``."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import click

from casnap.cli.as_json import Record, checkpoint_record, path_fields, problem_records, workspace_record
from casnap.cli.options import verb
from casnap.cli.output import printable
from casnap.cli.revisions import choose, find_typed
from casnap.cli.session import Session
from casnap.cli.table import show_table
from casnap.cli.text import moment, path_text, problem_line, quantity, size, tag
from casnap.engine.du import by_checkpoint, by_workspace, excluding, largest_directories
from casnap.errors import Damage, Usage
from casnap.model.ids import SHORT_ID
from casnap.model.report import Problem
from casnap.model.usage import (
    CheckpointsReport,
    CheckpointUsage,
    DirectoriesReport,
    DirectoryUsage,
    Unfreed,
    WorkspacesReport,
)

LIMIT = 20
"""How many directories are named unless something else is said."""

_CHECKPOINTS = ("", "STEP", "NAME", "ID", "CREATED", "SIZE", "ALONE")
_WORKSPACES = ("ID", "CHECKPOINTS", "STORED", "ALONE", "", "PATH")


@verb("du")
@click.argument("revision", metavar="[REV]", required=False)
@click.option("--by", type=click.Choice(["dir", "checkpoint", "workspace"]), default="dir", help="What is compared.")
@click.option("-n", "--limit", type=click.IntRange(min=0), metavar="N", help=f"The N largest directories ({LIMIT}).")
def command(session: Session, revision: str | None, by: str, limit: int | None) -> int:
    """What takes the space: the largest directories of head, or of REV, each with the command that leaves it out.

    A directory of which one directory in it has nine tenths is not listed, that one is; what is in .git is not
    told apart. --by checkpoint: for each, the size of its files, and ALONE, the stored bytes that no other checkpoint
    holds. --by workspace: the same for each workspace of the store.
    """
    if by == "dir":
        return _directories(session, revision, LIMIT if limit is None else limit)
    if revision is not None or limit is not None:
        raise Usage(f"bad arguments: REV and --limit are about directories, not --by {by}", hint="leave them out")
    return _checkpoints(session) if by == "checkpoint" else _workspaces(session)


def _directories(session: Session, revision: str | None, limit: int) -> int:
    workspace = session.workspace()
    checkpoint = find_typed(session, workspace, choose(revision=revision), revision, "diff")
    report = largest_directories(session.context(), checkpoint, limit)
    if session.as_json:
        session.document(
            "du",
            workspace,
            by="dir",
            checkpoint=checkpoint_record(report.checkpoint),
            bytes=report.bytes,
            files=report.files,
            directories=[_directory_record(session, one) for one in report.directories],
            problems=problem_records(report.problems),
        )
    else:
        for line in _directory_lines(session, report):
            session.output.data(line)
    if any("exclude" in layer.values for layer in session.settings.variables):
        session.output.talk("note: CASNAP_EXCLUDE is set and stronger than these commands: add the patterns there")
    if report.directories:
        session.output.talk("hint: what is excluded is in no later checkpoint, and earlier ones keep it")
    return _told(session, report.problems, by_path=True)


def _directory_lines(session: Session, report: DirectoriesReport) -> Iterator[str]:
    for one in report.directories:
        yield f"{size(one.bytes):>9}  {quantity(one.files, 'file'):>13}  {path_text(one.path)}"
        command = _exclude(session, one)
        yield f"{'':>9}  {command if command else '(no pattern that can be typed names it)'}"
    yield f"{size(report.bytes):>9}  {quantity(report.files, 'file'):>13}  in all of {tag(report.checkpoint)}"


def _directory_record(session: Session, one: DirectoryUsage) -> Record:
    return {**path_fields(one.path), "bytes": one.bytes, "files": one.files, "exclude": _exclude(session, one)}


def _exclude(session: Session, one: DirectoryUsage) -> str | None:
    """The command that leaves a directory out, as a shell takes it; store and workspace are named as they were here."""
    if (pattern := excluding(one.path)) is None:
        return None
    options = session.options
    store = [] if options.store is None else ["--store", options.store]
    workspace = [] if options.workspace is None else ["-w", options.workspace]
    command = shlex.join(["casnap", *store, *workspace, "config", "add", "exclude", pattern])
    return command if command.isprintable() else None


def _checkpoints(session: Session) -> int:
    workspace = session.workspace()
    report = by_checkpoint(session.context(), workspace)
    if session.as_json:
        session.document(
            "du",
            workspace,
            by="checkpoint",
            checkpoints=[
                {"checkpoint": checkpoint_record(one.checkpoint), "size": one.size, "alone": one.alone}
                for one in report.checkpoints
            ],
            stored=report.stored,
            deleted=_unfreed_record(report.deleted),
            problems=problem_records(report.problems),
        )
    else:
        _show_checkpoints(session, report)
    return _told(session, report.problems)


def _show_checkpoints(session: Session, report: CheckpointsReport) -> None:
    if report.checkpoints:
        show_table(session.output, _CHECKPOINTS, [_row(one) for one in report.checkpoints])
    count = quantity(len(report.checkpoints), "checkpoint")
    session.output.data(f"total: {count}, {size(report.stored)} stored")
    _show_unfreed(session, report.deleted)


def _row(one: CheckpointUsage) -> tuple[str, ...]:
    checkpoint = one.checkpoint
    return (
        "*" if checkpoint.head else "",
        "-" if checkpoint.step is None else str(checkpoint.step),
        "(safety)" if checkpoint.safety else checkpoint.name or "",
        checkpoint.id[:SHORT_ID],
        moment(checkpoint.created_ns),
        size(one.size),
        size(one.alone),
    )


def _workspaces(session: Session) -> int:
    report = by_workspace(session.context())
    if session.as_json:
        session.document(
            "du",
            None,
            by="workspace",
            workspaces=[
                {
                    **workspace_record(one.workspace),
                    "forgotten": one.forgotten,
                    "checkpoints": one.checkpoints,
                    "stored": one.stored,
                    "alone": one.alone,
                }
                for one in report.workspaces
            ],
            stored=report.stored,
            deleted=_unfreed_record(report.deleted),
            problems=problem_records(report.problems),
        )
    else:
        _show_workspaces(session, report)
    return _told(session, report.problems)


def _show_workspaces(session: Session, report: WorkspacesReport) -> None:
    rows = [
        (
            one.workspace.id,
            str(one.checkpoints),
            size(one.stored),
            size(one.alone),
            "forgotten" if one.forgotten else "",
            printable(one.workspace.path),
        )
        for one in report.workspaces
    ]
    if rows:
        show_table(session.output, _WORKSPACES, rows)
    session.output.data(f"total: {quantity(len(rows), 'workspace')}, {size(report.stored)} stored")
    _show_unfreed(session, report.deleted)


def _show_unfreed(session: Session, deleted: Unfreed) -> None:
    if deleted.checkpoints:
        count = quantity(deleted.checkpoints, "checkpoint")
        session.output.data(f"deleted, not yet freed: {count}, {size(deleted.bytes)} held by nothing else")


def _unfreed_record(deleted: Unfreed) -> Record:
    return {"checkpoints": deleted.checkpoints, "bytes": deleted.bytes}


def _told(session: Session, problems: tuple[Problem, ...], *, by_path: bool = False) -> int:
    """Name what could not be counted; the exit status."""
    for problem in problems:
        session.output.warn(f"problem: {problem_line(problem) if by_path else printable(problem.message)}")
    return Damage.exit_status if problems else 0
