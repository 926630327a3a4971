"""Records byte by byte, and every rule that a header must keep."""

from __future__ import annotations

from typing import Any

import pytest

from casnap.codec.compression import compress
from casnap.codec.full_records import open_full
from casnap.codec.hashing import content_id, object_id
from casnap.codec.records import (
    MAX_DEPTH,
    MAX_GROUP,
    MAX_GROUP_RAW,
    MAX_HEADER_SIZE,
    MAX_RAW,
    Encoding,
    RecordHeader,
    RecordKind,
    check_payload,
    decode_payload,
    encode_full,
    encode_group,
    encode_record,
    identify,
    parse_header,
    split_group,
)
from casnap.errors import Damage, TooNew
from casnap.model.ids import ObjectKey, ObjectKind
from support.codec_headers import header_bytes

HELLO = content_id(b"hello")
RECORD = encode_record(RecordKind.CHUNK, HELLO, Encoding.RAW, b"hello", 5)


def test_the_bytes_of_a_record_never_change() -> None:
    assert RECORD.hex() == (
        "c5726563"  # magic
        "01010000"  # chunk, raw, depth 0, no base
        "0500000005000000"  # payload size, raw size
        "ea8f163db3868292"  # the first bytes of the id
        "0000000000000000"  # no distance to a base
        "3e3e18b39174335e"  # checksum of the header
        "68656c6c6f"  # payload
        "ea8f163db3868292"  # checksum of the payload
        "000000"  # up to a multiple of 8
    )


def test_a_header_of_this_library_is_the_one_that_the_format_says() -> None:
    assert RECORD[:40] == header_bytes(prefix=HELLO[:8])


FULL = [
    RECORD,
    encode_full(ObjectKind.CHUNK, content_id(b"ab" * 99), *compress(b"ab" * 99, 1), 198),
    encode_full(ObjectKind.TREE, object_id(ObjectKind.TREE, b"x" * 64), *compress(b"x" * 64, 1), 64),
    encode_full(ObjectKind.CHUNK, content_id(b""), Encoding.RAW, b"", 0),
]


def _strictly(data: bytes) -> tuple[ObjectKey, bytes, int] | None:
    """What the object is and where its record ends, told step by step."""
    try:
        header = parse_header(data[:MAX_HEADER_SIZE])
        raw = decode_payload(header, check_payload(header, data), None)
        return identify(header, raw), raw, header.size
    except (Damage, TooNew):
        return None


@pytest.mark.parametrize("record", FULL)
def test_a_full_record_opened_at_once_is_what_it_is_step_by_step(record: bytes) -> None:
    found = _strictly(record)
    assert found is not None
    assert open_full(record, 0) == found
    assert open_full(b"before  " + record + RECORD, 8) == (found[0], found[1], found[2] + 8)


@pytest.mark.parametrize("record", FULL)
def test_a_full_record_is_not_opened_at_once_whatever_byte_of_it_is_another(record: bytes) -> None:
    for at in range(len(record)):
        for bit in (1, 2, 128):
            changed = record[:at] + bytes((record[at] ^ bit,)) + record[at + 1 :]
            assert _strictly(changed) is None
            assert open_full(changed, 0) is None, at
    for end in range(len(record)):
        assert open_full(record[:end], 0) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"prefix": bytes(8)},
        {"raw_size": 6},
        {"encoding": 2},
        {"encoding": 9},
        {"kind": 9},
        {"kind": 6, "prefix": bytes(8)},
        {"depth": 1},
        {"form": 4},
        {"distance": 8},
        {"form": 1, "encoding": 3, "depth": 1, "distance": 8, "raw_size": 20},
    ],
)
def test_a_record_that_is_not_one_of_a_full_object_is_not_opened_at_once(fields: dict[str, Any]) -> None:
    header = header_bytes(**{"prefix": HELLO[:8], **fields})
    assert open_full(header + RECORD[40:], 0) is None


def test_what_follows_the_frame_of_a_full_record_is_not_taken_for_a_part_of_it() -> None:
    encoding, frame = compress(b"ab" * 99, 1)
    record = encode_full(ObjectKind.CHUNK, content_id(b"ab" * 99), encoding, frame + b"x", 198)
    assert _strictly(record) is None
    assert open_full(record, 0) is None


