"""``expunge``: take paths out of every checkpoint, so that nothing of them is kept."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from casnap.codec.checkpoints import encode_checkpoint
from casnap.engine.context import Context, restarted, workspace_lock, workspace_row
from casnap.engine.expunging.holders import Holders
from casnap.engine.expunging.matching import Matcher
from casnap.engine.expunging.rewriting import Rewriter
from casnap.engine.gc import collect
from casnap.engine.gc_terms import Terms
from casnap.engine.history import load_object
from casnap.engine.roots import peek_root
from casnap.engine.scanning import scan_workspace
from casnap.engine.sinks import MemorySink
from casnap.errors import CasnapError, Damage, Refused
from casnap.model.checkpoint import CheckpointObject
from casnap.model.expunge import ExpungeReport, Holder, ReplacedCheckpoint
from casnap.model.ids import ObjectKey, ObjectKind, short
from casnap.model.operation import AnyOperation, PathsExpunged
from casnap.model.paths import escape, join
from casnap.model.report import WorkspaceInfo
from casnap.model.upkeep import GcReport
from casnap.store.orphans import find_orphans
from casnap.store.session import Swept, WriteSession
from casnap.store.state import CheckpointRow, State, WorkspaceRow
from casnap.store.store import Commit

MOST_IN_A_LINE = 5_000
"""Checkpoints in one line: it may have a mebibyte, 135 bytes a pair."""

MOST_NAMED = 3
"""How many paths or checkpoints a sentence names."""

_NEVER = 1 << 62
"""A grace that does not end: what was deleted can still come back."""

_EVERYTHING = Terms(grace=_NEVER, share=float("-inf"), parts=True)
"""Every pack is written anew, whatever little in it would not be missed, or is only built on."""

_LEFTOVERS = Terms(grace=_NEVER, share=1.0)
"""Only what a killed command left behind, and packs that nobody needs."""


def expunge(
    context: Context, workspace: WorkspaceInfo | None, patterns: Sequence[bytes], *, dry_run: bool = False
) -> ExpungeReport:
    """Rewrite every checkpoint of a workspace (None: of all) without the paths that patterns of an ignore file match.

    Files of the workspace stay as they are. Safety checkpoints and deleted ones are rewritten too, and all that
    descend from what was, for they name it. The bytes go with :func:`wipe`.

    Raises:
        Usage: the patterns match nothing.
        Refused: a rollback was interrupted.
        Damage: a checkpoint cannot be read; nothing was changed.
        StorageFailed: the disk refuses.
    """
    matcher = Matcher(patterns)
    ids = [row.id for row in _rows(context.store.state(), workspace)]
    with workspace_lock(context, ids, "expunge", required=not dry_run):
        state = context.store.state()
        rows = [row for row in _rows(state, workspace) if row.id in ids]
        _require_closed(rows)
        plans = _look(context, state, rows, matcher)
        notes = tuple(note for row in rows for note in _still_there(context, row, matcher))
        holders = Holders(context, {row.id: matcher for row in rows}, {one for plan in plans for one in plan.contents})
        holders.look(state)
        if not dry_run:
            for plan in plans:
                restarted(context, lambda row=plan.row: _rewrite(context, row, matcher))  # type: ignore[misc]
    return _report(context.store.state(), plans, holders, dry_run, notes)


def wipe(context: Context, report: ExpungeReport) -> tuple[GcReport, int]:
    """Give the bytes up that no checkpoint needs any more; how many objects of them are in the store still.

    One is where another command writes to its pack, or where it is a part of something longer.

    Raises:
        Busy: a gc is running.
        Damage: something that is needed cannot be read; nothing was freed.
        StorageFailed: the disk refuses.
    """
    replaced = _replaced(context)
    collected = collect(context, _EVERYTHING if _stored(context, replaced) else _LEFTOVERS)
    return collected, _stored(context, [*report.gone, *replaced])


def is_unfinished(context: Context) -> bool:
    """Whether what an expunge took out is in the store still, because that was killed before it gave the bytes up."""
    replaced = _replaced(context)
    return bool(replaced) and bool(_stored(context, replaced) or find_orphans(context.store.parts))


def _stored(context: Context, keys: Sequence[ObjectKey]) -> int:
    """How many of these the store has by now."""
    return len(context.store.state().present(keys))


def _replaced(context: Context) -> list[ObjectKey]:
    """The checkpoints that others took the place of; nothing leads to them, so any :func:`wipe` takes them away."""
    return [
        ObjectKey(ObjectKind.CHECKPOINT, bytes.fromhex(old))
        for operation in context.store.operations()
        if isinstance(operation, PathsExpunged)
        for old, _ in operation.replaced
    ]


def _rows(state: State, workspace: WorkspaceInfo | None) -> list[WorkspaceRow]:
    return state.workspaces() if workspace is None else [workspace_row(state, workspace)]


def _require_closed(rows: Sequence[WorkspaceRow]) -> None:
    for row in rows:
        if row.open and not row.dropped:
            path = _info(row).path
            first = f"casnap init -w {shlex.quote(path)}, and then " if row.forgotten else ""
            raise Refused(
                f"cannot expunge: a {row.open[-1].verb} of {path} was interrupted",
                code="interrupted-rollback",
                hint=f"finish it first with: {first}casnap recover -w {shlex.quote(path)}",
            )


@dataclass(frozen=True, slots=True)
class _Change:
    """A checkpoint that becomes another one, and that one; ``held`` as in the report."""

    row: CheckpointRow
    key: ObjectKey
    data: bytes
    held: bool


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is done to a workspace."""

    row: WorkspaceRow
    changes: tuple[ReplacedCheckpoint, ...]
    paths: tuple[bytes, ...]
    contents: dict[bytes, ObjectKey]


