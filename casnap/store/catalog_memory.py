"""What a catalog remembers of lines that are lost, as operations that say it again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casnap.model.operation import (
    AnyOperation,
    CheckpointMade,
    CheckpointRenamed,
    CheckpointsDeleted,
    CheckpointsFoundGood,
    CheckpointsPinned,
    CheckpointUndeleted,
    RollbackBegun,
    RollbackEnded,
    SpaceFreed,
    WorkspaceConfigured,
    WorkspaceForgotten,
    WorkspaceRegistered,
)
from casnap.model.paths import escape
from casnap.store.catalog import Catalog, CatalogLost
from casnap.store.inspection import Inspection
from casnap.store.new_lines import Planned, fold
from casnap.store.rows import CheckpointRow, WorkspaceRow
from casnap.store.schema import CHECKPOINTS, PACKS, WORKSPACES, Schema
from casnap.store.tables import Tables

_ANY: dict[str, Any] = {"seq": 0, "prev": "0" * 64}
"""What the chain fills in."""


@dataclass(frozen=True, slots=True)
class CatalogMemory:
    """The rows of a catalog as of the line ``seq``."""

    seq: int
    workspaces: dict[str, WorkspaceRow]
    checkpoints: dict[bytes, CheckpointRow]


def recall(found: Inspection) -> CatalogMemory | None:
    """The catalog of this store that has seen most, those that were set aside included; None where there is none."""
    best: CatalogMemory | None = None
    for path in sorted(found.layout.root.glob("catalog-*.db*")):
        if path.name.endswith((".db", ".aside")):
            with contextlib.suppress(CatalogLost, ValueError, TypeError):
                memory = _read(found, path)
                if memory is not None and (best is None or memory.seq > best.seq):
                    best = memory
    return best


def _read(found: Inspection, path: Path) -> CatalogMemory | None:
    with contextlib.closing(Catalog(path)) as catalog:
        packs = {row.id for row in _rows(catalog, PACKS)}
        memory = CatalogMemory(
            catalog.mark.seq,
            {row.id: row for row in _rows(catalog, WORKSPACES)},
            {row.id: row for row in _rows(catalog, CHECKPOINTS)},
        )
        proven = any(line.hash == catalog.mark.hash for line in found.log.lines)
        # Ids of packs are random: one that is here says whose catalog it is.
        return memory if proven or packs & set(found.layout.pack_ids()) else None


def _rows(catalog: Catalog, schema: Schema[Any, Any]) -> list[Any]:
    return [schema.row(values) for values in catalog.fetch(f"SELECT {schema.columns} FROM {schema.table}")]


def with_memory(kept: list[Planned], memory: CatalogMemory, now: int) -> list[Planned]:
    """The lines that were kept, and between them new ones, after which all is as the catalog says.

    What was said later than the catalog knows comes after that, and counts.
    """
    until = [one for one in kept if one.old <= memory.seq]
    known = fold(until)
    first, rest = until[:1], until[1:]
    first += [Planned(one) for one in _registrations(memory, known, now)]
    missing = [row for id, row in memory.checkpoints.items() if known.checkpoints.get(id) is None]
    between = [(row.seq, part) for row in sorted(missing, key=lambda row: (row.seq, row.id)) for part in _made(row)]
    merged = sorted([*((one.old, one) for one in rest), *between], key=lambda pair: pair[0])
    until = [*first, *(one for _, one in merged)]
    until += [Planned(one) for one in _corrections(memory, fold(until), now)]
    tables = fold(until)
    for row in memory.workspaces.values():
        until += _head(row, tables.workspaces.get(row.id), now)
    return until + [one for one in kept if one.old > memory.seq]


def _registrations(memory: CatalogMemory, known: Tables, now: int) -> Iterator[AnyOperation]:
    for row in sorted(memory.workspaces.values(), key=lambda row: row.path):
        if known.workspaces.get(row.id) is None:
            yield WorkspaceRegistered(**_ANY, time=now, workspace=row.id, path=escape(row.path))


def _made(row: CheckpointRow) -> list[Planned]:
    """The line that made a checkpoint; of a safety checkpoint the line of a rollback that came to nothing."""
    common = {**_ANY, "time": row.time, "workspace": row.workspace}
    statistics: dict[str, Any] = {"counts": row.counts, "skipped": row.skipped, "new_bytes": row.new_bytes}
    id, parent = row.id.hex(), row.parent.hex()
    if not row.safety:
        made = CheckpointMade(
            **common,
            **statistics,
            id=id,
            step=max(row.step, 1),
            name=row.name,
            automatic=row.automatic,
            pinned=row.pinned,
            parent=parent,
        )
        return [Planned(made)]
    begun = Planned(
        RollbackBegun(
            **common,
            **statistics,
            verb="rollback",
            safety=id,
            target=id,
            nonce="0",
            made=True,
            head=parent,
            undo_safety=id,
        )
    )
    return [begun, Planned(RollbackEnded(**common, begin=1, result="failed"), begun=begun)]


def _corrections(memory: CatalogMemory, known: Tables, now: int) -> Iterator[AnyOperation]:
    for row in memory.workspaces.values():
        if (before := known.workspaces.get(row.id)) is not None:
            yield from _workspace(row, before, now)
    for wanted in sorted(memory.checkpoints.values(), key=lambda row: (row.seq, row.id)):
        if (have := known.checkpoints.get(wanted.id)) is not None:
            yield from _checkpoint(wanted, have, now)


def _workspace(row: WorkspaceRow, before: WorkspaceRow, now: int) -> Iterator[AnyOperation]:
    common = {**_ANY, "time": now, "workspace": row.id}
    if row.path != before.path or (before.forgotten and not row.forgotten):
        yield WorkspaceRegistered(**common, path=escape(row.path))
        before = WorkspaceRow(row.id, row.path, False, False, b"", 0, None, (), 0, before.settings)
    if (row.forgotten, row.dropped) != (before.forgotten, before.dropped):
        yield WorkspaceForgotten(**common, drop=row.dropped)
    had, wanted = dict(before.settings), dict(row.settings)
    if values := {key: wanted.get(key, "") for key in {**had, **wanted} if had.get(key, "") != wanted.get(key, "")}:
        yield WorkspaceConfigured(**common, values=values)


def _checkpoint(row: CheckpointRow, have: CheckpointRow, now: int) -> Iterator[AnyOperation]:
    common = {**_ANY, "time": now, "workspace": row.workspace}
    id = row.id.hex()
    if have.deleted and not row.deleted and not have.freed:
        yield CheckpointUndeleted(**common, id=id, name=row.name)
    elif row.name != have.name and not row.automatic:
        yield CheckpointRenamed(**common, id=id, name=row.name)
    if row.pinned != have.pinned:
        yield CheckpointsPinned(**common, ids=(id,), pinned=row.pinned)
    if row.good != have.good:
        yield CheckpointsFoundGood(**common, ids=(id,), good=row.good)
    if row.deleted and not have.deleted:
        yield CheckpointsDeleted(**{**common, "time": row.deleted_at}, ids=(id,))
    if row.freed and not have.freed:
        yield SpaceFreed(**_ANY, time=now, freed=(id,))


def _head(row: WorkspaceRow, have: WorkspaceRow | None, now: int) -> list[Planned]:
    """A recover that has no effect but that head and undo are what they were; rollbacks that had ended are closed."""
    if have is None or row.open or (have.head, have.undo, have.open) == (row.head, row.undo, ()):
        return []
    common = {**_ANY, "time": now, "workspace": row.id}
    undo = row.undo
    if undo is None:
        return []
    safety, head = undo.safety.hex(), row.head.hex()
    begun = Planned(
        RollbackBegun(
            **common,
            verb="recover",
            safety=safety,
            target=undo.target.hex() or head or safety,
            paths=tuple(map(escape, undo.paths)),
            nonce="0",
            head=head,
            head_after=head,
            undo_safety=safety,
            undo_head=undo.head.hex(),
        )
    )
    return [begun, Planned(RollbackEnded(**common, begin=1, result="done"), begun=begun)]
