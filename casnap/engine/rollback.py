"""``rollback``: turn the workspace into a checkpoint (docs/design/rollback.md).

Lock, look, take the safety checkpoint, plan, check, stage, switch, verify, record the outcome.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial

from casnap.engine.compare import TreeView, plan_between
from casnap.engine.context import Context, workspace_row
from casnap.engine.git_moves import git_moves, require_no_git_lock
from casnap.engine.history import noun_of, tree_of
from casnap.engine.protection import plan_for
from casnap.engine.request import Request
from casnap.engine.restoring import Restoring
from casnap.engine.roots import locked_root, peek_root
from casnap.engine.safety import begin, begin_needed
from casnap.engine.scanning import LiveScan, scan_and_plan
from casnap.errors import NotFound
from casnap.model.change import Aspect, ChangeKind
from casnap.model.checkpoint import Checkpoint
from casnap.model.paths import escape
from casnap.model.plan import Plan
from casnap.model.report import Problem, RollbackReport, WorkspaceInfo
from casnap.model.tree import NANOSECONDS, File
from casnap.store.state import UndoTarget, WorkspaceRow
from casnap.workspace.holders import writers


def rollback(
    context: Context,
    workspace: WorkspaceInfo,
    target: Checkpoint,
    *,
    paths: tuple[bytes, ...] | None = None,
    preview: bool = False,
    safety: bool = True,
    keep_git: bool = False,
) -> RollbackReport:
    """Put the workspace, or ``paths`` in it, back to ``target``; with ``keep_git`` all but git directories.

    ``preview`` changes and writes nothing. Without ``safety`` the files are changed with no way back, head
    stays and nothing is recorded: for a store that cannot be written.

    Raises:
        Refused: git is at work in a git directory that would change.
        StorageFailed: the safety checkpoint cannot be kept, or the workspace's disk is too full.
        Damage: an object that is needed is missing or bad; nothing was changed.
        Busy: the workspace is locked.
    """
    row = workspace_row(context.store.state(), workspace)
    resumed = _resumed(row, target, paths, keep_git=keep_git)
    request = Request("rollback", target, _head_after(row, target, paths), paths, resumed, keep_git)
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


def _resumed(
    row: WorkspaceRow, target: Checkpoint, paths: tuple[bytes, ...] | None, *, keep_git: bool
) -> UndoTarget | None:
    """The same command after an interruption goes on with it: undo leads to before its first run."""
    if not row.open:
        return None
    begun = row.open[-1]
    same = (begun.target.hex(), begun.paths, begun.keep_git) == (target.id, paths or (), keep_git)
    return begun.undo if same else None


def preview_of(context: Context, workspace: WorkspaceInfo, request: Request) -> RollbackReport:
    """What :func:`restore` would do, found without a lock and without writing anything."""
    row = workspace_row(context.store.state(), workspace)
    started = context.clock.now()
    target = tree_of(context, request.target)
    live = TreeView(context.store, None)
    if not os.path.lexists(row.path):  # it will be made anew
        plan = plan_between(live, target, request.paths)
        _require_paths(request, live, target)
        return replace(_report(request, plan, row.head, context.clock.now() - started), preview=True)
    with peek_root(row) as directories:
        look, sink, plan = scan_and_plan(context, row, directories, partial(plan_for, request, target=target), raw=True)
        live = look.view(sink)
        _require_paths(request, live, target)
        require_no_git_lock(plan, look, live, target, context.clock.now())
        moves = git_moves(plan, directories, live, target)
        notes = _writer_notes(row, look, plan)
    report = _report(request, plan, row.head, context.clock.now() - started)
    return replace(report, preview=True, problems=look.problems, git=moves, notes=notes)


def restore(context: Context, workspace: WorkspaceInfo, request: Request, *, safety: bool = True) -> RollbackReport:
    """Carry a request out."""
    started = context.clock.now()
    target = tree_of(context, request.target)
    with locked_root(context, workspace, request.verb, required=safety) as (row, directories, notes):
        look, sink, plan = scan_and_plan(context, row, directories, partial(plan_for, request, target=target), raw=True)
        live = look.view(sink)
        _require_paths(request, live, target)
        require_no_git_lock(plan, look, live, target, context.clock.now())
        moves = git_moves(plan, directories, live, target)
        notes += look.notes + _writer_notes(row, look, plan)
        point = None
        if safety and not begin_needed(row, look, plan, request.head_after):
            report = _report(request, plan, row.head, context.clock.now() - started)
            return _finished(report, (), look.problems, notes)
        if safety:
            point = begin(context, workspace, directories, look, sink.missing_bytes, request, plan)
            look, plan = point.live, plan_for(request, point.live, context.store, target)
        else:
            notes += ("no safety checkpoint was taken: this cannot be undone, and head has not moved",)
        restoring = Restoring(
            context, row, directories, look, plan, target, mirrors=bytes.fromhex(request.target.id), point=point
        )
        left_alone, problems = restoring.run()
        state = context.store.state()
        head = workspace_row(state, workspace).head if point else row.head
        report = _report(request, plan, head, context.clock.now() - started)
        report = replace(report, git=moves, safety=noun_of(context, state, point.safety) if point else None)
        return _finished(report, left_alone, problems + look.problems, notes)


def _writer_notes(row: WorkspaceRow, look: LiveScan, plan: Plan) -> tuple[str, ...]:
    """Who goes on writing into files that lose their names."""
    files = {}
    for change in plan.changes:
        replaced = change.kind is not ChangeKind.CHANGED or Aspect.CONTENT in change.aspects
        if replaced and isinstance(change.old, File):
            signature = look.signatures[change.path]
            files[signature.device, signature.inode] = change.path
    return tuple(
        f"process {holder.process} ({holder.program}) has {escape(holder.path)} open for writing: what it writes "
        "from now on goes to the file as it was"
        for holder in writers(row.path, files)
    )


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
