"""The patch beside a stat cache: few bytes for few changes, and never a cache that is wrong."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from casnap import CheckpointManager
from casnap.engine import scanning
from casnap.engine.checking.check import check
from casnap.engine.gc import collect
from casnap.engine.workspaces import forget
from casnap.errors import StorageFailed
from casnap.model.check import Fault
from casnap.model.clock import Silent
from casnap.model.report import WorkspaceInfo
from casnap.model.tree import NANOSECONDS
from casnap.settings import load_settings, open_context
from casnap.settings.store_check import check_store
from casnap.store import cache_directory
from casnap.store.inspection import Inspection
from casnap.workspace import cache_file, cache_patch, cache_saving
from casnap.workspace.cache import CachedDirectory, StatCache, Whole
from casnap.workspace.cache_file import PATCH_SUFFIX, CacheFile, Patched, load_cache
from casnap.workspace.cache_patch import MergedFile, PatchHeader, load_patch
from casnap.workspace.cache_saving import encode_cache, encode_patch, sealed, with_columns
from casnap.workspace.reader import Reader
from support.scanning import MemoryStore, settle, take
from support.stores import Ticking

NAMES = {"store": "s", "workspace": "w", "boot": "b"}


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patches to files of any size, of any size."""
    monkeypatch.setattr(cache_saving, "SMALL", 0)
    monkeypatch.setattr(cache_patch, "LARGEST", 0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "workspace"
    for number in range(6):
        (directory / f"d{number}" / "sub").mkdir(parents=True)
        (directory / f"d{number}" / "sub" / "f").write_bytes(b"%d" % number)
        (directory / f"d{number}" / "g").write_bytes(b"%d" % number)
    settle(directory)
    return directory


class Saved:
    """The two files of a cache, saved with every look at ``root``; ``wholes`` is what one file would have been."""

    def __init__(self, root: Path, place: Path) -> None:
        self.root = root
        self.path = place / "cache.stat"
        self.patch = place / f"cache{PATCH_SUFFIX}"
        self.store = MemoryStore()
        self.wholes: list[bytes] = []
        self.patches: list[bytes | None] = []
        self.save(take(root, self.store).cache)

    def save(self, cache: StatCache) -> None:
        names = NAMES | {"checkpoint": b"%032d" % len(self.wholes)}
        self.wholes.append(encode_cache(cache, **names))
        self.patches.append(encode_patch(cache, **names))
        if (patch := self.patches[-1]) is None:
            self.path.write_bytes(self.wholes[-1])
        else:
            self.patch.write_bytes(patch)

    def look(self) -> None:
        settle(self.root)
        self.save(take(self.root, self.store, cache=self.load()).cache)

    def load(self, **other: str) -> StatCache | None:
        return load_cache(self.path, **NAMES | other)

    def generation(self, number: int, **other: str) -> StatCache:
        """What would be found had only whole files been written."""
        path = self.path.with_name("whole.stat")
        path.write_bytes(self.wholes[number])
        found = load_cache(path, **NAMES | other)
        assert found is not None
        return found


def assert_same(found: StatCache | None, other: StatCache) -> None:
    assert found is not None
    assert isinstance(found.directories, CacheFile)
    assert isinstance(other.directories, CacheFile)
    assert found.directories.data == other.directories.data
    assert found.directories.row_paths == other.directories.row_paths
    assert (found.written, found.checkpoint, found.whole) == (other.written, other.checkpoint, other.whole)


@pytest.fixture
def saved(root: Path, tmp_path: Path, any_size: None) -> Saved:
    """Two generations in a whole file and its patch: ``d2/sub/f`` is another in the second, and ``d7`` came."""
    found = Saved(root, tmp_path)
    (root / "d2" / "sub" / "f").write_bytes(b"two")
    (root / "d7").mkdir()
    found.look()
    return found


def test_a_patch_and_its_base_say_what_one_file_would(saved: Saved, root: Path) -> None:
    assert saved.patches[1] is not None
    assert_same(saved.load(), saved.generation(1))
    for act in (
        lambda: (root / "d0" / "g").unlink(),
        lambda: os.rename(root / "d3", root / "d9"),
        lambda: (root / "d2" / "sub" / "f").write_bytes(b"three"),
        lambda: (root / "d1" / "sub" / "new").mkdir(),
        lambda: (root / "top").write_bytes(b"top"),
    ):
        act()
        saved.look()
        assert saved.patches[-1] is not None
        assert_same(saved.load(), saved.generation(-1))
        assert take(root, saved.store, cache=saved.load()).root == take(root).root


def test_a_patch_is_to_the_base_and_holds_only_what_that_has_not_got(saved: Saved, root: Path) -> None:
    """Not to the patch before, which is not needed any more."""
    (root / "d2" / "sub" / "f").write_bytes(b"another")
    (root / "d5" / "g").write_bytes(b"another")
    saved.look()
    found = load_patch(saved.patch, store="s", workspace="w")
    assert found is not None
    assert found[1].paths == [b"", b"d2", b"d2/sub", b"d5", b"d7"]
    base = saved.generation(0).directories
    assert isinstance(base, CacheFile)
    kept = [base.paths[first : last + 1] for _, first, last in found[0].kept]
    assert kept == [[b"d0", b"d0/sub", b"d1", b"d1/sub"], [b"d3", b"d3/sub", b"d4", b"d4/sub"], [b"d5/sub"]]
    assert_same(saved.load(), saved.generation(2))


def test_what_comes_and_goes_between_others_leaves_the_order_and_no_trace(saved: Saved, root: Path) -> None:
    (root / "d4" / "z").mkdir()
    saved.look()
    assert_same(saved.load(), saved.generation(2))
    (root / "d4" / "z").rmdir()
    saved.look()
    assert_same(saved.load(), saved.generation(3))
    found = load_patch(saved.patch, store="s", workspace="w")
    assert found is not None
    assert [after for after, _, _ in found[0].kept] == [1, 3, 4]  # after the root, d2 with its sub, and d4


def test_a_patch_that_changes_nothing_has_no_directory(saved: Saved) -> None:
    saved.patch.unlink()
    cache = saved.load()
    assert cache is not None
    saved.save(cache)
    found = load_patch(saved.patch, store="s", workspace="w")
    assert found is not None
    assert (found[1].paths, found[0].kept) == ([], ((0, 0, len(cache.directories) - 1),))
    assert_same(saved.load(), saved.generation(2))


def test_what_is_as_it_was_again_is_still_told_of(saved: Saved, root: Path) -> None:
    """A scan that finds nothing new saves nothing, but one that must may find all of it in the files."""
    cache = saved.load()
    assert cache is not None
    saved.save(cache)
    assert saved.patches[2] is not None
    assert len(saved.patches[2]) == len(saved.patches[1] or b"")
    assert_same(saved.load(), saved.generation(2))


# -- crashes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "patch", "found"),
    [
        (0, None, 0),  # killed before the first patch was written, or it was lost
        (0, 1, 1),
        (0, 2, 2),
        (3, None, 3),
        (3, 1, 3),  # killed between a new base and the removal of the patch to the one before
        (3, 2, 3),
        (3, 4, 4),
        (0, 4, 0),  # a new base was lost, the patch to it was not
        (None, 2, None),
        (None, 4, None),
        (None, None, None),
    ],
)
def test_whatever_of_the_two_files_a_crash_leaves_is_a_cache_that_was_right_or_none(
    saved: Saved, root: Path, monkeypatch: pytest.MonkeyPatch, base: int | None, patch: int | None, found: int | None
) -> None:
    """Generations 0 and 3 were written whole, 1 and 2 as patches to 0, 4 as one to 3."""
    (root / "d4" / "g").write_bytes(b"later")
    saved.look()
    (root / "d4" / "g").write_bytes(b"still later")
    monkeypatch.setattr(cache_saving, "SMALL", 1 << 40)
    saved.look()
    monkeypatch.setattr(cache_saving, "SMALL", 0)
    (root / "d0" / "sub" / "f").write_bytes(b"latest")
    saved.look()
    assert [number for number, one in enumerate(saved.patches) if one is None] == [0, 3]
    for path, data in (
        (saved.path, None if base is None else saved.wholes[base]),
        (saved.patch, None if patch is None else saved.patches[patch]),
    ):
        path.unlink(missing_ok=True) if data is None else path.write_bytes(data)
    cache = saved.load()
    if found is None:
        assert cache is None
    else:
        assert_same(cache, saved.generation(found))
    scan = take(root, saved.store, cache=cache)
    assert (scan.root, scan.links, scan.skipped) == ((fresh := take(root)).root, fresh.links, fresh.skipped)


