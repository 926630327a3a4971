"""``check``: every fault is found, named with whom it hurts, and nothing sound is called damaged."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from pathlib import Path

import pytest
from blake3 import blake3

from casnap import CheckpointManager
from casnap.codec.compression import compress_delta
from casnap.codec.lines import encode_line
from casnap.codec.packs import IndexEntry, encode_index_record, encode_pack_header
from casnap.codec.records import Encoding, RecordKind, encode_group, encode_record
from casnap.engine.checking.check import check
from casnap.engine.gc import collect
from casnap.errors import TooNew
from casnap.model.check import CheckReport, Fault, Finding
from casnap.model.clock import Silent
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.operation import PackCut, PackRange, StoreRepaired
from casnap.settings import load_settings
from casnap.settings.store_check import check_store
from casnap.store import gathering
from casnap.store.inspection import Inspection
from casnap.store.place_table import PlaceTable
from casnap.store.rows import Place
from support.stores import Ticking, catalogs, make_store, noise, open_store, pack_files, segments


@pytest.fixture
def store(home: Path) -> Path:
    return home / "store"


@pytest.fixture
def history(workspace: Path, store: Path) -> dict[str, bytes]:
    """Two checkpoints of four files: contents by their paths. ``deep/same`` is in both, ``late`` in the second."""
    contents = {"one": noise(1), "deep/same": noise(2), "deep/er/three": noise(3), "late": noise(4)}
    with CheckpointManager(workspace) as manager:
        for path, data in contents.items():
            if path == "late":
                manager.create("first")
                (workspace / "one").unlink()
            (workspace / path).parent.mkdir(parents=True, exist_ok=True)
            (workspace / path).write_bytes(data)
        manager.create("second")
    return contents


def look(store: Path, *, read_data: bool = False) -> CheckReport:
    return check(lambda: Inspection(store), Ticking(), Silent(), read_data=read_data)


def find(store: Path, data: bytes) -> tuple[Path, int]:
    """The pack that holds these bytes as they are, and where."""
    for pack in pack_files(store):
        if (at := pack.read_bytes().find(data)) >= 0:
            return pack, at
    raise AssertionError("no pack holds it")


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x20
    path.write_bytes(data)


def only(report: CheckReport) -> Finding:
    assert len(report.findings) == report.found == 1, report.findings
    return report.findings[0]


def hits(finding: Finding) -> dict[str | None, tuple[bytes, ...]]:
    return {hit.name: hit.paths for hit in finding.hits}


@pytest.mark.parametrize("read_data", [False, True])
def test_a_sound_store_is_clean_and_counted(history: dict[str, bytes], store: Path, read_data: bool) -> None:
    report = look(store, read_data=read_data)
    assert report, report.findings
    assert (report.findings, report.notes) == ((), ())
    # 4 contents, 2 checkpoints, trees: deep/er, deep, and a root for each checkpoint
    assert (report.totals.objects, report.totals.checkpoints) == (4 + 2 + 4, 2)
    assert report.totals.bytes == sum(path.stat().st_size for path in pack_files(store))
    assert report.totals.operations == sum(path.read_bytes().count(b"\n") for path in segments(store))


def test_a_damaged_payload_is_found_when_every_byte_is_read_and_hurts_just_those_that_need_it(
    history: dict[str, bytes], store: Path
) -> None:
    pack, at = find(store, history["deep/same"])
    flip(pack, at + 5)
    assert look(store)
    found = only(look(store, read_data=True))
    assert (found.fault, found.file, found.offset) == (Fault.OBJECT, f"packs/{pack.name}", at - 40)
    assert found.object == f"chunk {blake3(history['deep/same']).hexdigest()}"
    assert hits(found) == {"first": (b"deep/same",), "second": (b"deep/same",)}
    assert {hit.step for hit in found.hits} == {1, 2}
    assert found.next_step is not None
    assert "--repair" in found.next_step


@pytest.mark.parametrize(("path", "names"), [("one", {"first"}), ("late", {"second"})])
def test_a_damaged_header_is_found_at_once(history: dict[str, bytes], store: Path, path: str, names: set[str]) -> None:
    pack, at = find(store, history[path])
    flip(pack, at - 30)
    found = only(look(store))
    assert (found.offset, set(hits(found))) == (at - 40, names)
    assert hits(found)[next(iter(names))] == (path.encode(),)


def tree_names(store: Path) -> Inspection:
    inspection = Inspection(store)
    inspection.load_places()
    return inspection


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each object has a record of its own."""
    monkeypatch.setattr(gathering, "KINDS", frozenset())


