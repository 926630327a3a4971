"""Pack headers, indexes, sessions, seals and trailers byte by byte."""

from __future__ import annotations

import struct

import pytest
from blake3 import blake3

from casnap.codec.packs import (
    MAX_ENTRIES,
    TRAILER_SIZE,
    IndexEntry,
    PackHeader,
    decode_index,
    encode_index,
    encode_index_record,
    encode_pack_header,
    encode_seal,
    encode_session,
    encode_trailer,
    parse_pack_header,
    parse_trailer,
)
from casnap.codec.records import Encoding, RecordKind, check_payload, decode_payload, encode_record, parse_header
from casnap.errors import Damage, TooNew
from casnap.model.ids import ObjectKind

PACK, STORE = bytes(range(16)), bytes(range(16, 32))
ID = bytes(range(32))


def pack_header(version: int = 1, flags: int = 0, reserved: bytes = bytes(8)) -> bytes:
    fields = b"\xc5casnap\n" + struct.pack("<II", version, flags) + PACK + STORE + reserved
    return fields + blake3(fields).digest()[:8]


def test_a_pack_header_has_64_bytes_that_never_change() -> None:
    data = encode_pack_header(PACK, STORE)
    assert data == pack_header()
    assert data.hex().endswith("0786520528966df1")
    assert parse_pack_header(data + b"records") == PackHeader(PACK, STORE)


@pytest.mark.parametrize("fields", [{"version": 0}, {"version": 2}, {"flags": 1}, {"flags": 1 << 31}])
def test_a_pack_of_another_version_or_with_flags_is_too_new(fields: dict[str, int]) -> None:
    with pytest.raises(TooNew, match="newer format"):
        parse_pack_header(pack_header(**fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "data",
    [b"", pack_header()[:63], b"\0" + pack_header()[1:], pack_header()[:-1] + b"\0", pack_header(reserved=b"12345678")],
)
def test_a_pack_header_that_is_not_whole_is_damage(data: bytes) -> None:
    with pytest.raises(Damage, match="pack header"):
        parse_pack_header(data)


def test_ids_of_another_length_are_not_written() -> None:
    with pytest.raises(ValueError, match="length"):
        encode_pack_header(PACK[1:], STORE)


def test_an_index_is_columns_in_the_order_of_places() -> None:
    entries = [
        IndexEntry(ObjectKind.TREE, ID, 72, 1),
        IndexEntry(ObjectKind.CHUNK, ID, 64),
        IndexEntry(ObjectKind.TREE, ID[::-1], 72, 0),
    ]
    raw = encode_index(entries)
    assert raw == (
        b"\x03\0\0\0"
        b"\x01\x03\x03"
        b"\x00\x00\x01\x00\x02\x00"  # no slot, slot 0, slot 1
        b"\x08\0\0\0\x01\0\0\0\0\0\0\0" + ID + ID[::-1] + ID
    )
    assert decode_index(raw) == (entries[1], entries[2], entries[0])


def test_an_empty_index_is_its_count() -> None:
    assert encode_index([]) == bytes(4)
    assert decode_index(bytes(4)) == ()


CHUNK = ObjectKind.CHUNK
BAD_ENTRIES = {
    "before the first record": [IndexEntry(CHUNK, ID, 56)],
    "between records": [IndexEntry(CHUNK, ID, 68)],
    "beyond the last": [IndexEntry(CHUNK, ID, 1 << 32)],
    "one place twice": [IndexEntry(CHUNK, ID, 64), IndexEntry(CHUNK, ID, 64)],
    "one slot twice": [IndexEntry(CHUNK, ID, 64, 3), IndexEntry(CHUNK, ID, 64, 3)],
    "slot too high": [IndexEntry(CHUNK, ID, 64, 65_535)],
    "slot too low": [IndexEntry(CHUNK, ID, 64, -2)],
    "short id": [IndexEntry(CHUNK, ID[1:], 64)],
}


@pytest.mark.parametrize("rule", BAD_ENTRIES)
def test_an_index_that_no_reader_accepts_is_not_written(rule: str) -> None:
    with pytest.raises(ValueError, match="cannot write index"):
        encode_index(BAD_ENTRIES[rule])


def column_bytes(count: int, kinds: bytes, slots: list[int], steps: list[int], ids: bytes) -> bytes:
    return struct.pack("<I", count) + kinds + struct.pack(f"<{len(slots)}H{len(steps)}I", *slots, *steps) + ids


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\0\0\0",
        bytes(5),
        column_bytes(1, b"\x01", [0], [8], ID + b"x"),
        column_bytes(2, b"\x01", [0], [8], ID),
        column_bytes(1, b"\x00", [0], [8], ID),
        column_bytes(1, b"\x05", [0], [8], ID),
        column_bytes(1, b"\x01", [0], [7], ID),
        column_bytes(2, b"\x01\x01", [0, 0], [8, 0], ID * 2),
        column_bytes(2, b"\x01\x01", [2, 1], [8, 0], ID * 2),
        column_bytes(2, b"\x01\x01", [0, 0], [8, (1 << 32) - 1], ID * 2),
    ],
)
def test_an_index_that_is_none_is_damage(raw: bytes) -> None:
    with pytest.raises(Damage, match="cannot read index"):
        decode_index(raw)


