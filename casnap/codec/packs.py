"""Pack files: their header, and the records that are no objects (docs/format/pack.md)."""

from __future__ import annotations

import itertools
import operator
import struct
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from casnap.codec.compression import compress
from casnap.codec.hashing import CHECKSUM_SIZE, checksum
from casnap.codec.records import (
    ALIGNMENT,
    HEADER_SIZE,
    MAX_GROUP,
    NO_SLOT,
    Encoding,
    RecordKind,
    check_payload,
    encode_record,
    parse_header,
)
from casnap.errors import Damage, TooNew
from casnap.model.ids import ID_SIZE, STORE_ID_SIZE, ObjectKind

PACK_MAGIC = b"\xc5casnap\n"
PACK_VERSION = 1
PACK_HEADER_SIZE = 64
PACK_ID_SIZE = 16

SESSION_SIZE = 32
"""Random bytes in a session record."""

TRAILER_SIZE = HEADER_SIZE + 8 + CHECKSUM_SIZE
"""Length of the last record of a sealed pack, so that it is found from the end."""

MAX_ENTRIES = 100_000
"""Most entries in an index, and so most objects in a pack: its index stays within one record."""

MAX_PACK_SIZE = 1 << 32
"""No record begins at or beyond this; packs are sealed long before."""

_HEADER = struct.Struct("<8sII16s16s8x")
_COUNT = struct.Struct("<I")
_OFFSET = struct.Struct("<Q")


class PackHeader(Struct, frozen=True):
    """Whose pack it is: ids are ``PACK_ID_SIZE`` and ``STORE_ID_SIZE`` bytes."""

    pack_id: bytes
    store_id: bytes


class IndexEntry(NamedTuple):
    """Where an object is: its record's first byte in the pack, and its slot when the record is a group."""

    kind: ObjectKind
    id: bytes
    offset: int
    slot: int = NO_SLOT


def encode_pack_header(pack_id: bytes, store_id: bytes) -> bytes:
    """The first 64 bytes of a pack."""
    if len(pack_id) != PACK_ID_SIZE or len(store_id) != STORE_ID_SIZE:
        raise ValueError("cannot write pack header: an id has the wrong length")
    fixed = _HEADER.pack(PACK_MAGIC, PACK_VERSION, 0, pack_id, store_id)
    return fixed + checksum(fixed)


def parse_pack_header(data: bytes) -> PackHeader:
    """Read the beginning of a pack.

    Raises:
        Damage: it is no pack header, or not a whole one.
        TooNew: it is of a later version, or has flags that this version does not know.
    """
    if len(data) < PACK_HEADER_SIZE or data[: len(PACK_MAGIC)] != PACK_MAGIC:
        raise Damage("cannot read pack header: it does not begin like one")
    if checksum(data[: _HEADER.size]) != data[_HEADER.size : PACK_HEADER_SIZE]:
        raise Damage("cannot read pack header: its checksum is wrong")
    _, version, flags, pack_id, store_id = _HEADER.unpack_from(data)
    if version != PACK_VERSION or flags:
        raise TooNew(
            f"cannot read pack: version {version} with flags {flags:#x} is of a newer format",
            hint="use a newer casnap",
        )
    if encode_pack_header(pack_id, store_id) != data[:PACK_HEADER_SIZE]:
        raise Damage("cannot read pack header: its reserved bytes are not zero")
    return PackHeader(pack_id, store_id)


