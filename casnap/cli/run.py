"""``casnap run``: a command between two checkpoints."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable

import click

from casnap.cli.checkpoint import LOST, talk_about
from casnap.cli.child import CannotRun, outliving_signals, run_child
from casnap.cli.errors import report as report_error
from casnap.cli.options import flag, verb
from casnap.cli.outcome import git_lines, outcome_line
from casnap.cli.outcome import talk_about as talk_about_rollback
from casnap.cli.output import printable
from casnap.cli.session import Session
from casnap.cli.text import checkpoint_line, tag
from casnap.engine.checkpoint import as_text, make_checkpoint
from casnap.engine.good import mark_good
from casnap.engine.history import resolve
from casnap.engine.rollback import rollback
from casnap.errors import Usage, interruption_in
from casnap.model.checkpoint import Checkpoint
from casnap.model.paths import escape
from casnap.model.report import CheckpointReport, WorkspaceInfo
from casnap.model.revision import Revision, Word
from casnap.store import signals

_HINT = "write: casnap run -- COMMAND"


@verb("run", takes_command=True)
@click.argument("words", metavar="-- COMMAND...", nargs=-1)
@click.option("-m", "--message", metavar="TEXT", help="What it is about: in the messages of both checkpoints.")
@flag("--rollback-on-failure", help="When COMMAND does not end with 0, put the workspace back to before it.")
def command(session: Session, words: tuple[str, ...], message: str | None, rollback_on_failure: bool) -> int:
    """Run COMMAND between two checkpoints, and end as it does. What it leaves is marked good when it ends with 0.

    COMMAND runs in the current directory with the standard streams of casnap, which itself speaks on standard error
    only. A checkpoint of what has not changed is not made. @good is the newest that is marked.
    """
    wanted = _wanted(session, words)
    about = as_text(message) if message is not None else escape(os.fsencode(os.path.basename(wanted[0])))
    with signals.reported():  # whoever interrupts it by now has no command run
        workspace = session.protect().workspace
        before = make_checkpoint(session.context(), workspace, message=_message("before", about), if_changed=True)
        _tell(session, "before", before)
        session.close()  # COMMAND may take long: nothing of the store is held open meanwhile
    with outliving_signals() as blocked:
        try:
            status = run_child(wanted, blocked)
        except CannotRun as error:
            session.output.warn(f"error: cannot run {printable(shlex.quote(wanted[0]))}: {error}")
            return error.status
        back_to = before.checkpoint if rollback_on_failure and status else None
        failure = _conclude(session, workspace, about, status, back_to)
        if not status and session.options.strict and before.left_out:
            failure = failure or LOST
    session.free_space_if_due()
    return status or failure


def _wanted(session: Session, words: tuple[str, ...]) -> list[str]:
    """The words of the command.

    Raises:
        Usage: there is none, or what was asked for does not go with one.
    """
    if words:
        hint = f"write: casnap run -- {printable(shlex.join(words))}"
        raise Usage("bad arguments: the command must stand behind --", hint=hint)
    if not session.raw_paths:
        raise Usage("bad arguments: no command follows --", hint=_HINT)
    if session.as_json:
        raise Usage(
            "bad options: run has no JSON: its standard output is that of the command",
            hint="ask afterwards: casnap show --json, casnap list --json",
        )
    return session.raw_paths


def _message(when: str, about: str) -> str:
    return f"{when}: {about}" if about else when


def _conclude(session: Session, workspace: WorkspaceInfo, about: str, status: int, back_to: Checkpoint | None) -> int:
    """What is done after the command: the exit status of what failed of it, 0 when nothing did.

    Where the workspace goes back, what the command left is in the safety checkpoint, and needs no other one.
    """
    if back_to is not None and not _attempt(session, lambda: _roll_back(session, workspace, back_to)):
        return 0
    return _attempt(session, lambda: _take(session, workspace, about, status))


def _attempt(session: Session, step: Callable[[], int]) -> int:
    """What a step returns, or the status of the error that it ends with, which is said."""
    try:
        return step()
    except Exception as error:  # whatever it is, the status of the command must not be lost
        if stop := interruption_in(error):
            raise stop from None
        return report_error(error, session.output, as_json=False, debug=session.options.debug)


def _roll_back(session: Session, workspace: WorkspaceInfo, target: Checkpoint) -> int:
    context = session.context()
    report = rollback(context, workspace, resolve(context, workspace, Revision(Word(target.id))))
    for line in (*git_lines(report), outcome_line(report)):
        session.output.talk(line)
    talk_about_rollback(session, report)
    return 0


def _take(session: Session, workspace: WorkspaceInfo, about: str, status: int) -> int:
    """Make the checkpoint after the command, and mark it when that ended well."""
    when = "after" if not status else f"after (exit {status})"
    report = make_checkpoint(session.context(), workspace, message=_message(when, about), if_changed=True)
    _tell(session, "after", report)
    if not status:
        session.output.talk(f"good: {tag(mark_good(session.context(), workspace, report.checkpoint))}")
    return LOST if session.options.strict and report.left_out else 0


def _tell(session: Session, when: str, report: CheckpointReport) -> None:
    checkpoint = report.checkpoint
    line = checkpoint_line(checkpoint, report.seconds) if report.created else f"unchanged {tag(checkpoint)}"
    session.output.talk(f"{when}: {line}")
    talk_about(session, report)
