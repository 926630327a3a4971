"""``cleanup``: let old checkpoints go by a rule; bytes go only with gc.

The order of the operation log counts, not the wall clock alone: the newest checkpoint stays whatever its time says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from casnap.engine.context import Context, workspace_lock, workspace_row
from casnap.engine.history import noun_of
from casnap.model.operation import AnyOperation, CheckpointsDeleted
from casnap.model.report import CleanupReport, WorkspaceInfo
from casnap.store.state import CheckpointRow, State, WorkspaceRow
from casnap.store.store import Commit


@dataclass(frozen=True, slots=True)
class Rule:
    """What goes: checkpoints beyond the newest ``keep``, those older than ``older_than_ns``, or what is both.

    Head and pinned ones stay, and count beside ``keep``; with ``keep_named`` those that were given a name too.
    """

    keep: int | None
    older_than_ns: int | None
    keep_named: bool = False

    @property
    def words(self) -> str:
        """The rule as the operation log records it."""
        parts = [] if self.keep is None else [f"keep {self.keep}"]
        parts += [] if self.older_than_ns is None else [f"older than {self.older_than_ns // 10**9} s"]
        return ", ".join(parts)


def rule_of(context: Context, keep: int | None = None, older_than_ns: int | None = None) -> Rule:
    """The rule that options ask for; without any, the configured one."""
    retention = context.policy.retention
    if keep is None and older_than_ns is None:
        keep, older_than_ns = retention.keep, retention.max_age_ns
    return Rule(keep, older_than_ns, retention.keep_named)


def cleanup(context: Context, workspace: WorkspaceInfo, rule: Rule, *, dry_run: bool = False) -> CleanupReport:
    """Delete what a rule lets go, safety checkpoints from before the oldest that stays included.

    What ``undo`` and ``recover`` need is never among it. With ``dry_run`` it is only told.
    """
    if dry_run:
        state = context.store.state()
        chosen = chosen_by(rule, state, workspace_row(state, workspace), context.clock.now())
        return _report(context, state, workspace, chosen, rule, dry_run=True)
    chosen = []

    def build(state: State, commit: Commit) -> AnyOperation:
        row = workspace_row(state, workspace)
        chosen[:] = chosen_by(rule, state, row, commit.time)
        return CheckpointsDeleted(
            seq=commit.seq,
            time=commit.time,
            prev=commit.prev,
            by=context.by,
            workspace=row.id,
            ids=tuple(found.id.hex() for found in chosen),
            rule=rule.words,
        )

    with workspace_lock(context, [workspace.id], "cleanup"):
        state = context.store.state()
        if chosen_by(rule, state, workspace_row(state, workspace), context.clock.now()):
            state = context.store.commit(build, last=True)
    return _report(context, state, workspace, chosen, rule, dry_run=False)


def chosen_by(rule: Rule, state: State, workspace: WorkspaceRow, now: int) -> list[CheckpointRow]:
    """The checkpoints that a rule lets go at the time ``now``, newest first."""
    rows = [row for row in state.history(workspace.id) if not row.deleted]
    steps = sorted((row for row in rows if not row.safety), key=lambda row: row.step, reverse=True)
    gone = _beyond(rule, workspace, steps, now)
    oldest = min((row.seq for row in steps if row not in gone), default=0)
    needed = _needed(workspace)
    outdated = [row for row in rows if row.safety and row.seq < oldest and not row.pinned and row.id not in needed]
    return sorted((*gone, *outdated), key=lambda row: row.seq, reverse=True)


def _beyond(rule: Rule, workspace: WorkspaceRow, steps: Sequence[CheckpointRow], now: int) -> list[CheckpointRow]:
    needed = _needed(workspace) | {workspace.head}
    free = [row for row in steps if not row.pinned and row.id not in needed and not (rule.keep_named and _named(row))]
    beyond = [] if rule.keep is None else free[rule.keep :]
    if rule.older_than_ns is None:
        return beyond
    older = [row for row in free if row is not steps[0] and now - row.time > rule.older_than_ns]
    return older if rule.keep is None else [row for row in beyond if row in older]


def _named(row: CheckpointRow) -> bool:
    return bool(row.name) and not row.automatic


def _needed(workspace: WorkspaceRow) -> set[bytes]:
    """What undo and recover lead to."""
    needed = {workspace.undo.safety, workspace.undo.head} if workspace.undo else set()
    for begun in workspace.open:
        needed |= {begun.safety, begun.target, begun.undo.safety, begun.undo.head}
    return needed - {b""}


def _report(
    context: Context,
    state: State,
    workspace: WorkspaceInfo,
    chosen: Sequence[CheckpointRow],
    rule: Rule,
    *,
    dry_run: bool,
) -> CleanupReport:
    gone = {row.id for row in chosen}
    left = [row for row in state.history(workspace.id) if not row.deleted and row.id not in gone]
    return CleanupReport(
        deleted=tuple(noun_of(context, state, row.id) for row in chosen),
        kept=sum(not row.safety for row in left),
        dry_run=dry_run,
        rule=rule.words,
    )
