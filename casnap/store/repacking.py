"""What is at rest in a smaller form: objects that resemble each other in one frame, the others compressed better.

Nothing depends on it, and every object stays where readers look for it in packs: a record, or a slot of a group.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from casnap.codec.records import NO_SLOT, Encoding, RecordHeader
from casnap.model.ids import ObjectKey
from casnap.store.compaction import Compaction, Moved
from casnap.store.marks import PackMarks
from casnap.store.neighbours import Neighbours
from casnap.store.objects import ObjectReader

GROUP_SIZE = 256 << 10
"""Bytes that are put into one group: decoding it takes some 0.4 ms. Of twice as much 1 % is gained (measured)."""

MOST_MEMBERS = 1_024
"""Objects in a group: each is hashed when it is taken apart."""

LARGEST_MEMBER = GROUP_SIZE // 2
"""What is longer stands alone."""

SHORT = 4 << 10
"""What does not compress gains nothing in a group unless it is short, when its frame weighs much."""

_PLACE_BITS = 49
_PACK_BITS = 16


class Source(NamedTuple):
    """Where an object was taken from."""

    pack: str
    offset: int
    slot: int


class Repacking:
    """Takes all that is needed of some packs over, like by like. ``neighbours`` says what is alike."""

    def __init__(
        self, reader: ObjectReader, compaction: Compaction, neighbours: Neighbours, packs: Sequence[PackMarks]
    ) -> None:
        self._reader = reader
        self._compaction = compaction
        self._neighbours = neighbours
        self._packs = packs
        self._ids = {pack.id for pack in packs}
        self._group: list[tuple[Source, ObjectKey, bytes]] = []
        self._group_size = 0

    def run(self) -> Iterator[tuple[Source, Moved]]:
        """Where each object was, and where it is now.

        Raises:
            Damage: a record is bad.
            StorageFailed: the disk refused.
        """
        for number, run in itertools.groupby(self._sorted(), key=lambda packed: packed >> _PLACE_BITS + _PACK_BITS):
            versions = list(map(self._source, run))
            for some in [versions] if number else [[one] for one in versions]:
                yield from self._take(some)
        yield from self._end_group()

    def _sorted(self) -> list[int]:
        """Number, pack and place of each object that is needed, as one integer each."""
        found = []
        for at, pack in enumerate(self._packs):
            numbers = self._neighbours.of(pack.id)
            found += [
                (numbers[number] << _PACK_BITS | at) << _PLACE_BITS | pack.place(number)
                for number in range(len(pack))
                if pack.is_kept(number)
            ]
        return sorted(found)

    def _source(self, packed: int) -> Source:
        pack = self._packs[packed >> _PLACE_BITS & (1 << _PACK_BITS) - 1]
        return Source(pack.id, *pack.unpacked(packed & (1 << _PLACE_BITS) - 1))

    def _take(self, versions: Sequence[Source]) -> Iterator[tuple[Source, Moved]]:
        """Take over what stood at one path.

        So many versions that they would fill groups by themselves are smaller as differences.
        """
        headers = [self._reader.files.header(one.pack, one.offset) for one in versions]
        sizes = [self._size(one, header) for one, header in zip(versions, headers, strict=True)]
        many = sum(sizes) > LARGEST_MEMBER and any(header.encoding is Encoding.DELTA for header in headers)
        for one, header, size in zip(versions, headers, sizes, strict=True):
            if one.slot == NO_SLOT and (many or size > LARGEST_MEMBER or self._stands_alone(one, header)):
                yield one, self._compaction.rewrite(one.pack, one.offset)
            else:
                yield from self._add(one, size)

    def _size(self, source: Source, header: RecordHeader) -> int:
        if source.slot == NO_SLOT:
            return header.raw_size
        record = self._reader.files.record(source.pack, source.offset)
        return len(self._reader.open_record(source.pack, record, source.slot)[1])

    def _stands_alone(self, source: Source, header: RecordHeader) -> bool:
        """Whether a record is smallest as it is: it does not compress, or it differs little from what is at rest."""
        if header.encoding is Encoding.RAW:
            return header.raw_size > SHORT
        pack, offset = source.pack, source.offset
        while header.encoding is Encoding.DELTA:
            below = [
                (place, found)
                for place in self._reader.base_places(pack, offset, header)
                if (found := self._reader.files.header(place.pack, place.offset)).depth < header.depth
            ]
            if not below or below[0][0].pack not in self._ids:
                return True
            (pack, offset, *_), header = below[0]
        return False

    def _add(self, source: Source, size: int) -> Iterator[tuple[Source, Moved]]:
        record = self._reader.files.record(source.pack, source.offset)
        key, data = self._reader.open_record(source.pack, record, source.slot)
        full = self._group_size + size > GROUP_SIZE or len(self._group) >= MOST_MEMBERS
        if self._group and (full or self._group[-1][1].kind is not key.kind):
            yield from self._end_group()
        self._group.append((source, key, data))
        self._group_size += len(data)

    def _end_group(self) -> Iterator[tuple[Source, Moved]]:
        group, self._group, self._group_size = self._group, [], 0
        if group:
            moved = self._compaction.add_group([(key, data) for _, key, data in group])
            yield from zip((source for source, _, _ in group), moved, strict=True)
