"""What a commit writes together, and that nobody who reads or builds on it notices."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from casnap import CheckpointManager
from casnap.codec.hashing import object_id
from casnap.codec.records import NO_SLOT, Encoding, RecordHeader, RecordKind
from casnap.engine.gc import collect
from casnap.engine.gc_terms import Terms
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.settings import load_settings, open_context
from casnap.store import gathering
from casnap.store.layout import Layout
from casnap.store.packs import PackFiles
from casnap.store.rows import Place
from casnap.store.store import Store
from support.oracle import difference, snapshot
from support.stores import chunk, commit_session, make_store, noise, open_store, pack_files, remove_catalogs


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make_store(tmp_path / "store")


def tree(data: bytes) -> ObjectKey:
    return ObjectKey(ObjectKind.TREE, object_id(ObjectKind.TREE, data))


def keep(store: Store, *contents: bytes, base: bytes | None = None) -> None:
    """Commit trees of these bytes (which no tree has; the store does not mind)."""
    with store.session() as session:
        for data in contents:
            session.put(tree(data), data, None if base is None else tree(base))
        commit_session(store, session)


def found(store: Store, key: ObjectKey) -> tuple[Place, RecordHeader]:
    place = store.state().places([key])[key][0]
    return place, store.parts.reader.files.header(place.pack, place.offset)


def kinds(store: Store) -> list[RecordKind]:
    (pack,) = pack_files(store.path)
    return [one.header.kind for one in PackFiles(Layout(store.path)).records(pack.stem, 0, pack.stat().st_size)]


def test_the_small_trees_of_a_commit_are_in_one_group(store: Store) -> None:
    trees = [noise(number, 90) for number in range(5)]
    with store.session() as session:
        session.put(chunk(noise("chunk")), noise("chunk"))
        for data in trees:
            session.put(tree(data), data)
        assert session.present(map(tree, trees)) == session.standing(map(tree, trees)) == set(map(tree, trees))
        assert [session.read(tree(data)) for data in trees] == trees
        commit_session(store, session)
        assert session.new_bytes > sum(map(len, trees))
    assert kinds(store) == [RecordKind.SESSION, RecordKind.CHUNK, RecordKind.GROUP, RecordKind.INDEX]
    for fresh in (store, open_store(store.path)):
        assert [fresh.read(tree(data)) for data in trees] == trees
    remove_catalogs(store.path)
    assert [open_store(store.path).read(tree(data)) for data in trees] == trees


def test_a_checkpoint_is_in_no_group_and_neither_is_what_it_leads_to_first(
    workspace: Path, manager: CheckpointManager, home: Path
) -> None:
    for number in range(3):
        (workspace / f"directory {number}").mkdir()
        (workspace / f"directory {number}" / "file").write_bytes(noise(number))
    manager.create()
    (pack,) = pack_files(home / "store")
    files = PackFiles(Layout(home / "store"))
    found = Counter(one.header.kind for one in files.records(pack.stem, 0, pack.stat().st_size))
    assert (found[RecordKind.GROUP], found[RecordKind.TREE], found[RecordKind.CHECKPOINT]) == (1, 1, 1)


def test_one_tree_alone_is_a_record_by_itself_and_so_is_a_long_one(store: Store) -> None:
    keep(store, noise(1, 90))
    keep(store, noise(2, gathering.LARGEST), noise(3, gathering.LARGEST + 1))
    assert kinds(store).count(RecordKind.TREE) == 3
    assert kinds(store).count(RecordKind.GROUP) == 0


def test_a_group_of_a_commit_has_its_bound(store: Store) -> None:
    trees = [noise(number, 256) for number in range(300)]
    keep(store, *trees)
    assert kinds(store).count(RecordKind.GROUP) == 3
    counted = Counter(found(store, tree(data))[0].offset for data in trees)
    assert sorted(counted.values()) == [44, 128, 128]
    assert max(found(store, tree(data))[1].raw_size for data in trees) == gathering.MOST_BYTES + 4 + 5 * 128


def test_what_replaces_a_tree_in_a_group_is_a_difference_to_that_slot(store: Store) -> None:
    trees = [noise(number, 250) for number in range(4)]
    keep(store, *trees)
    new = trees[2] + b"one entry more"
    keep(store, new, base=trees[2])
    place, header = found(store, tree(new))
    assert place.slot == NO_SLOT
    assert (header.encoding, header.depth, header.base_id, header.base_slot) == (Encoding.DELTA, 1, b"", 2)
    assert header.base_distance == place.offset - found(store, tree(trees[2]))[0].offset
    fresh = open_store(store.path)
    assert fresh.read(tree(new)) == new
    assert fresh.parts.reader.stands(tree(new), fresh.state().places([tree(new)])[tree(new)])


def test_a_base_that_waits_is_written_before_what_builds_on_it(store: Store) -> None:
    old, new = noise(1, 250), noise(1, 250) + b"more"
    with store.session() as session:
        session.put(tree(noise(0, 90)), noise(0, 90))
        session.put(tree(old), old)
        session.put(tree(new), new, tree(old))
        commit_session(store, session)
    assert kinds(store) == [RecordKind.SESSION, RecordKind.GROUP, RecordKind.TREE, RecordKind.INDEX]
    assert found(store, tree(new))[1].base_slot == 1
    assert open_store(store.path).read(tree(new)) == new


def test_a_gc_keeps_the_slot_that_a_difference_builds_on_and_nothing_else_of_its_group(
    workspace: Path, manager: CheckpointManager, home: Path, tmp_path: Path
) -> None:
    for name in ("one/a", "one/b", "one/c", "two/d"):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_bytes(noise(name))
    manager.create("first")
    (workspace / "one" / "a").write_bytes(noise("edited"))
    (workspace / "two" / "d").unlink()
    manager.create("second")
    context = open_context(load_settings())
    store = context.store
    records = PackFiles(Layout(store.path)).records(pack_files(store.path)[0].stem, 0, 1 << 20)
    assert [one.header.base_slot for one in records if one.header.base_slot != NO_SLOT] != []
    manager.delete("first")
    assert collect(context, Terms(grace=0, share=0.0)).rewritten == 1
    (pack,) = pack_files(store.path)
    groups = [one for one in store.parts.reader.files.records(pack.stem, 0, 1 << 20) if one.header.kind.name == "GROUP"]
    assert [len(store.parts.reader.open_group(pack.stem, group)) for group in groups] == [2]  # of three
    manager.restore_to(tmp_path / "out", "second")
    assert difference(snapshot(workspace), snapshot(tmp_path / "out")) == []
    context.store.close()


def test_what_heals_is_in_no_group(store: Store) -> None:
    trees = [noise(number, 90) for number in range(3)]
    keep(store, *trees)
    place, header = found(store, tree(trees[0]))
    pack = store.path / "packs" / f"{place.pack}.pack"
    data = bytearray(pack.read_bytes())
    data[place.offset + header.payload_offset + 20] ^= 1
    pack.write_bytes(data)
    keep(store, *trees)
    assert [found(store, tree(data))[0].slot for data in trees] == [NO_SLOT] * 3
    assert [open_store(store.path).read(tree(data)) for data in trees] == trees


def test_a_pack_takes_no_more_objects_than_its_index_may_also_from_a_group(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("writer", "adoption"):
        monkeypatch.setattr(f"casnap.store.{module}.MAX_ENTRIES", 10)
    trees = [noise(number, 90) for number in range(25)]
    keep(store, *trees)
    assert len(pack_files(store.path)) == 3
    fresh = open_store(store.path)
    assert [fresh.read(tree(data)) for data in trees] == trees
