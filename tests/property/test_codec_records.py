"""Laws of records, groups, indexes and compression."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casnap.codec.compression import compress, compress_all, compress_delta, decompress, decompress_delta
from casnap.codec.full_records import decode_full
from casnap.codec.hashing import object_id
from casnap.codec.packs import IndexEntry, decode_index, encode_index, parse_pack_header, parse_trailer
from casnap.codec.records import (
    HEADER_SIZE,
    MAX_DISTANCE,
    MAX_GROUP,
    MAX_HEADER_SIZE,
    NO_SLOT,
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
from support.codec_strategies import IDS

KINDS = st.sampled_from(list(ObjectKind))
# Some that zstd shrinks and some that it does not.
CONTENTS = st.binary(max_size=100) | st.builds(
    lambda piece, times: piece * times, st.binary(min_size=1), st.integers(1, 60)
)
DISTANCES = st.integers(1, MAX_DISTANCE // 8).map(lambda units: 8 * units)
BASES = st.none() | IDS | st.tuples(DISTANCES, st.integers(NO_SLOT, MAX_GROUP - 1))


Where = tuple[int, int] | bytes | None


def record_of(kind: ObjectKind, content: bytes, base: bytes, place: Where, depth: int) -> bytes:
    """A record of any encoding that the content allows."""
    id = object_id(kind, content)
    delta = compress_delta(content, base, 1)
    if place is None or len(delta) >= len(content):
        encoding, payload = compress(content, 3)
        return encode_record(kind, id, encoding, payload, len(content))
    form = {"base_id": place} if isinstance(place, bytes) else {"base_distance": place[0], "base_slot": place[1]}
    return encode_record(kind, id, Encoding.DELTA, delta, len(content), depth=depth, **form)  # type: ignore[arg-type]


RECORDS = st.builds(record_of, KINDS, CONTENTS, st.binary(min_size=1), BASES, st.integers(1, 4))


@given(KINDS, CONTENTS, st.binary(min_size=1), BASES, st.integers(1, 4))
def test_what_a_record_holds_comes_back(
    kind: ObjectKind, content: bytes, base: bytes, place: Where, depth: int
) -> None:
    record = record_of(kind, content, base, place, depth)
    header = parse_header(record[:MAX_HEADER_SIZE])
    assert header.size == len(record)
    assert len(record) % 8 == 0
    raw = decode_payload(header, check_payload(header, record), base)
    assert raw == content
    assert identify(header, raw) == ObjectKey(kind, object_id(kind, content))
    if header.encoding is Encoding.DELTA:
        assert (header.depth, header.base_id or (header.base_distance, header.base_slot)) == (depth, place)


@given(st.lists(st.tuples(KINDS, CONTENTS, BASES), min_size=1, max_size=6), st.data())
def test_what_is_read_at_once_is_what_is_read_by_itself(
    objects: list[tuple[ObjectKind, bytes, Where]], data: st.DataObject
) -> None:
    keys = [ObjectKey(kind, object_id(kind, content)) for kind, content, _ in objects]
    records = [record_of(kind, content, b"base", place, 1) for kind, content, place in objects]
    stored = bytearray(b"".join(records))
    hurt = data.draw(st.none() | st.integers(0, len(stored) - 1))
    if hurt is not None:
        stored[hurt] ^= data.draw(st.integers(1, 255))
    cut = bytes(stored[: data.draw(st.just(len(stored)) | st.integers(0, len(stored)))])
    starts = [sum(map(len, records[:number])) for number in range(len(records))]
    for start, key in zip(starts, keys, strict=True):
        expected = None
        with contextlib.suppress(Damage, TooNew):
            header = parse_header(cut[start : start + MAX_HEADER_SIZE])
            if header.encoding is not Encoding.DELTA:
                expected = decode_payload(header, check_payload(header, cut[start:]), None)
        assert decode_full(cut, start, key) == expected


@given(KINDS, CONTENTS)
def test_an_object_is_not_taken_for_another_whose_name_begins_alike(kind: ObjectKind, content: bytes) -> None:
    id = object_id(kind, content)
    record = record_of(kind, content, b"base", None, 0)
    assert decode_full(record, 0, ObjectKey(kind, id)) == content
    assert decode_full(record, 0, ObjectKey(kind, id[:8] + bytes(24))) is None


@given(RECORDS, st.data())
def test_a_changed_byte_anywhere_in_a_record_is_noticed(record: bytes, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(record) - 1))
    changed = bytearray(record)
    changed[position] ^= data.draw(st.integers(1, 255))
    with pytest.raises(Damage):
        check_payload(parse_header(bytes(changed[:MAX_HEADER_SIZE])), bytes(changed))


@given(RECORDS, st.data())
def test_a_record_that_is_cut_short_is_noticed(record: bytes, data: st.DataObject) -> None:
    short = record[: data.draw(st.integers(0, len(record) - 1))]
    with pytest.raises(Damage):
        check_payload(parse_header(short[:MAX_HEADER_SIZE]), short)


@given(st.binary(max_size=120) | st.binary(max_size=120).map(lambda tail: b"\xc5rec" + tail))
def test_arbitrary_bytes_are_no_record(data: bytes) -> None:
    with pytest.raises(Damage):
        parse_header(data)
    with pytest.raises(Damage):
        parse_trailer(data)
    with pytest.raises(Damage):
        parse_pack_header(data)


@given(
    st.sampled_from([Encoding.ZSTD, Encoding.DELTA, Encoding.GROUP]), st.binary(max_size=100), st.integers(0, 1 << 32)
)
def test_an_arbitrary_payload_is_decoded_to_its_length_or_damage(
    encoding: Encoding, payload: bytes, raw_size: int
) -> None:
    header = RecordHeader(RecordKind.CHUNK, encoding, 1, len(payload), raw_size, bytes(8), 8, b"")
    for tried in (payload, b"\x28\xb5\x2f\xfd" + payload):
        try:
            raw = decode_payload(header, tried, b"base")
        except Damage:
            continue
        assert len(raw) == raw_size


@given(CONTENTS.filter(len), st.integers(-5, 19))
def test_zstd_is_used_only_where_it_shrinks(content: bytes, level: int) -> None:
    encoding, payload = compress(content, level)
    if encoding is Encoding.RAW:
        assert payload == content
    else:
        assert len(payload) < len(content)
        assert decompress(payload, len(content)) == content


@given(CONTENTS.filter(len), CONTENTS.filter(len), st.integers(1, 19))
def test_a_delta_and_its_base_give_the_content(content: bytes, base: bytes, level: int) -> None:
    assert decompress_delta(compress_delta(content, base, level), base, len(content)) == content


@given(CONTENTS.filter(len), st.binary(min_size=1, max_size=20))
def test_bytes_behind_a_frame_are_refused(content: bytes, behind: bytes) -> None:
    frame = compress_delta(content, b"base", 3)
    with pytest.raises(Damage):
        decompress_delta(frame + behind, b"base", len(content))
    with pytest.raises(Damage):
        decompress_delta(frame + frame, b"base", len(content))


@given(st.lists(st.tuples(KINDS, CONTENTS), min_size=1, max_size=8))
def test_a_group_gives_its_objects_by_slot(objects: list[tuple[ObjectKind, bytes]]) -> None:
    named = tuple((ObjectKey(kind, object_id(kind, data)), data) for kind, data in objects)
    record = encode_group(named, 3)
    header = parse_header(record)
    assert (header.kind, header.encoding, header.size) == (RecordKind.GROUP, Encoding.GROUP, len(record))
    assert split_group(decode_payload(header, check_payload(header, record), None)) == named


@given(st.binary(max_size=60) | st.binary(max_size=30).map(lambda tail: b"\x01\0\0\0" + tail))
def test_arbitrary_bytes_are_a_group_or_damage(raw: bytes) -> None:
    try:
        objects = split_group(raw)
    except Damage:
        return
    record = encode_group(objects, 3)
    header = parse_header(record)
    assert decode_payload(header, record[HEADER_SIZE : HEADER_SIZE + header.payload_size], None) == raw


PLACES = st.integers(8, (1 << 29) - 1).map(lambda units: 8 * units)
ENTRIES = st.dictionaries(
    PLACES, st.one_of(st.just([-1]), st.sets(st.integers(0, 65_534), min_size=1, max_size=4)), max_size=6
).flatmap(
    lambda slots: st.tuples(
        *(
            st.builds(IndexEntry, KINDS, IDS, st.just(offset), st.just(slot))
            for offset in slots
            for slot in slots[offset]
        )
    )
)


@given(ENTRIES, st.randoms())
def test_an_index_comes_back_sorted_by_place(entries: tuple[IndexEntry, ...], random: object) -> None:
    expected = tuple(sorted(entries, key=lambda entry: (entry.offset, entry.slot)))
    mixed = list(entries)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    raw = encode_index(mixed)
    assert len(raw) == 4 + 39 * len(entries)
    assert decode_index(raw) == expected


@given(ENTRIES, st.data())
def test_a_changed_index_is_damage_or_another_index(entries: tuple[IndexEntry, ...], data: st.DataObject) -> None:
    raw = encode_index(entries)
    position = data.draw(st.integers(0, len(raw) - 1))
    changed = raw[:position] + bytes([data.draw(st.integers(0, 255))]) + raw[position + 1 :]
    try:
        assert encode_index(decode_index(changed)) == changed
    except Damage:
        assert changed != raw


@given(st.binary(max_size=4 + 3 * 39))
def test_arbitrary_bytes_are_an_index_with_these_bytes_or_damage(raw: bytes) -> None:
    with contextlib.suppress(Damage):
        assert encode_index(decode_index(raw)) == raw


@given(st.integers(0, 255), st.integers(0, 255), st.integers(0, 255))
def test_a_whole_header_with_any_numbers_is_read_refused_or_too_new(kind: int, encoding: int, form: int) -> None:
    data = header_bytes(kind=kind, encoding=encoding, form=form) + bytes(16)
    known = 1 <= kind <= 9 and 1 <= encoding <= 4 and form & 3 <= 2
    try:
        header = parse_header(data)
    except TooNew:
        assert not known
    except Damage:
        assert known
    else:
        assert known
        assert (header.kind, header.encoding) == (kind, encoding)


@given(
    KINDS, st.binary(max_size=40), st.sampled_from([Encoding.RAW, Encoding.ZSTD, Encoding.DELTA]), CONTENTS, st.data()
)
def test_the_quick_way_to_a_full_record_writes_and_refuses_what_the_long_way_does(
    kind: ObjectKind, id: bytes, encoding: Encoding, payload: bytes, data: st.DataObject
) -> None:
    id = data.draw(st.sampled_from([id, bytes(32)]))
    raw_size = data.draw(st.sampled_from([len(payload), len(payload) + 1, len(payload) - 1, 0, (4 << 20) + 1]))
    try:
        expected = encode_record(kind, id, encoding, payload, raw_size)
    except (ValueError, struct.error):
        with pytest.raises(ValueError, match="cannot write record"):
            encode_full(kind, id, encoding, payload, raw_size)
    else:
        assert encode_full(kind, id, encoding, payload, raw_size) == expected


@given(st.lists(CONTENTS, max_size=5), st.integers(1, 2))
def test_a_batch_is_compressed_as_each_of_it_alone(batch: list[bytes], threads: int) -> None:
    assert compress_all(batch, 3, threads) == [compress(data, 3) for data in batch]