def test_a_patch_that_is_damaged_anywhere_leaves_the_base_as_it_is(saved: Saved) -> None:
    data = saved.patch.read_bytes()
    for position in range(0, len(data), 5):
        saved.patch.write_bytes(data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :])
        assert_same(saved.load(), saved.generation(0))
    for length in range(0, len(data), 9):
        saved.patch.write_bytes(data[:length])
        assert_same(saved.load(), saved.generation(0))
    saved.patch.write_bytes(saved.wholes[1])
    assert_same(saved.load(), saved.generation(0))
    saved.path.write_bytes(data)
    assert saved.load() is None


@pytest.mark.parametrize(
    "foreign", [{"store": "x"}, {"workspace": "x"}, {"boot": "x"}], ids=["store", "workspace", "boot"]
)
def test_a_patch_of_another_store_workspace_or_boot_than_the_base_counts_for_nothing(
    saved: Saved, foreign: dict[str, str]
) -> None:
    found = load_patch(saved.patch, store="s", workspace="w")
    assert found is not None
    rewrite(saved, lambda patch: msgspec.structs.replace(patch, cache=msgspec.structs.replace(patch.cache, **foreign)))
    assert_same(saved.load(), saved.generation(0))


@pytest.mark.parametrize(
    "kept",
    [
        ((0, 1, 2), (9, 3, 4)),  # after more than the patch has
        ((2, 1, 2), (1, 3, 4)),  # back
        ((1, 0, 99),),
        ((1, 5, 3),),
        ((1, -4, 2),),
        ((-1, 1, 2),),
    ],
)
def test_a_patch_whose_runs_do_not_fit_counts_for_nothing(saved: Saved, kept: tuple[Any, ...]) -> None:
    rewrite(saved, lambda patch: msgspec.structs.replace(patch, kept=kept))
    assert_same(saved.load(), saved.generation(0))