def encode_index(entries: Sequence[IndexEntry]) -> bytes:
    """The raw bytes of an index: sorted by place, one column after the other.

    Raises:
        ValueError: two entries have one place, or one breaks a limit.
    """
    ordered = sorted(entries, key=_place)
    kinds, ids, offsets, slots = zip(*ordered, strict=True) if ordered else ((), (), (), ())
    if fault := _index_fault(kinds, offsets, slots):
        raise ValueError(f"cannot write index: {fault}")
    if any(len(id) != ID_SIZE for id in ids):
        raise ValueError("cannot write index: an id has the wrong length")
    steps = (after - before for before, after in itertools.pairwise((0, *offsets)))
    count = len(ordered)
    return b"".join(
        (
            _COUNT.pack(count),
            bytes(kinds),
            struct.pack(f"<{count}H", *(slot + 1 for slot in slots)),
            struct.pack(f"<{count}I", *(step // ALIGNMENT for step in steps)),
            *ids,
        )
    )


def decode_index(payload: bytes) -> tuple[IndexEntry, ...]:
    """The entries of an index from its raw bytes, sorted by place.

    Raises:
        Damage: the bytes are not what :func:`encode_index` makes of any entries.
    """
    count = _COUNT.unpack_from(payload)[0] if len(payload) >= _COUNT.size else -1
    if count > MAX_ENTRIES or len(payload) != _COUNT.size + count * (1 + 2 + 4 + ID_SIZE):
        raise Damage("cannot read index: its length does not fit its count")
    columns = struct.unpack_from(f"<{count}B{count}H{count}I", payload, _COUNT.size)
    numbers, biased, steps = columns[:count], columns[count : 2 * count], columns[2 * count :]
    offsets = tuple(step * ALIGNMENT for step in itertools.accumulate(steps))
    slots = tuple(slot - 1 for slot in biased)
    if fault := _index_fault(numbers, offsets, slots):
        raise Damage(f"cannot read index: {fault}")
    first = len(payload) - count * ID_SIZE
    ids = (payload[start : start + ID_SIZE] for start in range(first, len(payload), ID_SIZE))
    return tuple(map(IndexEntry._make, zip(map(_KINDS.__getitem__, numbers), ids, offsets, slots, strict=True)))


def encode_index_record(entries: Sequence[IndexEntry], level: int) -> bytes:
    """The whole record that ends a commit: ids and places of what it wrote to this pack."""
    return _compressed(RecordKind.INDEX, encode_index(entries), level)


def encode_seal(entries: Sequence[IndexEntry], level: int) -> bytes:
    """The whole record with the index of the whole pack; only the trailer follows it."""
    return _compressed(RecordKind.SEAL, encode_index(entries), level)


def encode_session(random: bytes) -> bytes:
    """The whole record that begins an append session; ``random`` is 32 bytes nobody can foresee."""
    if len(random) != SESSION_SIZE:
        raise ValueError("cannot write session: it takes 32 random bytes")
    return encode_record(RecordKind.SESSION, b"", Encoding.RAW, random, SESSION_SIZE)


def encode_trailer(seal_offset: int) -> bytes:
    """The last ``TRAILER_SIZE`` bytes of a sealed pack: where its seal record begins."""
    payload = _OFFSET.pack(seal_offset)
    return encode_record(RecordKind.TRAILER, b"", Encoding.RAW, payload, len(payload))


def parse_trailer(data: bytes) -> int:
    """The offset of the seal record, from the last ``TRAILER_SIZE`` bytes of a pack.

    Raises:
        Damage: they are no trailer; the pack is not sealed.
    """
    header = parse_header(data)
    if header.kind is not RecordKind.TRAILER or header.size != TRAILER_SIZE or len(data) != TRAILER_SIZE:
        raise Damage("cannot read trailer: the pack does not end with one")
    offset: int = _OFFSET.unpack(check_payload(header, data))[0]
    if offset < PACK_HEADER_SIZE or offset % ALIGNMENT:
        raise Damage(f"cannot read trailer: no record can begin at {offset}")
    return offset


_KINDS = {int(kind): kind for kind in ObjectKind}
_place = operator.attrgetter("offset", "slot")


def _compressed(kind: RecordKind, raw: bytes, level: int) -> bytes:
    encoding, payload = compress(raw, level)
    return encode_record(kind, b"", encoding, payload, len(raw))


def _index_fault(kinds: Sequence[int], offsets: Sequence[int], slots: Sequence[int]) -> str | None:
    """What is wrong with the columns of an index, as readers and writers both see it."""
    if not kinds:
        return None
    if len(kinds) > MAX_ENTRIES:
        return f"{len(kinds)} entries are more than the {MAX_ENTRIES} that are allowed"
    if not set(kinds) <= _KINDS.keys():
        return "an entry is of no kind of object"
    if offsets[0] < PACK_HEADER_SIZE or any(offset % ALIGNMENT for offset in offsets):
        return "no record can begin at an entry's offset"
    if offsets[-1] >= MAX_PACK_SIZE or min(slots) < NO_SLOT or max(slots) >= MAX_GROUP:
        return "an offset or slot is out of range"
    places = list(zip(offsets, slots, strict=True))
    if not all(map(operator.lt, places, places[1:])):
        return "two entries have one place, or they are not sorted by place"
    return None
