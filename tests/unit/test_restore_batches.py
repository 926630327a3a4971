"""Contents of many files: read together, in the order in which they lie, and each checked."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from pathlib import Path

import pytest
from blake3 import blake3

from casnap import CheckpointManager, Damage
from casnap.engine import content
from casnap.engine.content import Contents
from casnap.model.ids import ObjectKey
from casnap.model.tree import File
from casnap.store import objects
from casnap.store.catalog import Catalog
from casnap.store.packs import PackFiles
from casnap.store.store import Store
from support.oracle import difference, snapshot
from support.stores import chunk, commit_chunks, make_store, noise, open_store, pack_files


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make_store(tmp_path / "store")


def _file(data: bytes) -> File:
    return File(b"f", 0o644, 0, 0, 0, 0, (), len(data), 0, blake3(data).digest(), b"")


def test_many_objects_are_read_in_the_order_in_which_they_lie(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = [noise(number) for number in range(20)]
    commit_chunks(store, *contents)
    keys = [chunk(data) for data in contents]
    random.Random(1).shuffle(keys)
    offsets: list[int] = []
    read_bytes = PackFiles.read

    def watched(files: PackFiles, pack: str, offset: int, size: int) -> bytes:
        offsets.append(offset)
        return read_bytes(files, pack, offset, size)

    opened = open_store(store.path)
    opened.present(keys)  # has the index record read
    monkeypatch.setattr(objects, "_NEAR", 0)
    with monkeypatch.context() as patch:
        patch.setattr(PackFiles, "read", watched)
        read = opened.read_many([*keys, chunk(b"not there")])
    assert read == {chunk(data): data for data in contents}
    assert offsets == sorted(offsets)
    assert len(offsets) == 20


def test_objects_that_lie_near_each_other_are_read_at_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = [noise(number, 100) for number in range(20)]
    commit_chunks(store, *contents)
    opened = open_store(store.path)
    opened.present(map(chunk, contents))
    reads: list[int] = []
    read_bytes = PackFiles.read

    def watched(files: PackFiles, pack: str, offset: int, size: int) -> bytes:
        reads.append(offset)
        return read_bytes(files, pack, offset, size)

    monkeypatch.setattr(PackFiles, "read", watched)
    assert opened.read_many(map(chunk, contents)) == {chunk(data): data for data in contents}
    assert len(reads) == 1


def test_an_object_is_not_taken_for_another_that_lies_at_its_place(store: Store) -> None:
    contents = [noise(number, 100) for number in range(3)]
    commit_chunks(store, *contents)
    keys = [chunk(data) for data in contents]
    opened = open_store(store.path)
    places = opened.parts.state.places(keys)
    swapped = {keys[0]: places[keys[1]], keys[1]: places[keys[0]], keys[2]: places[keys[2]]}
    assert opened.parts.reader.load_many(swapped) == {keys[2]: contents[2]}


def test_an_object_whose_newest_record_is_bad_is_left_to_be_read_by_itself(store: Store) -> None:
    good, bad = noise(1), noise(2)
    commit_chunks(store, good, bad)
    (pack,) = pack_files(store.path)
    data = bytearray(pack.read_bytes())
    data[data.index(bad)] ^= 1
    pack.write_bytes(data)
    opened = open_store(store.path)
    assert opened.read_many([chunk(good), chunk(bad)]) == {chunk(good): good}
    files = [_file(good), _file(bad)]
    contents = Contents(opened, files)
    assert list(contents.of(files[0])) == [good]
    with pytest.raises(Damage, match="checksum"):
        list(contents.of(files[1]))


def test_files_come_in_any_order_also_twice_and_are_read_in_batches(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content, "AHEAD", 4)
    monkeypatch.setattr(content, "AHEAD_BYTES", 1000)
    datas = [b"", *(noise(number, 10 + 90 * (number % 7)) for number in range(12)), b""]
    datas += datas[3:5]
    commit_chunks(store, *set(datas))
    opened = open_store(store.path)
    asked: list[set[ObjectKey]] = []
    read_many = Store.read_many

    def watched(self: Store, keys: set[ObjectKey]) -> dict[ObjectKey, bytes]:
        asked.append(set(keys))
        return read_many(self, keys)

    monkeypatch.setattr(Store, "read_many", watched)
    files = [_file(data) for data in datas]
    contents = Contents(opened, files)
    assert [b"".join(contents.of(file)) for file in files] == datas
    assert max(map(len, asked)) <= 4
    assert len(asked) < len(files)
    assert [b"".join(contents.of(file)) for file in reversed(files)] == datas[::-1]  # not as was said: one by one


def test_the_trees_of_a_level_are_looked_up_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = tmp_path / "workspace"
    for number in range(100):
        (workspace / f"d{number}" / "in").mkdir(parents=True)
        (workspace / f"d{number}" / "in" / "f").write_text(f"{number}")
    CheckpointManager(workspace, store=tmp_path / "store").create()
    asked: list[int] = []
    read, read_many = Store.read, Store.read_many

    def one(self: Store, key: ObjectKey) -> bytes:
        asked.append(1)
        return read(self, key)

    def many(self: Store, keys: Iterable[ObjectKey]) -> dict[ObjectKey, bytes]:
        keys = list(keys)
        asked.append(len(keys))
        return read_many(self, keys)

    monkeypatch.setattr(Store, "read", one)
    monkeypatch.setattr(Store, "read_many", many)
    CheckpointManager(workspace, store=tmp_path / "store").restore_to(tmp_path / "restored")
    assert [count for count in asked if count > 1] == [100, 100, 100]  # two levels, files
    assert len(asked) < 8  # the checkpoint, the root


def test_a_full_restore_costs_few_calls_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace, count = tmp_path / "workspace", 600
    for directory in ("a", "b", "c"):
        (workspace / directory).mkdir(parents=True)
        for number in range(count // 3):
            (workspace / directory / f"f{number}").write_text(f"{directory} {number}")
    CheckpointManager(workspace, store=tmp_path / "store").create()
    calls: dict[str, int] = {}

    def counted(owner: object, name: str) -> None:
        real = getattr(owner, name)

        def count_one(*args: object, **options: object) -> object:
            calls[name] = calls.get(name, 0) + 1
            return real(*args, **options)

        monkeypatch.setattr(owner, name, count_one)

    names = ("open", "dup", "fstat", "lstat", "chmod", "fchmod", "chown", "listxattr", "utime", "write", "close")
    for name in (*names, "rename", "link", "unlink", "mkdir"):
        counted(os, name)
    counted(Catalog, "fetch")
    CheckpointManager(workspace, store=tmp_path / "store").restore_to(tmp_path / "restored")
    few = 60  # directories, packs, the log
    assert calls["open"] == pytest.approx(count, abs=few)
    assert calls["close"] == pytest.approx(count, abs=few)
    assert calls["write"] == count
    assert calls["utime"] == count + 4  # and four directories
    assert calls["mkdir"] == 5  # and a staging directory
    assert calls["rename"] == 3
    assert calls.get("dup", 0) == 0
    assert calls["fetch"] < few
    assert (
        sum(calls.get(name, 0) for name in ("fstat", "lstat", "chmod", "chown", "listxattr", "unlink")) < 2 * few
    )  # the directories above take some
    assert calls["fchmod"] == 1  # of the inode from which is learnt what is given
    monkeypatch.undo()
    assert difference(snapshot(workspace), snapshot(tmp_path / "restored")) == []
