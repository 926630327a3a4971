"""``casnap verify``."""

from __future__ import annotations

import click

from casnap.cli.as_json import change_record, checkpoint_record, problem_records
from casnap.cli.options import flag, once, verb
from casnap.cli.revisions import choose, find_typed
from casnap.cli.session import Session
from casnap.cli.text import change_line, counts_text, problem_line, tag
from casnap.engine.verify import verify
from casnap.model.report import VerifyReport, count_changes

LOST, DIFFERS = 3, 4


@verb("verify")
@click.argument("revision", metavar="[REV]", required=False)
@once("-s", "--step", "step", metavar="N", help="The checkpoint with this step.")
@flag("--times", help="Times too.")
def command(session: Session, revision: str | None, step: str | None, times: bool) -> int:
    """Compare the workspace with a checkpoint, reading every file: exit 0 when equal, 4 when not.

    Every difference is named: A added since, M changed, D missing, T of another kind.
    """
    wanted = choose(revision=revision, step=step)
    workspace = session.workspace()
    checkpoint = find_typed(session, workspace, wanted, revision, "diff")
    report = verify(session.context(), workspace, checkpoint, times=times)
    if session.as_json:
        session.document(
            "verify",
            workspace,
            checkpoint=checkpoint_record(report.checkpoint),
            equal=bool(report),
            digest=report.digest,
            changes=[change_record(change) for change in report.changes],
            omitted=problem_records(report.omitted),
            problems=problem_records(report.problems),
        )
    else:
        _show(session, report)
    for omitted in report.omitted:
        session.output.talk(f"not compared: {problem_line(omitted)}")
    for problem in report.problems:
        session.output.warn(f"problem: {problem_line(problem)}")
    if report:
        return LOST if report.problems or (session.options.strict and report.omitted) else 0
    return DIFFERS


def _show(session: Session, report: VerifyReport) -> None:
    for change in report.changes:
        session.output.data(change_line(change))
    if report:
        session.output.data(f"equal to {tag(report.checkpoint)} digest={report.digest}")
    else:
        counts = counts_text(count_changes(report.changes))
        session.output.talk(f"differs from {tag(report.checkpoint)}: {counts}")
