"""All places of all objects of a store in one sorted run of bytes: a tenth of what Python objects would take."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice

from casnap.codec.packs import IndexEntry
from casnap.codec.records import ALIGNMENT
from casnap.model.ids import ID_SIZE, ObjectKey, ObjectKind
from casnap.model.operation import PackCut
from casnap.store.rows import Place

_ROW = struct.Struct(f">B{ID_SIZE}sIIHQ")
_PLACE = struct.Struct(f">B{ID_SIZE}sIIH")
_SEQ = struct.Struct(">Q")
_MAX_SEQ = (1 << 64) - 1
_KEY = 1 + ID_SIZE

_AT_ONCE = 4096

_ROWS_PER_BUCKET = 4
"""Where the rows begin whose keys have the same kind and the same first bits of the id is known beforehand."""

_MOST_BITS = 16
_KINDS = tuple(bytes((number,)) for number in range(max(ObjectKind) + 1))


class PlaceTable:
    """Rows of kind, id, pack, offset, slot and the seq of the line that told of them; sorted by :meth:`settle`."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._packs: list[str] = []
        self._numbers: dict[str, int] = {}
        self._cuts: dict[str, list[tuple[int, int]]] = {}
        self._shift = _MOST_BITS
        self._starts = array("L", (0 for _ in range(len(_KINDS) + 1)))

    def __len__(self) -> int:
        return len(self._data) // _ROW.size

    def add(self, seq: int, pack: str, entries: Iterable[IndexEntry]) -> None:
        """The line ``seq`` told of these objects in a pack."""
        number = self._numbers.setdefault(pack, len(self._packs))
        if number == len(self._packs):
            self._packs.append(pack)
        row = _ROW.pack
        rows = [row(kind, id, number, at // ALIGNMENT, slot + 1, seq) for kind, id, at, slot in entries]
        self._data += b"".join(rows)

    def cut(self, seq: int, cuts: Iterable[PackCut]) -> None:
        """By the line ``seq`` nothing is left of these packs from a length on."""
        for cut in cuts:
            self._cuts.setdefault(cut.pack, []).append((seq, cut.length))

    def settle(self) -> None:
        """Sort what was added; only then can anything be asked."""
        size = _ROW.size
        data = bytes(self._data)
        rows = sorted([data[start : start + size] for start in range(0, len(data), size)])
        bits = min((len(rows) // _ROWS_PER_BUCKET).bit_length(), _MOST_BITS)
        self._shift = _MOST_BITS - bits
        counts = [0] * (len(_KINDS) << bits)
        for row in rows:
            counts[int.from_bytes(row[:3], "big") >> self._shift] += 1
        self._starts = array("L", accumulate(counts, initial=0))
        self._data = bytearray().join(rows)

    def row_of(self, key: ObjectKey) -> int:
        """The number of the first row of an object, -1 where there is none."""
        wanted = _KINDS[key.kind] + key.id
        size, bucket = _ROW.size, int.from_bytes(wanted[:3], "big") >> self._shift
        end = self._starts[bucket + 1] * size
        found = self._data.find(wanted, self._starts[bucket] * size, end)
        while found >= 0 and found % size:  # what looks like it lies across two rows
            found = self._data.find(wanted, found + 1, end)
        return found // size if found >= 0 else -1

    def holds_all(self, kind: ObjectKind, ids: Iterable[bytes]) -> bool:
        """Whether each of these objects has a place that is left."""
        if self._cuts:
            return all(self.holds(ObjectKey(kind, id)) for id in ids)
        data, starts, shift, size = self._data, self._starts, self._shift, _ROW.size
        for id in ids:
            wanted = _KINDS[kind] + id
            bucket = int.from_bytes(wanted[:3], "big") >> shift
            at = data.find(wanted, starts[bucket] * size, starts[bucket + 1] * size)
            if at < 0 or (at % size and self.row_of(ObjectKey(kind, id)) < 0):
                return False
        return True

    def holds(self, key: ObjectKey) -> bool:
        """Whether an object has a place that is left."""
        return bool(self.places(key)) if self._cuts else self.row_of(key) >= 0

    def places(self, key: ObjectKey) -> list[Place]:
        """Where an object lies: newest line first, and last written first within one."""
        row, wanted = self.row_of(key), _key(key)
        if row < 0:
            return []
        if self._key_at(row + 1) != wanted and not self._cuts:
            return [self._place_at(row)]
        found: dict[tuple[str, int, int], Place] = {}
        while self._key_at(row) == wanted:
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
        for row in self._left_rows(upto):
            key = self._key_at(row)
            yield ObjectKey(ObjectKind(key[0]), key[1:]), self._place_at(row)

    def are(self, places: Iterable[tuple[int, bytes, int, int, int]], packs: Mapping[int, str], upto: int) -> bool:
        """Whether these are the places that :meth:`rows` has as of a line, each once.

        They come as kind, id, one of the numbers in ``packs``, offset and slot; sorted by object, so that few wait for
        their like.
        """
        size, data = _PLACE.size, self._data
        numbers = {number: self._numbers[pack] for number, pack in packs.items() if pack in self._numbers}
        ours, theirs = self._left_rows(upto), iter(places)
        unmet: set[bytes] = set()
        try:
            while some := list(islice(theirs, _AT_ONCE)):
                if any(len(id) != ID_SIZE or offset % ALIGNMENT for _, id, _, offset, _ in some):
                    return False
                known = [data[row * _ROW.size : row * _ROW.size + size] for row in islice(ours, len(some))]
                if len(known) < len(some):
                    return False
                unmet ^= {
                    _PLACE.pack(kind, id, numbers[pack], offset // ALIGNMENT, slot + 1)
                    for kind, id, pack, offset, slot in some
                }
                unmet ^= set(map(bytes, known))
        except (KeyError, struct.error):
            return False
        return not unmet and next(ours, None) is None

    def is_left(self, place: Place, upto: int | None = None) -> bool:
        """Whether a place has not been cut off by a line after its own; of lines up to ``upto`` where that is given."""
        cuts = self._cuts.get(place.pack, ())
        return not cuts or not any(
            place.seq < seq and place.offset >= length for seq, length in cuts if upto is None or seq <= upto
        )

    def left(self, seq: int, pack: str, entries: Sequence[IndexEntry]) -> Sequence[IndexEntry]:
        """Those of the objects that the line ``seq`` told of in a pack that have not been cut off since."""
        if pack not in self._cuts:
            return entries
        return [entry for entry in entries if self.is_left(Place(pack, entry.offset, entry.slot, seq))]

    def _left_rows(self, upto: int | None) -> Iterator[int]:
        """The row of every place that is left, one for each."""
        size, data = _ROW.size, self._data
        last = bytearray()
        newest = _SEQ.pack(_MAX_SEQ if upto is None else upto)
        for row in range(len(self)):
            place = data[row * size : row * size + _PLACE.size]
            if place == last:
                continue
            if self._cuts or data[row * size + _PLACE.size : (row + 1) * size] > newest:
                known = self._place_at(row)
                if (upto is not None and known.seq > upto) or not self.is_left(known, upto):
                    continue
            last = place
            yield row

    def _key_at(self, row: int) -> bytes:
        start = row * _ROW.size
        return bytes(self._data[start : start + _KEY])

    def _place_at(self, row: int) -> Place:
        _, _, number, offset, slot, seq = _ROW.unpack_from(self._data, row * _ROW.size)
        return Place(self._packs[number], offset * ALIGNMENT, slot - 1, seq)


def _key(key: ObjectKey) -> bytes:
    return _KINDS[key.kind] + key.id