def rewrite(saved: Saved, change: Callable[[PatchHeader], PatchHeader]) -> None:
    """Write the patch with another header, and a checksum that fits."""
    found = load_patch(saved.patch, store="s", workspace="w")
    assert found is not None
    saved.patch.write_bytes(sealed(cache_patch.MAGIC, change(found[0]), with_columns(found[0].cache, found[1])[1]))


# -- boots -----------------------------------------------------------------------------------------------------

MINUTE = 60 * NANOSECONDS


def aged(cache: StatCache, changed: int) -> None:
    """Let everything in it have been changed then."""
    file = cache.directories
    assert isinstance(file, CacheFile)
    for stats in (file.own, file.rows):
        for name in ("mtime", "ctime"):
            for row in range(len(stats)):
                stats.columns[name][row] = changed


def later(cache: StatCache, path: bytes, store: MemoryStore, *, changed: int, written: int) -> StatCache:
    """The same as a later scan found it: the files of one directory were changed then."""
    file = cache.directories
    assert isinstance(file, CacheFile)
    file.source = store
    known = file[path]
    replaced = CachedDirectory(
        known.entry,
        known.signature,
        known.listing,
        tuple(one and msgspec.structs.replace(one, mtime_ns=changed, ctime_ns=changed) for one in known.signatures),
        traits=known.traits,
        guards=known.guards,
        context=known.context,
        device=known.device,
    )
    at, last = file.numbers[path], len(file) - 1
    parts = {file.paths[0]: (0, at - 1), path: replaced, file.paths[at + 1]: (at + 1, last)}
    return StatCache(Patched(file, parts), written, whole=cache.whole)


def believed(cache: StatCache | None) -> set[bytes]:
    """The paths of files that a scan would not read again."""
    assert cache is not None
    file = cache.directories
    assert isinstance(file, CacheFile)
    return {path for row, path in enumerate(file.row_paths) if file.rows.get(row, 0) is not None}


def test_after_another_boot_base_and_patch_are_doubted_by_the_time_of_the_patch(saved: Saved) -> None:
    """What is kept of the base was found as it was at that time; it has long been on disk by then."""
    base = saved.generation(1)
    everything = believed(base)
    aged(base, base.written - MINUTE)
    saved.patch.unlink()
    saved.path.write_bytes(encode_cache(base, **NAMES, checkpoint=b"base"))
    now = base.written + 10 * MINUTE
    cache = saved.load()
    assert cache is not None
    saved.save(later(cache, b"d1", saved.store, changed=now - MINUTE, written=now))
    assert saved.patches[-1] is not None
    assert believed(saved.load()) == everything
    assert believed(saved.load(boot="other")) == everything - {b"d1/g"}
    assert_same(saved.load(boot="other"), saved.generation(-1, boot="other"))
    saved.patch.unlink()
    assert believed(saved.load()) == everything
    assert believed(saved.load(boot="other")) == set()  # by the time of the base, since that is alone


