"""``status``: how a workspace stands."""

from __future__ import annotations

from casnap.engine.compare import plan_between
from casnap.engine.context import Context, workspace_row
from casnap.engine.history import noun_of, tree_of
from casnap.engine.roots import peek_root
from casnap.engine.scanning import scan_and_plan
from casnap.errors import CasnapError
from casnap.model.change import Change
from casnap.model.checkpoint import Checkpoint
from casnap.model.paths import ROOT
from casnap.model.report import Interrupted, Problem, Status, WorkspaceInfo
from casnap.store.state import WorkspaceRow


def status(context: Context, workspace: WorkspaceInfo) -> Status:
    """Head, what has changed since, and whether the next checkpoint would work; changes nothing."""
    state = context.store.state()
    row = workspace_row(state, workspace)
    rows = [found for found in state.history(row.id) if not found.deleted]
    safety = [found for found in rows if found.safety]
    head = noun_of(context, state, row.head) if row.head else None
    changes, problems, notes = _changes(context, row, head)
    reason = _unprotected(context, row)
    return Status(
        workspace=workspace,
        protected=not reason,
        reason=reason,
        head=head,
        checkpoints=len(rows) - len(safety),
        safety_points=len(safety),
        last_safety=noun_of(context, state, safety[0].id) if safety else None,
        changes=changes,
        interrupted=_interrupted(row),
        store_bytes=context.store.disk_usage(),
        store_free=context.store.free_space()[0],
        problems=problems,
        notes=notes,
    )


def _unprotected(context: Context, row: WorkspaceRow) -> str:
    """Why the workspace is not protected now; empty when it is."""
    if not row.head:
        return "there is no checkpoint yet"
    if not context.store.writable:
        return "the store cannot be written"
    free, size = context.store.free_space()
    if free < context.policy.reserve(size):
        return "the store's disk is too full for a new checkpoint"
    return ""


def _changes(
    context: Context, row: WorkspaceRow, head: Checkpoint | None
) -> tuple[tuple[Change, ...] | None, tuple[Problem, ...], tuple[str, ...]]:
    if head is None:
        return None, (), ()
    try:
        recorded = tree_of(context, head)
        with peek_root(row) as directories:
            live, _, plan = scan_and_plan(
                context, row, directories, lambda live, sink: plan_between(recorded, live.view(sink))
            )
    except CasnapError as error:
        return None, (Problem(ROOT, error.message),), ()
    return plan.visible, live.problems, live.notes


def _interrupted(row: WorkspaceRow) -> Interrupted | None:
    if not row.open:
        return None
    begun = row.open[-1]
    return Interrupted(begun.verb, begun.target.hex(), begun.undo.safety.hex(), begun.time)