def test_a_header_says_where_the_payload_and_the_next_record_begin() -> None:
    header = parse_header(RECORD)
    assert header == RecordHeader(RecordKind.CHUNK, Encoding.RAW, 0, 5, 5, HELLO[:8], 0, b"")
    assert (header.payload_offset, header.size) == (40, 56)
    data = header_bytes(encoding=3, depth=1, form=2, payload_size=5, raw_size=20)
    assert (parse_header(data).payload_offset, parse_header(data).size) == (72, 88)


def test_the_numbers_of_object_kinds_are_those_of_records() -> None:
    assert {kind.name: kind.value for kind in ObjectKind}.items() <= {k.name: k.value for k in RecordKind}.items()


def test_an_empty_file_is_a_record_of_no_bytes() -> None:
    record = encode_record(ObjectKind.CHUNK, content_id(b""), *compress(b"", 3), 0)
    header = parse_header(record)
    assert (header.size, decode_payload(header, check_payload(header, record), None)) == (48, b"")
    assert identify(header, b"") == (ObjectKind.CHUNK, content_id(b""))


# Each names the one rule that it breaks; the checksum of the header is right.
BROKEN: dict[str, dict[str, Any]] = {
    "another magic": {"magic": b"\xc5rex"},
    "raw of another length": {"payload_size": 4},
    "zstd that grew": {"encoding": 2, "payload_size": 6},
    "zstd of the same length": {"encoding": 2},
    "empty zstd": {"encoding": 2, "payload_size": 0},
    "raw too long": {"raw_size": MAX_RAW + 1, "payload_size": MAX_RAW + 1},
    "zstd of too much": {"encoding": 2, "raw_size": MAX_RAW + 1},
    "raw with a depth": {"depth": 1},
    "raw with a distance": {"form": 1, "distance": 8},
    "raw with a base id": {"form": 2},
    "distance without the form": {"encoding": 3, "raw_size": 9, "depth": 1, "distance": 8},
    "delta without a base": {"encoding": 3, "raw_size": 9, "depth": 1},
    "delta of distance zero": {"encoding": 3, "raw_size": 9, "depth": 1, "form": 1},
    "delta of an odd distance": {"encoding": 3, "raw_size": 9, "depth": 1, "form": 1, "distance": 12},
    "raw with a slot": {"form": 0, "slot": 0},
    "delta by id with a slot": {"encoding": 3, "raw_size": 9, "depth": 1, "form": 2, "slot": 0},
    "delta of distance zero in a slot": {"encoding": 3, "raw_size": 9, "depth": 1, "form": 1, "slot": 5},
    "reserved bytes": {"encoding": 3, "raw_size": 9, "depth": 1, "form": 1, "distance": 8, "reserved": 1},
    "delta with two bases": {"encoding": 3, "raw_size": 9, "depth": 1, "form": 2, "distance": 8},
    "delta of depth zero": {"encoding": 3, "raw_size": 9, "form": 1, "distance": 8},
    "delta too deep": {"encoding": 3, "raw_size": 9, "depth": MAX_DEPTH + 1, "form": 1, "distance": 8},
    "number on a full object without a delta": {"form": 4},
    "delta of an index": {"kind": 6, "encoding": 3, "raw_size": 9, "depth": 1, "form": 1, "distance": 8},
    "group of another encoding": {"kind": 5, "encoding": 2, "raw_size": 9},
    "encoding of groups for a chunk": {"encoding": 4},
    "group that grew too much": {"kind": 5, "encoding": 4, "payload_size": MAX_RAW + (64 << 10) + 1},
    "index with an id": {"kind": 6, "prefix": b"\x01" + bytes(7)},
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_header_that_breaks_a_rule_is_damage(rule: str) -> None:
    with pytest.raises(Damage):
        parse_header(header_bytes(**BROKEN[rule]) + bytes(40))


@pytest.mark.parametrize(
    "fields", [{"kind": 0}, {"kind": 10}, {"encoding": 0}, {"encoding": 5}, {"form": 3}, {"form": 7}, {"form": 255}]
)
def test_a_whole_header_with_an_unknown_number_is_too_new(fields: dict[str, int]) -> None:
    with pytest.raises(TooNew, match="newer format"):
        parse_header(header_bytes(**fields) + bytes(40))  # type: ignore[arg-type]


def test_an_unknown_number_under_a_wrong_checksum_is_damage() -> None:
    data = bytearray(header_bytes(kind=10))
    data[39] ^= 1
    with pytest.raises(Damage, match="checksum"):
        parse_header(bytes(data))


def test_a_header_whose_base_id_is_cut_off_is_damage() -> None:
    data = header_bytes(encoding=3, depth=1, form=2, raw_size=20)
    assert parse_header(data).base_id == bytes(range(32))
    for end in (39, 40, 71):
        with pytest.raises(Damage):
            parse_header(data[:end])


@pytest.mark.parametrize(
    "arguments",
    [
        (RecordKind.CHUNK, b"", Encoding.RAW, b"hello", 5),
        (RecordKind.CHUNK, HELLO[:31], Encoding.RAW, b"hello", 5),
        (RecordKind.INDEX, HELLO, Encoding.RAW, b"hello", 5),
        (RecordKind.CHUNK, HELLO, Encoding.RAW, b"hello", 6),
        (RecordKind.CHUNK, HELLO, Encoding.DELTA, b"hello", 9),
        (RecordKind.CHUNK, HELLO, Encoding.RAW, bytes(MAX_RAW + 1), MAX_RAW + 1),
    ],
)
def test_a_record_that_no_reader_accepts_is_not_written(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match="cannot write record"):
        encode_record(*arguments)


def test_a_delta_of_a_base_that_is_no_id_is_not_written() -> None:
    with pytest.raises(ValueError, match="cannot write record"):
        encode_record(RecordKind.CHUNK, HELLO, Encoding.DELTA, b"hello", 9, base_id=b"short", depth=1)


def test_padding_that_is_not_zero_is_damage() -> None:
    header = parse_header(RECORD)
    with pytest.raises(Damage, match="padding"):
        check_payload(header, RECORD[:-1] + b"\x01")


def test_bytes_behind_a_record_are_not_looked_at() -> None:
    assert check_payload(parse_header(RECORD), RECORD + b"next") == b"hello"


def test_a_delta_without_its_base_is_damage() -> None:
    header = parse_header(header_bytes(encoding=3, depth=1, form=1, distance=8, raw_size=20))
    with pytest.raises(Damage, match="base is missing"):
        decode_payload(header, b"hello", None)


def test_an_object_of_another_name_is_damage() -> None:
    with pytest.raises(Damage, match="do not match"):
        identify(parse_header(RECORD), b"hullo")


def test_a_group_holds_objects_of_every_kind_in_one_frame() -> None:
    objects = tuple((ObjectKey(kind, object_id(kind, b"same bytes" * 9)), b"same bytes" * 9) for kind in ObjectKind)
    record = encode_group(objects, 3)
    header = parse_header(record)
    raw = decode_payload(header, check_payload(header, record), None)
    assert raw[:4] == b"\x04\0\0\0"
    assert raw[4:24] == b"\x01\x5a\0\0\0\x02\x5a\0\0\0\x03\x5a\0\0\0\x04\x5a\0\0\0"
    assert raw[24:] == b"same bytes" * 36
    assert split_group(raw) == objects


def test_a_group_of_none_or_of_too_many_is_not_written() -> None:
    empty = (ObjectKey(ObjectKind.CHUNK, content_id(b"")), b"")
    assert len(split_group(bytes.fromhex("ffff0000") + b"\x01\0\0\0\0" * MAX_GROUP)) == MAX_GROUP
    for objects in ([], [empty] * (MAX_GROUP + 1)):
        with pytest.raises(ValueError, match="none or too many"):
            encode_group(objects, 3)


def test_a_group_that_is_too_long_is_neither_written_nor_read() -> None:
    longest = bytes(MAX_GROUP_RAW - 4 - 5)
    most = encode_group([(ObjectKey(ObjectKind.CHUNK, content_id(longest)), longest)], 3)
    assert parse_header(most).raw_size == 1 << 20
    with pytest.raises(ValueError, match="more than a group may hold"):
        encode_group([(ObjectKey(ObjectKind.CHUNK, content_id(longest + b"0")), longest + b"0")], 3)
    with pytest.raises(Damage, match="more than a group may hold"):
        parse_header(header_bytes(kind=5, encoding=4, prefix=bytes(8), payload_size=100, raw_size=(1 << 20) + 1))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\0\0\0\0",
        b"\x01\0\0",
        b"\x02\0\0\0" + b"\x01\0\0\0\0",
        b"\x01\0\0\0" + b"\x05\0\0\0\0",
        b"\x01\0\0\0" + b"\x01\x02\0\0\0" + b"x",
        b"\x01\0\0\0" + b"\x01\x02\0\0\0" + b"xyz",
        b"\xff\xff\xff\xff" + bytes(100),
    ],
)
def test_a_group_whose_table_does_not_fit_is_damage(raw: bytes) -> None:
    with pytest.raises(Damage, match="table"):
        split_group(raw)
