"""``rollback``: turn the workspace into a checkpoint (docs/design/rollback.md).

Lock, look, take the safety checkpoint, plan, check, stage, switch, verify, record the outcome.
"""

from __future__ import annotations

import os
from dataclasses import replace

from casnap.engine.compare import TreeView, plan_between
from casnap.engine.context import Context, workspace_row
from casnap.engine.history import noun_of, tree_of
from casnap.engine.request import Request
from casnap.engine.restoring import Restoring
from casnap.engine.roots import locked_root, peek_root
from casnap.engine.safety import begin, begin_needed
from casnap.engine.scanning import scan_and_plan
from casnap.errors import NotFound
from casnap.model.checkpoint import Checkpoint
from casnap.model.paths import escape
from casnap.model.plan import Plan
from casnap.model.report import Problem, RollbackReport, WorkspaceInfo
from casnap.model.tree import NANOSECONDS
from casnap.store.state import UndoTarget, WorkspaceRow


def rollback(
    context: Context,
    workspace: WorkspaceInfo,
    target: Checkpoint,
    *,
    paths: tuple[bytes, ...] | None = None,
    preview: bool = False,
    safety: bool = True,
) -> RollbackReport:
    """Put the workspace, or ``paths`` in it, back to ``target``.

    ``preview`` changes and writes nothing. Without ``safety`` the files are changed with no way back, head
    stays and nothing is recorded: for a store that cannot be written.

    Raises:
        StorageFailed: the safety checkpoint cannot be kept, or the workspace's disk is too full.
        Damage: an object that is needed is missing or bad; nothing was changed.
        Busy: the workspace is locked.
    """
    row = workspace_row(context.store.state(), workspace)
    request = Request("rollback", target, _head_after(row, target, paths), paths, _resumed(row, target, paths))
    if preview:
        return preview_of(context, workspace, request)
    return restore(context, workspace, request, safety=safety)


def _head_after(row: WorkspaceRow, target: Checkpoint, paths: tuple[bytes, ...] | None) -> bytes:
    """A limited rollback leaves head; a safety checkpoint is never head, its parent is."""
    if paths is not None:
        return row.head
    if target.safety:
        return bytes.fromhex(target.parent or "")
    return bytes.fromhex(target.id)


def _resumed(row: WorkspaceRow, target: Checkpoint, paths: tuple[bytes, ...] | None) -> UndoTarget | None:
    """The same command after an interruption goes on with it: undo leads to before its first run."""
    if row.open and row.open[-1].target.hex() == target.id and row.open[-1].paths == (paths or ()):
        return row.open[-1].undo
    return None


def preview_of(context: Context, workspace: WorkspaceInfo, request: Request) -> RollbackReport:
    """What :func:`restore` would do, found without a lock and without writing anything."""
    row = workspace_row(context.store.state(), workspace)
    started = context.clock.now()
    target = tree_of(context, request.target)
    live = TreeView(context.store, None)
    problems: tuple[Problem, ...] = ()
    if os.path.lexists(row.path):
        with peek_root(row) as directories:
            look, sink, plan = scan_and_plan(context, row, directories, target, request.paths)
        live, problems = look.view(sink), look.problems
    else:  # it will be made anew
        plan = plan_between(live, target, request.paths)
    _require_paths(request, live, target)
    report = _report(request, plan, row.head, context.clock.now() - started)
    return replace(report, preview=True, problems=problems)


def restore(context: Context, workspace: WorkspaceInfo, request: Request, *, safety: bool = True) -> RollbackReport:
    """Carry a request out."""
    started = context.clock.now()
    target = tree_of(context, request.target)
    with locked_root(context, workspace, request.verb, required=safety) as (row, directories, notes):
        look, sink, plan = scan_and_plan(context, row, directories, target, request.paths)
        notes += look.notes
        _require_paths(request, look.view(sink), target)
        if not safety:
            restoring = Restoring(context, row, directories, look, plan, target)
            left_alone, problems = restoring.run()
            report = _report(request, plan, row.head, context.clock.now() - started)
            notes += ("no safety checkpoint was taken: this cannot be undone, and head has not moved",)
            return _finished(report, left_alone, problems + look.problems, notes)
        if not begin_needed(row, look, plan, request.head_after):
            report = _report(request, plan, row.head, context.clock.now() - started)
            return _finished(report, (), look.problems, notes)
        point = begin(context, workspace, directories, look, sink.missing_bytes, request, plan)
        plan = plan_between(point.live.view(context.store), target, request.paths)
        restoring = Restoring(
            context, row, directories, point.live, plan, target, mirrors=bytes.fromhex(request.target.id), point=point
        )
        left_alone, problems = restoring.run()
        state = context.store.state()
        report = _report(request, plan, workspace_row(state, workspace).head, context.clock.now() - started)
        report = replace(report, safety=noun_of(context, state, point.safety))
        return _finished(report, left_alone, problems + point.live.problems, notes)


def _require_paths(request: Request, live: TreeView, target: TreeView) -> None:
    """A path that neither side knows is a slip of the pen; what an interrupted run was limited to need not exist."""
    for path in request.paths or ():
        if request.verb == "rollback" and live.entry(path) is None and target.entry(path) is None:
            raise NotFound(
                f"no {escape(path)}: neither in checkpoint {request.target.label} nor in the workspace",
                code="no-such-path",
                hint="see what it holds with: casnap show --files",
            )


def _report(request: Request, plan: Plan, head: bytes, elapsed: int) -> RollbackReport:
    hidden = [Problem(item.path, item.reason.words) for item in plan.protected if item.is_left_alone]
    blocked = [Problem(c.path, "holds something that no checkpoint has") for c in plan.blocked if c.new is not None]
    return RollbackReport(
        verb=request.verb,
        target=request.target,
        preview=False,
        changes=plan.visible,
        safety=None,
        head=head.hex() or None,
        left_alone=tuple(hidden + blocked),
        kept=tuple(item.path for item in plan.protected if not item.is_left_alone),
        seconds=elapsed / NANOSECONDS,
    )


def _finished(
    report: RollbackReport, left_alone: tuple[Problem, ...], problems: tuple[Problem, ...], notes: tuple[str, ...]
) -> RollbackReport:
    """The report with what the run came to: a path that was left alone is in no count."""
    alone = {problem.path for problem in left_alone}
    return replace(
        report,
        changes=tuple(change for change in report.changes if change.path not in alone),
        left_alone=report.left_alone + left_alone,
        problems=problems,
        notes=report.notes + notes,
    )
