"""``checkpoint``: record the tree as it is now."""

from __future__ import annotations

import datetime as dt
import stat
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from casnap.codec.checkpoints import encode_checkpoint
from casnap.codec.metadata import encode_metadata
from casnap.engine.compare import TreeView, plan_between
from casnap.engine.context import Context, restarted, workspace_lock, workspace_row
from casnap.engine.history import load_object, noun_of
from casnap.engine.scanning import LiveScan, save_cache, scan_workspace
from casnap.engine.target_rules import RULES_DIFFER, rules_differ
from casnap.errors import CasnapError, Damage, Refused, StorageFailed, Usage
from casnap.fs.directories import Directories
from casnap.model.checkpoint import CheckpointObject, Counts
from casnap.model.paths import split
from casnap.model.report import CheckpointReport, FirstLook, WorkspaceInfo, count_changes
from casnap.model.tree import NANOSECONDS
from casnap.store.state import State, WorkspaceRow
from casnap.store.store import Commit
from casnap.workspace.garbage import no_collection

if TYPE_CHECKING:
    from casnap.model.objects import ObjectSource
    from casnap.model.operation import AnyOperation
    from casnap.store.session import WriteSession
    from casnap.workspace.scan import Sibling

LARGEST = 3
"""How many directories a workspace's first checkpoint names."""


def make_checkpoint(
    context: Context,
    workspace: WorkspaceInfo,
    *,
    name: str | None = None,
    message: str = "",
    metadata: dict[str, Any] | None = None,
    if_changed: bool = False,
    pin: bool = False,
    replace: bool = False,
    full: bool = False,
    yes: bool = False,
) -> CheckpointReport:
    """Record the workspace. With ``if_changed`` an unchanged tree makes nothing and head is returned.

    ``pin`` keeps it from being deleted. With ``replace`` a name that is taken moves here, and the checkpoint that
    had it goes on without. ``full`` reads every file again; ``yes`` passes the rule that a checkpoint may take at
    most half of the free space.

    Raises:
        Usage: a bad name, or metadata that is no JSON object.
        Refused: the name is taken in this workspace.
        StorageFailed: it would take too much of the store's disk, or that disk refuses.
    """
    wanted = _Wanted(_name(name), as_text(message), described(metadata), pin, replace)
    guard = _space_guard(context, half=not yes)
    with workspace_lock(context, [workspace.id], "checkpoint"):
        row = workspace_row(context.store.state(), workspace)
        if not if_changed and not replace:  # an unchanged tree takes no name
            require_free_name(context.store.state(), row, wanted.name)
        live, since, made, moved = restarted(
            context, lambda: _recorded(context, row, wanted, guard, if_changed, full=full)
        )
        if not made:
            return _unchanged(context, row, live, wanted)
    return CheckpointReport(
        checkpoint=noun_of(context, context.store.state(), made),
        created=True,
        seconds=_elapsed(context, live),
        problems=live.problems,
        notes=live.notes + _notes(row, since) + moved + _cleaned_up(context, row, workspace),
        left_out=live.left_out,
        first_look=None if row.head or row.last_step else _first_look(context, row, live),
    )


def _recorded(
    context: Context, row: WorkspaceRow, wanted: _Wanted, guard: Callable[[int], None], if_changed: bool, *, full: bool
) -> tuple[LiveScan, Since, bytes, tuple[str, ...]]:
    """Look and commit: what was found, how it differs from head, and the checkpoint (empty: nothing was to be made)."""
    with no_collection(), context.store.session() as session, Directories(row.path) as directories:
        live, since = _look(context, row, directories, session, guard, full=full)
        if if_changed and since.unchanged:
            if since.same_tree:  # a cache that was lost must not cost as much again the next time
                save_cache(context, row, live, mirrors=row.head)
            return live, since, b"", ()
        made, moved = _commit(context, row, live, wanted, since.counts, session)
        save_cache(context, row, live, mirrors=made)
    return live, since, made, moved


def _cleaned_up(context: Context, row: WorkspaceRow, workspace: WorkspaceInfo) -> tuple[str, ...]:
    """Let old checkpoints go where that is configured; what comes of it does not change the checkpoint's success."""
    if not context.policy_in(row).retention.auto:
        return ()
    from casnap.engine.cleanup import cleanup, rule_of  # here, since it is off until somebody asks for it

    try:
        report = cleanup(context, workspace, rule_of(context, workspace))
    except CasnapError as error:
        return (f"the automatic cleanup failed: {error.message}",)
    names = ", ".join(checkpoint.label for checkpoint in report.deleted)
    deleted = (f"automatic cleanup ({report.rule}) deleted {names}",) if names else ()
    return deleted + report.notes


