"""``recover``: finish what was interrupted."""

from __future__ import annotations

from casnap.engine.context import Context, workspace_row
from casnap.engine.history import noun_of
from casnap.engine.request import Request
from casnap.engine.rollback import restore
from casnap.model.report import RecoverReport, WorkspaceInfo


def recover(context: Context, workspace: WorkspaceInfo) -> RecoverReport:
    """Go forward with the interrupted rollback; nothing to do is no error.

    It is planned anew from the present tree, with a safety checkpoint of its own; undo still leads to before
    the first run, and one that was limited to paths stays limited to them.
    """
    state = context.store.state()
    row = workspace_row(state, workspace)
    if not row.open:
        return RecoverReport(workspace, None)
    begun = row.open[-1]
    request = Request(
        "recover",
        noun_of(context, state, begun.target),
        head_after=begun.head_after,
        paths=begun.paths or None,
        undo=begun.undo,
    )
    return RecoverReport(workspace, restore(context, workspace, request))
