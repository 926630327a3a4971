"""Which object a new one is written as a difference to, and how far such chains go (docs/format/record.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from casnap.codec.compression import compress_delta
from casnap.codec.records import MAX_DEPTH, MAX_STANDING, NO_SLOT, Encoding, RecordKind, encode_record
from casnap.errors import Damage, TooNew
from casnap.model.ids import ObjectKey
from casnap.store.objects import ObjectReader
from casnap.store.rows import Place

WORTH = 4
"""A difference is kept when it takes at most this part of what the object takes by itself."""

SMALL, WORTH_SMALL = 4 << 10, 2
"""Of short objects half will do: decoding one costs next to nothing, and most of what a step writes is short."""

MOST_BYTES = 1 << 20
"""Beyond that nothing is gained (measured)."""

LEAST_BYTES = 128
"""Below that the header weighs more than what is saved."""

SHORT = 20 << 10
"""Up to that zstd's fastest level gives the smallest differences (measured)."""

FindPlace = Callable[[ObjectKey], Place | None]


class Difference(Struct, frozen=True):
    """A payload, what it builds on, how many differences must be undone to read it, and its number on its root."""

    payload: bytes
    base: ObjectKey
    place: Place
    depth: int
    standing: int

    def record(self, key: ObjectKey, size: int, pack: str, offset: int) -> bytes:
        """The record of an object of ``size`` bytes, to be written at ``offset`` of a pack.

        A base in the same pack is named by how far back it lies: shorter, and it goes where its deltas go.
        """
        near = self.place.pack == pack
        return encode_record(
            RecordKind(key.kind),
            key.id,
            Encoding.DELTA,
            self.payload,
            size,
            base_distance=offset - self.place.offset if near else 0,
            base_slot=self.place.slot if near else NO_SLOT,
            base_id=b"" if near else self.base.id,
            depth=self.depth,
            standing=self.standing,
        )


class Differences:
    """Writes objects as differences to what they replace. ``find`` says where an object lies that can be read now."""

    def __init__(self, reader: ObjectReader, find: FindPlace) -> None:
        self.bases: set[ObjectKey] = set()
        self._reader = reader
        self._find = find
        self._standing: Counter[ObjectKey] = Counter()

    def encode(self, data: bytes, base: ObjectKey, plain: int) -> Difference | None:
        """``data`` as a difference to ``base``; None where it is not worth it, ``plain`` being its bytes by itself."""
        if not LEAST_BYTES <= len(data) <= MOST_BYTES or plain < LEAST_BYTES:
            return None
        place = self._find(base)
        if place is None:
            return None
        try:
            chosen = self._chosen(base, place)
        except (Damage, TooNew):  # it is written in full, and nothing depends on what is bad
            return None
        if chosen is None:
            return None
        raw, found = chosen
        payload = compress_delta(data, raw, 1 if len(data) <= SHORT else 3)
        if len(payload) * (WORTH_SMALL if len(data) <= SMALL else WORTH) > plain:
            return None
        self.bases.add(found.base)
        return replace(found, payload=payload)

    def _chosen(self, key: ObjectKey, place: Place) -> tuple[bytes, Difference] | None:
        """The bytes to build on, and what they are: the object itself, or at the end of its chain the full one."""
        reader = self._reader
        record = reader.files.record(place.pack, place.offset)
        header = record.header
        standing = header.standing + 1
        if header.depth < MAX_DEPTH:
            found, raw = reader.open_record(place.pack, record, place.slot)
            if found != key or not raw:
                return None
            new = Difference(b"", key, place, header.depth + 1, standing)
        else:
            while record.header.depth:
                base = reader.base_of(place.pack, record)
                key, place, raw = base.key, base.place, base.raw
                record = reader.files.record(place.pack, place.offset)
            new = Difference(b"", key, place, 1, standing)
        return None if self._is_crowded(new) or len(raw) > MOST_BYTES or not raw else (raw, new)

    def _is_crowded(self, new: Difference) -> bool:
        """Whether too much stands on one full object already: that it is damaged must not cost much."""
        if new.depth == 1:
            self._standing[new.base] += 1
        return max(new.standing, self._standing[new.base]) > MAX_STANDING