@pytest.mark.usefixtures("apart")
def test_a_damaged_tree_takes_its_directory_along(history: dict[str, bytes], store: Path) -> None:
    inspection = tree_names(store)
    trees = [(key, place) for key, place in inspection.places.rows() if key.kind is ObjectKind.TREE]
    below = [(key, place) for key, place in trees if history["deep/er/three"] and b"three" in inspection.read(key)]
    ((key, place),) = below
    inspection.close()
    flip(store / "packs" / f"{place.pack}.pack", place.offset + 45)
    found = only(look(store))
    assert found.object == str(key)
    assert hits(found) == {"first": (b"deep/er",), "second": (b"deep/er",)}


@pytest.mark.usefixtures("apart")
def test_a_damaged_checkpoint_is_lost_as_a_whole(history: dict[str, bytes], store: Path) -> None:
    inspection = tree_names(store)
    row = inspection.checkpoints[0]
    (place,) = inspection.places.places(ObjectKey(ObjectKind.CHECKPOINT, row.id))
    inspection.close()
    flip(store / "packs" / f"{place.pack}.pack", place.offset + 60)
    found = only(look(store))
    assert hits(found) == {"first": ()}


def test_a_damaged_group_takes_all_its_objects_along(history: dict[str, bytes], store: Path) -> None:
    inspection = tree_names(store)
    lost = [(key, place) for key, place in inspection.places.rows() if place.slot >= 0]
    inspection.close()
    ((pack, offset),) = {place[:2] for _, place in lost}
    assert [key.kind for key, _ in lost] == [ObjectKind.TREE] * 3  # deep/er, deep, and the root of the first
    flip(store / "packs" / f"{pack}.pack", offset + 60)
    found = [hits(finding) for finding in look(store).findings]
    assert sorted(found, key=str) == [{"first": (b"",)}, {"second": (b"",)}]  # the second's root builds on the first's


def test_all_faults_are_told_and_not_only_the_first(history: dict[str, bytes], store: Path) -> None:
    for data in history.values():
        pack, at = find(store, data)
        flip(pack, at + 1)
    flip(store / "casnap-store.json", 3)
    report = look(store, read_data=True)
    assert [finding.fault for finding in report.findings] == [Fault.FORMAT] + [Fault.OBJECT] * 4


def test_a_cut_pack_and_one_that_is_gone_are_named(history: dict[str, bytes], store: Path) -> None:
    pack, at = find(store, history["late"])
    os.truncate(pack, at + 10)
    report = look(store)
    assert any("it has" in note.message and note.file == f"packs/{pack.name}" for note in report.notes)
    assert [hits(finding) for finding in report.findings] == [{"second": ()}]
    pack.unlink()
    report = look(store)
    assert report.findings[0].fault is Fault.PACK
    assert {hit.name for hit in report.hits} == {"first", "second"}


def test_a_record_that_has_a_good_copy_is_a_note(workspace: Path, store: Path) -> None:
    data = noise("twice")
    (workspace / "f").write_bytes(data)
    with CheckpointManager(workspace) as manager:
        manager.create("one")
    pack, at = find(store, data)
    flip(pack, at + 5)
    with CheckpointManager(workspace) as manager:
        os.utime(workspace / "f")
        manager.create("two")
    report = look(store, read_data=True)
    assert report, report.findings
    ((fault, offset),) = [(note.fault, note.offset) for note in report.notes]
    assert (fault, offset) == (Fault.RECORD, at - 40)


def test_what_does_not_belong_is_told_and_left_alone(history: dict[str, bytes], store: Path) -> None:
    for name in ("junk", "packs/junk", "packs/0123.pack", "oplog/junk"):
        (store / name).write_bytes(b"junk")
    report = look(store)
    assert report
    assert [(note.fault, note.file) for note in report.notes] == [
        (Fault.UNKNOWN_FILE, name) for name in ("junk", "packs/0123.pack", "packs/junk", "oplog/junk")
    ]
    assert (store / "packs" / "junk").read_bytes() == b"junk"