def _look(
    context: Context,
    row: WorkspaceRow,
    directories: Directories,
    session: WriteSession,
    guard: Callable[[int], None],
    *,
    full: bool,
) -> tuple[LiveScan, Since]:
    like = None if row.head else _sibling(context, row, directories)
    live = scan_workspace(context, row, directories, session, before_reading=guard, trusted=not full, sibling=like)
    try:
        return live, _since_head(context, row, live, session)
    except Damage:  # head, or what the cache vouches for, is bad: reading everything writes it anew
        live = scan_workspace(context, row, directories, session, before_reading=guard, trusted=False)
        return live, since_head(context, row, live, session)


def _sibling(context: Context, row: WorkspaceRow, directories: Directories) -> Sibling | None:
    from casnap.engine.siblings import sibling_of  # here, since a workspace has one first checkpoint

    return sibling_of(context, row, directories)


class _Wanted(Struct, frozen=True):
    """What the caller says of the checkpoint; ``name`` is empty for an automatic one."""

    name: str
    message: str
    metadata: str
    pin: bool
    replace: bool


def _commit(
    context: Context, row: WorkspaceRow, live: LiveScan, wanted: _Wanted, counts: Counts, session: WriteSession
) -> tuple[bytes, tuple[str, ...]]:
    """The id of the checkpoint that is made, and what there is to say about its name."""
    from casnap.model.operation import CheckpointMade  # here, since an unchanged tree makes none

    key, data = encode_checkpoint(checkpoint_object(context, row, live, session, wanted.message, wanted.metadata))
    session.put(key, data)
    moved: list[str] = []

    def build(state: State, commit: Commit) -> AnyOperation:
        if not wanted.replace:
            require_free_name(state, row, wanted.name)
        before = state.named(row.id, wanted.name)
        moved[:] = [f"the name {wanted.name} was moved here from step {before.step}"] if before else []
        step = (state.workspace(row.id) or row).last_step + 1
        return CheckpointMade(
            seq=commit.seq,
            time=commit.time,
            prev=commit.prev,
            by=context.by,
            workspace=row.id,
            id=key.id.hex(),
            step=step,
            name=wanted.name or automatic_name(live.found.ended, step),
            automatic=not wanted.name,
            pinned=wanted.pin,
            replaced=before.id.hex() if before else "",
            parent=row.head.hex(),
            counts=(counts.added, counts.changed, counts.removed),
            skipped=len(live.skipped),
            new_bytes=session.new_bytes,
            packs=commit.packs,
        )

    context.store.commit(build, session, last=True)
    return key.id, tuple(moved)


def _unchanged(context: Context, row: WorkspaceRow, live: LiveScan, wanted: _Wanted) -> CheckpointReport:
    state = context.store.state()
    note = "unchanged since head: nothing was made"
    if wanted.name:
        stays = state.named(row.id, wanted.name) is not None
        note += f", {wanted.name} {'stays where it was' if stays else 'names nothing'}"
    head = noun_of(context, state, row.head)
    notes = (note, *live.notes)
    return CheckpointReport(head, False, _elapsed(context, live), live.problems, notes, left_out=live.left_out)


def as_text(message: str) -> str:
    """A message that can be stored.

    Raises:
        Usage: it holds half of a character (a lone surrogate), as bytes that are no UTF-8 become.
    """
    try:
        message.encode()
    except UnicodeEncodeError:
        raise Usage("bad message: it is not UTF-8 text", code="bad-message", hint="write it in UTF-8") from None
    return message


def described(metadata: dict[str, Any] | None) -> str:
    """Metadata as a checkpoint records it; none is the empty object.

    Raises:
        Usage: it is no object, or holds what JSON cannot say.
    """
    if metadata is not None and not isinstance(metadata, dict):
        raise Usage("bad metadata: it is not a JSON object", hint="give a JSON object, such as '{\"ticket\": 42}'")
    return encode_metadata(metadata or {})


