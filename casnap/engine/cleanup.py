"""``cleanup``: let old checkpoints go by a rule; bytes go only with gc.

The order of the operation log counts, not the wall clock alone: the newest checkpoint stays whatever its time says.
The last checkpoint that holds anything stays too: a wiped directory is checkpointed often enough to push it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from casnap.codec.trees import Leaf, walk_tree
from casnap.engine.context import Context, workspace_lock, workspace_row
from casnap.engine.history import load_object, noun_of
from casnap.errors import Damage, TooNew
from casnap.model.age import age_text
from casnap.model.checkpoint import Checkpoint
from casnap.model.ids import short
from casnap.model.operation import AnyOperation, CheckpointsDeleted
from casnap.model.report import CleanupReport, WorkspaceInfo
from casnap.model.tree import Omitted
from casnap.store.state import CheckpointRow, State, WorkspaceRow
from casnap.store.store import Commit

IDS_IN_LINE = 10_000
"""How many checkpoints one line of the operation log lets go: it may have a mebibyte, 67 bytes an id."""

NAMES_DO_NOT_PROTECT = "names do not protect: pin with casnap pin NAME, or set retention.keep_named"


class Rule(Struct, frozen=True):
    """What goes: checkpoints beyond the newest ``keep``, those older than ``older_than_ns``, or what is both.

    Head and pinned ones count among the newest where they are, and stay also where they are older; with
    ``keep_named`` so do those that were given a name.
    """

    keep: int | None
    older_than_ns: int | None
    keep_named: bool = False

    @property
    def words(self) -> str:
        """The rule as the operation log records it; empty for one that lets nothing go."""
        parts = [] if self.keep is None else [f"keep {self.keep}"]
        parts += [] if self.older_than_ns is None else [f"older than {age_text(self.older_than_ns)}"]
        return " and ".join(parts)


def rule_of(
    context: Context, workspace: WorkspaceInfo, keep: int | None = None, older_than_ns: int | None = None
) -> Rule:
    """The rule that options ask for; without any, the one that is configured for the workspace."""
    retention = context.policy_in(workspace_row(context.store.state(), workspace)).retention
    if keep is None and older_than_ns is None:
        keep, older_than_ns = retention.keep, retention.max_age_ns
    return Rule(keep, older_than_ns, retention.keep_named)


def cleanup(context: Context, workspace: WorkspaceInfo, rule: Rule, *, dry_run: bool = False) -> CleanupReport:
    """Delete what a rule lets go, safety checkpoints from before the oldest that stays included.

    What ``undo`` and ``recover`` need is never among it, and neither is the last checkpoint that holds anything.
    With ``dry_run`` it is only told.
    """
    if dry_run:
        return _look(context, workspace, rule)
    context.store.space.make_room()
    with workspace_lock(context, [workspace.id], "cleanup"):  # nothing that the rule looks at changes meanwhile
        ahead = _look(context, workspace, rule)
        ids = [checkpoint.id for checkpoint in reversed(ahead.deleted)]  # oldest first: cut short, it is a lesser rule
        for start in range(0, len(ids), IDS_IN_LINE):
            chosen = ids[start : start + IDS_IN_LINE]
            _delete(context, workspace, rule, chosen, last=start + len(chosen) == len(ids))
    return replace(ahead, deleted=_as_deleted(ahead.deleted), dry_run=False)


def _delete(context: Context, workspace: WorkspaceInfo, rule: Rule, ids: Sequence[str], *, last: bool) -> None:
    def build(state: State, commit: Commit) -> AnyOperation:
        return CheckpointsDeleted(
            seq=commit.seq,
            time=commit.time,
            prev=commit.prev,
            by=context.by,
            workspace=workspace_row(state, workspace).id,
            ids=tuple(ids),
            rule=rule.words,
        )

    context.store.commit(build, last=last)


def _as_deleted(checkpoints: Sequence[Checkpoint]) -> tuple[Checkpoint, ...]:
    """Checkpoints, newest first, as they are when all of them are deleted.

    One look at each: asked for one by one, the ancestors of a thousand are a thousand each.
    """
    parents: dict[str, str | None] = {}
    for checkpoint in reversed(checkpoints):
        parent = checkpoint.parent
        parents[checkpoint.id] = parents.get(parent, parent) if parent else None
    return tuple(replace(one, deleted=True, parent=parents[one.id]) for one in checkpoints)


def chosen_by(
    rule: Rule, state: State, workspace: WorkspaceRow, now: int, spared: frozenset[bytes] = frozenset()
) -> list[CheckpointRow]:
    """The checkpoints that a rule lets go at the time ``now`` (nanoseconds since the epoch), newest first.

    Those in ``spared`` stay like head.
    """
    rows = [row for row in state.history(workspace.id) if not row.deleted]
    steps = sorted((row for row in rows if not row.safety), key=lambda row: row.step, reverse=True)
    needed = led_to(workspace) | spared
    gone = {row.id: row for row in steps[rule.keep or 0 :] if _may_go(rule, workspace, needed, row)}
    if rule.older_than_ns is not None:
        gone = {id: row for id, row in gone.items() if row is not steps[0] and now - row.time > rule.older_than_ns}
    if rule.keep is None and rule.older_than_ns is None:
        gone = {}
    oldest = min((row.seq for row in steps if row.id not in gone), default=0)
    outdated = [row for row in rows if row.safety and row.seq < oldest and not row.pinned and row.id not in needed]
    return sorted((*gone.values(), *outdated), key=lambda row: row.seq, reverse=True)


def _may_go(rule: Rule, workspace: WorkspaceRow, needed: set[bytes], row: CheckpointRow) -> bool:
    named = bool(row.name) and not row.automatic
    return not (row.pinned or row.id == workspace.head or row.id in needed or (rule.keep_named and named))


def led_to(workspace: WorkspaceRow) -> set[bytes]:
    """What undo and recover lead to."""
    needed = {workspace.undo.safety, workspace.undo.head} if workspace.undo else set()
    for begun in workspace.open:
        needed |= {begun.safety, begun.target, begun.head_after, begun.undo.safety, begun.undo.head}
    return needed - {b""}


def _look(context: Context, workspace: WorkspaceInfo, rule: Rule) -> CleanupReport:
    state = context.store.state()
    row = workspace_row(state, workspace)
    now = context.clock.now()
    chosen = chosen_by(rule, state, row, now)
    live = [one for one in state.history(row.id) if not one.deleted]
    last = _last_full(context, live, chosen)
    if last is not None:
        chosen = chosen_by(rule, state, row, now, frozenset((last.id,)))
    going = {one.id for one in chosen}
    return CleanupReport(
        deleted=tuple(noun_of(context, state, one.id) for one in chosen),
        kept=sum(not one.safety and one.id not in going for one in live),
        dry_run=True,
        rule=rule.words,
        notes=_notes(last, chosen),
    )


def _last_full(
    context: Context, live: Iterable[CheckpointRow], chosen: Sequence[CheckpointRow]
) -> CheckpointRow | None:
    """The newest of ``chosen`` that holds anything, if nothing that would be left does.

    As a rule one look is enough: the newest that stays holds something.
    """
    going = {one.id for one in chosen}
    if not going or any(_holds_anything(context, one) for one in live if one.id not in going):
        return None
    return next((one for one in chosen if _holds_anything(context, one)), None)


def _holds_anything(context: Context, row: CheckpointRow) -> bool:
    """Whether anything was captured below the root; of what cannot be read that has to be assumed."""
    try:
        root = load_object(context, row.id).root
        leaves = (node for _, node in walk_tree(context.store, root.tree) if isinstance(node, Leaf))
        return any(not isinstance(entry, Omitted) for leaf in leaves for entry in leaf.entries)
    except (Damage, TooNew):
        return True


def _notes(last: CheckpointRow | None, chosen: Sequence[CheckpointRow]) -> tuple[str, ...]:
    notes = []
    if last is not None:
        called = "safety checkpoint " if last.safety else f"{last.name} " if last.name else ""
        notes.append(f"{called}{short(last.id)} stays: without it only empty checkpoints would be left")
    if any(one.name and not one.automatic for one in chosen):
        notes.append(NAMES_DO_NOT_PROTECT)
    return tuple(notes)
