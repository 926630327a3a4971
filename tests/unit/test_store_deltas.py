"""New versions as differences to old ones: when, how deep, how many, and what that never costs."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from casnap.codec.hashing import object_id
from casnap.codec.records import MAX_STANDING, Encoding, RecordHeader, RecordKind
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.store import deltas, objects
from casnap.store.store import Store
from support.stores import chunk, commit_session, make_store, noise, open_store, pack_files

TEXT = b"".join(
    b"line %d of a text that does not compress too well: %s\n" % (n, noise(n, 20).hex().encode()) for n in range(200)
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make_store(tmp_path / "store")


def version(number: int) -> bytes:
    """The text with a line of its own."""
    return TEXT + b"version %d %s\n" % (number, noise(("version", number), 8).hex().encode())


def edited(data: bytes, seed: int) -> bytes:
    lines = data.splitlines(keepends=True)
    lines[random.Random(seed).randrange(len(lines))] = b"edited %d\n" % seed
    return b"".join(lines)


def keep(store: Store, data: bytes, base: bytes | None = None) -> ObjectKey:
    with store.session() as session:
        session.put(chunk(data), data, None if base is None else chunk(base))
        commit_session(store, session)
    return chunk(data)


def header(store: Store, key: ObjectKey) -> RecordHeader:
    place = store.state().places([key])[key][0]
    return store.parts.reader.files.header(place.pack, place.offset)


def test_a_new_version_is_kept_as_a_difference_to_the_one_before(store: Store) -> None:
    first = keep(store, version(0))
    second = keep(store, version(1), version(0))
    assert header(store, first).encoding is Encoding.ZSTD
    found = header(store, second)
    assert (found.encoding, found.depth, found.standing) == (Encoding.DELTA, 1, 1)
    assert found.size < 200 < header(store, first).size // 20
    assert (found.base_distance > 0, found.base_id) == (True, b"")
    again = open_store(store.path)
    assert again.read(second) == version(1)
    assert again.read(first) == version(0)


def test_a_base_in_another_pack_is_named_by_its_id(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("casnap.store.packs.PACK_SIZE", 5000)
    keep(store, version(0))
    second = keep(store, version(1), version(0))
    assert len(pack_files(store.path)) == 2
    assert header(store, second).base_id == chunk(version(0)).id
    assert open_store(store.path).read(second) == version(1)


def test_a_chain_never_goes_deeper_than_four_and_begins_again_at_its_full_object(store: Store) -> None:
    keep(store, version(0))
    found = []
    data = version(0)
    for number in range(1, 12):
        newer = edited(data, number)
        found.append(header(store, keep(store, newer, data)))
        data = newer
    assert [one.depth for one in found] == [1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3]
    assert [one.standing for one in found] == list(range(1, 12))
    assert open_store(store.path).read(chunk(data)) == data


def test_no_more_than_63_objects_stand_on_a_full_one(store: Store) -> None:
    keep(store, version(0))
    data, found = version(0), []
    for number in range(1, 2 * MAX_STANDING + 3):
        newer = edited(data, number)
        found.append(header(store, keep(store, newer, data)))
        data = newer
    assert [one.standing for one in found] == [*range(1, 64), 0, *range(1, 64), 0]
    assert [n for n, one in enumerate(found, 1) if one.encoding is not Encoding.DELTA] == [64, 128]


def test_within_a_commit_all_that_build_on_one_object_are_counted(store: Store) -> None:
    keep(store, version(0))
    with store.session() as session:
        for number in range(1, 100):
            session.put(chunk(version(number)), version(number), chunk(version(0)))
        commit_session(store, session)
    found = [header(store, chunk(version(number))) for number in range(1, 100)]
    assert sum(one.encoding is Encoding.DELTA for one in found) == MAX_STANDING
    assert all(open_store(store.path).read(chunk(version(n))) == version(n) for n in range(1, 100))


def test_a_difference_to_what_this_very_session_has_put(store: Store) -> None:
    with store.session() as session:
        session.put(chunk(version(0)), version(0))
        session.put(chunk(version(1)), version(1), chunk(version(0)))
        assert session.read(chunk(version(1))) == version(1)
        commit_session(store, session)
    assert header(store, chunk(version(1))).depth == 1
    assert open_store(store.path).read(chunk(version(1))) == version(1)


@pytest.mark.parametrize(
    ("data", "base"),
    [
        (noise("other", 12_000), TEXT),
        (TEXT[:6000] + noise("half", 6000), TEXT),
        (b"short" * 10, b"short" * 11),
        (b"", TEXT),
        (TEXT, b""),
        (noise(1, deltas.MOST_BYTES + 1), noise(1, deltas.MOST_BYTES)),
    ],
    ids=["unlike", "half alike", "short", "empty", "base empty", "long"],
)
def test_a_difference_that_saves_little_is_not_kept(store: Store, data: bytes, base: bytes) -> None:
    keep(store, base)
    assert header(store, keep(store, data, base)).encoding is not Encoding.DELTA
    assert open_store(store.path).read(chunk(data)) == data


def test_a_base_that_is_not_there_or_bad_is_done_without(store: Store) -> None:
    assert header(store, keep(store, version(1), version(0))).encoding is Encoding.ZSTD
    key = keep(store, version(2))
    place = store.state().places([key])[key][0]
    (pack,) = pack_files(store.path)
    data = bytearray(pack.read_bytes())
    data[place.offset + 60] ^= 1
    pack.write_bytes(data)
    assert header(store, keep(store, version(3), version(2))).encoding is Encoding.ZSTD
    assert open_store(store.path).read(chunk(version(3))) == version(3)


def test_what_heals_a_damaged_object_is_written_in_full(store: Store) -> None:
    keep(store, version(0))
    key = keep(store, version(1), version(0))
    place = store.state().places([key])[key][0]
    (pack,) = pack_files(store.path)
    data = bytearray(pack.read_bytes())
    data[place.offset + 45] ^= 1
    pack.write_bytes(data)
    healing = open_store(store.path)
    keep(healing, version(1), version(0))
    assert header(healing, key).encoding is Encoding.ZSTD
    assert open_store(store.path).read(key) == version(1)


def test_what_a_chain_builds_on_is_decoded_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(store, version(0))
    versions = [version(0)]
    for number in range(1, 5):
        versions.append(edited(versions[-1], number))
        keep(store, versions[-1], versions[-2])
    decoded: list[int] = []
    decode = objects.decode_payload

    def counted(header: RecordHeader, *rest: Any) -> bytes:
        decoded.extend([header.depth] if header.kind is RecordKind.CHUNK else [])
        return decode(header, *rest)

    monkeypatch.setattr(objects, "decode_payload", counted)
    fresh = open_store(store.path)
    for data in reversed(versions):
        assert fresh.read(chunk(data)) == data
    assert sorted(decoded) == [0, 1, 2, 3, 4]


def test_another_record_at_the_same_place_is_decoded_anew(store: Store) -> None:
    recent = objects._Recent()
    key, other = keep(store, TEXT), keep(store, TEXT[:-9])
    records = []
    for one in (key, other):
        place = store.state().places([one])[one][0]
        records.append(store.parts.reader.files.record(place.pack, place.offset))
    recent.keep("pack", records[0], key, TEXT)
    assert recent.find("pack", records[0]) == (key, TEXT)
    assert recent.find("pack", replace(records[1], offset=records[0].offset)) is None
    assert recent.find("other", records[0]) is None
    for number in range(1000):  # little is kept
        recent.keep("pack", replace(records[0], offset=number), key, TEXT)
    assert sum(len(raw) for _, _, raw in recent._kept.values()) <= recent.MOST


def test_a_pack_that_is_filled_by_a_base_that_had_to_be_written_takes_nothing_more(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("casnap.store.packs.PACK_SIZE", 500)
    small = [noise(number, 200) for number in range(2)]
    datas = [*small, small[0] + noise(2, 60), noise(3, 300)]
    keys = [ObjectKey(ObjectKind.TREE, object_id(ObjectKind.TREE, data)) for data in datas]
    with store.session() as session:
        for key, data in zip(keys, datas, strict=True):
            session.put(key, data, keys[0] if key == keys[2] else None)
        commit_session(store, session)
    again = open_store(store.path)
    assert [again.read(key) for key in keys] == datas
    places = again.state().places(keys)
    assert header(again, keys[2]).encoding is Encoding.DELTA
    assert places[keys[2]][0].pack != places[keys[0]][0].pack
    for pack in pack_files(store.path):
        size = pack.stat().st_size
        sealed = any(r.header.kind is RecordKind.SEAL for r in store.parts.reader.files.records(pack.stem, 0, size))
        assert store.parts.reader.files.is_sealed(pack.stem, size) == sealed