def checkpoint_object(
    context: Context, row: WorkspaceRow, live: LiveScan, source: ObjectSource, message: str, metadata: str
) -> CheckpointObject:
    """What a checkpoint of ``live``, its objects in ``source``, with head as its parent records."""
    from casnap.engine.git import git_state

    return CheckpointObject(
        workspace=row.id,
        root=live.root,
        parent=row.head,
        message=message,
        metadata=metadata,
        scan_started=live.found.started,
        scan_ended=live.found.ended,
        origin=context.origin,
        git=git_state(row.path, live.entry, source),
        rules=live.found.rules,
        links=live.links,
    )


def require_free(context: Context, workspace: WorkspaceInfo, name: str) -> None:
    """See that a name is a good one and free in a workspace.

    Raises:
        Usage: it is a bad one.
        Refused: it is taken.
    """
    state = context.store.state()
    require_free_name(state, workspace_row(state, workspace), _name(name))


def _name(name: str | None) -> str:
    if name is None:
        return ""
    from casnap.model.revision import normalise_name  # here, since most checkpoints are given no name

    return normalise_name(name)


def require_free_name(state: State, row: WorkspaceRow, name: str) -> None:
    """See that no checkpoint of a workspace has this name; no name is always free.

    Raises:
        Refused: one has.
    """
    taken = state.named(row.id, name) if name else None
    if taken is not None:
        raise Refused(
            f"cannot name the checkpoint {name}: step {taken.step} has that name",
            code="name-taken",
            hint=f"choose another name; casnap rename {name} frees it, and casnap checkpoint --replace moves it",
        )


def _space_guard(context: Context, *, half: bool) -> Callable[[int], None]:
    """What looks at the bytes that are about to be read, before any is."""

    def guard(total: int) -> None:
        free, size = context.store.space.free()
        reserve = context.policy.reserve(size)
        if free - total < reserve:
            raise StorageFailed(
                f"cannot checkpoint: {total} bytes are to be read, and {reserve} of the {free} bytes free on "
                f"{context.store.space.disk} must stay free",
                code="min-free",
                hint="free some space on that disk" + (", or set CASNAP_MIN_FREE lower" if reserve else ""),
                details={"to_read": total, "free": free, "min_free": reserve},
            )
        if half and total > free // 2:
            raise StorageFailed(
                f"cannot checkpoint: {total} bytes are to be read, more than half of the {free} bytes free on "
                f"{context.store.space.disk}",
                code="half-free",
                hint="say casnap checkpoint --yes to go on",
                details={"to_read": total, "free": free},
            )

    return guard


class Since(Struct, frozen=True):
    """What differs from head: paths, and whether other ignore rules hold; ``same_tree``: not even times do."""

    counts: Counts
    unchanged: bool = False
    rules_differ: bool = False
    same_tree: bool = False


def _since_head(context: Context, row: WorkspaceRow, live: LiveScan, session: WriteSession) -> Since:
    if not row.head:
        return Since(Counts(added=live.found.entries))
    head = load_object(context, row.head)
    before, now = TreeView(context.store, head.root, head.links, head.rules), live.view(session)
    changes = plan_between(before, now).visible
    same_tree = head.root.tree == live.root.tree
    return Since(count_changes(changes), not changes, rules_differ(before, now, changes), same_tree)


def since_head(context: Context, row: WorkspaceRow, live: LiveScan, session: WriteSession) -> Since:
    """What differs from head; where that cannot be read, everything counts as added."""
    try:
        return _since_head(context, row, live, session)
    except Damage:
        return Since(Counts(added=live.found.entries))


def automatic_name(ended: int, step: int) -> str:
    """The name of a checkpoint that was given none; ``ended`` in nanoseconds since the epoch."""
    return f"ckpt-{dt.datetime.fromtimestamp(ended // NANOSECONDS, dt.UTC):%Y%m%dT%H%M%SZ}-{step}"


def _notes(row: WorkspaceRow, since: Since) -> tuple[str, ...]:
    notes = [RULES_DIFFER] if since.rules_differ else []
    if row.open:
        notes.append(f"an interrupted {row.open[-1].verb} is open: finish it with casnap recover")
    return tuple(notes)


def _first_look(context: Context, row: WorkspaceRow, live: LiveScan) -> FirstLook:
    selection = context.policy_in(row).selection
    sensitive = [path for path in live.signatures if selection.is_sensitive(split(path)[1])]
    secrets = sum(stat.S_ISREG(live.signatures[path].mode) for path in sensitive)
    return FirstLook(tuple(live.ahead.largest_directories(LARGEST)), secrets)


def _elapsed(context: Context, live: LiveScan) -> float:
    return (context.clock.now() - live.found.started) / NANOSECONDS
