"""``du``: against sums that are made one checkpoint at a time, from records that are found by walking the packs."""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from casnap import CheckpointManager
from casnap.codec.checkpoints import decode_checkpoint
from casnap.codec.chunk_lists import ListLeaf, walk_chunk_list
from casnap.codec.packs import IndexEntry, encode_index_record, encode_pack_header
from casnap.codec.records import encode_group
from casnap.codec.trees import Leaf, load_listing, walk_tree
from casnap.engine.context import Context
from casnap.engine.du import by_checkpoint, by_workspace, excluding, largest_directories
from casnap.engine.holding import Holdings
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.operation import CheckpointMade, PackRange
from casnap.model.report import WorkspaceInfo
from casnap.model.tree import Directory, File
from casnap.settings import load_settings, open_context, resolve_workspace
from casnap.store import gathering
from casnap.store.sizes import record_sizes
from support.cases import flip
from support.stores import chunk, make_store, noise

MAGIC = b"\xc5rec"


@pytest.fixture
def context(workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch) -> Iterator[Context]:
    monkeypatch.setattr(gathering, "KINDS", frozenset())  # each object has a record of its own
    (workspace / "seed").write_bytes(noise("seed", 3000))
    manager.create("c1")
    context = open_context(load_settings())
    yield context
    context.store.close()


def here(context: Context, workspace: Path) -> WorkspaceInfo:
    return resolve_workspace(load_settings(), context, str(workspace))


