"""The object index: which objects there are, and where each of their records lies."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from casnap.errors import Damage
from casnap.model.ids import ID_SIZE, ObjectKey, ObjectKind
from casnap.store.catalog import Catalog
from casnap.store.rows import Place

if TYPE_CHECKING:
    from casnap.codec.packs import IndexEntry
    from casnap.model.operation import PackCut, PackRange

BATCH = 500
"""Ids in one query: 100,000 look-ups take 200 ms this way, 819 ms one by one (measured)."""

ReadRange: TypeAlias = "Callable[[PackRange], Iterable[IndexEntry]]"
"""Gives the entries that a commit wrote to one pack."""


def most_entries(written: PackRange) -> int:
    """At most how many objects a commit wrote to a pack: ids do not compress, so its index bounds them."""
    return (written.end - written.index) // ID_SIZE


class Index:
    """Places of objects, by key: those of the newest lines in memory, over those of the catalog.

    Index records are read when somebody first asks, so that a look at the history costs no pack. ``unreadable`` are
    ranges, with the seq of their lines, of which nobody can tell what is in them as long as their packs are away.
    """

    def __init__(self, catalog: Catalog | None, read_range: ReadRange) -> None:
        self.added: dict[ObjectKey, list[Place]] = {}
        self._catalog = catalog
        self._read_range = read_range
        self.unreadable: list[tuple[int, PackRange]] = []
        self._waiting: list[tuple[int, PackRange]] = []
        self._cuts: dict[str, list[tuple[int, int]]] = {}
        self._loading = False
        self._rows = 0
        self._empty: bool | None = None

    def add_range(self, seq: int, written: PackRange) -> None:
        """The line ``seq`` committed these bytes of a pack."""
        self._waiting.append((seq, written))

    def cut(self, seq: int, cuts: Iterable[PackCut]) -> None:
        """By the line ``seq`` nothing is left of what was in these packs from a length on.

        A pack that was removed may come again: a session that was killed between the line and the removal leaves it,
        and the next one may take what is in it for its own. So only what older lines said of it is void.
        """
        for cut in cuts:
            self._cuts.setdefault(cut.pack, []).append((seq, cut.length))
        self._waiting = [
            (of, written) for of, written in self._waiting if self._is_left(of, written.pack, written.start)
        ]
        for key, places in list(self.added.items()):
            left = [place for place in places if self._is_left(place.seq, place.pack, place.offset)]
            self._rows -= len(places) - len(left)
            if left:
                self.added[key] = left
            else:
                del self.added[key]

    def stored_lengths(self) -> dict[str, int]:
        """Packs of which the catalog knows too much, and how many of their first bytes it still knows rightly."""
        return {pack: min(length for _, length in cuts) for pack, cuts in self._cuts.items()}

    def _is_left(self, seq: int, pack: str, offset: int) -> bool:
        """Whether a place that the line ``seq`` told of has not been cut off since."""
        cuts = self._cuts.get(pack)
        return cuts is None or not any(seq < cut and offset >= length for cut, length in cuts)

    @property
    def rows(self) -> int:
        """At most how many rows the catalog does not have yet."""
        return self._rows + sum(most_entries(written) for _, written in self._waiting)

    def retry(self) -> None:
        """Let what could not be read be tried once more: its pack may be back."""
        self._waiting, self.unreadable = [*self._waiting, *self.unreadable], []

    def load(self) -> None:
        """Read the index records of all ranges that were added."""
        if self._loading:  # a damaged record is replaced by a scan, and that looks up the bases of deltas
            return
        self._loading = True
        try:
            while self._waiting:
                seq, written = self._waiting[0]
                try:
                    for entry in self._read_range(written):
                        self._add(entry, written.pack, seq)
                except Damage:
                    self.unreadable.append((seq, written))
                del self._waiting[0]
        finally:
            self._loading = False

    def rows_to_store(self) -> list[tuple[int, bytes, str, int, int, int]]:
        """Kind, id, pack, offset, slot and seq of all that the catalog does not have, in types that SQLite knows.

        What one commit wrote, and nobody has asked for, goes from its index record straight into rows. What cannot be
        read is in ``unreadable`` afterwards.
        """
        fresh: list[tuple[int, bytes, str, int, int, int]] = []
        if len(self._waiting) == 1 and not self._cuts and not self._loading:
            fresh = self._rows_of(*self._waiting[0])
        else:
            self.load()
        return fresh + [(int(kind), id, *place) for (kind, id), places in self.added.items() for place in places]

    def _rows_of(self, seq: int, written: PackRange) -> list[tuple[int, bytes, str, int, int, int]]:
        self._loading = True
        try:
            entries = self._read_range(written)
            return [(int(kind), id, written.pack, offset, slot, seq) for kind, id, offset, slot in entries]
        except Damage:
            self.unreadable.append((seq, written))
            self._waiting.clear()
            return []
        finally:
            self._loading = False

    def _add(self, entry: IndexEntry, pack: str, seq: int) -> None:
        kind, id, offset, slot = entry
        if self._cuts and not self._is_left(seq, pack, offset):
            return
        place, key = Place(pack, offset, slot, seq), ObjectKey(kind, id)
        places = self.added.get(key)
        if places is None:
            self.added[key] = [place]
        elif any(place[:3] == known[:3] for known in places):
            return
        else:
            places.append(place)
        self._rows += 1

    def places(self, keys: Iterable[ObjectKey]) -> dict[ObjectKey, list[Place]]:
        """All places of those of ``keys`` that are there: newest line first, and last written first within one."""
        self.load()
        found: dict[ObjectKey, list[Place]] = {}
        keys = list(dict.fromkeys(keys))
        for key, place in self._stored(keys):
            found.setdefault(key, []).append(place)
        for key in keys:
            if (added := self.added.get(key)) is not None:
                stored = found.setdefault(key, [])
                known = {place[:3] for place in stored}
                stored += [place for place in added if place[:3] not in known]
        for places in found.values():
            if len(places) > 1:
                places.sort(key=_age, reverse=True)
        return found

    def present(self, keys: Iterable[ObjectKey]) -> set[ObjectKey]:
        """Those of ``keys`` that are there."""
        self.load()
        keys = set(keys)
        here = keys & self.added.keys()
        if self._cuts:
            return here | {key for key, _ in self._stored(keys - here)}
        return here | {ObjectKey(kind, id) for kind, id in self._stored_ids(keys - here)}

    def everything(self) -> Iterator[tuple[str, int, int]]:
        """Pack, offset and slot of every object; one may come twice."""
        self.load()
        if self._catalog is not None:
            for pack, offset, slot, seq in self._catalog.iterate(_EVERYTHING):
                if self._is_left(seq, pack, offset):
                    yield pack, offset, slot
        for places in self.added.values():
            yield from ((place.pack, place.offset, place.slot) for place in places)

    def _stored(self, keys: Collection[ObjectKey]) -> Iterator[tuple[ObjectKey, Place]]:
        cuts = self._cuts
        for catalog, kind, batch in self._batches(keys):
            for id, pack, offset, slot, seq in catalog.fetch(_query(len(batch)), (kind, *batch)):
                if not cuts or self._is_left(seq, pack, offset):
                    yield ObjectKey(kind, id), Place(pack, offset, slot, seq)

    def _stored_ids(self, keys: Collection[ObjectKey]) -> Iterator[tuple[ObjectKind, bytes]]:
        """Those that the catalog knows; where they lie need not be looked up for that."""
        for catalog, kind, batch in self._batches(keys):
            for (id,) in catalog.fetch(_query_ids(len(batch)), (kind, *batch)):
                yield kind, id

    def _batches(self, keys: Collection[ObjectKey]) -> Iterator[tuple[Catalog, ObjectKind, list[bytes]]]:
        if not keys or self._catalog is None or self._is_empty(self._catalog):
            return
        by_kind: dict[ObjectKind, list[bytes]] = defaultdict(list)
        for key in keys:
            by_kind[key.kind].append(key.id)
        for kind, ids in by_kind.items():
            for start in range(0, len(ids), BATCH):
                yield self._catalog, kind, ids[start : start + BATCH]

    def _is_empty(self, catalog: Catalog) -> bool:
        """Whether the catalog knows no object at all: then a first checkpoint need not ask for each."""
        if self._empty is None:
            self._empty = not catalog.fetch("SELECT 1 FROM places LIMIT 1")
        return self._empty


_EVERYTHING = "SELECT packs.id, offset, slot, seq FROM places JOIN packs ON packs.number = places.pack"


@functools.cache
def _query(count: int) -> str:
    return (
        "SELECT places.id, packs.id, offset, slot, seq FROM places JOIN packs ON packs.number = places.pack "
        f"WHERE kind = ? AND places.id IN ({','.join('?' * count)})"
    )


@functools.cache
def _query_ids(count: int) -> str:
    return f"SELECT DISTINCT id FROM places WHERE kind = ? AND id IN ({','.join('?' * count)})"


def _age(place: Place) -> tuple[int, int, int, str]:
    return place.seq, place.offset, place.slot, place.pack
