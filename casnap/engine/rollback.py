"""``rollback``: turn the workspace into a checkpoint (docs/design/rollback.md).

Lock, look, take the safety checkpoint, plan, check, stage, switch, verify, record the outcome.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator, Sequence
from functools import partial

from msgspec.structs import replace

from casnap.engine.alike import alike_paths
from casnap.engine.compare import TreeView, plan_between
from casnap.engine.context import Context, workspace_row
from casnap.engine.git_moves import git_moves, require_no_git_lock
from casnap.engine.history import noun_of
from casnap.engine.protection import Brought, Past, plan_for
from casnap.engine.recorded import tree_of
from casnap.engine.request import Request
from casnap.engine.restoring import Restoring
from casnap.engine.roots import LockedRoot, locked_roots, peek_root
from casnap.engine.safety import SafetyPoint, begin, begin_needed
from casnap.engine.scanning import LiveScan, scan_and_plan
from casnap.engine.scope import with_databases
from casnap.errors import CasnapError, Damage, NotFound, Usage
from casnap.fs.directories import Directories
from casnap.model.change import Aspect, ChangeKind
from casnap.model.checkpoint import Checkpoint
from casnap.model.paths import escape, is_within
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
    one = (workspace, target, paths)
    return rollback_all(context, [one], preview=preview, safety=safety, keep_git=keep_git)[0][0]


Wanted = tuple[WorkspaceInfo, Checkpoint, tuple[bytes, ...] | None]
"""A workspace, what it is to become, and the paths that this is limited to."""


def rollback_all(
    context: Context, wanted: Sequence[Wanted], *, preview: bool = False, safety: bool = True, keep_git: bool = False
) -> tuple[list[RollbackReport], CasnapError | None]:
    """:func:`rollback` for several workspaces, of which none is changed before all are safe.

    Returns:
        What :func:`restore_all` does.

    Raises:
        Usage: one of them lies within another.
    """
    _require_apart([one[0] for one in wanted])
    requests = [(one[0], _request(context, *one, keep_git=keep_git)) for one in wanted]
    if preview:
        return [preview_of(context, workspace, request) for workspace, request in requests], None
    return restore_all(context, requests, safety=safety)


def _require_apart(workspaces: Sequence[WorkspaceInfo]) -> None:
    for one, other in itertools.permutations(workspaces, 2):
        if is_within(os.fsencode(one.path), os.fsencode(other.path)):
            raise Usage(
                f"bad workspaces: {one.path} lies within {other.path}", hint="roll the inner one back by itself"
            )


def _request(
    context: Context,
    workspace: WorkspaceInfo,
    target: Checkpoint,
    paths: tuple[bytes, ...] | None,
    *,
    keep_git: bool,
) -> Request:
    row = workspace_row(context.store.state(), workspace)
    resumed = _resumed(row, target, paths, keep_git=keep_git)
    return Request("rollback", target, _head_after(row, target, paths), paths, resumed, keep_git)


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
    """The same command after an interruption goes on with it: undo leads to before the first run."""
    asked = (target.id, paths or (), keep_git)
    same = any((begun.target.hex(), begun.paths, begun.keep_git) == asked for begun in row.open)
    return row.open[0].undo if same else None


def _past(context: Context, row: WorkspaceRow, request: Request) -> Past:
    state = context.store.state()
    began = dict.fromkeys(safety for begun in row.open for safety in (begun.undo.safety, begun.safety))
    interrupted = tuple(tree_of(context, noun_of(context, state, safety)) for safety in began)
    head = None
    if row.head:
        with contextlib.suppress(Damage):
            head = tree_of(context, noun_of(context, state, row.head))
    return Past(interrupted, head, tuple(_brought(context, row)) if request.back else ())


def _brought(context: Context, row: WorkspaceRow) -> Iterator[Brought]:
    """What the runs brought that are taken back, as far as their targets are still there."""
    state = context.store.state()
    for run in row.open or filter(None, [row.undo]):
        found = state.checkpoint(run.target) if run.target else None
        if found is None or found.freed:
            continue
        with contextlib.suppress(Damage):
            tree = tree_of(context, noun_of(context, state, run.target))
            yield Brought(tree, with_databases(run.paths, tree))


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
        planned = partial(plan_for, request, _past(context, row, request), target=target)
        look, sink, plan = scan_and_plan(context, row, directories, planned, raw=True)
        live = look.view(sink)
        _require_paths(request, live, target)
        require_no_git_lock(plan, look, live, target, context.clock.now())
        moves = git_moves(plan, directories, live, target)
        notes = _writer_notes(row, look, plan)
        alike = _alike(plan, directories, target)
    report = _report(request, plan, row.head, context.clock.now() - started, alike)
    return replace(report, preview=True, problems=look.problems, git=moves, notes=notes)


def restore(context: Context, workspace: WorkspaceInfo, request: Request, *, safety: bool = True) -> RollbackReport:
    """Carry a request out."""
    return restore_all(context, [(workspace, request)], safety=safety)[0][0]


def restore_all(
    context: Context, wanted: Sequence[tuple[WorkspaceInfo, Request]], *, safety: bool = True
) -> tuple[list[RollbackReport], CasnapError | None]:
    """Carry out a request in each of several workspaces: all safety checkpoints are taken before the first change.

    Returns:
        A report of each workspace that was changed, in order, and what stopped it at the one after these; the
        rest is as it was. What goes wrong before anything is changed, or in the first of them, is raised.
    """
    started = context.clock.now()
    verb = wanted[0][1].verb
    with locked_roots(context, [workspace for workspace, _ in wanted], verb, required=safety) as roots:
        prepared = [
            _Prepared(context, workspace, request, root, safety=safety)
            for (workspace, request), root in zip(wanted, roots, strict=True)
        ]
        reports: list[RollbackReport] = []
        try:
            for one in prepared:
                one.begin()
            for one in prepared:
                reports.append(one.finish(started))
        except BaseException as error:
            for one in prepared:
                one.abandon()
            if not reports or not isinstance(error, CasnapError):
                raise
            return reports, error  # what is done is done, and must be told
        return reports, None


class _Prepared:
    """A request whose workspace is locked, looked at, and found fit for the change."""

    def __init__(
        self, context: Context, workspace: WorkspaceInfo, request: Request, root: LockedRoot, *, safety: bool
    ) -> None:
        self.context, self.workspace, self.request, self.safety = context, workspace, request, safety
        self.row, self.directories = root.row, root.directories
        self.target = tree_of(context, request.target)
        self.past = _past(context, self.row, request)
        planned = partial(plan_for, request, self.past, target=self.target)
        self.look, self.sink, self.plan = scan_and_plan(context, self.row, self.directories, planned, raw=True)
        live = self.look.view(self.sink)
        _require_paths(request, live, self.target)
        require_no_git_lock(self.plan, self.look, live, self.target, context.clock.now())
        self.moves = git_moves(self.plan, self.directories, live, self.target)
        self.notes = root.notes + self.look.notes + _writer_notes(self.row, self.look, self.plan)
        self.needed = not safety or begin_needed(self.row, self.look, self.plan, request.head_after)
        self.point: SafetyPoint | None = None
        self.changing = False

    def begin(self) -> None:
        """Take the safety checkpoint, and plan from what it holds."""
        if not self.safety:
            self.notes += ("no safety checkpoint was taken: this cannot be undone, and head has not moved",)
        elif self.needed:
            context, missing = self.context, self.sink.missing_bytes
            self.point = begin(context, self.workspace, self.directories, self.look, missing, self.request, self.plan)
            self.look = self.point.live
            self.plan = plan_for(self.request, self.past, self.look, context.store, self.target)

    def _restoring(self) -> Restoring:
        mirrors = bytes.fromhex(self.request.target.id)
        return Restoring(
            self.context,
            self.row,
            self.directories,
            self.look,
            self.plan,
            self.target,
            mirrors=mirrors,
            point=self.point,
        )

    def abandon(self) -> None:
        """Close the intent of a change that was not begun: nothing is changed, so it must not stay open."""
        if self.point is not None and not self.changing:
            with contextlib.suppress(CasnapError):
                self._restoring().end("failed")

    def finish(self, started: int) -> RollbackReport:
        """Make the changes, and tell what they came to."""
        self.changing = True
        left_alone, problems = self._restoring().run() if self.needed else ((), ())
        state = self.context.store.state()
        head = workspace_row(state, self.workspace).head if self.point else self.row.head
        alike = _alike(self.plan, self.directories, self.target)
        report = _report(self.request, self.plan, head, self.context.clock.now() - started, alike)
        if self.needed:
            safety = noun_of(self.context, state, self.point.safety) if self.point else None
            report = replace(report, git=self.moves, safety=safety)
        return _finished(report, left_alone, problems + self.look.problems, self.notes)


def _alike(plan: Plan, directories: Directories, target: TreeView) -> frozenset[bytes]:
    return alike_paths([(item.path, item.old, item.new) for item in plan.protected], directories, target)


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


def _report(
    request: Request, plan: Plan, head: bytes, elapsed: int, alike: frozenset[bytes] = frozenset()
) -> RollbackReport:
    hidden = [
        Problem(item.path, item.reason.words)
        for item in plan.protected
        if item.is_left_alone and item.path not in alike
    ]
    blocked = [Problem(c.path, "holds something that is left alone") for c in plan.blocked if c.new is not None]
    return RollbackReport(
        verb=request.verb,
        target=request.target,
        preview=False,
        changes=plan.visible,
        safety=None,
        head=head.hex() or None,
        left_alone=tuple(hidden + blocked),
        kept=tuple(item.path for item in plan.protected if not item.is_left_alone or item.path in alike),
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
