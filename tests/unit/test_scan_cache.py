"""What the stat cache saves, and what it never hides."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest
from blake3 import blake3

from casnap.codec import compression
from casnap.errors import StorageFailed
from casnap.fs.durable import write_whole
from casnap.model.ids import ObjectKind
from casnap.model.tree import NANOSECONDS, File
from casnap.workspace import cache_file
from casnap.workspace.ahead import ReadingAhead
from casnap.workspace.cache import StatCache, is_same
from casnap.workspace.cache_file import CacheFile, load_cache
from casnap.workspace.cache_saving import encode_cache
from casnap.workspace.signature import Signature
from support.scanning import (
    MemoryStore,
    PinnedClock,
    SystemClock,
    chunk,
    entries_of,
    facts_of,
    facts_on_disk,
    settle,
    take,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "workspace"
    (directory / "sub" / "deep").mkdir(parents=True)
    (directory / "a").write_bytes(b"aaaa")
    (directory / "sub" / "b").write_bytes(b"bbbb")
    (directory / "sub" / "deep" / "c").write_bytes(b"cccc")
    (directory / "sub" / "link").symlink_to("b")
    os.setxattr(directory / "sub", b"user.k", b"v")
    settle(directory)
    return directory


def content(store: MemoryStore, scan: Any, path: bytes) -> bytes:
    entry = entries_of(store, scan.root)[path]
    assert isinstance(entry, File)
    return entry.content


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The names of everything that is opened and turns out to be no directory."""
    names: list[bytes] = []
    real = os.open

    def spy(path: Any, flags: int, *more: Any, **options: Any) -> int:
        fd = real(path, flags, *more, **options)
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            names.append(os.fsencode(path))
        return fd

    monkeypatch.setattr(os, "open", spy)
    return names


def test_nothing_is_opened_or_put_when_nothing_has_changed(root: Path, opened: list[bytes]) -> None:
    store = MemoryStore()
    first = take(root, store)
    assert sorted(opened) == [b"a", b"b", b"c"]
    opened.clear()
    store.puts = 0
    second = take(root, store, cache=first.cache)
    assert opened == []
    assert store.puts == 0
    assert second.root == first.root
    assert (second.files_read, second.bytes_read) == (0, 0)
    assert second.entries == first.entries == 6
    assert first.cache.differs
    assert not second.cache.differs
    assert second.signatures == first.signatures


def test_only_what_has_changed_is_opened(root: Path, opened: list[bytes]) -> None:
    store = MemoryStore()
    first = take(root, store)
    opened.clear()
    (root / "sub" / "b").write_bytes(b"BBBB")
    (root / "sub" / "deep" / "new").write_bytes(b"new")
    opened.clear()
    second = take(root, store, cache=first.cache)
    assert sorted(opened) == [b"b", b"new"]
    assert second.cache.differs
    assert facts_of(store, second.root) == facts_on_disk(root)


@pytest.mark.parametrize("way", ["write", "keep mtime", "replace", "replace keeping mtime"])
def test_an_edit_of_the_same_size_right_after_a_scan_is_seen(root: Path, way: str) -> None:
    store, cache = MemoryStore(), None
    path = root / "sub" / "b"
    for number in range(25):
        data = b"%04d" % number
        before = os.stat(path)
        target = path.with_name("other") if way.startswith("replace") else path
        target.write_bytes(data)
        if way.endswith("mtime"):
            os.utime(target, ns=(before.st_mtime_ns, before.st_mtime_ns))
        if target != path:
            os.replace(target, path)
        scan = take(root, store, cache=cache)
        assert content(store, scan, b"sub/b") == blake3(data).digest()
        cache = scan.cache