def _look(context: Context, state: State, rows: Sequence[WorkspaceRow], matcher: Matcher) -> list[_Plan]:
    """Rewrite everything without keeping it: what will be done, or the error that everything is not readable."""
    damaged: dict[bytes, Damage] = {}
    plans = []
    for row in rows:
        rewriter = Rewriter(context.store, matcher, lambda _key, _data: None)
        changes = tuple(_told(row, change) for change in _changes(context, state, row, rewriter, damaged))
        plans.append(_Plan(row, changes, tuple(sorted(rewriter.paths)), rewriter.contents))
    if damaged:
        named = ", ".join(short(id) for id in list(damaged)[:MOST_NAMED])
        more = f" and {len(damaged) - MOST_NAMED} more" if len(damaged) > MOST_NAMED else ""
        cause = next(iter(damaged.values()))
        raise Damage(
            f"cannot expunge, and nothing was changed: {named}{more} cannot be read ({cause.message})",
            hint="mend what can be mended with: casnap check --repair",
            details={"checkpoints": [id.hex() for id in damaged]},
        ) from cause
    return [plan for plan in plans if plan.changes]


def _changes(
    context: Context, state: State, row: WorkspaceRow, rewriter: Rewriter, damaged: dict[bytes, Damage] | None = None
) -> Iterator[_Change]:
    """The checkpoints that become other ones, oldest first: a parent's new id is known before it is named.

    Raises:
        Damage: one cannot be read, unless ``damaged`` takes that.
    """
    history = [one for one in reversed(state.history(row.id)) if not one.freed]
    renamed: dict[bytes, bytes] = {}
    given: set[bytes] = set()
    context.progress.begin("reading checkpoints", len(history))
    try:
        for one in history:
            context.progress.advance(1)
            try:
                change = _change(context, state, one, rewriter, renamed, given)
            except Damage as damage:
                if damaged is None:
                    raise
                damaged[one.id] = damage
                continue
            if change is not None:
                renamed[one.id] = change.key.id
                given.add(change.key.id)
                yield change
    finally:
        context.progress.end()


def _change(
    context: Context,
    state: State,
    row: CheckpointRow,
    rewriter: Rewriter,
    renamed: dict[bytes, bytes],
    given: set[bytes],
) -> _Change | None:
    found = load_object(context, row.id)
    without = rewriter.without(found)
    parent = renamed.get(row.parent, _parent(state, row, found))
    if without is found and parent == found.parent:
        return None
    changed = replace(without, parent=parent)
    key, data = encode_checkpoint(changed)
    while key.id in given or state.checkpoint(key.id) is not None:
        # What differed in nothing but what is taken out stays apart by a nanosecond.
        changed = replace(changed, scan_ended=changed.scan_ended + 1)
        key, data = encode_checkpoint(changed)
    return _Change(row, key, data, without is not found)