def records(store: Path) -> dict[tuple[int, bytes], int]:
    """Bytes of every object's record by kind and the first 8 bytes of its id, as docs/format/record.md has them."""
    found = {}
    for pack in (store / "packs").iterdir():
        data, at = pack.read_bytes(), 64
        while at < len(data):
            magic, kind, _, _, form, payload, _, prefix = struct.unpack_from("<4sBBBBII8s", data, at)
            assert magic == MAGIC
            size = -(-(40 + (32 if form == 2 else 0) + payload + 8) // 8) * 8
            if kind <= 4:
                found[kind, prefix] = size
            at += size
    return found


def reach(context: Context, checkpoint_id: str) -> set[ObjectKey]:
    """All objects of one checkpoint, with no regard to what others have."""
    top = ObjectKey(ObjectKind.CHECKPOINT, bytes.fromhex(checkpoint_id))
    found, waiting = {top}, [decode_checkpoint(context.store.read(top)).root.tree]
    while waiting:
        tree = waiting.pop()
        for id, node in walk_tree(context.store, tree):
            found.add(ObjectKey(ObjectKind.TREE, id))
            for entry in node.entries if isinstance(node, Leaf) else ():
                if isinstance(entry, Directory):
                    waiting.append(entry.tree)
                elif isinstance(entry, File) and not entry.chunk_list:
                    found.add(ObjectKey(ObjectKind.CHUNK, entry.content))
                elif isinstance(entry, File):
                    for list_id, page in walk_chunk_list(context.store, entry.chunk_list):
                        found.add(ObjectKey(ObjectKind.CHUNK_LIST, list_id))
                        chunks = page.entries if isinstance(page, ListLeaf) else ()
                        found |= {ObjectKey(ObjectKind.CHUNK, chunk_id) for _, chunk_id in chunks}
    return found


def stored(context: Context, *sets: set[ObjectKey]) -> int:
    sizes = records(Path(context.store.path))
    return sum(sizes[key.kind, key.id[:8]] for key in set().union(*sets))


def apparent(directory: Path) -> tuple[int, int]:
    files = [path for path in directory.rglob("*") if path.is_file() and not path.is_symlink()]
    return sum(path.stat().st_size for path in files), len(files)


def edit(directory: Path, chance: random.Random) -> None:
    """A few changes, among them a directory long enough for pages and a file long enough for a chunk list."""
    for name in chance.sample(["a", "b", "c", "deep/er/d"], 2):
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(chance.randbytes(chance.randrange(1, 5000)))
    if chance.random() < 0.5:
        long = directory / "long"
        long.write_bytes((long.read_bytes() if long.exists() else noise("long", 3 << 20)) + chance.randbytes(1000))
    many = directory / "many"
    many.mkdir(exist_ok=True)
    for number in range(600):
        (many / f"{number}").write_bytes(b"" if chance.random() < 0.99 else chance.randbytes(40))


@pytest.mark.parametrize("seed", range(3))
def test_each_checkpoint_alone_holds_what_no_other_leads_to(
    seed: int, workspace: Path, manager: CheckpointManager, context: Context, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    sizes = {manager.show().id: apparent(workspace)[0]}
    for number in range(4):
        edit(workspace, chance)
        (workspace / "only").write_bytes(noise(f"only {number}", 4000))
        sizes[manager.create().id] = apparent(workspace)[0]
    edit(workspace, chance)
    safety = manager.rollback("c1").safety
    assert safety is not None
    other = tmp_path / "other"
    other.mkdir()
    for number in (1, 2):  # what one checkpoint here has alone, and what the deleted one has
        (other / f"{number}").write_bytes(noise(f"only {number}", 4000))
    with CheckpointManager(other) as second:
        elsewhere = reach(context, second.create().id)
    gone = manager.list()[1].id
    manager.delete(gone)

    report = by_checkpoint(context, here(context, workspace))
    listed = [one.checkpoint.id for one in report.checkpoints]
    assert listed == [one.id for one in manager.list(safety=True)]
    assert report.checkpoints[listed.index(safety.id)].checkpoint.safety
    held = {id: reach(context, id) for id in listed}
    for one in report.checkpoints:
        others = set().union(elsewhere, *(found for id, found in held.items() if id != one.checkpoint.id))
        assert one.alone == stored(context, held[one.checkpoint.id] - others)
        assert one.size == sizes.get(one.checkpoint.id, one.size)
    assert report.stored == stored(context, *held.values())
    assert report.deleted.checkpoints == 1
    assert report.deleted.bytes == stored(context, reach(context, gone).difference(elsewhere, *held.values())) > 0
    assert report.problems == ()


def test_each_workspace_alone_holds_what_no_other_leads_to(
    workspace: Path, manager: CheckpointManager, context: Context, tmp_path: Path
) -> None:
    (workspace / "both").write_bytes(noise("both", 4000))
    own = [manager.create().id for _ in range(2)] + [manager.show("c1").id]
    other = tmp_path / "other"
    other.mkdir()
    (other / "both").write_bytes(noise("both", 4000))
    (other / "large").write_bytes(noise("large", 50_000))
    with CheckpointManager(other) as second:
        theirs = second.create().id
        second.forget()
    third = tmp_path / "third"
    third.mkdir()
    with CheckpointManager(third) as emptied:
        emptied.create()
        emptied.forget()
    manager.delete(own[0])
    report = by_workspace(context)
    sets = {str(workspace): [reach(context, id) for id in own[1:]], str(other): [reach(context, theirs)]}
    assert [one.workspace.path for one in report.workspaces][:2] == [str(other), str(workspace)]
    for one in report.workspaces[:2]:
        mine = sets[one.workspace.path]
        rest = set().union(*(found for path, found in sets.items() for found in found if path != one.workspace.path))
        assert (one.checkpoints, one.stored) == (len(mine), stored(context, *mine))
        assert one.alone == stored(context, set().union(*mine) - rest)
    assert [one.forgotten for one in report.workspaces] == [True, False, True]
    everything = [*sets[str(workspace)], *sets[str(other)]]
    with CheckpointManager(third) as emptied:
        everything.append(reach(context, emptied.create().id))
    assert by_workspace(context).workspaces[2].workspace.path == str(third)
    assert report.deleted.checkpoints == 1
    assert report.deleted.bytes == stored(context, reach(context, own[0]).difference(*everything))


def test_every_object_is_read_once_however_many_checkpoints_share_it(
    workspace: Path, manager: CheckpointManager, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(workspace, random.Random(0))
    for number in range(5):
        (workspace / "seed").write_text(str(number))
        manager.create()
    ids = [one.id for one in manager.list()]
    reads: list[ObjectKey] = []
    read = type(context.store).read
    monkeypatch.setattr(type(context.store), "read", lambda store, key: (reads.append(key), read(store, key))[1])
    holdings = Holdings(context.store)
    for id in ids:
        holdings.add(key_of(id))
    assert len(reads) == len(set(reads)) > 10
    assert not [key for key in reads if key.kind is ObjectKind.CHUNK]


def test_objects_of_a_group_share_its_size(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    parts = [noise(number, 50) for number in range(3)]
    group = encode_group([(chunk(part), part) for part in parts], 3)
    entries = [IndexEntry(ObjectKind.CHUNK, chunk(part).id, 64, slot) for slot, part in enumerate(parts)]
    index = encode_index_record(entries, 3)
    name = "ab" * 16
    data = encode_pack_header(bytes.fromhex(name), bytes.fromhex(store.id)) + group + index
    (tmp_path / "store" / "packs" / f"{name}.pack").write_bytes(data)
    written = PackRange(name, 0, len(data), 64 + len(group))
    with store.session() as session:
        session.finish = lambda: (written,)  # type: ignore[method-assign]
        store.commit(
            lambda _, line: CheckpointMade(
                seq=line.seq, time=line.time, prev=line.prev, workspace="w1", id="f" * 64, step=1, packs=line.packs
            ),
            session,
        )
    sizes = record_sizes(store, [*map(chunk, parts), chunk(b"absent")])
    assert sum(sizes.values()) == len(group)
    assert max(sizes.values()) - min(sizes.values()) <= 1
    assert set(sizes) == set(map(chunk, parts))
    store.close()


def test_damage_is_a_problem_of_the_checkpoints_that_it_befalls_and_stops_nothing(
    workspace: Path, manager: CheckpointManager, context: Context
) -> None:
    (workspace / "sub").mkdir()
    (workspace / "sub" / "file").write_bytes(noise("file", 900))
    hurt = manager.create("hurt")
    (workspace / "sub" / "file").unlink()
    (workspace / "more").write_bytes(noise("more", 700))
    manager.create("well")
    root = load_listing(context.store, decode_checkpoint(context.store.read(key_of(hurt.id))).root.tree)
    (sub,) = [entry for entry in root if isinstance(entry, Directory)]
    flip(Path(context.store.path), sub.tree[:8], -16)  # the magic of its record
    report = by_checkpoint(context, here(context, workspace))
    sizes = {one.checkpoint.name: one.size for one in report.checkpoints}
    assert sizes == {"c1": 3000, "hurt": 3000, "well": 3700}
    (problem,) = report.problems
    assert problem.message.startswith("checkpoint hurt is not counted in full: cannot read")
    assert len(by_workspace(context).problems) == 1
    directories = largest_directories(context, hurt, 20)
    assert [problem.path for problem in directories.problems] == [b"sub"]
    assert (directories.bytes, directories.files, directories.directories) == (3000, 1, ())


def key_of(id: str) -> ObjectKey:
    return ObjectKey(ObjectKind.CHECKPOINT, bytes.fromhex(id))


# by directory


def listed(context: Context, manager: CheckpointManager, limit: int = 20) -> list[tuple[bytes, int, int]]:
    report = largest_directories(context, manager.show(), limit)
    return [(one.path, one.bytes, one.files) for one in report.directories]


def test_the_largest_directories_with_all_that_is_below_them(
    workspace: Path, manager: CheckpointManager, context: Context
) -> None:
    for name, size in {"a/x/1": 600, "a/y/2": 300, "a/3": 50, "b/4": 700, "b/5": 0, "c/6": 10}.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_bytes(bytes(size))
    (workspace / "empty").mkdir()
    (workspace / "c" / "link").symlink_to("6")
    manager.create()
    expected = [(b"a", 950, 3), (b"b", 700, 2), (b"a/x", 600, 1), (b"a/y", 300, 1), (b"c", 10, 1)]
    assert listed(context, manager) == expected
    assert listed(context, manager, 2) == expected[:2]
    for path, *numbers in expected:
        assert apparent(workspace / os.fsdecode(path)) == tuple(numbers)
    report = largest_directories(context, manager.show(), 20)
    assert (report.bytes, report.files) == apparent(workspace)


def test_a_directory_that_is_little_more_than_one_in_it_is_not_listed_beside_it(
    workspace: Path, manager: CheckpointManager, context: Context
) -> None:
    for name, size in {"a/b/c/d/big": 900, "a/b/c/small": 100, "a/b/tiny": 1, "n/m/9": 89, "n/1": 11}.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_bytes(bytes(size))
    manager.create()
    assert [path for path, *_ in listed(context, manager)] == [b"a/b/c/d", b"n", b"n/m"]


def test_one_tree_at_many_paths_counts_at_each_and_a_git_directory_is_one(
    workspace: Path, manager: CheckpointManager, context: Context
) -> None:
    for top in ("one", "two"):
        for name in ("same/f", "same/g", ".git/objects/ab/1", ".git/logs/2"):
            (workspace / top / name).parent.mkdir(parents=True, exist_ok=True)
            (workspace / top / name).write_bytes(bytes(100))
    manager.create()
    per_top = [(b"one", 400, 4), (b"two", 400, 4)]
    inner = [(f"{top}/{name}".encode(), 200, 2) for top in ("one", "two") for name in (".git", "same")]
    assert listed(context, manager) == per_top + inner


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        (b"node_modules", "/node_modules/"),
        (b"a b/it's", "/a b/it's/"),
        (b"*?[x]\\", "/\\*\\?\\[x]\\\\/"),
        (b"#!", "/#!/"),
        ("größe".encode(), "/größe/"),
        (b"caf\xe9", None),
        (b"new\nline", None),
        (b"bell\a", None),
    ],
)
def test_a_pattern_says_just_the_path(path: bytes, pattern: str | None) -> None:
    assert excluding(path) == pattern
