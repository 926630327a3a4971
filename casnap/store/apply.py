"""What each operation does: the only code that changes the tables, the same live and on rebuild.

It never refuses: a line that verifies has been checked before it was written. What it refers to and is not
there (another program wrote the line, or a bug did) is left out, the same way every time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from casnap.model.operation import (
    AnyOperation,
    CheckpointMade,
    CheckpointRenamed,
    CheckpointsDeleted,
    CheckpointsFoundGood,
    CheckpointsPinned,
    CheckpointUndeleted,
    OfStore,
    PackRange,
    PathsExpunged,
    RollbackBegun,
    RollbackEnded,
    SpaceFreed,
    StoreChecked,
    WorkspaceConfigured,
    WorkspaceForgotten,
    WorkspaceRegistered,
)
from casnap.model.paths import unescape
from casnap.store.index import most_entries
from casnap.store.rows import CheckpointRow, Mark, OpenRollback, PackRow, UndoTarget, WorkspaceRow
from casnap.store.tables import NONE, Tables, surviving_ancestor


def apply(tables: Tables, operation: AnyOperation, mark: Mark) -> None:
    """Make the tables what they are after ``operation``, whose line ends at ``mark``."""
    workspace = None
    if isinstance(operation, OfStore):
        _keep_up(tables, operation)
    else:
        workspace = tables.workspaces.get(operation.workspace)
    if isinstance(operation, WorkspaceRegistered):
        workspace = _register(workspace, operation)
    elif change := _CHANGES.get(type(operation)):
        workspace = change(tables, workspace, operation)
    for written in getattr(operation, "packs", ()):
        _add_range(tables, operation.seq, written, repacked=getattr(operation, "repacked", False))
    if workspace is not None:
        tables.workspaces.put(replace(workspace, last_operation=operation.seq))
    tables.mark = mark


def _register(workspace: WorkspaceRow | None, operation: WorkspaceRegistered) -> WorkspaceRow:
    path = unescape(operation.path)
    if workspace is not None:
        return replace(workspace, path=path, forgotten=False, dropped=False)
    return WorkspaceRow(operation.workspace, path, False, False, NONE, 0, None, (), operation.seq)


def _forget(_tables: Tables, workspace: WorkspaceRow | None, operation: WorkspaceForgotten) -> WorkspaceRow | None:
    return workspace and replace(workspace, forgotten=True, dropped=operation.drop)


def _checkpoint(tables: Tables, workspace: WorkspaceRow | None, operation: CheckpointMade) -> WorkspaceRow | None:
    row = _row(operation, operation.id, bytes.fromhex(operation.parent))
    row = replace(
        row,
        step=operation.step,
        name=operation.name,
        automatic=operation.automatic,
        safety=False,
        pinned=operation.pinned,
    )
    if operation.replaced and (before := tables.checkpoints.get(bytes.fromhex(operation.replaced))):
        tables.checkpoints.put(replace(before, name=""))
    tables.checkpoints.put(row)
    if workspace is None:
        return None
    head = workspace.head if operation.aside else row.id
    return replace(workspace, head=head, last_step=max(workspace.last_step, operation.step))


def _begin(tables: Tables, workspace: WorkspaceRow | None, operation: RollbackBegun) -> WorkspaceRow | None:
    if operation.made:
        tables.checkpoints.put(_row(operation, operation.safety, bytes.fromhex(operation.head)))
    target, paths = bytes.fromhex(operation.target), tuple(map(unescape, operation.paths))
    begun = OpenRollback(
        begin=operation.seq,
        time=operation.time,
        verb=operation.verb,
        safety=bytes.fromhex(operation.safety),
        target=target,
        nonce=operation.nonce,
        head_after=bytes.fromhex(operation.head_after),
        undo=UndoTarget(bytes.fromhex(operation.undo_safety), bytes.fromhex(operation.undo_head), target, paths),
        paths=paths,
        keep_git=operation.keep_git,
    )
    return workspace and replace(workspace, open=(*workspace.open, begun))


def _end(tables: Tables, workspace: WorkspaceRow | None, operation: RollbackEnded) -> WorkspaceRow | None:
    if operation.late:
        tables.checkpoints.put(_row(operation, operation.late, NONE if workspace is None else workspace.head))
    if workspace is None:
        return None
    ended = next((rollback for rollback in workspace.open if rollback.begin == operation.begin), None)
    if operation.result == "failed":  # it changed nothing: what was open before it still is
        return replace(workspace, open=tuple(one for one in workspace.open if one.begin != operation.begin))
    # A good end settles the rollbacks before it too: it was planned from whatever they left behind.
    workspace = replace(workspace, open=tuple(one for one in workspace.open if one.begin > operation.begin))
    if ended is None:
        return workspace
    return replace(workspace, head=surviving_ancestor(tables, ended.head_after), undo=ended.undo)


def _delete(tables: Tables, workspace: WorkspaceRow | None, operation: CheckpointsDeleted) -> WorkspaceRow | None:
    for id in map(bytes.fromhex, operation.ids):
        if row := tables.checkpoints.get(id):
            tables.checkpoints.put(replace(row, deleted=True, deleted_at=operation.time))
    if workspace is None or not (head := tables.checkpoints.get(workspace.head)) or not head.deleted:
        return workspace
    return replace(workspace, head=surviving_ancestor(tables, head.parent))


def _undelete(tables: Tables, workspace: WorkspaceRow | None, operation: CheckpointUndeleted) -> WorkspaceRow | None:
    row = tables.checkpoints.get(bytes.fromhex(operation.id))
    if row is not None and not row.freed:
        tables.checkpoints.put(replace(row, deleted=False, deleted_at=0, name=operation.name))
        if workspace is not None and not workspace.head and not row.safety:
            return replace(workspace, head=row.id)  # it descends from nothing else
    return workspace


def _pin(tables: Tables, workspace: WorkspaceRow | None, operation: CheckpointsPinned) -> WorkspaceRow | None:
    for id in map(bytes.fromhex, operation.ids):
        if row := tables.checkpoints.get(id):
            tables.checkpoints.put(replace(row, pinned=operation.pinned))
    return workspace


def _find_good(tables: Tables, workspace: WorkspaceRow | None, operation: CheckpointsFoundGood) -> WorkspaceRow | None:
    for id in map(bytes.fromhex, operation.ids):
        if row := tables.checkpoints.get(id):
            tables.checkpoints.put(replace(row, good=operation.good))
    return workspace


def _rename(tables: Tables, workspace: WorkspaceRow | None, operation: CheckpointRenamed) -> WorkspaceRow | None:
    if row := tables.checkpoints.get(bytes.fromhex(operation.id)):
        tables.checkpoints.put(replace(row, name=operation.name, automatic=False))
    return workspace


def _configure(_tables: Tables, workspace: WorkspaceRow | None, operation: WorkspaceConfigured) -> WorkspaceRow | None:
    if workspace is None:
        return None
    values = {**dict(workspace.settings), **operation.values}
    return replace(workspace, settings=tuple(sorted((key, value) for key, value in values.items() if value)))


def _expunge(tables: Tables, workspace: WorkspaceRow | None, operation: PathsExpunged) -> WorkspaceRow | None:
    """The new checkpoints take the place of the old ones, which go for good."""
    renamed = {bytes.fromhex(old): bytes.fromhex(new) for old, new in operation.replaced}
    for old, new in renamed.items():
        if row := tables.checkpoints.get(old):
            tables.checkpoints.put(replace(row, deleted=True, deleted_at=operation.time, freed=True, name=""))
            tables.checkpoints.put(replace(row, id=new))
    # Not of the new ones alone: a freed one between two that stay would lead to what is gone, and so would one whose
    # turn comes with the next line.
    of = operation.workspace
    for row in tables.checkpoints.select("workspace = ?", (of,), lambda row: row.workspace == of):
        if row.parent in renamed and row.id not in renamed:
            tables.checkpoints.put(replace(row, parent=renamed[row.parent]))
    return workspace and _lead_to(workspace, lambda id: renamed.get(id, id))


def _lead_to(workspace: WorkspaceRow, successor: Callable[[bytes], bytes]) -> WorkspaceRow:
    """The workspace with every id that it holds replaced."""

    def undo(target: UndoTarget) -> UndoTarget:
        return UndoTarget(successor(target.safety), successor(target.head), successor(target.target), target.paths)

    return replace(
        workspace,
        head=successor(workspace.head),
        undo=workspace.undo and undo(workspace.undo),
        open=tuple(
            replace(
                begun,
                safety=successor(begun.safety),
                target=successor(begun.target),
                head_after=successor(begun.head_after),
                undo=undo(begun.undo),
            )
            for begun in workspace.open
        ),
    )


def _keep_up(tables: Tables, operation: OfStore) -> None:
    if isinstance(operation, SpaceFreed):
        tables.upkeep = replace(tables.upkeep, collected=operation.seq, collected_at=operation.time)
        _free(tables, operation)
        _cut(tables, operation)
    elif isinstance(operation, StoreChecked):
        clean = operation.result == "clean"
        tables.upkeep = replace(tables.upkeep, checked_at=operation.time, checked_clean=clean)


def _free(tables: Tables, operation: SpaceFreed) -> None:
    """Checkpoints are deleted for good; a workspace that was dropped leads to none of them any more."""
    holders = set()
    for id in map(bytes.fromhex, operation.freed):
        if row := tables.checkpoints.get(id):
            deleted_at = row.deleted_at if row.deleted else operation.time
            tables.checkpoints.put(replace(row, deleted=True, deleted_at=deleted_at, freed=True))
            holders.add(row.workspace)
    for holder in sorted(holders):
        if workspace := tables.workspaces.get(holder):
            undo = workspace.undo
            lost = undo is not None and _is_freed(tables, undo.safety)
            head = surviving_ancestor(tables, workspace.head) if _is_freed(tables, workspace.head) else workspace.head
            kept = tuple(begun for begun in workspace.open if not _is_freed(tables, begun.undo.safety))
            tables.workspaces.put(replace(workspace, head=head, undo=None if lost else undo, open=kept))


def _is_freed(tables: Tables, id: bytes) -> bool:
    row = tables.checkpoints.get(id) if id else None
    return row is not None and row.freed


_CHANGES: dict[type, Callable[[Tables, WorkspaceRow | None, Any], WorkspaceRow | None]] = {
    WorkspaceForgotten: _forget,
    CheckpointMade: _checkpoint,
    RollbackBegun: _begin,
    RollbackEnded: _end,
    CheckpointsDeleted: _delete,
    CheckpointUndeleted: _undelete,
    CheckpointsPinned: _pin,
    CheckpointsFoundGood: _find_good,
    CheckpointRenamed: _rename,
    WorkspaceConfigured: _configure,
    PathsExpunged: _expunge,
}


def _row(operation: CheckpointMade | RollbackBegun | RollbackEnded, id: str, parent: bytes) -> CheckpointRow:
    """The row of a safety checkpoint that this line made."""
    return CheckpointRow(
        id=bytes.fromhex(id),
        workspace=operation.workspace,
        seq=operation.seq,
        step=0,
        name="",
        automatic=False,
        safety=True,
        parent=parent,
        counts=operation.counts,
        skipped=operation.skipped,
        new_bytes=operation.new_bytes,
        pinned=False,
        deleted=False,
        deleted_at=0,
        time=operation.time,
    )


def _cut(tables: Tables, operation: SpaceFreed) -> None:
    """Of some packs only a first part is there, or nothing: the rest is found elsewhere, or not needed."""
    for cut in operation.cuts:
        row = tables.packs.get(cut.pack)
        if row is not None and cut.length:
            tables.packs.put(replace(row, length=min(row.length, cut.length)))
        elif row is not None:
            tables.packs.remove(cut.pack)
    tables.index.cut(operation.seq, operation.cuts)


def _add_range(tables: Tables, seq: int, written: PackRange, *, repacked: bool) -> None:
    row = tables.packs.get(written.pack) or PackRow(written.pack, 0, 0, repacked)
    length, objects = max(row.length, written.end), row.objects + most_entries(written)
    tables.packs.put(PackRow(row.id, length, objects, row.repacked and repacked))
    tables.index.add_range(seq, written)
