"""``recover``: finish what was interrupted."""

from __future__ import annotations

from casnap.engine.context import Context, workspace_row
from casnap.engine.history import noun_of
from casnap.engine.request import Request
from casnap.engine.rollback import restore
from casnap.errors import Damage
from casnap.model.report import RecoverReport, WorkspaceInfo


def recover(context: Context, workspace: WorkspaceInfo, *, back: bool = False) -> RecoverReport:
    """Go forward with the interrupted rollback, or ``back`` to before it; nothing to do is no error.

    It is planned anew from the present tree, with a safety checkpoint of its own. Going forward, undo still leads to
    before the first of the runs that were interrupted; going back leads there, and undo to before this. A run that
    was limited to paths stays limited to them.

    Raises:
        Damage: an object that is needed is missing or bad; nothing was changed, and ``back`` may still work.
    """
    state = context.store.state()
    row = workspace_row(state, workspace)
    if not row.open:
        return RecoverReport(workspace, None)
    begun, first = row.open[-1], row.open[0].undo
    request = Request(
        "recover",
        noun_of(context, state, first.safety if back else begun.target),
        head_after=first.head if back else begun.head_after,
        paths=begun.paths or None,
        undo=None if back else first,
        keep_git=begun.keep_git,
        back=back,
    )
    try:
        return RecoverReport(workspace, restore(context, workspace, request))
    except Damage as damage:
        if back:
            raise
        raise Damage(
            damage.message,
            code=damage.code,
            hint="go back to before the interrupted run with: casnap recover --back",
            details=damage.details,
        ) from damage