def test_an_index_holds_as_many_entries_as_a_pack_may_and_no_more() -> None:
    entries = [IndexEntry(CHUNK, ID, 64 + 56 * number) for number in range(MAX_ENTRIES + 1)]
    record = encode_index_record(entries[:MAX_ENTRIES], 3)
    header = parse_header(record)
    assert decode_index(decode_payload(header, check_payload(header, record), None)) == tuple(entries[:MAX_ENTRIES])
    with pytest.raises(ValueError, match="more than"):
        encode_index(entries)
    with pytest.raises(Damage):
        decode_index(column_bytes(MAX_ENTRIES + 1, b"", [], [], b""))


@pytest.mark.parametrize(("encode", "kind"), [(encode_index_record, RecordKind.INDEX), (encode_seal, RecordKind.SEAL)])
def test_an_index_and_a_seal_are_records_of_an_index(encode: object, kind: RecordKind) -> None:
    entries = (IndexEntry(CHUNK, ID, 64), IndexEntry(ObjectKind.TREE, ID, 120))
    record = encode(entries, 3)  # type: ignore[operator]
    header = parse_header(record)
    assert header.kind is kind
    assert decode_index(decode_payload(header, check_payload(header, record), None)) == entries


def test_a_session_record_holds_32_random_bytes() -> None:
    record = encode_session(ID)
    header = parse_header(record)
    assert (header.kind, header.encoding, header.size) == (RecordKind.SESSION, Encoding.RAW, 80)
    assert check_payload(header, record) == ID
    with pytest.raises(ValueError, match="32"):
        encode_session(ID[1:])


def test_a_trailer_leads_from_the_end_of_a_pack_to_its_seal() -> None:
    trailer = encode_trailer(4096)
    assert len(trailer) == TRAILER_SIZE == 56
    assert trailer.hex() == (
        "c5726563"
        "09010000"
        "0800000008000000"
        "0000000000000000"
        "0000000000000000"
        "eae7f8c995e797d4"
        "0010000000000000"
        "6f0ebfb1f109a1f7"
    )
    assert parse_trailer(trailer) == 4096


@pytest.mark.parametrize(
    "data",
    [
        b"",
        encode_trailer(4096)[:-1],
        encode_trailer(4096) + bytes(8),
        encode_trailer(4096)[:-1] + b"\0",
        encode_session(ID)[-TRAILER_SIZE:],
        encode_record(RecordKind.SESSION, b"", Encoding.RAW, bytes(8), 8),
        encode_record(RecordKind.TRAILER, b"", Encoding.RAW, bytes(16), 16)[:TRAILER_SIZE],
        encode_trailer(0),
        encode_trailer(4097),
    ],
)
def test_what_is_no_trailer_is_damage(data: bytes) -> None:
    with pytest.raises(Damage):
        parse_trailer(data)
