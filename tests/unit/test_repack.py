"""gc --repack: what becomes of objects, what it leaves alone, and that nothing depends on it."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from casnap import CheckpointManager
from casnap.codec.records import Encoding, RecordHeader, RecordKind
from casnap.engine.context import Context
from casnap.engine.gc import collect
from casnap.engine.gc_terms import ASKED_FOR, REPACKING
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.settings import load_settings, open_context
from casnap.store import compaction, packs, repacking
from casnap.store.collection import Collection
from casnap.store.packs import PackFiles
from casnap.store.rows import Place
from casnap.store.space import Space
from casnap.store.store import Store
from support.oracle import difference, snapshot
from support.stores import chunk, noise
from support.upkeep import lines_of


def text(seed: object, lines: int = 60) -> bytes:
    """A file as people write them: it compresses alone, and better beside its like."""
    rng = random.Random(repr(seed))
    words = ("return", "value", "index", "self", "import", "result", "handler", "state", "buffer")
    return b"".join(b"    %s = %d\n" % (" ".join(rng.choices(words, k=5)).encode(), n) for n in range(lines))


@pytest.fixture
def context(manager: CheckpointManager, workspace: Path) -> Iterator[Context]:
    """The store opened as another process would, after a first checkpoint of 40 files in four directories."""
    for number in range(40):
        path = workspace / f"d{number % 4}" / f"module{number}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text(number))
    manager.create("first")
    opened = open_context(load_settings())
    yield opened
    opened.store.close()


def header_of(store: Store, key: ObjectKey) -> tuple[Place, RecordHeader]:
    place = store.state().places([key])[key][0]
    return place, store.parts.reader.files.header(place.pack, place.offset)


def pack_bytes(context: Context) -> int:
    return sum(path.stat().st_size for path in (context.store.path / "packs").iterdir())


def require_exact(manager: CheckpointManager, trees: dict[str, Any], scratch: Path) -> None:
    for number, (name, tree) in enumerate(trees.items()):
        manager.restore_to(scratch / str(number), name)
        assert difference(tree, snapshot(scratch / str(number))) == [], name


def test_what_resembles_each_other_comes_into_one_frame_and_takes_less(
    manager: CheckpointManager, workspace: Path, context: Context, tmp_path: Path
) -> None:
    before = pack_bytes(context)
    report = collect(context, REPACKING)
    assert (report.repacked, report.rewritten, report.removed) == (1, 0, 0)
    assert before - pack_bytes(context) == report.freed_bytes > before // 4
    places = {header_of(context.store, chunk(text(number)))[0][:2] for number in range(40)}
    assert len(places) == 1
    trees = [key for key in _objects(context.store) if key.kind is ObjectKind.TREE]
    assert {header_of(context.store, key)[1].kind for key in trees} == {RecordKind.GROUP}
    assert {header_of(context.store, key)[0][:2] for key in trees}.isdisjoint(places)  # kinds do not mix
    manager.restore_to(tmp_path / "out", "first")
    assert difference(snapshot(workspace), snapshot(tmp_path / "out")) == []


def _objects(store: Store) -> set[ObjectKey]:
    from casnap.store.reach import reach

    seen: set[ObjectKey] = set()

    def mark(keys: Any) -> list[ObjectKey]:
        new = [key for key in keys if key not in seen]
        seen.update(new)
        return new

    reach(store, (ObjectKey(ObjectKind.CHECKPOINT, row.id) for row in store.state().all_checkpoints()), mark)
    return seen


def test_a_second_run_finds_nothing_to_do(manager: CheckpointManager, context: Context) -> None:
    collect(context, REPACKING)
    line, before = context.store.state().seq, pack_bytes(context)
    report = collect(context, REPACKING)
    assert (report.repacked, report.rewritten, report.freed_bytes) == (0, 0, 0)
    assert (context.store.state().seq, pack_bytes(context)) == (line, before)
    assert collect(context, ASKED_FOR).rewritten == 0


def test_what_came_since_is_repacked_and_what_was_at_rest_stays(
    manager: CheckpointManager, workspace: Path, context: Context, tmp_path: Path
) -> None:
    collect(context, REPACKING)
    (at_rest,) = context.store.state().packs()
    assert at_rest.repacked
    for number in range(5):
        (workspace / "d0" / f"new{number}.py").write_bytes(text(("new", number)))
    manager.create("second")
    rows = {row.id: row for row in context.store.state().packs()}
    assert len(rows) == 2  # nobody appends to a pack that is at rest
    assert rows.pop(at_rest.id) == at_rest
    assert [row.repacked for row in rows.values()] == [False]
    assert collect(context, REPACKING).repacked == 1
    assert at_rest in context.store.state().packs()
    assert all(row.repacked for row in context.store.state().packs())
    require_exact(manager, {"second": snapshot(workspace)}, tmp_path)


def test_a_new_version_of_what_is_at_rest_is_a_difference_to_it_and_stays_one(
    manager: CheckpointManager, workspace: Path, context: Context, tmp_path: Path
) -> None:
    collect(context, REPACKING)
    path = workspace / "d0" / "module0.py"
    versions = {"first": snapshot(workspace)}
    for number in range(6):
        path.write_bytes(path.read_bytes() + b"another line %d\n" % number)
        manager.create(f"v{number}")
        versions[f"v{number}"] = snapshot(workspace)
    depths = []
    for number in range(6):
        data = text(0) + b"".join(b"another line %d\n" % n for n in range(number + 1))
        _, header = header_of(context.store, chunk(data))
        assert header.encoding is Encoding.DELTA
        depths.append((header.depth, header.standing))
    assert depths == [(1, 1), (2, 2), (3, 3), (4, 4), (1, 5), (2, 6)]
    before = pack_bytes(context)
    assert collect(context, REPACKING).repacked == 1
    assert pack_bytes(context) < before + 500
    assert header_of(context.store, chunk(data))[1].encoding is Encoding.DELTA  # what it differs from is at rest
    require_exact(manager, versions, tmp_path)


def test_many_versions_of_one_file_stay_differences_and_few_come_into_one_frame(
    manager: CheckpointManager, workspace: Path, context: Context, tmp_path: Path
) -> None:
    rng = random.Random(1)
    long = rng.randbytes(20_000).hex().encode()
    versions = {}
    for number in range(5):
        (workspace / "long").write_bytes(long + b"version %d\n" % number)
        (workspace / "short").write_bytes(text("short") + b"version %d\n" % number)
        manager.create(f"v{number}")
        versions[f"v{number}"] = snapshot(workspace)
    collect(context, REPACKING)
    kinds = {
        name: Counter(header_of(context.store, chunk(data + b"version %d\n" % n))[1].encoding for n in range(5))
        for name, data in (("long", long), ("short", text("short")))
    }
    assert kinds == {"long": {Encoding.DELTA: 4, Encoding.ZSTD: 1}, "short": {Encoding.GROUP: 5}}
    require_exact(manager, versions, tmp_path)


def test_what_does_not_compress_and_what_is_long_stands_alone(
    manager: CheckpointManager, workspace: Path, context: Context
) -> None:
    image, lines = noise("image", 9_000), text("lines", 6_000)
    assert len(lines) > repacking.LARGEST_MEMBER
    (workspace / "image").write_bytes(image)
    (workspace / "lines").write_bytes(lines)
    manager.create("second")
    before = header_of(context.store, chunk(lines))[1]
    collect(context, REPACKING)
    assert header_of(context.store, chunk(image))[1].encoding is Encoding.RAW
    after = header_of(context.store, chunk(lines))[1]
    assert (before.encoding, after.encoding) == (Encoding.ZSTD, Encoding.ZSTD)
    assert after.payload_size < before.payload_size


def test_groups_are_cut_by_their_bytes_and_by_their_objects(
    manager: CheckpointManager, workspace: Path, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repacking, "GROUP_SIZE", 10_000)
    collect(context, REPACKING)
    sizes = [header_of(context.store, chunk(text(number)))[1].raw_size for number in range(40)]
    assert max(sizes) <= 10_000 + 4 + 5 * 40
    for number in range(9):
        (workspace / f"s{number}").write_bytes(b"short %d" % number)
    manager.create("second")
    monkeypatch.setattr(repacking, "MOST_MEMBERS", 4)
    collect(context, REPACKING)
    counted = Counter(header_of(context.store, chunk(b"short %d" % number))[0][:2] for number in range(9))
    assert sorted(counted.values()) == [1, 4, 4]


def test_a_dry_run_says_what_a_run_does_and_writes_nothing(manager: CheckpointManager, context: Context) -> None:
    before = {path: path.read_bytes() for path in context.store.path.rglob("*") if path.is_file()}
    told = collect(context, REPACKING, dry_run=True)
    assert {path: path.read_bytes() for path in context.store.path.rglob("*") if path.is_file()} == before
    assert replace(told, dry_run=False) == collect(context, REPACKING)


def test_a_group_of_which_much_is_dead_is_made_anew_from_the_rest(
    manager: CheckpointManager, workspace: Path, context: Context, tmp_path: Path
) -> None:
    for number in range(30):
        (workspace / f"d{number % 4}" / f"module{number}.py").unlink()
    manager.create("second")
    collect(context, REPACKING)
    before = pack_bytes(context)
    manager.delete("first")
    report = collect(context, ASKED_FOR)
    assert (report.rewritten, report.repacked) == (1, 0)
    assert before - pack_bytes(context) == report.freed_bytes > before // 3
    assert not context.store.present(chunk(text(number)) for number in range(30))
    left = [header_of(context.store, chunk(text(number))) for number in range(30, 40)]
    assert {header.kind for _, header in left} == {RecordKind.GROUP}
    assert [place.slot for place, _ in left if place.slot < 0] == []
    again = collect(context, ASKED_FOR)
    assert (again.rewritten, again.freed_bytes) == (0, 0)
    require_exact(manager, {"second": snapshot(workspace)}, tmp_path)


def test_no_more_is_repacked_together_than_there_is_room_for(
    manager: CheckpointManager, workspace: Path, context: Context, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(packs, "PACK_SIZE", 10_000)
    for number in range(6):
        (workspace / "f").write_bytes(noise(number, 12_000))
        manager.create(f"c{number}")
    start, packed = pack_bytes(context), len(context.store.state().packs())
    assert start > 100_000
    peak: list[int] = []

    finish = Collection.finish

    def free(_space: Space) -> tuple[int, int]:
        return max(0, start + 60_000 - pack_bytes(context)) + (128 << 10), 1 << 30

    def finished(self: Collection) -> Any:
        ranges = finish(self)
        peak.append(pack_bytes(context))
        return ranges

    monkeypatch.setattr(Space, "free", free)
    monkeypatch.setattr(Collection, "finish", finished)
    report = collect(context, REPACKING)
    assert (report.repacked, report.notes) == (packed, ())
    assert start < max(peak) <= start + 60_000
    monkeypatch.undo()
    (workspace / "f").write_bytes(b"one more")
    manager.create("last")
    monkeypatch.setattr(Space, "free", lambda _space: (100 << 10, 1 << 30))
    report = collect(context, REPACKING)
    assert (report.repacked, len(report.notes)) == (0, 1)
    assert "no room" in report.notes[0]
    monkeypatch.undo()
    require_exact(manager, {"last": snapshot(workspace)}, tmp_path)


def test_what_became_needed_while_it_repacked_is_not_lost(
    manager: CheckpointManager, workspace: Path, context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = {path: path.read_bytes() for path in workspace.glob("d1/*")}
    for path in kept:
        path.unlink()
    manager.create("second")
    manager.delete("first")
    trees = {"second": snapshot(workspace)}
    repack = Collection.repack

    def there_again(self: Collection, *arguments: Any) -> Any:
        cuts = repack(self, *arguments)
        for path, data in kept.items():
            path.write_bytes(data)
        with CheckpointManager(workspace) as other:
            other.create("third")  # finds what is dead so far, and writes nothing of it
        return cuts

    monkeypatch.setattr(Collection, "repack", there_again)
    report = collect(context, REPACKING)
    monkeypatch.undo()
    assert report.repacked == 0
    trees["third"] = snapshot(workspace)
    require_exact(manager, trees, tmp_path)
    assert collect(context, REPACKING).repacked > 0
    require_exact(manager, trees, tmp_path / "again")


def test_who_reads_neighbours_decodes_a_group_once(
    manager: CheckpointManager, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    collect(context, REPACKING)
    read: list[tuple[str, int]] = []
    record = PackFiles.record

    def counted(self: PackFiles, pack: str, offset: int) -> Any:
        read.append((pack, offset))
        return record(self, pack, offset)

    monkeypatch.setattr(PackFiles, "record", counted)
    fresh = open_context(load_settings()).store
    assert [fresh.read(chunk(text(number))) for number in range(40)] == [text(number) for number in range(40)]
    assert len([one for one in read if one == header_of(fresh, chunk(text(0)))[0][:2]]) == 1
    fresh.close()


def test_a_group_is_read_anew_when_its_pack_may_have_changed(manager: CheckpointManager, context: Context) -> None:
    collect(context, REPACKING)
    store = context.store
    key = chunk(text(0))
    place, header = header_of(store, key)
    assert store.read(key) == text(0)
    path = store.path / "packs" / f"{place.pack}.pack"
    data = bytearray(path.read_bytes())
    data[place.offset + header.payload_offset + 50] ^= 1
    path.write_bytes(data)
    assert not store.parts.reader.is_sound(key, place)
    store.parts.reader.files.close()
    with pytest.raises(Exception, match="checksum"):
        store.parts.reader.load(key, place)


def test_the_line_says_that_the_packs_are_at_rest_and_a_new_catalog_knows_it(
    manager: CheckpointManager, context: Context
) -> None:
    collect(context, REPACKING)
    assert [line["repacked"] for line in lines_of(context.store.path) if line["op"] == "gc"] == [True]
    for file in context.store.path.glob("catalog-*"):
        file.unlink()
    fresh = open_context(load_settings())
    assert [row.repacked for row in fresh.store.state().packs()] == [True]
    assert collect(fresh, REPACKING).repacked == 0
    fresh.store.close()


def test_a_repack_that_is_stopped_in_the_middle_leaves_the_store_as_it_was(
    manager: CheckpointManager, workspace: Path, context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path.name: path.read_bytes() for path in (context.store.path / "packs").iterdir()}

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(compaction, "encode_group", interrupted)
    with pytest.raises(KeyboardInterrupt):
        collect(context, REPACKING)
    monkeypatch.undo()
    assert {path.name: path.read_bytes() for path in (context.store.path / "packs").iterdir()} == before
    assert collect(context, REPACKING).repacked == 1
    require_exact(manager, {"first": snapshot(workspace)}, tmp_path)
    assert os.listdir(context.store.path / "packs") != list(before)
