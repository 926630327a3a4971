"""``casnap undo``."""

from __future__ import annotations

from casnap.cli.options import agreed, verb
from casnap.cli.outcome import outcome_status, show_rollback
from casnap.cli.output import printable
from casnap.cli.session import Session
from casnap.engine.undo import undo


@verb("undo")
@agreed
def command(session: Session, yes: bool) -> int:
    """Take the newest rollback back, files and head; once more does it again.

    Checkpoints and deletions are not undone by it.
    """
    workspace = session.workspace()
    session.confirm(f"Put {printable(workspace.path)} back to what it was before the last rollback?", yes=yes)
    report = undo(session.context(), workspace)
    show_rollback(session, "undo", workspace, report)
    return outcome_status(session, report)
