"""The tables of a catalog, and how rows are written in them (docs/format/catalog.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from casnap.store.rows import CheckpointRow, OpenRollback, PackRow, UndoTarget, WorkspaceRow

Key = TypeVar("Key")
Row = TypeVar("Row")

APPLICATION_ID = 0x63736E70
"""``csnp``: tells a catalog from any other SQLite file."""

VERSION = 6

DDL = """
CREATE TABLE position (
    one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, hash TEXT NOT NULL,
    segment INTEGER NOT NULL, offset INTEGER NOT NULL, collected INTEGER NOT NULL, collected_at INTEGER NOT NULL,
    checked_at INTEGER NOT NULL, checked_clean INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE workspaces (
    id TEXT PRIMARY KEY, path BLOB NOT NULL, forgotten INTEGER NOT NULL, dropped INTEGER NOT NULL,
    head BLOB NOT NULL, last_step INTEGER NOT NULL, undo BLOB NOT NULL, open BLOB NOT NULL,
    last_operation INTEGER NOT NULL, settings BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE checkpoints (
    id BLOB PRIMARY KEY, workspace TEXT NOT NULL, seq INTEGER NOT NULL, step INTEGER NOT NULL,
    name TEXT NOT NULL, automatic INTEGER NOT NULL, safety INTEGER NOT NULL, parent BLOB NOT NULL,
    added INTEGER NOT NULL, changed INTEGER NOT NULL, removed INTEGER NOT NULL, skipped INTEGER NOT NULL,
    new_bytes INTEGER NOT NULL, pinned INTEGER NOT NULL, deleted INTEGER NOT NULL, deleted_at INTEGER NOT NULL,
    time INTEGER NOT NULL, freed INTEGER NOT NULL, good INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX checkpoints_by_name ON checkpoints (workspace, name);
CREATE INDEX checkpoints_by_step ON checkpoints (workspace, step);
CREATE INDEX checkpoints_to_free ON checkpoints (deleted_at) WHERE deleted AND NOT freed;
CREATE TABLE packs (
    id TEXT PRIMARY KEY, length INTEGER NOT NULL, objects INTEGER NOT NULL, repacked INTEGER NOT NULL,
    number INTEGER NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;
CREATE TABLE places (
    kind INTEGER NOT NULL, id BLOB NOT NULL, pack INTEGER NOT NULL, offset INTEGER NOT NULL,
    slot INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (kind, id, pack, offset, slot)
) STRICT, WITHOUT ROWID;
"""

_encode = msgspec.msgpack.Encoder().encode
_decode_undo = msgspec.msgpack.Decoder(UndoTarget | None).decode
_decode_settings = msgspec.msgpack.Decoder(tuple[tuple[str, str], ...]).decode
_decode_open = msgspec.msgpack.Decoder(tuple[OpenRollback, ...]).decode


class Schema(Struct, Generic[Key, Row], frozen=True):
    """One table of rows: how a row is found, and how it becomes columns and is made of them again."""

    table: str
    key_column: str
    columns: str
    key: Callable[[Row], Key]
    values: Callable[[Row], tuple[Any, ...]]
    row: Callable[[tuple[Any, ...]], Row]


def _workspace_values(row: WorkspaceRow) -> tuple[Any, ...]:
    undo, opened = _encode(row.undo), _encode(row.open)
    return (
        row.id,
        row.path,
        row.forgotten,
        row.dropped,
        row.head,
        row.last_step,
        undo,
        opened,
        row.last_operation,
        _encode(row.settings),
    )


def _workspace_row(values: tuple[Any, ...]) -> WorkspaceRow:
    id, path, forgotten, dropped, head, last_step, undo, opened, last, settings = values
    return WorkspaceRow(
        id,
        path,
        bool(forgotten),
        bool(dropped),
        head,
        last_step,
        _decode_undo(undo),
        _decode_open(opened),
        last,
        _decode_settings(settings),
    )


def _checkpoint_values(row: CheckpointRow) -> tuple[Any, ...]:
    return (
        row.id,
        row.workspace,
        row.seq,
        row.step,
        row.name,
        row.automatic,
        row.safety,
        row.parent,
        *row.counts,
        row.skipped,
        row.new_bytes,
        row.pinned,
        row.deleted,
        row.deleted_at,
        row.time,
        row.freed,
        row.good,
    )


def _checkpoint_row(values: tuple[Any, ...]) -> CheckpointRow:
    id, workspace, seq, step, name, automatic, safety, parent = values[:8]
    skipped, new_bytes, pinned, deleted, deleted_at, time, freed, good = values[11:]
    return CheckpointRow(
        id=id,
        workspace=workspace,
        seq=seq,
        step=step,
        name=name,
        automatic=bool(automatic),
        safety=bool(safety),
        parent=parent,
        counts=values[8:11],
        skipped=skipped,
        new_bytes=new_bytes,
        pinned=bool(pinned),
        deleted=bool(deleted),
        deleted_at=deleted_at,
        time=time,
        freed=bool(freed),
        good=bool(good),
    )


def _pack_values(row: PackRow) -> tuple[Any, ...]:
    return (row.id, row.length, row.objects, row.repacked)


def _pack_row(values: tuple[Any, ...]) -> PackRow:
    id, length, objects, repacked = values
    return PackRow(id, length, objects, bool(repacked))


WORKSPACES: Schema[str, WorkspaceRow] = Schema(
    "workspaces",
    "id",
    "id, path, forgotten, dropped, head, last_step, undo, open, last_operation, settings",
    lambda row: row.id,
    _workspace_values,
    _workspace_row,
)
CHECKPOINTS: Schema[bytes, CheckpointRow] = Schema(
    "checkpoints",
    "id",
    "id, workspace, seq, step, name, automatic, safety, parent, added, changed, removed, skipped, new_bytes, "
    "pinned, deleted, deleted_at, time, freed, good",
    lambda row: row.id,
    _checkpoint_values,
    _checkpoint_row,
)
PACKS: Schema[str, PackRow] = Schema(
    "packs", "id", "id, length, objects, repacked", lambda row: row.id, _pack_values, _pack_row
)
