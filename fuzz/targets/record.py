"""A record of a pack: header, payload, and what the payload decodes to; bytes behind the record do not count."""

from __future__ import annotations

from typing import NamedTuple

from casnap.codec.compression import MAX_RAW, compress, compress_delta
from casnap.codec.hashing import checksum
from casnap.codec.packs import IndexEntry, encode_index_record, encode_session, encode_trailer
from casnap.codec.records import (
    HEADER_SIZE,
    MAX_HEADER_SIZE,
    Encoding,
    RecordHeader,
    check_payload,
    decode_payload,
    encode_group,
    encode_record,
    parse_header,
)
from casnap.errors import Damage, TooNew
from casnap.model.ids import ObjectKey, ObjectKind
from fuzz.law import Target
from fuzz.targets.samples import ID, OTHER_ID, TEXT

_BASE = TEXT
"""What deltas are decoded against."""


class _Record(NamedTuple):
    header: RecordHeader
    payload: bytes
    raw: bytes


def _parse(data: bytes) -> _Record:
    header = parse_header(data[:MAX_HEADER_SIZE])
    payload = check_payload(header, data)
    return _Record(header, payload, decode_payload(header, payload, _BASE))


def _fault(record: _Record, data: bytes) -> str | None:
    header, payload, raw = record
    if len(raw) != header.raw_size:
        return "it was decoded to another length than it states"
    again = encode_record(
        header.kind,
        header.id_prefix + bytes(24) if header.kind.is_object else b"",
        header.encoding,
        payload,
        header.raw_size,
        base_distance=header.base_distance,
        base_slot=header.base_slot,
        base_id=header.base_id,
        depth=header.depth,
        standing=header.standing,
    )
    return None if again == data[: header.size] else "it was accepted, but is encoded differently"


def seal(data: bytes) -> bytes:
    """Put both checksums right, where there is room for them."""
    if len(data) < HEADER_SIZE:
        return data
    fixed = data[: HEADER_SIZE - 8]
    begin = HEADER_SIZE + 32 * bool(data[7] & 2)
    end = begin + int.from_bytes(data[8:12], "little")
    data = fixed + checksum(fixed, data[HEADER_SIZE:begin]) + data[HEADER_SIZE:]
    return data[:end] + checksum(data[begin:end]) + data[end + 8 :] if end + 8 <= len(data) else data


def _seeds() -> tuple[bytes, ...]:
    encoding, payload = compress(TEXT, 3)
    delta = compress_delta(TEXT + b"more", _BASE, 3)
    size = len(TEXT) + 4
    places = [IndexEntry(ObjectKind.CHUNK, ID, 104), IndexEntry(ObjectKind.TREE, OTHER_ID, 512, 0)]
    return (
        encode_record(ObjectKind.CHUNK, ID, Encoding.RAW, b"abc", 3),
        encode_record(ObjectKind.TREE, ID, encoding, payload, len(TEXT)),
        encode_record(ObjectKind.CHUNK, ID, Encoding.DELTA, delta, size, base_distance=64, depth=1),
        encode_record(ObjectKind.CHUNK, ID, Encoding.DELTA, delta, size, base_distance=64, base_slot=2, depth=1),
        encode_record(ObjectKind.CHUNK, ID, Encoding.DELTA, delta, size, base_id=ID, depth=4),
        encode_group([(ObjectKey(ObjectKind.TREE, ID), TEXT), (ObjectKey(ObjectKind.CHUNK, ID), b"x")], 3),
        encode_session(bytes(32)),
        encode_trailer(4096),
        encode_index_record(places, 3),
    )


TARGET = Target(
    name="record",
    parse=_parse,
    errors=(Damage, TooNew),
    fault=_fault,
    seeds=_seeds(),
    seal=seal,
    tokens=(b"\xc5rec", b"\x28\xb5\x2f\xfd", MAX_RAW.to_bytes(4, "little"), (MAX_RAW + 1).to_bytes(4, "little")),
    unpacked=MAX_RAW,
)
