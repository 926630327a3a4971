"""All places of all objects of a store in one sorted run of bytes: a tenth of what Python objects would take."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Iterator
from itertools import accumulate

from casnap.codec.packs import IndexEntry
from casnap.codec.records import ALIGNMENT
from casnap.model.ids import ID_SIZE, ObjectKey, ObjectKind
from casnap.model.operation import PackCut
from casnap.store.rows import Place

_ROW = struct.Struct(f">B{ID_SIZE}sIIHQ")
_KEY = 1 + ID_SIZE

_BUCKETS = (max(ObjectKind) + 1) << 16
"""Where the rows begin whose keys have the same kind and the same first two bytes of the id is known beforehand."""


class PlaceTable:
    """Rows of kind, id, pack, offset, slot and the seq of the line that told of them; sorted by :meth:`settle`."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._packs: list[str] = []
        self._numbers: dict[str, int] = {}
        self._cuts: dict[str, list[tuple[int, int]]] = {}
        self._starts = array("L", bytes((_BUCKETS + 1) * array("L").itemsize))

    def __len__(self) -> int:
        return len(self._data) // _ROW.size

    def add(self, seq: int, pack: str, entries: Iterable[IndexEntry]) -> None:
        """The line ``seq`` told of these objects in a pack."""
        number = self._numbers.setdefault(pack, len(self._packs))
        if number == len(self._packs):
            self._packs.append(pack)
        for kind, id, offset, slot in entries:
            self._data += _ROW.pack(kind, id, number, offset // ALIGNMENT, slot + 1, seq)

    def cut(self, seq: int, cuts: Iterable[PackCut]) -> None:
        """By the line ``seq`` nothing is left of these packs from a length on."""
        for cut in cuts:
            self._cuts.setdefault(cut.pack, []).append((seq, cut.length))

    def settle(self) -> None:
        """Sort what was added; only then can anything be asked."""
        size = _ROW.size
        rows = sorted(bytes(self._data[start : start + size]) for start in range(0, len(self._data), size))
        counts = [0] * _BUCKETS
        for row in rows:
            counts[_bucket(row)] += 1
        self._starts = array("L", accumulate(counts, initial=0))
        self._data = bytearray().join(rows)

    def row_of(self, key: ObjectKey) -> int:
        """The number of the first row of an object, -1 where there is none."""
        wanted = _key(key)
        size, bucket = _ROW.size, _bucket(wanted)
        first, end = self._starts[bucket] * size, self._starts[bucket + 1] * size
        found = self._data.find(wanted, first, end)
        while found >= 0 and found % size:  # what looks like it lies across two rows
            found = self._data.find(wanted, found + 1, end)
        return found // size if found >= 0 else -1

    def places(self, key: ObjectKey) -> list[Place]:
        """Where an object lies: newest line first, and last written first within one."""
        row = self.row_of(key)
        found: dict[tuple[str, int, int], Place] = {}
        while 0 <= row < len(self) and self._key_at(row) == _key(key):
            place = self._place_at(row)
            if self.is_left(place):  # of several lines that told of a place, it belongs to the first
                found.setdefault(place[:3], place)
            row += 1
        return sorted(found.values(), key=lambda place: (place.seq, place.offset, place.slot, place.pack), reverse=True)

    def knows(self, key: ObjectKey, place: Place) -> bool:
        """Whether the log ever told of this place, whatever became of it."""
        row = self.row_of(key)
        while 0 <= row < len(self) and self._key_at(row) == _key(key):
            if self._place_at(row)[:3] == place[:3]:
                return True
            row += 1
        return False

    def rows(self, upto: int | None = None) -> Iterator[tuple[ObjectKey, Place]]:
        """Every place that is left, once, sorted by object; as of the line ``upto`` where that is given."""
        last = None
        for row in range(len(self)):
            key, place = self._key_at(row), self._place_at(row)
            if (key, place[:3]) != last and (upto is None or place.seq <= upto) and self.is_left(place, upto):
                last = (key, place[:3])
                yield ObjectKey(ObjectKind(key[0]), key[1:]), place

    def is_left(self, place: Place, upto: int | None = None) -> bool:
        """Whether a place has not been cut off by a line after its own; of lines up to ``upto`` where that is given."""
        cuts = self._cuts.get(place.pack, ())
        return not any(
            place.seq < seq and place.offset >= length for seq, length in cuts if upto is None or seq <= upto
        )

    def _key_at(self, row: int) -> bytes:
        start = row * _ROW.size
        return bytes(self._data[start : start + _KEY])

    def _place_at(self, row: int) -> Place:
        _, _, number, offset, slot, seq = _ROW.unpack_from(self._data, row * _ROW.size)
        return Place(self._packs[number], offset * ALIGNMENT, slot - 1, seq)


def _bucket(row: bytes) -> int:
    return int.from_bytes(row[:3], "big")


def _key(key: ObjectKey) -> bytes:
    return bytes((key.kind,)) + key.id