def test_an_edit_during_the_wait_for_the_margin_is_captured(root: Path) -> None:
    class Meddling(PinnedClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            (root / "a").write_bytes(b"late")

    (root / "a").write_bytes(b"soon")
    store, clock = MemoryStore(), Meddling.just_after(root / "a")
    scan = take(root, store, clock=clock)
    assert clock.waits > 0
    assert content(store, scan, b"a") == blake3(b"late").digest()


def test_one_wait_serves_all_young_files(root: Path) -> None:
    for number in range(50):
        (root / f"young{number:02}").write_bytes(b"x")
    clock = PinnedClock.just_after(root / "young49")
    scan = take(root, clock=clock)
    assert (clock.waits, round(clock.slept * 1000)) == (1, 19)
    assert scan.files_read == 53
    assert scan.problems == []


def test_there_is_no_wait_when_nothing_young_has_to_be_read(root: Path) -> None:
    (root / "young-link").symlink_to("x")
    (root / "young-directory").mkdir()
    clock = SystemClock()
    take(root, clock=clock)
    assert clock.slept == 0


def test_a_young_link_is_read_again_at_the_next_scan(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    real = os.readlink
    monkeypatch.setattr(os, "readlink", lambda path, **options: read.append(path) or real(path, **options))
    (root / "young").symlink_to("x")
    first = take(root, clock=PinnedClock.just_after(root / "young"))
    assert {b"young", b"link"} <= set(read)
    read.clear()
    settle(root)
    second = take(root, cache=first.cache)
    assert [path for path in read if not path.startswith(b"/proc")] == [b"young"]
    read.clear()
    take(root, cache=second.cache)
    assert [path for path in read if not path.startswith(b"/proc")] == []


@pytest.mark.parametrize("stamp", [(1 << 33) * NANOSECONDS, -5, 1_700_000_000 * NANOSECONDS])
def test_times_far_from_now_do_not_keep_a_file_from_being_believed(root: Path, stamp: int) -> None:
    for path in (root / "a", root / "sub" / "link"):
        os.utime(path, ns=(stamp, stamp), follow_symlinks=False)
    settle(root)
    clock = SystemClock()
    first = take(root, clock=clock)
    assert clock.slept == 0
    assert take(root, cache=first.cache).files_read == 0


def test_a_change_of_mode_or_attributes_is_seen(root: Path) -> None:
    store = MemoryStore()
    cache = take(root, store).cache
    os.chmod(root / "a", 0o600)
    os.setxattr(root / "sub", b"user.k", b"w")
    os.setxattr(root / "sub" / "b", b"user.new", b"1")
    if os.geteuid() == 0:
        os.chown(root / "sub" / "deep", 7, 8)
    settle(root)
    scan = take(root, store, cache=cache)
    assert facts_of(store, scan.root) == facts_on_disk(root)
    assert scan.files_read == 2


def test_a_cache_that_is_not_trusted_saves_no_reading(root: Path) -> None:
    store = MemoryStore()
    first = take(root, store)
    store.objects.clear()
    second = take(root, store, cache=first.cache, trusted=False)
    assert second.files_read == 3
    assert facts_of(store, second.root) == facts_on_disk(root)


def test_doubted_paths_are_read_again_and_others_are_not(root: Path, opened: list[bytes]) -> None:
    cache = take(root).cache
    opened.clear()
    take(root, cache=cache, only=[b"a"])
    assert opened == [b"a"]
    opened.clear()
    take(root, cache=cache, only=[b"sub"])
    assert sorted(opened) == [b"b", b"c"]
    opened.clear()
    take(root, cache=cache, only=[])
    assert opened == []
    take(root, cache=cache, only=[b""])
    assert sorted(opened) == [b"a", b"b", b"c"]


def test_believed_content_that_the_store_lost_is_read_again(root: Path, opened: list[bytes]) -> None:
    store = MemoryStore()
    first = take(root, store)
    del store.objects[chunk(b"bbbb")]
    opened.clear()
    second = take(root, store, cache=first.cache, confirm=True)
    assert opened == [b"b"]
    assert second.root == first.root
    assert store.objects[chunk(b"bbbb")] == b"bbbb"


def test_lost_trees_are_put_again_when_ids_are_looked_up(root: Path) -> None:
    store = MemoryStore()
    first = take(root, store)
    trees = {key: data for key, data in store.objects.items() if key.kind is ObjectKind.TREE}
    for key in trees:
        del store.objects[key]
    take(root, store, cache=first.cache, confirm=True)
    assert trees.items() <= store.objects.items()


@pytest.mark.parametrize("lost", [ObjectKind.CHUNK, ObjectKind.CHUNK_LIST, None])
def test_a_long_file_is_read_again_when_any_part_of_it_is_lost(root: Path, lost: ObjectKind | None) -> None:
    (root / "long").write_bytes(os.urandom(3 << 20))
    settle(root)
    store = MemoryStore()
    first = take(root, store)
    whole = dict(store.objects)
    if lost is not None:
        small = {chunk(data) for data in (b"aaaa", b"bbbb", b"cccc")}
        del store.objects[max(key for key in store.objects if key.kind is lost and key not in small)]
    second = take(root, store, cache=first.cache, confirm=True, source=store)
    assert second.files_read == (0 if lost is None else 1)
    assert second.root == first.root
    assert store.objects == whole
    assert (
        take(root, store, cache=first.cache, confirm=True, source=None).files_read == 1
    )  # without a source it cannot be told


def test_what_is_ahead_is_told_before_anything_is_put(root: Path) -> None:
    store = MemoryStore()
    told: list[ReadingAhead] = []

    def refuse(ahead: ReadingAhead) -> None:
        told.append(ahead)
        assert store.objects == {}
        raise StorageFailed("too much")

    os.link(root / "a", root / "z")
    settle(root)
    with pytest.raises(StorageFailed):
        take(root, store, before_reading=refuse)
    assert store.objects == {}
    assert (told[0].files, told[0].total_bytes) == (3, 12)
    assert told[0].directory_bytes == {b"": 8, b"sub": 4, b"sub/deep": 4}


NAMES = {"store": "s", "workspace": "w", "boot": "b"}


def saved(tmp_path: Path, cache: StatCache) -> Path:
    path = tmp_path / "cache"
    write_whole(path, encode_cache(cache, **NAMES, checkpoint=b"i" * 32), durable=False)
    return path


def loaded(path: Path, store: MemoryStore, **other: str) -> StatCache:
    found = load_cache(path, **NAMES | other)
    assert found is not None
    assert isinstance(found.directories, CacheFile)
    found.directories.source = store
    return found


def assert_equal(one: StatCache, other: StatCache) -> None:
    assert list(one.directories) == list(other.directories)
    assert all(is_same(one.directories[path], other.directories[path]) for path in one.directories)
    assert one.whole == other.whole


class TestFile:
    def test_it_comes_back_as_it_was(self, root: Path, tmp_path: Path) -> None:
        store = MemoryStore()
        scan = take(root, store)
        found = loaded(saved(tmp_path, scan.cache), store)
        assert_equal(found, scan.cache)
        assert found.checkpoint == b"i" * 32
        assert found.written == scan.ended
        again = take(root, store, cache=found)
        assert again.files_read == 0
        assert not again.cache.differs

    @pytest.mark.parametrize("foreign", [{"store": "x"}, {"workspace": "x"}])
    def test_one_of_another_store_or_workspace_is_none(
        self, root: Path, tmp_path: Path, foreign: dict[str, str]
    ) -> None:
        path = saved(tmp_path, take(root).cache)
        assert load_cache(path, **NAMES | foreign) is None

    def test_a_damaged_or_absent_one_is_none(self, root: Path, tmp_path: Path) -> None:
        path = saved(tmp_path, take(root).cache)
        data = path.read_bytes()
        assert load_cache(tmp_path / "absent", **NAMES) is None
        for position in range(0, len(data), 7):
            path.write_bytes(data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :])
            assert load_cache(path, **NAMES) is None
        for length in range(0, len(data), 13):
            path.write_bytes(data[:length])
            assert load_cache(path, **NAMES) is None

    def test_one_whose_columns_do_not_fit_is_none(self, root: Path, tmp_path: Path) -> None:
        path = saved(tmp_path, take(root).cache)
        data = path.read_bytes()
        start = len(cache_file.MAGIC) + 8
        for cut in (1, 8, 40, 100):
            payload = data[start:-cut]
            path.write_bytes(cache_file.MAGIC + blake3(payload).digest(length=8) + payload)
            assert load_cache(path, **NAMES) is None

    def test_after_another_boot_the_last_two_minutes_are_read_again(self, root: Path, tmp_path: Path) -> None:
        minutes = 60 * NANOSECONDS
        store = MemoryStore()
        cache = take(root, store).cache
        ages = {b"a": (5, 1), b"b": (3, 3), b"c": (1, 5)}
        for directory in cache.directories.values():
            directory.signatures = tuple(
                self._aged(signature, *(cache.written - age * minutes for age in ages.get(entry.name, (5, 5))))
                for entry, signature in zip(directory.listing, directory.signatures, strict=True)
            )
        path = saved(tmp_path, cache)
        believed = {
            entry.name
            for directory in loaded(path, store, boot="another").directories.values()
            for entry, signature in zip(directory.listing, directory.signatures, strict=True)
            if signature is not None
        }
        assert believed == {b"b", b"link"}
        assert_equal(loaded(path, store), cache)

    def _aged(self, signature: Signature | None, mtime: int, ctime: int) -> Signature | None:
        return signature and msgspec.structs.replace(signature, mtime_ns=mtime, ctime_ns=ctime)

    def test_times_that_no_number_of_the_file_can_hold_are_left_out(self, root: Path, tmp_path: Path) -> None:
        far = 1 << 63
        signature = Signature(0, 0, far, 0, 0, 0, 0)
        assert not signature.storable
        assert not msgspec.structs.replace(signature, mtime_ns=-far - 1).storable
        assert msgspec.structs.replace(signature, mtime_ns=-far).storable
        store = MemoryStore()
        cache = take(root, store).cache
        top = cache.directories[b""]
        top.signatures = tuple(found and msgspec.structs.replace(found, mtime_ns=far) for found in top.signatures)
        assert set(loaded(saved(tmp_path, cache), store).directories[b""].signatures) == {None}

    def test_what_is_as_it_was_is_copied_in_runs(self, root: Path, tmp_path: Path, monkeypatch: Any) -> None:
        store = MemoryStore()
        for number in range(30):
            (root / f"d{number:02}").mkdir()
            (root / f"d{number:02}" / "f").write_bytes(b"%d" % number)
        settle(root)
        path = saved(tmp_path, take(root, store).cache)
        (root / "d11" / "f").write_bytes(b"other")
        settle(root)
        runs: list[tuple[int, int]] = []
        copy = CacheFile.copy
        monkeypatch.setattr(CacheFile, "copy", lambda self, *a: runs.append(a[1:]) or copy(self, *a))
        scan = take(root, store, cache=loaded(path, store))
        again = saved(tmp_path, scan.cache)
        assert len(runs) == 2
        assert sum(last - first + 1 for first, last in runs) == len(scan.cache.directories) - 2
        assert_equal(loaded(again, store), scan.cache)
        assert_equal(loaded(again, store), take(root, store).cache)


class Counting:
    """Counts what is asked of the system."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: dict[str, list[bytes]] = {"listdir": [], "open": []}
        for name, seen in self.calls.items():
            monkeypatch.setattr(os, name, self._spy(getattr(os, name), seen))

    def _spy(self, real: Any, seen: list[bytes]) -> Any:
        def call(path: Any, *more: Any, **options: Any) -> Any:
            seen.append(os.fsencode(path) if isinstance(path, str | bytes | os.PathLike) else b"fd")
            return real(path, *more, **options)

        return call


def test_nothing_is_listed_or_opened_but_the_root_when_nothing_has_changed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore()
    first = take(root, store)
    cache = loaded(saved(tmp_path, first.cache), store)
    counting = Counting(monkeypatch)
    second = take(root, store, cache=cache)
    assert counting.calls["listdir"] == []
    assert [path for path in counting.calls["open"] if path not in (os.fsencode(root), b"/proc/self/mountinfo")] == []
    assert (second.root, second.links, second.rules) == (first.root, first.links, first.rules)
    assert second.entries == first.entries == 6
    assert dict(second.signatures) == dict(first.signatures)


def test_only_a_directory_that_changed_and_those_above_it_are_looked_into(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        (root / f"d{number}" / "below").mkdir(parents=True)
        (root / f"d{number}" / "below" / "f").write_bytes(b"%d" % number)
    settle(root)
    store = MemoryStore()
    cache = loaded(saved(tmp_path, take(root, store).cache), store)
    (root / "d7" / "below" / "g").write_bytes(b"new")
    counting = Counting(monkeypatch)
    scan = take(root, store, cache=cache)
    assert len(counting.calls["listdir"]) == 2  # the root, and the one that changed
    monkeypatch.undo()
    assert facts_of(store, scan.root) == facts_on_disk(root)


def test_a_tree_that_the_store_lost_does_not_keep_its_directory_from_being_recorded(root: Path, tmp_path: Path) -> None:
    store = MemoryStore()
    first = take(root, store)
    cache = loaded(saved(tmp_path, first.cache), store)
    del store.objects[next(key for key in store.objects if key.id == first.cache.directories[b"sub"].entry.tree)]
    (root / "sub" / "b").write_bytes(b"BBBB")
    settle(root)
    scan = take(root, store, cache=cache)
    assert facts_of(store, scan.root) == facts_on_disk(root)


@pytest.mark.parametrize("file_system", ["nfs", "fuse.sshfs", "9p", "vfat", ""])
def test_where_directories_may_keep_their_times_every_one_is_listed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file_system: str
) -> None:
    from casnap.workspace import mounts
    from casnap.workspace import scan as scan_module

    store = MemoryStore()
    cache = loaded(saved(tmp_path, take(root, store).cache), store)
    real = mounts.find_mounts
    pretend = lambda *a, **o: msgspec.structs.replace(real(*a, **o), file_system=file_system)  # noqa: E731
    monkeypatch.setattr(scan_module, "find_mounts", pretend)
    counting = Counting(monkeypatch)
    take(root, store, cache=cache)
    assert len(counting.calls["listdir"]) >= 3


def test_a_file_of_a_cache_never_holds_code(root: Path) -> None:
    """It is read back from disk: its head is a list of plain values, and the rest numbers, names and such lists."""
    data = encode_cache(take(root).cache, store="s", workspace="w", boot="b", checkpoint=b"")
    payload = data[len(cache_file.MAGIC) + 8 :]
    size = int.from_bytes(payload[:8], "little")
    assert isinstance(msgspec.msgpack.decode(payload[8 : 8 + size]), list)


def test_a_file_of_a_cache_takes_few_bytes_for_each_name(root: Path, tmp_path: Path) -> None:
    for number in range(2000):
        (root / "sub" / f"module_{number}.py").write_bytes(b"%d" % number)
    settle(root)
    assert saved(tmp_path, take(root).cache).stat().st_size < 2000 * 30


@pytest.mark.parametrize("most", [1, 7, 100, 1 << 20])
def test_a_cache_that_is_longer_than_a_frame_may_be_is_written_in_several(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    cache = take(root).cache
    whole = load_cache(saved(tmp_path, cache), **NAMES)
    monkeypatch.setattr(compression, "MAX_RAW", most)
    found = load_cache(saved(tmp_path, cache), **NAMES)
    assert found is not None
    assert whole is not None
    assert isinstance(found.directories, CacheFile)
    assert isinstance(whole.directories, CacheFile)
    assert found.directories.data == whole.directories.data
