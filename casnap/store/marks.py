"""What of each pack is needed: the records that checkpoints lead to, and those that these build on."""

from __future__ import annotations

import itertools
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from casnap.codec.records import NO_SLOT, Encoding
from casnap.errors import Damage, TooNew
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.store.objects import ObjectReader
from casnap.store.rows import PackRow, Place
from casnap.store.state import State

_KEPT, _REACHED = 1, 2
_SLOT_BITS = 17


class Arrival(NamedTuple):
    """An object that was copied: its place in a new pack, its record's size, and whether a checkpoint leads to it."""

    pack: str
    offset: int
    slot: int
    size: int
    reached: bool


class PackMarks:
    """The objects of one pack as they were when it was looked at, a few bytes each, and which are needed."""

    def __init__(self, row: PackRow) -> None:
        self.id = row.id
        self.length = row.length
        self.repacked = row.repacked
        self._places = array("Q")
        self._sizes = array("I")
        self._flags = bytearray()

    def add(self, offset: int, slot: int) -> None:
        """Take an object in; :meth:`settle` comes after the last."""
        self._places.append(_packed(offset, slot))

    def settle(self) -> None:
        """Make ready for marks."""
        self._places = array("Q", sorted(set(self._places)))
        self._sizes = array("I", bytes(self._places.itemsize // 2 * len(self._places)))
        self._flags = bytearray(len(self._places))

    def __len__(self) -> int:
        return len(self._places)

    def find(self, place: Place) -> int:
        """The number of an object here, -1 when it was not here when the pack was looked at."""
        packed = _packed(place.offset, place.slot)
        at = bisect_left(self._places, packed)
        return at if at < len(self._places) and self._places[at] == packed else -1

    def place(self, number: int) -> int:
        """Where an object lies, as an integer of 49 bits that :meth:`unpacked` takes."""
        return self._places[number]

    def unpacked(self, place: int) -> tuple[int, int]:
        """Offset and slot of a place."""
        return place >> _SLOT_BITS, (place & ((1 << _SLOT_BITS) - 1)) - 1

    def is_kept(self, number: int) -> bool:
        """Whether the object's record is needed."""
        return bool(self._flags[number] & _KEPT)

    def is_reached(self, number: int) -> bool:
        """Whether a checkpoint leads to the object."""
        return bool(self._flags[number] & _REACHED)

    def keep(self, number: int, size: int) -> None:
        """The object's record, of ``size`` bytes, is needed."""
        self._flags[number] |= _KEPT
        self._sizes[number] = size

    def set_reached(self, number: int) -> None:
        """A checkpoint leads to the object."""
        self._flags[number] |= _REACHED

    @property
    def kept(self) -> int:
        """How many objects are needed."""
        return self.kept_from(0)

    def kept_from(self, start: int) -> int:
        """How many objects are needed of those from an offset on."""
        first = bisect_left(self._places, _packed(start, NO_SLOT))
        return sum(flags & _KEPT for flags in self._flags[first:])

    def is_reached_at(self, offset: int, slot: int) -> bool:
        """Whether a checkpoint leads to the object that lies there."""
        return self.is_reached(self.find(Place(self.id, offset, slot, 0)))

    def cut(self, length: int) -> None:
        """Nothing is left from ``length`` on."""
        first = bisect_left(self._places, _packed(length, NO_SLOT))
        del self._places[first:], self._sizes[first:], self._flags[first:]
        self.length = length

    @property
    def kept_bytes(self) -> int:
        """Bytes of the records that are needed."""
        return sum(size for _, size in self.records())

    @property
    def used_bytes(self) -> int:
        """The same, but of a group of which not all is needed only that part."""
        used = 0
        for _, run in itertools.groupby(range(len(self)), key=lambda number: self._places[number] >> _SLOT_BITS):
            numbers = list(run)
            kept = [number for number in numbers if self._flags[number] & _KEPT]
            used += self._sizes[kept[0]] * len(kept) // len(numbers) if kept else 0
        return used

    def records(self, start: int = 0) -> Iterator[tuple[int, int]]:
        """Offset and size of each record that is needed, from an offset on, in order."""
        before = -1
        for number in range(bisect_left(self._places, _packed(start, NO_SLOT)), len(self._places)):
            offset = self._places[number] >> _SLOT_BITS
            if self._flags[number] & _KEPT and offset != before:
                before = offset
                yield offset, self._sizes[number]

    def slots(self, offset: int) -> list[int]:
        """The slots that are needed of the group that lies there; ``NO_SLOT`` for a record of one object."""
        found = []
        for number in range(bisect_left(self._places, _packed(offset, NO_SLOT)), len(self._places)):
            if self._places[number] >> _SLOT_BITS != offset:
                break
            if self._flags[number] & _KEPT:
                found.append(self.unpacked(self._places[number])[1])
        return found


class Marks:
    """The packs of a store, and what of them is needed.

    Objects that were committed after this was made are not in it: their packs are none of what may go.
    """

    def __init__(self, state: State, reader: ObjectReader) -> None:
        self._state = state
        self._reader = reader
        self._late: set[ObjectKey] = set()
        rows = state.packs()
        self.packs = state.fold_places(lambda places: _packs(rows, places))

    def mark(self, keys: Collection[ObjectKey]) -> Iterable[ObjectKey]:
        """Note that checkpoints lead to ``keys``; those of them that none led to so far.

        Raises:
            Damage: one is not there, or what it builds on is not.
        """
        places = self._state.places(keys)
        for key in keys:
            found = places.get(key)
            if not found:
                raise Damage(f"cannot read {key}: the store does not have it", details={"object": str(key)})
            if self._is_new(key, found):
                yield key

    def adopt(self, arrivals: Sequence[Arrival], lengths: Mapping[str, int]) -> None:
        """Take packs in, of these lengths, that are made of copies: these are marked as what they are copies of."""
        for pack, arrived in itertools.groupby(sorted(arrivals), key=lambda arrival: arrival.pack):
            records = list(arrived)
            marks = self.packs[pack] = PackMarks(PackRow(pack, lengths[pack], len(records)))
            for record in records:
                marks.add(record.offset, record.slot)
            marks.settle()
            for number, record in enumerate(records):  # these are sorted as places are
                marks.keep(number, record.size)
                if record.reached:
                    marks.set_reached(number)

    def _is_new(self, key: ObjectKey, found: Sequence[Place]) -> bool:
        if key in self._late:
            return False
        known = [(place, self.at(place)) for place in found]
        if any(at and at[0].is_reached(at[1]) for _, at in known):
            return False
        place = self._chosen(key, found)
        self._keep(key, place)
        if (at := self.at(place)) is not None:
            at[0].set_reached(at[1])
        else:
            self._late.add(key)
        return True

    def _chosen(self, key: ObjectKey, found: Sequence[Place]) -> Place:
        """The place that readers will find the object at from now on."""
        if len(found) == 1:
            return found[0]
        sound = next((place for place in found if self._reader.is_sound(key, place)), None)
        if sound is None:
            raise Damage(f"cannot read {key}: no copy of it is whole", details={"object": str(key)})
        return sound

    def _keep(self, key: ObjectKey, place: Place) -> None:
        """Keep a record, and every record that it builds on."""
        at = self.at(place)
        if at is not None and at[0].is_kept(at[1]):
            return
        try:
            header = self._reader.files.header(place.pack, place.offset)
        except (Damage, TooNew) as error:
            message = f"cannot read {key}: {error.message}"
            raise type(error)(message, hint=error.hint, details={"object": str(key)}) from error
        if at is not None:
            at[0].keep(at[1], header.size)
        if header.encoding is not Encoding.DELTA:
            return
        if header.base_distance:
            self._keep(key, Place(place.pack, place.offset - header.base_distance, header.base_slot, place.seq))
            return
        base = ObjectKey(ObjectKind(header.kind), header.base_id)
        below = [one for one in self._state.places([base]).get(base, []) if self._depth(one) < header.depth]
        if not below:
            raise Damage(f"cannot read {key}: its base {base} is gone", details={"object": str(key)})
        self._keep(base, self._chosen(base, below))

    def _depth(self, place: Place) -> int:
        try:
            return self._reader.files.header(place.pack, place.offset).depth
        except (Damage, TooNew):
            return 1 << 8  # deeper than any: nothing can build on it

    def at(self, place: Place) -> tuple[PackMarks, int] | None:
        """The pack of a place, and the object's number there; None for what was not there when this was made."""
        marks = self.packs.get(place.pack)
        number = -1 if marks is None else marks.find(place)
        return None if marks is None or number < 0 else (marks, number)


def _packs(rows: Iterable[PackRow], places: Iterable[tuple[str, int, int]]) -> dict[str, PackMarks]:
    packs = {row.id: PackMarks(row) for row in rows}
    for pack, offset, slot in places:
        if pack in packs:
            packs[pack].add(offset, slot)
    for marks in packs.values():
        marks.settle()
    return packs


def _packed(offset: int, slot: int) -> int:
    """A place in a pack as one number that sorts as places do."""
    return offset << _SLOT_BITS | slot + 1
