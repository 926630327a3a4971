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
    CheckpointsPinned,
    CheckpointUndeleted,
    PackRange,
    RollbackBegun,
    RollbackEnded,
    StoreCreated,
    WorkspaceConfigured,
    WorkspaceForgotten,
    WorkspaceRegistered,
)
from casnap.model.paths import unescape
from casnap.store.index import most_entries
from casnap.store.rows import CheckpointRow, Mark, OpenRollback, PackRow, UndoTarget, WorkspaceRow
from casnap.store.tables import Tables

NONE = b""
"""Stands for the id of no checkpoint."""


def apply(tables: Tables, operation: AnyOperation, mark: Mark) -> None:
    """Make the tables what they are after ``operation``, whose line ends at ``mark``."""
    workspace = None
    if not isinstance(operation, StoreCreated):
        workspace = tables.workspaces.get(operation.workspace)
    if isinstance(operation, WorkspaceRegistered):
        workspace = _register(workspace, operation)
    elif change := _CHANGES.get(type(operation)):
        workspace = change(tables, workspace, operation)
    for written in getattr(operation, "packs", ()):
        _add_range(tables, operation.seq, written)
    if workspace is not None:
        tables.workspaces.put(replace(workspace, last_operation=operation.seq))
    tables.mark = mark


def surviving_ancestor(tables: Tables, parent: bytes) -> bytes:
    """``parent``, or the nearest of its ancestors that is not deleted; empty where there is none."""
    seen = set()
    while parent and parent not in seen:
        row = tables.checkpoints.get(parent)
        if row is None:
            return NONE
        if not row.deleted:
            return parent
        seen.add(parent)  # parents of one checkpoint cannot go round, but claims in a line can
        parent = row.parent
    return NONE


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
    begun = OpenRollback(
        begin=operation.seq,
        time=operation.time,
        verb=operation.verb,
        safety=bytes.fromhex(operation.safety),
        target=bytes.fromhex(operation.target),
        nonce=operation.nonce,
        head_after=bytes.fromhex(operation.head_after),
        undo=UndoTarget(bytes.fromhex(operation.undo_safety), bytes.fromhex(operation.undo_head)),
        paths=tuple(map(unescape, operation.paths)),
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
    if row := tables.checkpoints.get(bytes.fromhex(operation.id)):
        tables.checkpoints.put(replace(row, deleted=False, deleted_at=0, name=operation.name))
        if workspace is not None and not workspace.head and not row.safety:
            return replace(workspace, head=row.id)  # it descends from nothing else
    return workspace


def _pin(tables: Tables, workspace: WorkspaceRow | None, operation: CheckpointsPinned) -> WorkspaceRow | None:
    for id in map(bytes.fromhex, operation.ids):
        if row := tables.checkpoints.get(id):
            tables.checkpoints.put(replace(row, pinned=operation.pinned))
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


_CHANGES: dict[type, Callable[[Tables, WorkspaceRow | None, Any], WorkspaceRow | None]] = {
    WorkspaceForgotten: _forget,
    CheckpointMade: _checkpoint,
    RollbackBegun: _begin,
    RollbackEnded: _end,
    CheckpointsDeleted: _delete,
    CheckpointUndeleted: _undelete,
    CheckpointsPinned: _pin,
    CheckpointRenamed: _rename,
    WorkspaceConfigured: _configure,
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


def _add_range(tables: Tables, seq: int, written: PackRange) -> None:
    row = tables.packs.get(written.pack) or PackRow(written.pack, 0, 0)
    tables.packs.put(PackRow(row.id, max(row.length, written.end), row.objects + most_entries(written)))
    tables.index.add_range(seq, written)
