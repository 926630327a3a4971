"""``status``: how a workspace stands."""

from __future__ import annotations

from msgspec import Struct, field

from casnap.engine.compare import plan_between
from casnap.engine.context import Context, workspace_row
from casnap.engine.history import noun_of
from casnap.engine.recorded import tree_of
from casnap.engine.roots import peek_root
from casnap.engine.scanning import scan_and_plan
from casnap.engine.target_rules import RULES_DIFFER, rules_differ
from casnap.engine.upkeep import upkeep_status
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
    look = _look(context, row, head)
    reason = _unprotected(context, row)
    return Status(
        workspace=workspace,
        protected=not reason,
        reason=reason,
        head=head,
        checkpoints=len(rows) - len(safety),
        safety_points=len(safety),
        last_safety=noun_of(context, state, safety[0].id) if safety else None,
        changes=look.changes,
        interrupted=_interrupted(row),
        store_bytes=context.store.space.used(),
        store_free=context.store.space.free()[0],
        upkeep=upkeep_status(context, len(rows) - len(safety)),
        problems=look.problems,
        notes=look.notes,
        left_out=look.left_out,
    )


def _unprotected(context: Context, row: WorkspaceRow) -> str:
    """Why the workspace is not protected now; empty when it is."""
    if not row.head:
        return "there is no checkpoint yet" if not row.last_step else "there is no head: its checkpoint was deleted"
    if not context.store.writable:
        return "the store cannot be written"
    free, size = context.store.space.free()
    if free < context.policy.reserve(size):
        return f"{context.store.space.disk} is too full for a new checkpoint"
    return ""


class _Look(Struct, frozen=True):
    """What a look at the workspace says; ``changes`` is None where it could not be compared with head."""

    changes: tuple[Change, ...] | None = None
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    left_out: dict[str, int] = field(default_factory=dict)


def _look(context: Context, row: WorkspaceRow, head: Checkpoint | None) -> _Look:
    if head is None:
        return _Look()
    try:
        recorded = tree_of(context, head)
        with peek_root(row) as directories:
            live, sink, plan = scan_and_plan(
                context, row, directories, lambda live, sink: plan_between(recorded, live.view(sink))
            )
    except CasnapError as error:
        return _Look(problems=(Problem(ROOT, error.message),))
    differ = (RULES_DIFFER,) if rules_differ(recorded, live.view(sink), plan.visible) else ()
    return _Look(plan.visible, live.problems, live.notes + differ, live.left_out)


def _interrupted(row: WorkspaceRow) -> Interrupted | None:
    if not row.open:
        return None
    begun = row.open[-1]
    return Interrupted(begun.verb, begun.target.hex(), begun.undo.safety.hex(), begun.time)
