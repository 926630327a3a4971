"""Packs: what is read from them, what is adopted, and what damage costs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from casnap.codec.compression import compress_delta
from casnap.codec.hashing import object_id
from casnap.codec.packs import IndexEntry, encode_index_record, encode_pack_header, parse_trailer
from casnap.codec.records import Encoding, RecordKind, encode_group, encode_record, parse_header
from casnap.errors import Damage, StorageFailed, TooNew
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.operation import CheckpointMade, PackRange
from casnap.store.layout import Layout
from casnap.store.packs import PackFiles
from casnap.store.store import Store
from support.stores import (
    WORKSPACE,
    chunk,
    commit_chunks,
    commit_session,
    make_store,
    noise,
    open_store,
    pack_files,
    put,
    remove_catalogs,
    segments,
)

CRAFTED = "ab" * 16


def sound(store: Store, *keys: ObjectKey) -> set[ObjectKey]:
    """Those of ``keys`` whose newest record, and the records that it builds on, have right checksums now."""
    places = store.parts.state.places(keys)
    return {key for key in places if store.parts.reader.is_sound(key, places[key][0])}


class Crafted:
    """A pack that is written by hand and then committed."""

    def __init__(self, store: Store, pack: str = CRAFTED) -> None:
        self.store = store
        self.pack = pack
        self.data = encode_pack_header(bytes.fromhex(pack), bytes.fromhex(store.id))
        self.entries: list[IndexEntry] = []

    def add(self, record: bytes, *keys: ObjectKey, group: bool = False) -> int:
        offset = len(self.data)
        self.data += record
        self.entries += [IndexEntry(key.kind, key.id, offset, slot if group else -1) for slot, key in enumerate(keys)]
        return offset

    def commit(self, damage: tuple[int, int] | None = None) -> None:
        index = self.add(encode_index_record(self.entries, 3))
        if damage is not None:
            start, end = damage
            self.data = self.data[:start] + bytes(end - start) + self.data[end:]
        path = self.store.path / "packs" / f"{self.pack}.pack"
        path.write_bytes(self.data)
        written = PackRange(self.pack, 0, len(self.data), index)
        self.store.commit(
            lambda _, line: CheckpointMade(
                seq=line.seq, time=line.time, prev=line.prev, workspace=WORKSPACE,
                id=chunk(line.prev.encode()).id.hex(), step=1, packs=line.packs or (written,),
            ),
            packs=(written,),
        )  # fmt: skip

    def raw(self, data: bytes) -> int:
        return self.add(encode_record(ObjectKind.CHUNK, chunk(data).id, Encoding.RAW, data, len(data)), chunk(data))

    def delta(self, data: bytes, base: bytes, *, depth: int, distance: int = 0, base_id: bytes = b"") -> int:
        payload = compress_delta(data, base, 3)
        record = encode_record(
            ObjectKind.CHUNK, chunk(data).id, Encoding.DELTA, payload, len(data),
            base_distance=distance, base_id=base_id, depth=depth,
        )  # fmt: skip
        return self.add(record, chunk(data))


def _versions(count: int) -> list[bytes]:
    text = noise("text", 3000)
    return [text[:1000] + b"version %d" % number + text[1000:] for number in range(count)]


def _flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make_store(tmp_path / "store")


def test_deltas_are_read_through_bases_by_distance_and_by_id(store: Store) -> None:
    contents = _versions(4)
    crafted = Crafted(store)
    offsets = [crafted.raw(contents[0])]
    offsets.append(crafted.delta(contents[1], contents[0], depth=1, distance=len(crafted.data) - offsets[0]))
    offsets.append(crafted.delta(contents[2], contents[1], depth=2, base_id=chunk(contents[1]).id))
    offsets.append(crafted.delta(contents[3], contents[2], depth=3, distance=len(crafted.data) - offsets[2]))
    crafted.commit()
    fresh = open_store(store.path)
    assert [fresh.read(chunk(data)) for data in contents] == contents
    assert sound(fresh, *map(chunk, contents)) == set(map(chunk, contents))


@pytest.mark.parametrize("depth", [1, 2])
def test_a_base_that_is_as_deep_as_its_delta_is_refused(store: Store, depth: int) -> None:
    contents = _versions(3)
    crafted = Crafted(store)
    first = crafted.raw(contents[0])
    second = crafted.delta(contents[1], contents[0], depth=2, distance=len(crafted.data) - first)
    crafted.delta(contents[2], contents[1], depth=depth, distance=len(crafted.data) - second)
    crafted.commit()
    assert store.read(chunk(contents[1])) == contents[1]
    with pytest.raises(Damage, match="as deep as itself"):
        store.read(chunk(contents[2]))
    assert sound(store, chunk(contents[2])) == set()


def test_deltas_that_go_round_in_a_circle_end_in_damage(store: Store) -> None:
    one, two = _versions(2)
    crafted = Crafted(store)
    crafted.delta(one, two, depth=1, base_id=chunk(two).id)
    crafted.delta(two, one, depth=1, base_id=chunk(one).id)
    crafted.commit()
    with pytest.raises(Damage):
        store.read(chunk(one))
    assert sound(store, chunk(one), chunk(two)) == set()


def test_a_base_is_checked_against_its_name_before_it_is_used(store: Store) -> None:
    base, other, data = noise(1, 3000), noise(2, 3000), noise(1, 2990) + b"end of it."
    crafted = Crafted(store)
    # The record claims to be `base` and holds other bytes; its checksums are right.
    lie = crafted.add(encode_record(ObjectKind.CHUNK, chunk(base).id, Encoding.RAW, other, len(other)), chunk(base))
    crafted.delta(data, base, depth=1, distance=len(crafted.data) - lie)
    crafted.commit()
    with pytest.raises(Damage, match="do not match its name"):
        store.read(chunk(data))


def test_objects_are_read_out_of_groups(store: Store) -> None:
    trees = [b"tree %d" % number * 50 for number in range(20)]
    keys = [ObjectKey(ObjectKind.TREE, object_id(ObjectKind.TREE, data)) for data in trees]
    keys[7] = chunk(trees[7])
    crafted = Crafted(store)
    crafted.add(encode_group(list(zip(keys, trees, strict=True)), 3), *keys, group=True)
    crafted.delta(trees[7] * 20, trees[7], depth=1, base_id=keys[7].id)
    crafted.commit()
    fresh = open_store(store.path)
    assert [fresh.read(key) for key in keys] == trees
    assert fresh.read(chunk(trees[7] * 20)) == trees[7] * 20
    assert sound(fresh, *keys) == set(keys)


def test_a_place_that_holds_another_object_is_damage(store: Store) -> None:
    crafted = Crafted(store)
    crafted.raw(b"one")
    crafted.entries = [IndexEntry(ObjectKind.CHUNK, chunk(b"two").id, crafted.entries[0].offset)]
    crafted.commit()
    with pytest.raises(Damage, match="another object lies at its place"):
        store.read(chunk(b"two"))
    assert sound(store, chunk(b"two")) == set()


def test_a_damaged_record_is_replaced_by_another_of_the_same_id(store: Store) -> None:
    data = noise(1)
    for pack in ("aa" * 16, "bb" * 16):
        crafted = Crafted(store, pack)
        crafted.raw(data)
        crafted.commit()
    places = store.state().places([chunk(data)])[chunk(data)]
    assert [place.pack for place in places] == ["bb" * 16, "aa" * 16]  # the last committed counts
    _flip(store.path / f"packs/{places[0].pack}.pack", places[0].offset + 60)
    fresh = open_store(store.path)
    assert fresh.read(chunk(data)) == data
    assert sound(fresh, chunk(data)) == set()
    _flip(store.path / f"packs/{places[1].pack}.pack", places[1].offset + 60)
    with pytest.raises(Damage, match="checksum"):
        open_store(store.path).read(chunk(data))


def test_a_bad_record_is_written_anew_when_its_bytes_come_by_again(store: Store) -> None:
    data = noise(1)
    commit_chunks(store, data)
    place = store.state().places([chunk(data)])[chunk(data)][0]
    _flip(pack_files(store.path)[0], place.offset + 60)
    with pytest.raises(Damage):
        store.read(chunk(data))
    commit_chunks(store, data)
    assert open_store(store.path).read(chunk(data)) == data
    assert sound(store, chunk(data)) == {chunk(data)}


def test_a_pack_that_is_gone_is_damage_and_heals(store: Store) -> None:
    data = noise(1)
    commit_chunks(store, data)
    store.present([chunk(data)])
    pack_files(store.path)[0].unlink()
    fresh = open_store(store.path)
    with pytest.raises(Damage, match="does not have it"):
        fresh.read(chunk(data))
    store._files.close()
    with pytest.raises(Damage, match="it is gone"):  # the other one had looked before
        store.read(chunk(data))
    commit_chunks(fresh, data)
    assert fresh.read(chunk(data)) == data


def test_a_reader_looks_again_when_a_pack_is_gone(store: Store) -> None:
    data = noise(1)
    commit_chunks(store, data)
    reader = open_store(store.path)
    assert reader.present([chunk(data)])
    pack_files(store.path)[0].unlink()
    commit_chunks(open_store(store.path), data)  # into a new pack, after the reader had looked
    assert reader.read(chunk(data)) == data


def test_a_damaged_index_record_is_replaced_by_a_scan(store: Store) -> None:
    contents = _versions(3)
    crafted = Crafted(store)
    first = crafted.raw(contents[0])
    crafted.delta(contents[1], contents[0], depth=1, distance=len(crafted.data) - first)
    crafted.delta(contents[2], contents[1], depth=2, base_id=chunk(contents[1]).id)
    group = [(chunk(b"a"), b"a"), (chunk(b"b"), b"b")]
    crafted.add(encode_group(group, 3), *(key for key, _ in group), group=True)
    crafted.commit(damage=(len(crafted.data), len(crafted.data) + 48))
    fresh = open_store(store.path)
    wanted = [*contents, b"a", b"b"]
    assert [fresh.read(chunk(data)) for data in wanted[:2]] == wanted[:2]
    assert [fresh.read(chunk(data)) for data in (b"a", b"b")] == [b"a", b"b"]


def test_a_scan_goes_on_behind_a_damaged_record(store: Store) -> None:
    crafted = Crafted(store)
    offsets = [crafted.raw(noise(number, 5000)) for number in range(4)]
    end = len(crafted.data)
    crafted.commit()
    path = store.path / f"packs/{CRAFTED}.pack"
    for offset in (offsets[1], end):
        _flip(path, offset + 5)
    remove_catalogs(store.path)
    fresh = open_store(store.path)
    assert fresh.present(chunk(noise(number, 5000)) for number in range(4)) == {
        chunk(noise(number, 5000)) for number in (0, 2, 3)
    }
    assert fresh.read(chunk(noise(3, 5000))) == noise(3, 5000)


def test_a_record_of_a_newer_kind_is_too_new_unless_another_one_is_good(store: Store) -> None:
    from casnap.codec.hashing import checksum

    data = noise(1)
    crafted = Crafted(store)
    offset = crafted.raw(data)
    crafted.commit()
    path = store.path / f"packs/{CRAFTED}.pack"
    content = bytearray(path.read_bytes())
    content[offset + 5] = 99
    content[offset + 32 : offset + 40] = checksum(bytes(content[offset : offset + 32]))
    path.write_bytes(content)
    with pytest.raises(TooNew):
        store.read(chunk(data))
    commit_chunks(store, data)
    assert open_store(store.path).read(chunk(data)) == data


def test_a_full_pack_is_sealed_and_another_begun(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("casnap.store.packs.PACK_SIZE", 50_000)
    contents = [noise(number, 9000) for number in range(20)]
    for number in range(0, 20, 4):
        commit_chunks(store, *contents[number : number + 4])
    files = pack_files(store.path)
    sealed = [file for file in files if file.stat().st_size >= 50_000]
    assert len(files) == 4
    assert len(sealed) == 3
    for file in sealed:
        data = file.read_bytes()
        seal = parse_trailer(data[-56:])
        assert parse_header(data[seal:]).kind is RecordKind.SEAL
        from casnap.codec.packs import decode_index
        from casnap.codec.records import check_payload, decode_payload

        header = parse_header(data[seal:])
        entries = decode_index(decode_payload(header, check_payload(header, data[seal:]), None))
        places = open_store(store.path).state().places(ObjectKey(e.kind, e.id) for e in entries)
        assert len(entries) == 6
        assert {(entry.id, entry.offset) for entry in entries} == {
            (key.id, place.offset) for key, [place] in places.items() if place.pack == file.stem
        }
    fresh = open_store(store.path)
    assert [fresh.read(chunk(data)) for data in contents] == contents
    remove_catalogs(store.path)
    fresh = open_store(store.path)
    assert [fresh.read(chunk(data)) for data in contents] == contents


def test_a_pack_of_one_commit_is_sealed_with_one_index(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("casnap.store.packs.PACK_SIZE", 20_000)
    contents = [noise(number, 9000) for number in range(3)]
    commit_chunks(store, *contents)
    (pack,) = pack_files(store.path)
    kinds = [record.header.kind for record in PackFiles(Layout(store.path)).records(pack.stem, 0, pack.stat().st_size)]
    assert kinds == [RecordKind.SESSION, *[RecordKind.CHUNK] * 3, RecordKind.SEAL, RecordKind.TRAILER]
    remove_catalogs(store.path)
    fresh = open_store(store.path)
    assert [fresh.read(chunk(data)) for data in contents] == contents


def test_a_sealed_pack_that_nobody_committed_is_adopted_whole(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("casnap.store.packs.PACK_SIZE", 20_000)
    contents = [noise(number, 9000) for number in range(3)]
    with store.session() as session:
        put(session, *contents)
        session.finish()
    (pack,) = pack_files(store.path)
    before = pack.read_bytes()
    commit_chunks(store, *contents)
    assert (pack_files(store.path), pack.read_bytes()) == ([pack], before)
    remove_catalogs(store.path)
    fresh = open_store(store.path)
    assert [fresh.read(chunk(data)) for data in contents] == contents


def test_a_pack_is_sealed_before_it_has_more_objects_than_an_index_may(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("writer", "adoption"):
        monkeypatch.setattr(f"casnap.store.{module}.MAX_ENTRIES", 10)
    commit_chunks(store, *(noise(number) for number in range(25)))
    assert len(pack_files(store.path)) == 3
    commit_chunks(store, *(noise(-number) for number in range(1, 9)))
    assert open_store(store.path).present(chunk(noise(number)) for number in range(-8, 25) if number) == {
        chunk(noise(number)) for number in range(-8, 25) if number
    }


def test_a_pack_with_fewer_bytes_than_were_committed_is_left_alone(store: Store) -> None:
    commit_chunks(store, noise(1), noise(2))
    [pack] = pack_files(store.path)
    os.truncate(pack, pack.stat().st_size - 8)
    size = pack.stat().st_size
    for number in range(3, 6):
        commit_chunks(store, noise(number))
    assert pack.stat().st_size == size
    assert len(pack_files(store.path)) == 2  # one other pack for all of them
    assert store.read(chunk(noise(5))) == noise(5)


def _leave_uncommitted(store: Store, *contents: bytes) -> None:
    with store.session() as session:
        put(session, *contents)
        session.finish()


def test_what_a_dead_session_left_is_adopted_and_not_written_again(store: Store) -> None:
    commit_chunks(store, noise(0))
    _leave_uncommitted(store, noise(1), noise(2))
    size = pack_files(store.path)[0].stat().st_size
    with store.session() as session:
        put(session, noise(3), noise(1), noise(2))
        commit_session(store, session)
        assert session.new_bytes < 1000
    assert pack_files(store.path)[0].stat().st_size - size < 1000
    fresh = open_store(store.path)
    for _ in range(2):
        assert [fresh.read(chunk(noise(number))) for number in range(4)] == [noise(number) for number in range(4)]
        remove_catalogs(store.path)
        fresh = open_store(store.path)


@pytest.mark.parametrize("junk", [b"x", b"\xc5rec" + bytes(60), bytes(4096)])
def test_what_lies_behind_the_last_valid_record_is_cut_off(store: Store, junk: bytes) -> None:
    commit_chunks(store, noise(0))
    _leave_uncommitted(store, noise(1))
    [pack] = pack_files(store.path)
    size = pack.stat().st_size
    with open(pack, "ab") as file:
        file.write(junk)
    with store.session() as session:
        put(session, noise(1))
        assert pack.stat().st_size == size
        assert session.new_bytes == 0
        commit_session(store, session)
    assert pack.stat().st_size == size + session.new_bytes
    assert open_store(store.path).read(chunk(noise(1))) == noise(1)


def test_a_tail_that_is_cut_at_any_byte_loses_only_the_record_that_is_cut(store: Store) -> None:
    commit_chunks(store, noise(0))
    start = pack_files(store.path)[0].stat().st_size
    _leave_uncommitted(store, noise(1), noise(2))
    [pack] = pack_files(store.path)
    data = pack.read_bytes()
    ends = [start + 80]  # a session record
    ends += [ends[-1] + parse_header(data[ends[-1] :]).size]
    ends += [ends[-1] + parse_header(data[ends[-1] :]).size]
    for cut in range(start, len(data), 13):
        pack.write_bytes(data[:cut])
        with store.session() as session:
            session.put(chunk(noise(9)), noise(9))
            adopted = session.present([chunk(noise(1)), chunk(noise(2))])
            assert len(adopted) == sum(cut >= end for end in ends[1:])


def test_a_record_whose_bytes_do_not_match_its_name_is_not_adopted(store: Store) -> None:
    commit_chunks(store, noise(0))
    [pack] = pack_files(store.path)
    good = encode_record(ObjectKind.CHUNK, chunk(noise(1)).id, Encoding.RAW, noise(1), 200)
    lie = encode_record(ObjectKind.CHUNK, chunk(noise(3)).id, Encoding.RAW, noise(2), 200)
    with open(pack, "ab") as file:
        file.write(good + lie)
    with store.session() as session:
        put(session, noise(9))
        assert session.present(chunk(noise(number)) for number in (1, 2, 3)) == {chunk(noise(1))}


def test_several_sealed_packs_of_a_killed_first_checkpoint_are_adopted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("casnap.store.packs.PACK_SIZE", 20_000)
    contents = [noise(number, 9000) for number in range(10)]
    _leave_uncommitted(store, *contents)
    files = {file: file.read_bytes() for file in pack_files(store.path)}
    assert len(files) == 4
    with store.session() as session:
        put(session, *contents, noise("one more"))
        commit_session(store, session)
    sealed = [file for file, data in files.items() if len(data) >= 20_000]
    assert len(sealed) == 3
    assert all(file.read_bytes() == files[file] for file in sealed)
    assert len(pack_files(store.path)) == 4
    remove_catalogs(store.path)
    fresh = open_store(store.path)
    assert [fresh.read(chunk(data)) for data in contents] == contents


@pytest.mark.parametrize("missing", [8, 56, 60, 400])
def test_a_pack_whose_seal_was_cut_short_is_sealed_anew(
    store: Store, monkeypatch: pytest.MonkeyPatch, missing: int
) -> None:
    monkeypatch.setattr("casnap.store.packs.PACK_SIZE", 20_000)
    contents = [noise(number, 9000) for number in range(3)]
    _leave_uncommitted(store, *contents)
    sealed = max(pack_files(store.path), key=lambda file: file.stat().st_size)
    os.truncate(sealed, sealed.stat().st_size - missing)
    with store.session() as session:
        put(session, noise(9), *contents)
        commit_session(store, session)
    parse_trailer(sealed.read_bytes()[-56:])
    remove_catalogs(store.path)
    fresh = open_store(store.path)
    assert [fresh.read(chunk(data)) for data in contents] == contents


@pytest.mark.parametrize("content", [b"", b"\xc5casnap", bytes(64), bytes(1000)])
def test_a_pack_that_was_only_begun_is_used(store: Store, content: bytes) -> None:
    (store.path / f"packs/{CRAFTED}.pack").write_bytes(content)
    commit_chunks(store, noise(1))
    assert [file.stem for file in pack_files(store.path)] == [CRAFTED]
    assert open_store(store.path).read(chunk(noise(1))) == noise(1)


def test_a_pack_of_another_store_is_left_as_it_is(store: Store, tmp_path: Path) -> None:
    other = make_store(tmp_path / "other")
    commit_chunks(other, noise(1))
    [pack] = pack_files(other.path)
    copy = store.path / "packs" / pack.name
    copy.write_bytes(pack.read_bytes())
    commit_chunks(store, noise(1))
    assert copy.read_bytes() == pack.read_bytes()
    assert len(pack_files(store.path)) == 2


def test_a_tail_of_a_newer_version_is_neither_adopted_nor_cut(store: Store) -> None:
    from casnap.codec.hashing import checksum

    commit_chunks(store, noise(0))
    [pack] = pack_files(store.path)
    record = bytearray(encode_record(ObjectKind.CHUNK, chunk(noise(1)).id, Encoding.RAW, noise(1), 200))
    record[4] = 200
    record[32:40] = checksum(bytes(record[:32]))
    with open(pack, "ab") as file:
        file.write(record)
    before = pack.read_bytes()
    commit_chunks(store, noise(2))
    assert pack.read_bytes() == before
    assert len(pack_files(store.path)) == 2


def test_two_sessions_at_once_use_two_packs(store: Store) -> None:
    commit_chunks(store, noise(0))
    other = open_store(store.path)
    with store.session() as first, other.session() as second:
        put(first, noise(1))
        put(second, noise(2))
        commit_session(other, second)
        commit_session(store, first)
    assert len(pack_files(store.path)) == 2
    fresh = open_store(store.path)
    assert [fresh.read(chunk(noise(number))) for number in range(3)] == [noise(number) for number in range(3)]
    commit_chunks(store, noise(3))
    assert len(pack_files(store.path)) == 2


def test_a_full_disk_gives_back_what_the_session_took(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    commit_chunks(store, noise(0))
    [pack] = pack_files(store.path)
    size, real = pack.stat().st_size, os.pwrite

    def full(fd: int, data: memoryview, offset: int) -> int:
        if offset > 1 << 20:
            raise OSError(28, "No space left on device")
        return real(fd, data[:1000], offset)

    with monkeypatch.context() as patch, store.session() as session:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(StorageFailed, match="No space left"):
            put(session, *(noise(number, 100_000) for number in range(50)))
            session.finish()
    assert pack.stat().st_size == size
    assert open_store(store.path).state().seq == 3
    assert segments(store.path)[0].read_bytes().count(b"\n") == 3


def test_a_session_whose_bytes_do_not_fit_when_they_are_read_back_is_of_no_more_use(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_chunks(store, noise(1))
    (pack,) = pack_files(store.path)
    before = pack.stat().st_size
    pwrite = os.pwrite
    with store.session() as session:
        put(session, noise(2, 300_000))
        assert session.read(chunk(noise(2, 300_000))) == noise(2, 300_000)
        assert pack.stat().st_size > before
        put(session, noise(3, 1000))

        def full(fd: int, data: bytes, offset: int) -> int:
            monkeypatch.setattr(os, "pwrite", pwrite)
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "pwrite", full)
        for _ in range(2):
            with pytest.raises(StorageFailed, match="No space left"):
                session.read(chunk(noise(3, 1000)))
        assert pack.stat().st_size == before
        with pytest.raises(StorageFailed, match="No space left"):
            commit_session(store, session)
    commit_chunks(store, noise(3, 1000))
    assert open_store(store.path).read(chunk(noise(3, 1000))) == noise(3, 1000)


def test_a_delta_is_sound_where_one_good_record_of_its_base_is_left(store: Store) -> None:
    base, data = _versions(2)
    first = Crafted(store, "aa" * 16)
    first.raw(base)
    first.delta(data, base, depth=1, base_id=chunk(base).id)
    first.commit()
    second = Crafted(store, "bb" * 16)
    second.raw(base)
    second.commit()
    newest = store.state().places([chunk(base)])[chunk(base)][0]
    _flip(store.path / f"packs/{newest.pack}.pack", newest.offset + 60)
    fresh = open_store(store.path)
    assert fresh.read(chunk(data)) == data
    assert sound(fresh, chunk(base), chunk(data)) == {chunk(data)}