def test_a_pack_that_no_line_names_is_a_tail_and_no_damage(history: dict[str, bytes], store: Path) -> None:
    inspection = Inspection(store)
    header = encode_pack_header(b"p" * 16, bytes.fromhex(inspection.store_id))
    name = (b"p" * 16).hex() + ".pack"
    (store / "packs" / name).write_bytes(header)
    report = look(store)
    assert report
    assert [(note.fault, note.file, note.offset) for note in report.notes] == [(Fault.LEFTOVER, f"packs/{name}", 0)]


def test_a_damaged_stat_cache_is_harmless(history: dict[str, bytes], store: Path) -> None:
    (cache,) = (store / "cache").glob("*.stat")
    flip(cache, 40)
    report = look(store)
    assert report
    assert [(note.fault, note.file) for note in report.notes] == [(Fault.CACHE, f"cache/{cache.name}")]


def test_a_torn_last_line_is_a_note(history: dict[str, bytes], store: Path) -> None:
    with open(segments(store)[-1], "ab") as log:
        log.write(b'{"op":"reg')
    report = look(store)
    assert report
    assert [(note.fault, note.offset) for note in report.notes] == [
        (Fault.LEFTOVER, segments(store)[-1].stat().st_size - 10)
    ]


def test_a_last_line_that_has_its_end_was_not_torn_but_damaged(history: dict[str, bytes], store: Path) -> None:
    log = segments(store)[-1]
    data = log.read_bytes()
    log.write_bytes(data[:-40] + data[-30:])
    assert [(found.fault, found.file) for found in look(store).findings] == [(Fault.LOG, "oplog/0000000001.jsonl")]
    done = check_store(load_settings(store=store), Silent(), read_data=False, repair=True)
    assert done, done.findings
    assert done.totals.checkpoints == 2


def _damage_line(store: Path) -> int:
    flip(segments(store)[0], len(segments(store)[0].read_bytes().splitlines(keepends=True)[0]) + 20)
    return len(segments(store)[0].read_bytes().splitlines(keepends=True)[0])


def test_a_damaged_line_in_the_middle_is_named_by_its_place(history: dict[str, bytes], store: Path) -> None:
    at = _damage_line(store)
    report = look(store)
    found = [finding for finding in report.findings if finding.fault is Fault.LOG]
    assert [(finding.file, finding.offset) for finding in found] == [("oplog/0000000001.jsonl", at)]


def test_a_line_that_was_taken_out_is_missed(history: dict[str, bytes], store: Path) -> None:
    log = segments(store)[0]
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:1] + lines[2:]))
    report = look(store)
    found = [finding for finding in report.findings if finding.fault is Fault.LOG]
    assert [(finding.file, finding.offset) for finding in found] == [("oplog/0000000001.jsonl", len(lines[0]))]
    assert "1 between them" in found[0].message


def test_a_log_that_is_gone_is_one_finding(history: dict[str, bytes], store: Path) -> None:
    for segment in segments(store):
        segment.unlink()
    report = look(store)
    assert [finding.fault for finding in report.findings] == [Fault.LOG]