def _parent(state: State, row: CheckpointRow, found: CheckpointObject) -> bytes:
    """The parent; where an expunge that was killed has replaced it, what took its place."""
    before = state.checkpoint(found.parent) if found.parent != row.parent else None
    return row.parent if before is not None and before.freed else found.parent


def _rewrite(context: Context, row: WorkspaceRow, matcher: Matcher) -> None:
    """Do it: some thousand checkpoints a line, each line whole in itself."""
    state = context.store.state()
    since = state.upkeep.collected
    with context.store.session() as session:
        rewriter = Rewriter(context.store, matcher, session.put)
        batch: list[_Change] = []
        try:
            for change in _changes(context, state, row, rewriter):
                session.put(change.key, change.data)
                batch.append(change)
                if len(batch) == MOST_IN_A_LINE:
                    _commit(context, row, matcher, batch, session)
                    batch = []
        except Damage as damage:
            if context.store.state().upkeep.collected == since:
                raise
            raise Swept("cannot expunge: a gc freed a checkpoint meanwhile", hint="try again") from damage
        if batch:
            _commit(context, row, matcher, batch, session)


def _commit(
    context: Context, row: WorkspaceRow, matcher: Matcher, batch: Sequence[_Change], session: WriteSession
) -> None:
    def build(_state: State, commit: Commit) -> AnyOperation:
        return PathsExpunged(
            seq=commit.seq,
            time=commit.time,
            prev=commit.prev,
            by=context.by,
            workspace=row.id,
            pattern=escape(matcher.text),
            replaced=tuple((change.row.id.hex(), change.key.id.hex()) for change in batch),
            packs=commit.packs,
        )

    context.store.commit(build, session)


def _still_there(context: Context, row: WorkspaceRow, matcher: Matcher) -> list[str]:
    """What to say of files that the next checkpoint would take in again."""
    if row.forgotten:
        return []
    try:
        with peek_root(row) as directories:
            live = scan_workspace(context, row, directories, MemorySink(context.store))
    except CasnapError:  # where nothing can be looked at, nothing is taken in
        return []
    listed = live.found.cache.directories.items()
    found = sorted(join(path, one.name) for path, known in listed for one in matcher.sift(path, known.listing)[1])
    if not found:
        return []
    named = ", ".join(map(escape, found[:MOST_NAMED]))
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    words = " ".join(shlex.quote(line) for line in matcher.text.decode("utf-8", "backslashreplace").split("\n"))
    return [
        f"{named}{more} in {_info(row).path} stays as it is, and the next checkpoint would take it in again; "
        f"keep it out with: casnap config add -w {shlex.quote(_info(row).path)} exclude {words}"
    ]


def _told(row: WorkspaceRow, change: _Change) -> ReplacedCheckpoint:
    one = change.row
    return ReplacedCheckpoint(
        _info(row), one.id.hex(), change.key.id.hex(), one.name or None, one.step or None, change.held
    )


def _is_made(state: State, change: ReplacedCheckpoint) -> bool:
    """Whether it has come about; a deleted one that a gc freed meanwhile has not."""
    return state.checkpoint(bytes.fromhex(change.new)) is not None


def _renamed(holder: Holder, renamed: dict[str, str]) -> Holder:
    """The holder, with the id that its checkpoint has by now."""
    return Holder(holder.workspace, holder.path, renamed.get(holder.checkpoint, holder.checkpoint))


def _info(row: WorkspaceRow) -> WorkspaceInfo:
    return WorkspaceInfo(row.id, row.path.decode("utf-8", "surrogateescape"))


def _report(
    state: State, plans: Sequence[_Plan], holders: Holders, dry_run: bool, notes: tuple[str, ...]
) -> ExpungeReport:
    contents = {content: key for plan in plans for content, key in plan.contents.items()}
    renamed = {change.old: change.new for plan in plans for change in plan.changes}
    if holders.unread:
        notes += (f"{holders.unread} checkpoints of other workspaces could not be looked through for the same content",)
    return ExpungeReport(
        replaced=tuple(change for plan in plans for change in plan.changes if dry_run or _is_made(state, change)),
        paths=tuple((_info(plan.row), path) for plan in plans for path in plan.paths),
        holders=tuple(_renamed(holder, {} if dry_run else renamed) for holder in holders.named.values()),
        more_held=holders.more,
        gone=tuple(sorted(key for content, key in contents.items() if content not in holders.held)),
        dry_run=dry_run,
        notes=notes,
    )
