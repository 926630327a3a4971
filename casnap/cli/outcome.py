"""What a rollback, an undo or a recover came to."""

from __future__ import annotations

from collections.abc import Iterator

from casnap.cli.output import printable
from casnap.cli.session import Session
from casnap.cli.text import counts_text, path_text, plan_line, problem_line, quantity, tag
from casnap.errors import CasnapError
from casnap.model.ids import SHORT_ID
from casnap.model.report import RollbackReport, WorkspaceInfo

INCOMPLETE = 3
"""Exit status: a path was left alone that should have changed."""

KEPT_SHOWN = 5
"""How many protected paths are named before the rest is counted."""


def outcome_status(session: Session, report: RollbackReport) -> int:
    """The exit status that a report amounts to."""
    whole = report.complete and not report.problems and not (session.options.strict and report.kept)
    return 0 if whole else INCOMPLETE


Failure = tuple[WorkspaceInfo, CasnapError]
"""A workspace, and what went wrong in it."""


def show_rollbacks(
    session: Session, done: list[tuple[WorkspaceInfo, RollbackReport]], failed: list[Failure], rest: list[WorkspaceInfo]
) -> None:
    """Rollbacks of several workspaces in one document; ``rest`` was not begun after one had failed."""
    if session.as_json:
        from casnap.cli.as_json import failure_record, rollback_fields, workspace_record  # here: json takes its time

        records = [{"workspace": workspace_record(place), **rollback_fields(report)} for place, report in done]
        failures = [failure_record(place, error) for place, error in failed]
        session.document("rollback", None, workspaces=records, failed=failures)
    for place, report in done:
        if not session.as_json:
            session.output.data(f"workspace {printable(place.path)}")
            _show_lines(session, report)
        talk_about(session, report)
    show_failures(session, failed)
    for place in rest:
        session.output.warn(f"note: {printable(place.path)} is as it was")


def show_failures(session: Session, failed: list[Failure]) -> None:
    """What went wrong in some of several workspaces."""
    for place, error in failed:
        session.output.warn(f"error: {printable(place.path)}: {printable(error.message)}")
        if error.hint:
            session.output.warn(f"hint: {printable(error.hint)}")


def show_rollback(session: Session, verb: str, workspace: WorkspaceInfo, report: RollbackReport) -> None:
    """Say what was done, or would be, and how to get back."""
    if session.as_json:
        from casnap.cli.as_json import rollback_fields

        session.document(verb, workspace, **rollback_fields(report))
    else:
        _show_lines(session, report)
    talk_about(session, report)


def _show_lines(session: Session, report: RollbackReport) -> None:
    show_git(session, report)
    if not report.preview:
        session.output.data(outcome_line(report))
        return
    for change in report.changes:
        session.output.data(plan_line(change))


def show_git(session: Session, report: RollbackReport) -> None:
    """Say first what becomes of git directories: commits are what people mind most."""
    for line in git_lines(report):
        session.output.data(line)


def git_lines(report: RollbackReport) -> Iterator[str]:
    """What becomes of git directories, a line for each."""
    for move in report.git:
        moves = f"{quantity(move.commits, 'commit')} and {quantity(move.refs, 'ref')} go back"
        returning = f", {quantity(move.returning, 'commit comes', 'commits come')} back" if move.returning else ""
        yield f"git {path_text(move.path)}: {moves}{returning}"


def outcome_line(report: RollbackReport) -> str:
    """The one line about what was done."""
    safety = "none" if report.safety is None else report.safety.id[:SHORT_ID]
    return f"{report.verb} to {tag(report.target)} safety={safety} {counts_text(report.counts)} {report.seconds:.2f} s"


def talk_about(session: Session, report: RollbackReport) -> None:
    """What there is to know beside the result."""
    output = session.output
    if report.preview:
        output.talk(f"preview: {counts_text(report.counts)} to {tag(report.target)}; nothing was changed")
    elif session.options.verbose:
        for change in report.changes:
            output.talk(plan_line(change))
    for note in report.notes:
        output.talk(f"note: {printable(note)}")
    for path in report.kept[:KEPT_SHOWN]:
        output.talk(f"kept: {path_text(path)}")
    if (more := len(report.kept) - KEPT_SHOWN) > 0:
        output.talk(f"kept: {quantity(more, 'more path')} that no checkpoint holds")
    for problem in report.problems:
        output.warn(f"problem: {problem_line(problem)}")
    for problem in report.left_alone:
        output.warn(f"left alone: {problem_line(problem)}")
    if report.safety is not None and not report.preview:
        output.talk("hint: `casnap undo` takes it back")
