"""The catalog against the operation log: row by row, as of the line that the catalog stands at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.operation import SpaceFreed
from casnap.store.catalog import Catalog, CatalogLost
from casnap.store.layout import Layout
from casnap.store.rows import Place
from casnap.store.schema import CHECKPOINTS, PACKS, WORKSPACES, Schema
from casnap.store.tables import Table

if TYPE_CHECKING:
    from casnap.store.inspection import Inspection

_PLACES = "SELECT kind, places.id, packs.id, offset, slot FROM places JOIN packs ON packs.number = places.pack"

_BY_OBJECT = "SELECT kind, id, pack, offset, slot FROM places ORDER BY kind, id"


class Opened(NamedTuple):
    """The catalogs of a store, each as of one instant, and those that are damaged, by name and with the cause."""

    catalogs: list[Catalog]
    faults: list[tuple[str, str]]


def open_catalogs(layout: Layout) -> Opened:
    """Open them. Before the log is read: then the log is never behind them."""
    opened = Opened([], [])
    for number in layout.catalogs():
        path = layout.catalog(number)
        try:
            opened.catalogs.append(Catalog(path))
        except CatalogLost as error:
            if error.damaged:
                opened.faults.append((path.name, str(error)))
    return opened


def audit_catalogs(found: Inspection) -> tuple[list[tuple[str, str]], int]:
    """Catalogs that are damaged or say something else than the log, each with the cause; the newest line one has seen.

    Of a log that is itself damaged only what the catalog has seen is told: it may know more than the log.
    """
    faults = list(found.opened.faults)
    claimed = 0
    for catalog in found.opened.catalogs:
        try:
            if _is_ours(found, catalog):
                claimed = max(claimed, catalog.mark.seq)
            if (cause := _stands(found, catalog) or _rows_differ(found, catalog)) is not None:
                faults.append((catalog.path.name, cause))
        except (CatalogLost, ValueError, TypeError) as error:
            faults.append((catalog.path.name, str(error)))
    return faults, claimed


def audit_places(found: Inspection, doubtful: frozenset[str]) -> list[tuple[str, str]]:
    """Catalogs that know other places than the packs have; of packs in ``doubtful`` they may know more places."""
    faults = []
    for catalog in found.opened.catalogs:
        try:
            known = found.log.whole and catalog.mark.seq <= found.log.seq
            if known and (cause := _places_differ(found, catalog, doubtful)) is not None:
                faults.append((catalog.path.name, cause))
        except (CatalogLost, ValueError, TypeError) as error:
            faults.append((catalog.path.name, str(error)))
    return faults


def _is_ours(found: Inspection, catalog: Catalog) -> bool:
    """Whether a catalog knows a line or a pack that is here; where the last line is bad, it may be what says so."""
    if found.log.torn is not None or any(line.hash == catalog.mark.hash for line in found.log.lines):
        return True
    packs = {row[0] for row in catalog.fetch("SELECT id FROM packs")}
    return not packs.isdisjoint(found.layout.pack_ids())


def _stands(found: Inspection, catalog: Catalog) -> str | None:
    """Whether the line that the catalog stands at is in the log."""
    mark = catalog.mark
    if not found.log.whole or not mark.seq:
        return None
    if mark.seq > found.log.seq:
        strange = f"it has seen operation {mark.seq}, and is of another store"
        return None if _is_ours(found, catalog) else strange
    line = found.log.lines[mark.seq - 1]
    if (line.hash, line.segment, line.end) != (mark.hash, mark.segment, mark.offset):
        return f"operation {mark.seq} of the operation log is another one than it has seen"
    return None


def _rows_differ(found: Inspection, catalog: Catalog) -> str | None:
    if not found.log.whole or catalog.mark.seq > found.log.seq:
        return None
    tables = found.tables_at(catalog.mark.seq)
    checks: tuple[tuple[Schema[Any, Any], Table[Any, Any]], ...] = (
        (WORKSPACES, tables.workspaces),
        (CHECKPOINTS, tables.checkpoints),
        (PACKS, tables.packs),
    )
    for schema, table in checks:
        stored = {schema.key(row): row for row in _stored(catalog, schema)}
        differing = [key for key in {**stored, **table.changed} if stored.get(key) != table.changed.get(key)]
        if differing:
            return f"{len(differing)} of its {schema.table} are not as the operation log says"
    return None if catalog.upkeep == tables.upkeep else "it knows another last upkeep than the operation log"


def _stored(catalog: Catalog, schema: Schema[Any, Any]) -> Iterator[Any]:
    for values in catalog.fetch(f"SELECT {schema.columns} FROM {schema.table}"):
        yield schema.row(values)


def _places_differ(found: Inspection, catalog: Catalog, doubtful: frozenset[str]) -> str | None:
    upto = catalog.mark.seq
    packs = dict(catalog.fetch("SELECT number, id FROM packs"))
    if found.places.are(catalog.iterate(_BY_OBJECT), packs, upto):
        return None
    expected = sum(1 for _ in found.places.rows(upto))
    voided = _cut_since(found, upto)
    seen = strange = 0
    for kind, id, pack, offset, slot in catalog.iterate(_PLACES):
        if found.places.knows(ObjectKey(ObjectKind(kind), id), Place(pack, offset, slot, 0)):
            seen += 1
        elif pack not in doubtful and offset < voided.get(pack, offset + 1):
            strange += 1
    if strange:
        return f"{strange} of its places of objects are not in the packs"
    return None if seen == expected else f"it knows {seen} of {expected} places of objects"


def _cut_since(found: Inspection, upto: int) -> dict[str, int]:
    """What lines that a catalog has not seen left of packs: it still knows what was behind that, and rightly so."""
    lengths: dict[str, int] = {}
    for line in found.log.lines[upto:]:
        if isinstance(line.operation, SpaceFreed):
            for cut in line.operation.cuts:
                lengths[cut.pack] = min(cut.length, lengths.get(cut.pack, cut.length))
    return lengths
