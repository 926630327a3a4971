"""``casnap rollback`` and its other names."""

from __future__ import annotations

from functools import partial

from msgspec import Struct

from casnap.cli.outcome import outcome_status, show_rollback, show_rollbacks
from casnap.cli.output import printable
from casnap.cli.revisions import choose, find_typed
from casnap.cli.session import Session
from casnap.cli.text import counts_text, tag
from casnap.engine.rollback import rollback_all
from casnap.errors import Usage
from casnap.model.checkpoint import Checkpoint
from casnap.model.report import WorkspaceInfo


def carry_out(
    session: Session,
    revision: str | None,
    snapshot: str | None,
    back: str | None,
    step: str | None,
    instant: str | None,
    preview: bool,
    keep_git: bool,
    no_safety: bool,
    yes: bool,
    target: str | None = None,
) -> int:
    """Put the workspace, or the paths after --, back to a checkpoint: head, or the one that is named.

    A safety checkpoint is taken first, and `casnap undo` goes back to it. Without REV: back to head, that is,
    the changes since are dropped. -n 1 is the parent of head (in ws-ckpt it is head itself). Other names:
    restore, rewind.
    """
    wanted = choose(revision=revision, snapshot=snapshot, back=back, step=step, instant=instant)
    workspaces = session.workspaces()
    found = [(one, find_typed(session, one, wanted, revision, "rollback")) for one in workspaces]
    if target is not None:
        if preview or no_safety or keep_git or len(found) > 1:
            raise Usage("bad options: --target goes with one -w, no --preview, --no-safety, --keep-git")
        from casnap.cli.restore_to import run_restore_to  # here: it imports click

        return run_restore_to(session, *found[0], target)
    if back is not None:
        session.output.talk("note: -n counts parents of head: 1 is its parent, `casnap rollback` alone goes to head")
    options = _Options(preview=preview, safety=not no_safety, keep_git=keep_git)
    return _roll_back(session, found, options, yes=yes)


class _Options(Struct, frozen=True):
    preview: bool
    safety: bool
    keep_git: bool


def _roll_back(session: Session, found: list[tuple[WorkspaceInfo, Checkpoint]], options: _Options, *, yes: bool) -> int:
    wanted = [(workspace, checkpoint, session.paths(workspace)) for workspace, checkpoint in found]
    run = partial(rollback_all, session.context(), wanted, keep_git=options.keep_git)
    if not options.preview and not yes and session.may_ask:
        way_back = "a safety checkpoint is taken first"
        if not options.safety:
            way_back = "WITHOUT a safety checkpoint: no way back"
        plans = zip(found, run(preview=True)[0], strict=True)
        what = "; ".join(
            f"{printable(workspace.path)} back to {tag(checkpoint)}: {counts_text(plan.counts)} paths"
            for (workspace, checkpoint), plan in plans
        )
        session.confirm(f"Roll {what}, {way_back}. Go on?", yes=yes)
    reports, error = run(preview=options.preview, safety=options.safety)
    workspaces = [workspace for workspace, _ in found]
    if len(found) == 1:
        show_rollback(session, "rollback", workspaces[0], reports[0])
    else:
        after = len(reports)
        failed = [(workspaces[after], error)] if error else []
        show_rollbacks(session, list(zip(workspaces, reports, strict=False)), failed, workspaces[after + 1 :])
    statuses = [error.exit_status if error else 0, *(outcome_status(session, report) for report in reports)]
    return next(filter(None, statuses), 0)
