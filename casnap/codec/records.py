"""Records: what a pack is made of (docs/format/record.md)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum

from msgspec import Struct

from casnap.codec.compression import MAX_RAW, Encoding, compress_frame, decompress, decompress_delta
from casnap.codec.hashing import CHECKSUM_SIZE, checksum, object_id
from casnap.errors import Damage, TooNew
from casnap.model.ids import ID_SIZE, ObjectKey, ObjectKind

__all__ = [
    "ALIGNMENT",
    "FIXED",
    "HEADER_SIZE",
    "MAGIC",
    "MAX_DEPTH",
    "MAX_DISTANCE",
    "MAX_GROUP",
    "MAX_GROUP_RAW",
    "MAX_HEADER_SIZE",
    "MAX_RAW",
    "MAX_STANDING",
    "NO_SLOT",
    "OBJECT_KINDS",
    "PREFIX_SIZE",
    "Encoding",
    "RecordHeader",
    "RecordKind",
    "aligned",
    "check_payload",
    "decode_payload",
    "encode_full",
    "encode_group",
    "encode_record",
    "identify",
    "parse_header",
    "split_group",
]

MAGIC = b"\xc5rec"
HEADER_SIZE = 40
MAX_HEADER_SIZE = HEADER_SIZE + ID_SIZE
"""Bytes that are enough to parse any header."""

ALIGNMENT = 8
MAX_DEPTH = 4
"""Most deltas that may have to be undone to get at an object."""

MAX_STANDING = 63
"""Most objects that are written as differences to one full object, directly or not."""

MAX_GROUP = 0xFFFF
"""Most objects in a group: a slot and one more fit in 16 bits."""

MAX_GROUP_RAW = 1 << 20
"""Most bytes that a group may have, decoded: all of it is decoded to get at any of its objects."""

MAX_PAYLOAD = MAX_RAW + (64 << 10)
"""A group is always compressed, also where zstd makes it a little longer."""

PREFIX_SIZE = 8

NO_SLOT = -1
"""The slot of what is no object of a group."""

MAX_DISTANCE = 0xFFFF_FFFF

FIXED = struct.Struct("<4sBBBBII8sIHH")
"""A header without its base id and its checksum."""

_GROUP_HEAD = struct.Struct("<I")
_GROUP_ROW = struct.Struct("<BI")

_NO_BASE, _BASE_DISTANCE, _BASE_ID = 0, 1, 2
_FORM_BITS = 2
"""The rest of that byte says which of the objects that stand on its full one a delta is."""


class RecordKind(IntEnum):
    """What a record holds; up to CHECKPOINT the numbers are those of ObjectKind."""

    CHUNK = 1
    CHUNK_LIST = 2
    TREE = 3
    CHECKPOINT = 4
    GROUP = 5
    INDEX = 6
    SESSION = 7
    SEAL = 8
    TRAILER = 9

    @property
    def is_object(self) -> bool:
        """Whether the record is one object, named by its id."""
        return self <= RecordKind.CHECKPOINT


class RecordHeader(Struct, frozen=True):
    """What the header of a record says, already checked.

    ``id_prefix`` is zero for what is no object. A delta has its base ``base_distance`` bytes before its own
    first byte in the same pack (a record, or ``base_slot`` of a group), or (0) anywhere under ``base_id``; it is
    number ``standing`` (from 1; 0 where that was not counted) of the objects that stand on the full one at the end of
    its chain.
    """

    kind: RecordKind
    encoding: Encoding
    depth: int
    payload_size: int
    raw_size: int
    id_prefix: bytes
    base_distance: int
    base_id: bytes
    standing: int = 0
    base_slot: int = NO_SLOT

    @property
    def payload_offset(self) -> int:
        """Where the payload begins, in bytes from the record's first."""
        return HEADER_SIZE + len(self.base_id)

    @property
    def size(self) -> int:
        """Length of the whole record in bytes, padding included."""
        return aligned(self.payload_offset + self.payload_size + CHECKSUM_SIZE)


def encode_record(
    kind: RecordKind | ObjectKind,
    id: bytes,
    encoding: Encoding,
    payload: bytes,
    raw_size: int,
    *,
    base_distance: int = 0,
    base_slot: int = NO_SLOT,
    base_id: bytes = b"",
    depth: int = 0,
    standing: int = 0,
) -> bytes:
    """A whole record. ``id`` is empty for kinds that are no objects.

    Raises:
        ValueError: the record would break a rule that readers check.
    """
    kind = RecordKind(kind)
    header = RecordHeader(
        kind=kind,
        encoding=encoding,
        depth=depth,
        payload_size=len(payload),
        raw_size=raw_size,
        id_prefix=id[:PREFIX_SIZE] if id else bytes(PREFIX_SIZE),
        base_distance=base_distance,
        base_id=base_id,
        standing=standing,
        base_slot=base_slot,
    )
    if fault := _fault(header) or _id_fault(kind, id, base_id):
        raise ValueError(f"cannot write record: {fault}")
    form = _base_form(header) | standing << _FORM_BITS
    where = (base_distance, base_slot + 1, 0)
    fixed = FIXED.pack(MAGIC, kind, encoding, depth, form, len(payload), raw_size, header.id_prefix, *where)
    end = header.payload_offset + len(payload) + CHECKSUM_SIZE
    padding = bytes(header.size - end)
    return b"".join((fixed, checksum(fixed, base_id), base_id, payload, checksum(payload), padding))