def test_the_first_file_of_another_boot_is_a_whole_one(saved: Saved, root: Path) -> None:
    """What the base says is doubted in memory, not in its file: a run of it would be believed the next time."""
    cache = saved.load(boot="other")
    assert cache is not None
    (root / "d0" / "g").write_bytes(b"new")
    settle(root)
    scan = take(root, saved.store, cache=cache)
    for found in (cache, scan.cache):
        assert encode_patch(found, **NAMES | {"boot": "other"}, checkpoint=b"c") is None
    again = saved.load()
    assert again is not None
    assert encode_patch(again, **NAMES, checkpoint=b"c") is not None


# -- sizes -----------------------------------------------------------------------------------------------------


def a_large_tree(root: Path, directories: int = 60, files: int = 50) -> None:
    for number in range(directories):
        (root / f"d{number:02}").mkdir()
        for name in range(files):
            (root / f"d{number:02}" / f"{os.urandom(16).hex()}_{name}").write_bytes(b"%d" % name)


@pytest.fixture
def large(workspace: Path, manager: CheckpointManager) -> Path:
    """A workspace of 3,000 files that were checkpointed when all had settled."""
    a_large_tree(workspace)
    settle(workspace)
    manager.create()
    settle(workspace)
    manager.create()
    return workspace


@pytest.fixture
def cache(home: Path) -> Path:
    return home / "store" / "cache"


def files_of(cache: Path) -> dict[str, int]:
    """The sizes of the files of the one stat cache there is."""
    return {path.suffix: path.stat().st_size for path in cache.iterdir() if path.suffix in (".stat", PATCH_SUFFIX)}


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[int]]:
    """How many bytes were written to which files of the cache, by their suffix."""
    written: dict[str, list[int]] = {}
    keep = cache_directory.keep

    def counted(path: Path, data: bytes, owner: Any) -> None:
        written.setdefault(path.suffix, []).append(len(data))
        keep(path, data, owner)

    monkeypatch.setattr(cache_directory, "keep", counted)
    return written


def edit(workspace: Path, directory: int, name: str = "new", text: str = "new") -> None:
    (workspace / f"d{directory:02}" / name).write_text(text)
    settle(workspace)


def test_one_changed_file_among_many_writes_its_directory_and_not_all_others(
    large: Path, manager: CheckpointManager, cache: Path, kept: dict[str, list[int]]
) -> None:
    whole = files_of(cache)
    assert list(whole) == [".stat"]
    for round_ in range(3):
        edit(large, 7, text=f"{round_}")
        manager.create()
    assert list(kept) == [PATCH_SUFFIX]
    assert len(kept[PATCH_SUFFIX]) == 3
    assert max(kept[PATCH_SUFFIX]) < whole[".stat"] / 20
    assert files_of(cache)[".stat"] == whole[".stat"]


