"""``undo``: go back to before the newest rollback, files and head."""

from __future__ import annotations

from msgspec.structs import replace

from casnap.engine.context import Context, workspace_row
from casnap.engine.history import noun_of
from casnap.engine.request import Request
from casnap.engine.rollback import restore
from casnap.errors import NotFound
from casnap.model.checkpoint import format_instant
from casnap.model.report import RollbackReport, WorkspaceInfo
from casnap.store.state import State


def undo(context: Context, workspace: WorkspaceInfo) -> RollbackReport:
    """Reverse the newest rollback or undo that had an effect; a second undo redoes it.

    Raises:
        NotFound: there is nothing to undo.
    """
    state = context.store.state()
    row = workspace_row(state, workspace)
    point = row.open[0].undo if row.open else row.undo
    if point is None:
        raise NotFound(
            f"nothing to undo in {workspace.path}: no rollback has changed it",
            code="nothing-to-undo",
            hint="drop the changes since the last checkpoint with: casnap rollback",
        )
    target = noun_of(context, state, point.safety)
    report = restore(context, workspace, Request("undo", target, _surviving(state, point.head), back=True))
    stood = f"this is how it stood at {format_instant(target.created_ns)}"
    return replace(report, notes=(f"{stood}, {target.message}" if target.safety else stood, *report.notes))


def _surviving(state: State, head: bytes) -> bytes:
    """The head of then, or its nearest ancestor that is not deleted by now."""
    row = state.checkpoint(head) if head else None
    if row is None or not row.deleted:
        return head
    return state.present_parent(row)