def encode_full(kind: ObjectKind, id: bytes, encoding: Encoding, payload: bytes, raw_size: int) -> bytes:
    """What :func:`encode_record` makes of an object that builds on none: nearly all that is written, so at once.

    Raises:
        ValueError: the record would break a rule that readers check.
    """
    size = len(payload)
    fits = size == raw_size if encoding is Encoding.RAW else encoding is Encoding.ZSTD and 0 < size < raw_size
    if not fits or raw_size > MAX_RAW or len(id) != ID_SIZE:
        raise ValueError(f"cannot write record: {size} bytes for {raw_size}, or an id of {len(id)}, do not fit")
    fixed = FIXED.pack(MAGIC, kind, encoding, 0, 0, size, raw_size, id[:PREFIX_SIZE], 0, 0, 0)
    padding = bytes(-(HEADER_SIZE + size + CHECKSUM_SIZE) % ALIGNMENT)
    return b"".join((fixed, checksum(fixed), payload, checksum(payload), padding))


def parse_header(data: bytes | memoryview) -> RecordHeader:
    """The header at the beginning of ``data``: ``MAX_HEADER_SIZE`` bytes, or what is left of the pack.

    Raises:
        Damage: there is no valid header.
        TooNew: the header is whole, but of a kind, encoding or base form that this version does not know.
    """
    if len(data) < HEADER_SIZE:
        raise Damage("cannot read record header: it is cut short")
    magic, kind, encoding, depth, form, payload_size, raw_size, prefix, *where = FIXED.unpack_from(data)
    if magic != MAGIC:
        raise Damage("cannot read record header: it does not begin like one")
    standing, form = form >> _FORM_BITS, form & (1 << _FORM_BITS) - 1
    # Any form, also a later one, says by this bit whether an id follows: so its checksum can be checked.
    base_id = bytes(data[HEADER_SIZE:MAX_HEADER_SIZE]) if form & _BASE_ID else b""
    if checksum(data[: FIXED.size], base_id) != data[FIXED.size : HEADER_SIZE]:
        raise Damage("cannot read record header: its checksum is wrong")
    if kind not in _KINDS or encoding not in _ENCODINGS or form not in (_NO_BASE, _BASE_DISTANCE, _BASE_ID):
        raise TooNew(
            f"cannot read record: kind {kind}, encoding {encoding}, base form {form} is of a newer format",
            hint="use a newer casnap",
        )
    distance, slot, rest = where
    header = RecordHeader(
        _KINDS[kind], _ENCODINGS[encoding], depth, payload_size, raw_size, prefix, distance, base_id, standing, slot - 1
    )
    if fault := _fault(header) or _form_fault(form, header) or (rest and "its reserved bytes are not zero"):
        raise Damage(f"cannot read record header: {fault}")
    return header


def check_payload(header: RecordHeader, data: bytes | memoryview) -> bytes:
    """The payload of the record that ``data`` begins with.

    Raises:
        Damage: the record is cut short, its checksum is wrong, or its padding is not zero.
    """
    size, start = header.size, header.payload_offset
    if len(data) < size:
        raise Damage("cannot read record: it is cut short")
    end = start + header.payload_size
    payload = bytes(data[start:end])
    if checksum(payload) != data[end : end + CHECKSUM_SIZE]:
        raise Damage("cannot read record: its checksum is wrong")
    if any(data[end + CHECKSUM_SIZE : size]):
        raise Damage("cannot read record: its padding is not zero")
    return payload


def decode_payload(header: RecordHeader, payload: bytes, base: bytes | None) -> bytes:
    """The ``header.raw_size`` raw bytes; ``base`` is the decoded and checked base of a delta, else None.

    Raises:
        Damage: the payload cannot be decoded to that length.
    """
    if header.encoding is Encoding.RAW:
        return payload
    if header.encoding is not Encoding.DELTA:
        return decompress(payload, header.raw_size)
    if base is None:
        raise Damage("cannot decode delta: its base is missing")
    return decompress_delta(payload, base, header.raw_size)


def identify(header: RecordHeader, raw: bytes) -> ObjectKey:
    """The name of the object whose record has this header and these raw bytes.

    Raises:
        Damage: the header was written for another object.
    """
    kind = ObjectKind(header.kind)
    key = ObjectKey(kind, object_id(kind, raw))
    if key.id[:PREFIX_SIZE] != header.id_prefix:
        raise Damage(f"cannot read {key.kind.name.lower()}: its bytes do not match its name")
    return key


