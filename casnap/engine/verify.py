"""``verify``: compare the workspace with a checkpoint, reading every byte."""

from __future__ import annotations

import contextlib

from casnap.engine.alike import alike_paths
from casnap.engine.compare import plan_between
from casnap.engine.context import Context, workspace_row
from casnap.engine.recorded import tree_of
from casnap.engine.roots import peek_root
from casnap.engine.scanning import scan_workspace
from casnap.engine.sinks import MemorySink
from casnap.errors import CasnapError
from casnap.model.change import Aspect, Change, ChangeKind
from casnap.model.checkpoint import Checkpoint
from casnap.model.operation import AnyOperation, Verified
from casnap.model.plan import Plan
from casnap.model.report import Problem, VerifyReport, WorkspaceInfo
from casnap.model.tree import Omitted
from casnap.store.state import State
from casnap.store.store import Commit


def verify(context: Context, workspace: WorkspaceInfo, checkpoint: Checkpoint, *, times: bool = False) -> VerifyReport:
    """Every difference between a checkpoint and the live workspace; no cache is believed.

    Times count only with ``times``. Entries that were omitted on both sides are named, not compared; one
    that cannot be read now though it was captured is a difference.
    """
    row = workspace_row(context.store.state(), workspace)
    sink = MemorySink(context.store)
    with peek_root(row) as directories:
        live = scan_workspace(context, row, directories, sink, trusted=False)
        recorded = tree_of(context, checkpoint)
        plan = plan_between(recorded, live.view(sink))
        alike = alike_paths([(item.path, item.new, item.old) for item in plan.protected], directories, recorded)
    changes = (plan.changes if times else plan.visible) + plan.blocked + _obstructed(plan, alike)
    report = VerifyReport(
        checkpoint=checkpoint,
        digest=live.root.digest.hex(),
        changes=tuple(sorted(changes, key=lambda change: change.path)),
        omitted=tuple(Problem(path, reason.words) for path, reason in live.skipped),
        problems=live.problems,
    )
    if context.store.writable:
        with contextlib.suppress(CasnapError):  # the record is a courtesy, the answer is not
            _record(context, workspace, report)
    return report


def _obstructed(plan: Plan, alike: frozenset[bytes]) -> tuple[Change, ...]:
    """What the checkpoint holds and cannot be looked at, since something that is not captured stands there."""
    return tuple(
        Change(item.path, ChangeKind.CHANGED, item.old, item.new, Aspect.CONTENT)
        for item in plan.protected
        if isinstance(item.new, Omitted) and not isinstance(item.old, Omitted) and item.path not in alike
    )


def _record(context: Context, workspace: WorkspaceInfo, report: VerifyReport) -> None:
    def build(state: State, commit: Commit) -> AnyOperation:
        return Verified(
            seq=commit.seq,
            time=commit.time,
            prev=commit.prev,
            by=context.by,
            workspace=workspace.id,
            id=report.checkpoint.id,
            result="equal" if report else "differs",
        )

    context.store.commit(build)
