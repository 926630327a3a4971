"""``casnap recover``."""

from __future__ import annotations

from typing import Any

from casnap.cli.as_json import failure_record, rollback_fields, workspace_record
from casnap.cli.options import agreed, flag, verb
from casnap.cli.outcome import Failure, outcome_line, outcome_status, show_failures, show_git, talk_about
from casnap.cli.output import printable
from casnap.cli.session import Session
from casnap.engine.recover import recover
from casnap.engine.workspaces import all_workspaces
from casnap.errors import CasnapError
from casnap.model.report import RecoverReport, WorkspaceInfo


@verb("recover")
@flag("--all", "everywhere", help="In all workspaces.")
@flag("--back", help="Not forward, but back to the state before the interrupted run.")
@agreed
def command(session: Session, everywhere: bool, back: bool, yes: bool) -> int:
    """Finish a rollback that was interrupted, or with --back undo what it did. With none, nothing is done.

    It needs no consent, since it changes nothing that was not asked for; --yes is accepted all the same.
    """
    if not everywhere:
        workspace = session.workspace()
        report = recover(session.context(), workspace, back=back)
        return _show(session, workspace, [report], [])
    done: list[RecoverReport] = []
    failed: list[Failure] = []
    for workspace in all_workspaces(session.context()):
        try:
            done.append(recover(session.context(), workspace, back=back))
        except CasnapError as error:  # one workspace in trouble must not keep the others waiting
            failed.append((workspace, error))
    return _show(session, None, done, failed)


def _show(
    session: Session,
    workspace: WorkspaceInfo | None,
    done: list[RecoverReport],
    failed: list[Failure],
) -> int:
    output = session.output
    if session.as_json:
        failures = [failure_record(where, error) for where, error in failed]
        session.document("recover", workspace, recovered=[_record(report) for report in done], failed=failures)
    for report in done:
        place = printable(report.workspace.path)
        if report.rollback is None:
            output.talk(f"{place}: nothing to recover")
            continue
        if not session.as_json:
            show_git(session, report.rollback)
            output.data(f"{outcome_line(report.rollback)}  {place}")
        talk_about(session, report.rollback)
    show_failures(session, failed)
    statuses = [error.exit_status for _, error in failed]
    statuses += [outcome_status(session, report.rollback) for report in done if report.rollback is not None]
    return next(filter(None, statuses), 0)


def _record(report: RecoverReport) -> dict[str, Any]:
    rollback = report.rollback
    return {
        "workspace": workspace_record(report.workspace),
        "rollback": None if rollback is None else rollback_fields(rollback),
    }