def encode_group(objects: Sequence[tuple[ObjectKey, bytes]], level: int) -> bytes:
    """One record with many objects in one zstd frame; a slot is an object's place in this order.

    Raises:
        ValueError: there is no object, there are more than ``MAX_GROUP``, or they are too long together.
    """
    if not 0 < len(objects) <= MAX_GROUP:
        raise ValueError(f"cannot write group: {len(objects)} objects are none or too many")
    rows = b"".join(_GROUP_ROW.pack(key.kind, len(data)) for key, data in objects)
    raw = b"".join((_GROUP_HEAD.pack(len(objects)), rows, *(data for _, data in objects)))
    return encode_record(RecordKind.GROUP, b"", Encoding.GROUP, compress_frame(raw, level), len(raw))


def split_group(raw: bytes) -> tuple[tuple[ObjectKey, bytes], ...]:
    """The objects of a group, in the order of their slots; their ids are computed from their bytes.

    Raises:
        Damage: the table at its beginning does not fit.
    """
    count = _GROUP_HEAD.unpack_from(raw)[0] if len(raw) >= _GROUP_HEAD.size else 0
    position = _GROUP_HEAD.size + count * _GROUP_ROW.size
    if not 0 < count <= MAX_GROUP or position > len(raw):
        raise Damage("cannot read group: its table is cut short")
    rows = list(_GROUP_ROW.iter_unpack(raw[_GROUP_HEAD.size : position]))
    if position + sum(size for _, size in rows) != len(raw) or not {kind for kind, _ in rows} <= OBJECT_KINDS.keys():
        raise Damage("cannot read group: its table does not fit its bytes")
    objects = []
    for number, size in rows:
        data, kind = raw[position : position + size], OBJECT_KINDS[number]
        objects.append((ObjectKey(kind, object_id(kind, data)), data))
        position += size
    return tuple(objects)


_KINDS = {int(kind): kind for kind in RecordKind}
_ENCODINGS = {int(encoding): encoding for encoding in Encoding}
OBJECT_KINDS = {int(kind): kind for kind in ObjectKind}
_ZERO_PREFIX = bytes(PREFIX_SIZE)


def aligned(size: int) -> int:
    """The bytes that something of ``size`` takes in a pack."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def _fault(header: RecordHeader) -> str | None:
    """What is wrong with a header, as readers and writers both see it."""
    encoding, payload_size, raw_size = header.encoding, header.payload_size, header.raw_size
    if raw_size > MAX_RAW or payload_size > MAX_PAYLOAD:
        return f"{max(raw_size, payload_size)} bytes are more than a record may hold"
    if (header.kind is RecordKind.GROUP) != (encoding is Encoding.GROUP):
        return "groups, and only groups, have the encoding of groups"
    if header.kind is RecordKind.GROUP and raw_size > MAX_GROUP_RAW:
        return f"{raw_size} bytes are more than a group may hold"
    if not header.kind.is_object and header.id_prefix != _ZERO_PREFIX:
        return "it has an id but is no object"
    if encoding is Encoding.RAW:
        fits = payload_size == raw_size
    else:
        fits = payload_size > 0 and (payload_size < raw_size or encoding is Encoding.GROUP)
    return _base_fault(header) if fits else "its lengths do not fit its encoding"


def _base_fault(header: RecordHeader) -> str | None:
    if header.encoding is not Encoding.DELTA:
        if header.depth or header.base_distance or header.base_id or header.standing or header.base_slot != NO_SLOT:
            return "it has a base but is no delta"
        return None
    if not header.kind.is_object:
        return "it is a delta but no object"
    if not 0 < header.depth <= MAX_DEPTH:
        return f"a depth of {header.depth} is not allowed"
    if not 0 <= header.standing <= MAX_STANDING:
        return f"{header.standing} objects on one are not allowed"
    if bool(header.base_distance) == bool(header.base_id) or header.base_distance % ALIGNMENT:
        return "its base is not one place"
    if not 0 <= header.base_distance <= MAX_DISTANCE:
        return "its base is too far away"
    if header.base_slot != NO_SLOT and (not header.base_distance or not 0 <= header.base_slot < MAX_GROUP):
        return "its base is in no slot of a group"
    return None


def _form_fault(form: int, header: RecordHeader) -> str | None:
    """Whether the base form says what the fields say, so that a header has one encoding."""
    return None if form == _base_form(header) else "its base form does not fit its base"


def _base_form(header: RecordHeader) -> int:
    return _BASE_ID if header.base_id else _BASE_DISTANCE if header.base_distance else _NO_BASE


def _id_fault(kind: RecordKind, id: bytes, base_id: bytes) -> str | None:
    if len(id) != (ID_SIZE if kind.is_object else 0) or len(base_id) not in (0, ID_SIZE):
        return "an id has the wrong length"
    return None