def test_a_catalog_that_says_something_else_is_damage(
    history: dict[str, bytes], workspace: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("casnap.store.follower.LONG_TAIL", 0)
    with CheckpointManager(workspace) as manager:  # now the catalog has it all
        manager.create("third")
    (catalog,) = catalogs(store)
    for table, change in {
        "checkpoints": "UPDATE checkpoints SET name = 'other'",
        "places": "DELETE FROM places WHERE kind = 3",
        "packs": "UPDATE packs SET length = length + 8",
    }.items():
        before = catalog.read_bytes()
        with sqlite3.connect(catalog) as connection:
            connection.execute(change)
        connection.close()
        report = look(store)
        assert [finding.fault for finding in report.findings] == [Fault.CATALOG], table
        catalog.write_bytes(before)
    assert look(store)


def put_pack(store: Path, *objects: tuple[bytes, bytes], named: list[IndexEntry] | None = None) -> str:
    """Commit a pack of these records (id, record), its index saying ``named`` or what is so."""
    opened = open_store(store)
    pack = os.urandom(16).hex()
    data, entries = encode_pack_header(bytes.fromhex(pack), bytes.fromhex(opened.id)), []
    for id, encoded in objects:
        entries.append(IndexEntry(ObjectKind.CHUNK, id, len(data)))
        data += encoded
    index = len(data)
    data += encode_index_record(entries if named is None else named, 3)
    (store / "packs" / f"{pack}.pack").write_bytes(data)
    written = PackRange(pack, 0, len(data), index)
    log = segments(store)[-1]
    text, _ = encode_line(
        StoreRepaired(seq=opened.state().seq + 1, time=1, prev=opened.state().last_hash, packs=(written,))
    )
    log.write_bytes(log.read_bytes() + text)
    opened.close()
    return f"packs/{pack}.pack"


def raw(data: bytes) -> tuple[bytes, bytes]:
    return blake3(data).digest(), encode_record(RecordKind.CHUNK, blake3(data).digest(), Encoding.RAW, data, len(data))


def test_an_index_that_names_other_objects_than_there_are_is_found(tmp_path: Path) -> None:
    path = tmp_path / "store"
    make_store(path).close()
    (id, record), other = raw(b"a" * 50), blake3(b"other").digest()
    pack = put_pack(path, (id, record), named=[IndexEntry(ObjectKind.CHUNK, other, 64)])
    report = look(path)
    assert (Fault.RECORD, pack, 64) in [(note.fault, note.file, note.offset) for note in report.notes]
    # The name begins alike, and only reading every byte tells.
    forged = id[:8] + other[8:]
    pack = put_pack(path, (id, record), named=[IndexEntry(ObjectKind.CHUNK, forged, 64)])
    assert (pack, 64) not in [(note.file, note.offset) for note in look(path).notes]
    assert (pack, 64) in [(note.file, note.offset) for note in look(path, read_data=True).notes]


def test_a_delta_without_its_base_is_found(tmp_path: Path) -> None:
    path = tmp_path / "store"
    make_store(path).close()
    id, gone = blake3(b"delta").digest(), blake3(b"gone").digest()
    record = encode_record(RecordKind.CHUNK, id, Encoding.DELTA, b"x", 50, base_id=gone, depth=1)
    pack = put_pack(path, (id, record))
    notes = [note for note in look(path).notes if note.file == pack]
    assert [note.offset for note in notes] == [64]
    assert "its base is missing" in notes[0].message


def test_more_deltas_on_one_base_than_are_good_are_told(tmp_path: Path) -> None:
    path = tmp_path / "store"
    make_store(path).close()
    base = raw(b"b" * 64)
    objects, at = [base], 64 + len(base[1])
    for number in range(65):
        id = blake3(b"%d" % number).digest()
        distance = at - 64
        objects.append(
            (id, encode_record(RecordKind.CHUNK, id, Encoding.DELTA, b"x", 50, base_distance=distance, depth=1))
        )
        at += len(objects[-1][1])
    pack = put_pack(path, *objects)
    assert any(note.file == pack and note.message.startswith("65 objects") for note in look(path).notes)


def test_a_line_of_a_newer_format_is_too_new(tmp_path: Path) -> None:
    path = tmp_path / "store"
    make_store(path).close()
    log = segments(path)[0]
    log.write_bytes(log.read_bytes() + log.read_bytes())
    body = b'{"op":"renew","seq":3,"time":1,"prev":"' + b"0" * 64 + b'"'
    log.write_bytes(log.read_bytes() + body + b',"hash":"' + hashlib.sha256(body).hexdigest().encode() + b'"}\n')
    with pytest.raises(TooNew):
        look(path)


def test_places_come_newest_first_and_once() -> None:
    table = PlaceTable()
    entries = [IndexEntry(ObjectKind.CHUNK, bytes([number]) * 32, 64 + 8 * number) for number in range(9)]
    table.add(3, "a" * 32, entries)
    table.add(5, "b" * 32, entries[2:4])
    table.add(7, "a" * 32, entries[3:])
    table.settle()
    key = ObjectKey(ObjectKind.CHUNK, bytes([3]) * 32)
    assert table.places(key) == [Place("b" * 32, 88, -1, 5), Place("a" * 32, 88, -1, 3)]
    assert table.row_of(ObjectKey(ObjectKind.TREE, bytes([3]) * 32)) == -1
    assert len(list(table.rows())) == 11
    table.cut(6, [PackCut("a" * 32, 80)])  # what a later line says of the pack counts
    assert table.places(key) == [Place("a" * 32, 88, -1, 7), Place("b" * 32, 88, -1, 5)]
    assert table.places(ObjectKey(ObjectKind.CHUNK, bytes([2]) * 32)) == [Place("b" * 32, 80, -1, 5)]
    assert table.places(ObjectKey(ObjectKind.CHUNK, bytes([1]) * 32)) == [Place("a" * 32, 72, -1, 3)]


def spoil_record(store: Path, data: bytes) -> None:
    """Damage the record that holds these bytes as they are."""
    pack, at = find(store, data)
    flip(pack, at + 3)


@pytest.fixture
def two_files(workspace: Path, store: Path) -> tuple[bytes, bytes]:
    """A checkpoint of two files that are alike: their contents."""
    one = noise("one", 2000)
    two = one[:1000] + noise("two", 20) + one[1000:]
    (workspace / "one").write_bytes(one)
    (workspace / "two").write_bytes(two)
    with CheckpointManager(workspace) as manager:
        manager.create("both")
    return one, two


def require_mended(store: Path, workspace: Path, healed: int) -> None:
    done = check_store(load_settings(store=store), Silent(), read_data=False, repair=True)
    assert (bool(done), done.healed) == (True, healed), done.findings
    assert look(store, read_data=True)
    with CheckpointManager(workspace) as manager:
        manager.restore_to(workspace.parent / "out", "both")
        for name in ("one", "two"):
            assert (workspace.parent / "out" / name).read_bytes() == (workspace / name).read_bytes()


def test_objects_in_a_group_are_each_looked_at_and_healed(
    two_files: tuple[bytes, bytes], workspace: Path, store: Path
) -> None:
    keys = [ObjectKey(ObjectKind.CHUNK, blake3(data).digest()) for data in two_files]
    group = encode_group(list(zip(keys, two_files, strict=True)), 3)
    entries = [IndexEntry(key.kind, key.id, 64, slot) for slot, key in enumerate(keys)]
    for data in two_files:
        spoil_record(store, data)
    file = put_pack(store, (b"", group), named=entries)
    report = look(store, read_data=True)
    assert report, report.findings
    assert len(report.notes) == 2
    flip(store / file, 64 + 60)
    found = look(store, read_data=True).findings  # each at one of its two bad copies
    assert {finding.object: hits(finding) for finding in found} == {
        str(key): {"both": (name,)} for key, name in zip(keys, (b"one", b"two"), strict=True)
    }
    require_mended(store, workspace, 2)


@pytest.mark.parametrize("by_id", [False, True])
def test_a_delta_goes_with_its_base_and_is_healed_in_full(
    two_files: tuple[bytes, bytes], workspace: Path, store: Path, by_id: bool
) -> None:
    base = noise("base", 2000) + two_files[0]
    id, first = raw(base)
    payload = compress_delta(two_files[1], base, 3)
    where = {"base_id": id} if by_id else {"base_distance": len(first)}
    key = blake3(two_files[1]).digest()
    delta = encode_record(RecordKind.CHUNK, key, Encoding.DELTA, payload, len(two_files[1]), depth=1, **where)
    file = put_pack(store, (id, first), (key, delta))
    spoil_record(store, two_files[1])
    assert look(store, read_data=True), "the delta is as good as what it stands for"
    flip(store / file, 64 + 45)  # the base's payload
    found = only(look(store, read_data=True))
    assert (found.object, hits(found)) == (f"chunk {key.hex()}", {"both": (b"two",)})
    require_mended(store, workspace, 1)


def test_a_catalog_that_has_not_seen_a_gc_knows_nothing_wrong(
    two_files: tuple[bytes, bytes], workspace: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with CheckpointManager(workspace) as manager:
        for number in range(70):  # so many that the catalog has seen most of them
            (workspace / "changing").write_bytes(noise(number, 3000))
            manager.create()
        manager.clean(3)
        monkeypatch.setattr("casnap.store.follower.Follower.flush", lambda self: None)
        context, _ = manager._find()
        assert collect(context).rewritten == 1
    report = look(store, read_data=True)
    assert report, report.findings