def test_one_changed_file_is_found_by_another_process_and_nothing_is_read_again(
    large: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(large, 7)
    first = manager.create()
    monkeypatch.setattr(Reader, "read", None)  # whatever is read fails
    with CheckpointManager(large) as other:
        assert other.create(if_changed=True).id == first.id
        assert isinstance(next(iter(other._find()[0].caches.values()))[1].directories, MergedFile)  # type: ignore[union-attr]


def test_a_patch_that_would_take_an_eighth_of_its_base_is_written_as_a_new_base(
    large: Path, manager: CheckpointManager, cache: Path, kept: dict[str, list[int]]
) -> None:
    size = files_of(cache)[".stat"]
    patched = 0
    for directory in range(20):
        edit(large, directory)
        manager.create()
        if ".stat" in kept:
            break
        patched += 1
    assert 3 < patched < 9
    assert sorted(kept[PATCH_SUFFIX]) == kept[PATCH_SUFFIX]
    assert kept[PATCH_SUFFIX][-1] <= size / 8
    assert list(files_of(cache)) == [".stat"]
    edit(large, 30)
    manager.create()
    assert kept[PATCH_SUFFIX][-1] <= kept[PATCH_SUFFIX][0] * 1.5  # it has nothing of what is in the new base


def test_a_small_cache_is_written_whole(workspace: Path, manager: CheckpointManager, cache: Path) -> None:
    a_large_tree(workspace, 20, 10)
    for _ in range(2):
        settle(workspace)
        manager.create()
    edit(workspace, 3)
    manager.create()
    found = files_of(cache)
    assert list(found) == [".stat"]
    assert found[".stat"] < cache_saving.SMALL


def test_what_is_left_out_is_not_named_again_with_every_change(
    workspace: Path, manager: CheckpointManager, cache: Path, kept: dict[str, list[int]]
) -> None:
    (workspace / ".casnapignore").write_text("*.log\n")
    a_large_tree(workspace)
    for number in range(3000):
        (workspace / "d59" / f"{number}_left_out.log").write_text("")
    for _ in range(2):
        settle(workspace)
        manager.create()
    kept.clear()
    edit(workspace, 3)
    manager.create()
    assert max(kept[PATCH_SUFFIX]) < 10_000
    found = next(iter(manager._find()[0].caches.values()))[1]
    manager.create()
    again = next(iter(manager._find()[0].caches.values()))[1]
    assert found is not None
    assert again is not None
    assert found.whole is not None
    assert len(found.whole.skipped) == 3000
    assert again.whole == msgspec.structs.replace(found.whole, entries=found.whole.entries + 1)


def test_what_is_said_of_the_whole_comes_back_whether_it_is_as_in_the_base_or_not(saved: Saved) -> None:
    before = saved.generation(0).whole
    assert before is not None
    for whole in (
        None,
        msgspec.structs.replace(before, entries=77),
        msgspec.structs.replace(before, remarks=("another",), entries=78),
        Whole(5, ((b"a", b"b"),), ("r",), ((b"x", 1),), (), 3),
    ):
        cache = saved.load()
        assert cache is not None
        cache.whole = whole
        saved.save(cache)
        assert_same(saved.load(), saved.generation(-1))
        assert saved.load().whole == whole  # type: ignore[union-attr]


# -- what a process remembers ----------------------------------------------------------------------------------


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is read of caches, by the suffix of the file."""
    names: list[str] = []
    base, patch = cache_file.load_base, cache_patch.load_patch
    monkeypatch.setattr(cache_file, "load_base", lambda path, **said: names.append(path.suffix) or base(path, **said))
    monkeypatch.setattr(
        cache_patch, "load_patch", lambda path, **said: names.append(path.suffix) or patch(path, **said)
    )
    return names


def test_a_manager_reads_of_the_two_files_only_what_is_another(
    large: Path, manager: CheckpointManager, cache: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    manager.status()
    read.clear()
    manager.create()
    assert read == []
    for directory in (3, 4):
        edit(large, directory)
        assert manager.create().created is not None
        read.clear()
        manager.create()
        assert read == [PATCH_SUFFIX]
    with CheckpointManager(large) as other:
        edit(large, 5)
        made = other.create()
        read.clear()
        assert manager.create(if_changed=True).id == made.id
        assert read == [PATCH_SUFFIX]
        monkeypatch.setattr(cache_saving, "SMALL", 1 << 40)
        edit(large, 6)
        made = other.create()
        assert list(files_of(cache)) == [".stat"]
        read.clear()
        assert manager.create(if_changed=True).id == made.id
        assert read == [".stat"]


def test_a_manager_notices_that_the_patch_or_the_base_is_gone(
    large: Path, manager: CheckpointManager, cache: Path
) -> None:
    edit(large, 3)
    made = manager.create()
    manager.status()
    (patch,) = cache.glob(f"*{PATCH_SUFFIX}")
    patch.unlink()
    assert manager.create(if_changed=True).id == made.id
    assert files_of(cache).keys() == {".stat", PATCH_SUFFIX}
    (base,) = cache.glob("*.stat")
    base.unlink()
    assert manager.create(if_changed=True).id == made.id
    assert list(files_of(cache)) == [".stat"]


def test_a_base_that_serves_again_has_let_go_of_what_was_read_from_the_store(
    large: Path, manager: CheckpointManager, cache: Path, read: list[str]
) -> None:
    """A gc may have freed it, and damage may have come over it."""
    context, found = manager._find()
    row = context.store.state().workspace(found.id)
    assert row is not None
    first = scanning._saved_cache(context, row)
    assert first is not None
    assert isinstance(first.directories, CacheFile)
    first.directories.source = context.store
    assert first.directories[b"d00"].listing
    (base,) = cache.glob("*.stat")
    base.with_suffix(PATCH_SUFFIX).write_bytes(b"not a patch")
    read.clear()
    again = scanning._saved_cache(context, row)
    assert again is not None
    assert read == [PATCH_SUFFIX]
    assert again.directories is first.directories
    assert first.directories._made == {}


def test_after_another_boot_a_base_is_read_anew_when_a_file_beside_it_goes(
    large: Path, manager: CheckpointManager, cache: Path
) -> None:
    """What is doubted is so in memory, and cannot serve for the file."""
    context, found = manager._find()
    row = context.store.state().workspace(found.id)
    assert row is not None
    context = msgspec.structs.replace(context, boot="other", caches={})
    (base,) = cache.glob("*.stat")
    patch = base.with_suffix(PATCH_SUFFIX)
    patch.write_bytes(b"left behind")
    before = scanning._saved_cache(context, row)
    patch.unlink()
    after = scanning._saved_cache(context, row)
    assert before is not None
    assert_same(after, before)


def test_a_base_that_could_not_be_written_leaves_the_one_before_with_its_patch(
    large: Path, manager: CheckpointManager, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(large, 3)
    manager.create()
    before = {path: path.read_bytes() for path in cache.iterdir() if ".stat" in path.name}
    assert len(before) == 2

    def full(path: Path, *_: Any) -> None:
        raise StorageFailed("full")

    with monkeypatch.context() as patch:
        patch.setattr(cache_directory, "keep", full)
        patch.setattr(cache_saving, "SMALL", 1 << 40)
        edit(large, 4)
        manager.create()
    assert {path: path.read_bytes() for path in cache.iterdir() if ".stat" in path.name} == before
    assert manager.verify()


# -- upkeep ----------------------------------------------------------------------------------------------------


def test_a_damaged_patch_is_harmless_and_repair_takes_it_away(
    large: Path, manager: CheckpointManager, home: Path, cache: Path
) -> None:
    edit(large, 3)
    manager.create()
    (patch,) = cache.glob(f"*{PATCH_SUFFIX}")
    assert check(lambda: Inspection(home / "store"), Ticking(), Silent(), read_data=False).notes == ()
    data = bytearray(patch.read_bytes())
    data[len(data) // 2] ^= 1
    patch.write_bytes(data)
    report = check(lambda: Inspection(home / "store"), Ticking(), Silent(), read_data=False)
    assert report
    assert [(note.fault, note.file) for note in report.notes] == [(Fault.CACHE, f"cache/{patch.name}")]
    manager.close()
    check_store(load_settings(), Silent(), read_data=False, repair=True)
    assert list(files_of(cache)) == [".stat"]


def test_a_patch_that_was_left_beside_another_base_is_no_damage(
    large: Path, manager: CheckpointManager, home: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(large, 3)
    manager.create()
    monkeypatch.setattr(cache_saving, "SMALL", 1 << 40)
    monkeypatch.setattr(cache_directory.CacheDirectory, "drop", lambda self, name: None)  # killed before
    edit(large, 4)
    made = manager.create()
    assert files_of(cache).keys() == {".stat", PATCH_SUFFIX}
    assert check(lambda: Inspection(home / "store"), Ticking(), Silent(), read_data=False).notes == ()
    monkeypatch.setattr(Reader, "read", None)
    with CheckpointManager(large) as other:
        assert other.create(if_changed=True).id == made.id


def test_both_files_of_a_workspace_that_was_dropped_are_swept(
    large: Path, manager: CheckpointManager, cache: Path
) -> None:
    edit(large, 3)
    manager.create()
    assert len(files_of(cache)) == 2
    found = manager._find()[1]
    context = open_context(load_settings())
    forget(context, WorkspaceInfo(found.id, found.path), drop=True)
    collect(context)
    context.store.close()
    assert files_of(cache) == {}


def test_the_cache_after_a_rollback_is_a_patch_that_mirrors_what_was_restored(
    large: Path, manager: CheckpointManager, cache: Path, kept: dict[str, list[int]]
) -> None:
    edit(large, 3, text="one")
    one = manager.create("one")
    edit(large, 3, text="two")
    manager.create("two")
    kept.clear()
    manager.rollback("one")
    assert list(kept) == [PATCH_SUFFIX]
    context, found = manager._find()
    (path,) = cache.glob("*.stat")
    loaded = load_cache(path, store=context.store.id, workspace=found.id, boot=context.boot)
    assert loaded is not None
    assert loaded.checkpoint.hex() == one.id
    time.sleep(0.05)
    assert manager.create(if_changed=True).id == one.id
