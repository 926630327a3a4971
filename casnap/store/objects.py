"""From a place to an object: deltas undone, groups taken apart, everything checked against its name."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from casnap.codec.records import (
    MAX_DEPTH,
    NO_SLOT,
    Encoding,
    RecordHeader,
    RecordKind,
    decode_payload,
    identify,
)
from casnap.errors import Damage, TooNew
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.store.groups import GroupCache, Objects
from casnap.store.packs import PackFiles, Record
from casnap.store.rows import Place

if TYPE_CHECKING:
    from casnap.codec.packs import IndexEntry
    from casnap.model.operation import PackRange

FindPlaces = Callable[[ObjectKey], Sequence[Place]]
"""Where an object lies, newest first."""

DecodeIndex = Callable[[Record], "tuple[IndexEntry, ...]"]
"""From an index record or seal to its entries, or Damage."""


Run = Sequence[tuple[Place, ObjectKey]]
"""Objects that lie near each other in one pack, in their order."""

_NEAR = 64 << 10
"""Objects that begin within so many bytes of each other are read together."""

_RUN_BYTES = 4 << 20
_LAST_READ = 16 << 10


class Base(Struct, frozen=True):
    """What a delta builds on: where it lies, its name, its bytes."""

    place: Place
    key: ObjectKey
    raw: bytes


class _Recent:
    """What was decoded lately: a chain of differences is undone once for all that build on the same.

    The bytes of a record are compared, since another may stand at its place after a gc.
    """

    MOST = 8 << 20
    """Bytes that are kept, and how many of them one object may take."""
    LARGEST = 256 << 10

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int], tuple[bytes, ObjectKey, bytes]] = {}
        self._size = 0

    def find(self, pack: str, record: Record) -> tuple[ObjectKey, bytes] | None:
        """The object that the record was found to hold."""
        kept = self._kept.get((pack, record.offset))
        return None if kept is None or kept[0] != record.payload else kept[1:]

    def keep(self, pack: str, record: Record, key: ObjectKey, raw: bytes) -> None:
        """Remember it."""
        if len(raw) > self.LARGEST:
            return
        if self._size + len(raw) > self.MOST:
            self._kept.clear()
            self._size = 0
        self._kept[pack, record.offset] = (record.payload, key, raw)
        self._size += len(raw)


class LongestIndex:
    """Decodes index records and keeps what the longest has: who looks through a store needs each several times."""

    def __init__(self) -> None:
        self._kept: tuple[Record, tuple[IndexEntry, ...]] | None = None

    def __call__(self, record: Record) -> tuple[IndexEntry, ...]:
        """What :func:`decode_indexed` makes of it.

        Raises:
            Damage: it is neither an index record nor a seal.
        """
        kept = self._kept
        if kept is not None and (kept[0].payload, kept[0].header) == (record.payload, record.header):
            return kept[1]
        entries = decode_indexed(record)
        if kept is None or len(kept[0].payload) < len(record.payload):
            self._kept = (record, entries)
        return entries


class ObjectReader:
    """Reads objects out of packs."""

    def __init__(self, files: PackFiles, find_places: FindPlaces, decode_index_of: DecodeIndex | None = None) -> None:
        """``decode_index_of`` is :func:`decode_indexed`, or what remembers what that made of a record."""
        self.decode_index_of = decode_index_of or decode_indexed
        self.files = files
        self._find_places = find_places
        self._recent = _Recent()
        self._groups = GroupCache(files)

    def load(self, key: ObjectKey, place: Place) -> bytes:
        """The object's bytes from this very place.

        Raises:
            Damage: it is not there, or does not match its name.
            TooNew: its record is of a newer format.
        """
        group = None if place.slot == NO_SLOT else self._groups.at(place.pack, place.offset)
        if group is not None and place.slot < len(group):
            found, data = group[place.slot]
        else:
            record = self.files.record(place.pack, place.offset)
            found, data = self._at(place.pack, record, place.slot, recent=self._recent)
        if found != key:
            raise Damage(f"cannot read {key}: another object lies at its place")
        return data

    def load_any(self, key: ObjectKey, places: Sequence[Place]) -> bytes:
        """The object's bytes from the first of these places where they are good.

        Raises:
            Damage: none is good.
            TooNew: none is good, and one is of a newer format.
        """
        cause: Damage | TooNew | None = None
        for place in places:
            try:
                return self.load(key, place)
            except (Damage, TooNew) as error:
                if not isinstance(cause, TooNew):
                    cause = error
        cause = cause or Damage(f"cannot read {key}: the store does not have it")
        told = cause.message if str(key) in cause.message else f"cannot read {key}: {cause.message}"
        raise type(cause)(told, hint=cause.hint, details={**cause.details, "object": str(key)}) from cause

    def load_many(self, places: Mapping[ObjectKey, Sequence[Place]]) -> dict[ObjectKey, bytes]:
        """Those objects that are good at the first of their places, read in the order in which they lie."""
        from casnap.codec.full_records import decode_full  # here, since only restores and checks read so much

        loaded: dict[ObjectKey, bytes] = {}
        for run in _runs(sorted((found[0], key) for key, found in places.items())):
            stored, start = self._stored(run), run[0][0].offset
            for place, key in run:
                data = decode_full(stored, place.offset - start, key) if stored and place.slot == NO_SLOT else None
                if data is None:
                    with contextlib.suppress(Damage, TooNew):
                        data = self.load(key, place)
                if data is not None:
                    loaded[key] = data
        return loaded

    def _stored(self, run: Run) -> bytes:
        """The bytes of a pack in which these objects lie, the end of the last one perhaps cut off."""
        first, last = run[0][0], run[-1][0]
        if last.offset == first.offset:  # one object, or one group
            return b""
        with contextlib.suppress(Damage):
            return self.files.read(first.pack, first.offset, last.offset - first.offset + _LAST_READ)
        return b""

    def is_sound(self, key: ObjectKey, place: Place) -> bool:
        """Whether the checksums of the object's record there, and of all that it builds on, are right."""
        return self._is_sound(key.kind, key.id, place, MAX_DEPTH + 1)

    def stands(self, key: ObjectKey, places: Sequence[Place]) -> bool:
        """Whether one of these places has the object's record, and all that it builds on is there too.

        Headers alone are looked at. A gc leaves what nobody needs in packs that are mostly needed, also where the base
        of such an object was in one that is gone.
        """
        return any(self._stands(key.kind, place, MAX_DEPTH + 1) for place in places)

    def _stands(self, kind: int, place: Place, below: int) -> bool:
        try:
            header = self.files.header(place.pack, place.offset)
        except (Damage, TooNew):
            return False
        if place.slot != NO_SLOT:
            return header.kind is RecordKind.GROUP
        if int(header.kind) != kind or header.depth >= below:
            return False
        if header.encoding is not Encoding.DELTA:
            return True
        bases = self.base_places(place.pack, place.offset, header)
        return any(self._stands(kind, base, header.depth) for base in bases)

    def _is_sound(self, kind: ObjectKind, id: bytes, place: Place, below: int) -> bool:
        try:
            record = self.files.record(place.pack, place.offset)
        except (Damage, TooNew):
            return False
        header = record.header
        if place.slot != NO_SLOT:
            return header.kind is RecordKind.GROUP
        if int(header.kind) != kind or not id.startswith(header.id_prefix[: len(id)]) or header.depth >= below:
            return False
        if header.encoding is not Encoding.DELTA:
            return True
        bases = self.base_places(place.pack, record.offset, record.header)
        return any(self._is_sound(kind, header.base_id, base, header.depth) for base in bases)  # one good one will do

    def entries(self, pack: str, record: Record) -> list[IndexEntry]:
        """The objects in a record that was found by walking through a pack, named by what they decode to.

        Raises:
            Damage: they cannot be decoded, or match no name.
        """
        from casnap.codec.packs import IndexEntry  # here and below, since the catalog knows most objects

        header = record.header
        if header.kind is RecordKind.GROUP:
            objects = self._groups.take_apart(pack, record)
            return [IndexEntry(key.kind, key.id, record.offset, slot) for slot, (key, _) in enumerate(objects)]
        if not header.kind.is_object:
            return []
        key, _ = self._at(pack, record, NO_SLOT)
        return [IndexEntry(key.kind, key.id, record.offset)]

    def committed(self, written: PackRange) -> tuple[IndexEntry, ...]:
        """What a commit wrote to a pack: from its index record, or from every record when that is damaged.

        Raises:
            Damage: the pack is gone, or its disk cannot read it: what is in it cannot be known.
            TooNew: a record is of a newer format.
        """
        try:
            record = self.files.record(written.pack, written.index)
            entries = self.decode_index_of(record) if self._ends(record, written) else None
            if entries == () or (entries and written.start <= entries[0].offset and entries[-1].offset < written.index):
                return entries  # sorted
        except Damage:
            pass
        return tuple(self._scanned(written))

    def _ends(self, index: Record, written: PackRange) -> bool:
        """Whether an index record is the one that a commit wrote at the end of its range, a seal and a trailer aside.

        A pack may have been cut in the middle of the range since. Whoever was killed before the file was cut has left
        the rest, and who went on with that has written a shorter index of it, perhaps at the same place.
        """
        from casnap.codec.packs import TRAILER_SIZE

        end = index.end
        if end != written.end and index.header.kind is not RecordKind.SEAL:
            seal = self.files.header(written.pack, end)
            end += seal.size if seal.kind is RecordKind.SEAL else 0
        return written.end in (index.end, end + TRAILER_SIZE)

    def _scanned(self, written: PackRange) -> Iterator[IndexEntry]:
        for record in self.files.surviving(written.pack, written.start, written.end):
            try:
                yield from self.entries(written.pack, record)
            except Damage:
                continue

    def open_group(self, pack: str, record: Record) -> Objects:
        """The objects of a group, by slot.

        Raises:
            Damage: it cannot be decoded.
        """
        return self._groups.take_apart(pack, record)

    def open_record(self, pack: str, record: Record, slot: int) -> tuple[ObjectKey, bytes]:
        """The object in a record, or in that slot of a group: its name, computed from its bytes, and these.

        Raises:
            Damage: it cannot be decoded, or does not match the name that its record has.
            TooNew: a record that it builds on is of a newer format.
        """
        return self._at(pack, record, slot)

    def _at(self, pack: str, record: Record, slot: int, *, recent: _Recent | None = None) -> tuple[ObjectKey, bytes]:
        """``recent`` serves who wants the bytes; who asks whether a record can be decoded has it done anew."""
        header = record.header
        if header.kind is RecordKind.GROUP:
            objects = self._groups.take_apart(pack, record)
            if not 0 <= slot < len(objects):
                raise Damage(f"cannot read pack {pack}: the group at {record.offset} has no slot {slot}")
            return objects[slot]
        if not header.kind.is_object or slot != NO_SLOT:
            raise Damage(f"cannot read pack {pack}: no object lies at {record.offset}")
        if recent is not None and (known := recent.find(pack, record)) is not None:
            return known
        raw = decode_payload(header, record.payload, self._base(pack, record, recent))
        key = identify(header, raw)
        if recent is not None:
            recent.keep(pack, record, key, raw)
        return key, raw

    def _base(self, pack: str, record: Record, recent: _Recent | None) -> bytes | None:
        """The decoded and checked base of a delta; None for what is no delta."""
        return self._base_of(pack, record, recent).raw if record.header.encoding is Encoding.DELTA else None

    def base_of(self, pack: str, record: Record) -> Base:
        """The decoded and checked base of a delta.

        Raises:
            Damage: it is gone or bad.
            TooNew: it is of a newer format.
        """
        return self._base_of(pack, record, None)

    def _base_of(self, pack: str, record: Record, recent: _Recent | None) -> Base:
        header = record.header
        cause: Damage | TooNew = Damage(f"cannot read pack {pack}: the delta at {record.offset} has no base")
        for place in self.base_places(pack, record.offset, record.header):
            try:
                base = self.files.record(place.pack, place.offset)
                if base.header.depth >= header.depth:
                    raise Damage(f"cannot read pack {pack}: the delta at {record.offset} has a base as deep as itself")
                key, raw = self._at(place.pack, base, place.slot, recent=recent)
            except (Damage, TooNew) as error:
                cause = error
                continue
            if key.kind == int(header.kind) and header.base_id in (b"", key.id):
                return Base(place, key, raw)
        raise cause

    def base_places(self, pack: str, offset: int, header: RecordHeader) -> Sequence[Place]:
        """Where the base of a delta may lie, by its header; newest first."""
        if header.base_distance:
            offset -= header.base_distance
            return (Place(pack, offset, header.base_slot, 0),) if offset > 0 else ()
        return self._find_places(ObjectKey(ObjectKind(header.kind), header.base_id))


def _runs(ordered: Run) -> Iterator[Run]:
    begin = 0
    for end in range(1, len(ordered) + 1):
        if end < len(ordered):
            first, before, place = ordered[begin][0], ordered[end - 1][0], ordered[end][0]
            near = place.offset - before.offset <= _NEAR and place.offset - first.offset <= _RUN_BYTES
            if near and place.pack == before.pack:
                continue
        yield ordered[begin:end]
        begin = end


def decode_indexed(record: Record) -> tuple[IndexEntry, ...]:
    """The entries of an index record or seal.

    Raises:
        Damage: it is neither.
    """
    if record.header.kind not in (RecordKind.INDEX, RecordKind.SEAL):
        raise Damage(f"cannot read index: the record at {record.offset} is none")
    from casnap.codec.packs import decode_index

    return decode_index(decode_payload(record.header, record.payload, None))
