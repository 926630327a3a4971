"""What a rollback does to a workspace in the cases where tools of its kind lose data."""

from __future__ import annotations

import itertools
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pyfastcdc  # noqa: F401  # an ordinary user may be unable to reach what is imported late
import pytest
import sqlite_utils  # noqa: F401

from casnap import CheckpointManager, Damage, StorageFailed
from casnap.engine import restoring
from casnap.fs import making, placing
from casnap.store.store import Store
from casnap.workspace import staging, switching
from casnap.workspace.staging import Staging
from support.oracle import difference, inodes, snapshot
from support.scanning import NOBODY, as_nobody, settle


def nested(path: Path) -> None:
    (path / "in" / "deep").mkdir(parents=True)
    (path / "in" / "deep" / "f").write_text("deep")
    (path / "g").write_text("g")


def full(path: Path) -> None:
    path.mkdir()
    (path / "f").write_text("in a directory")


KINDS: dict[str, Callable[[Path], None]] = {
    "absent": lambda path: None,
    "file": lambda path: path.write_text("file") and None,
    "empty directory": lambda path: path.mkdir(),
    "full directory": full,
    "nested directory": nested,
    "link to a file": lambda path: path.symlink_to("other"),
    "link to a directory": lambda path: path.symlink_to("somewhere"),
    "pipe": lambda path: os.mkfifo(path),
}


@pytest.mark.parametrize(("before", "after"), list(itertools.permutations(KINDS, 2)))
def test_every_kind_becomes_every_other_and_comes_back(
    workspace: Path, manager: CheckpointManager, before: str, after: str
) -> None:
    (workspace / "other").write_text("other")
    (workspace / "somewhere").mkdir()
    KINDS[before](workspace / "x")
    manager.create("one")
    first = snapshot(workspace)
    subprocess.run(["rm", "-rf", str(workspace / "x")], check=True)
    KINDS[after](workspace / "x")
    second = snapshot(workspace)
    assert manager.rollback("one").complete
    assert difference(first, snapshot(workspace)) == []
    assert manager.undo().complete
    assert difference(second, snapshot(workspace)) == []


def test_unchanged_entries_are_not_touched(workspace: Path, manager: CheckpointManager) -> None:
    nested(workspace / "d")
    (workspace / "f").write_text("one")
    (workspace / "g").write_text("same")
    manager.create("one")
    (workspace / "f").write_text("two")
    before = inodes(workspace)
    manager.rollback("one")
    after = inodes(workspace)
    for path in (b"g", b"d", b"d/in", b"d/in/deep", b"d/in/deep/f"):
        assert after[path] == before[path]
    assert after[b"."][0] == before[b"."][0]


def test_a_missing_object_is_found_before_anything_is_changed(
    workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        (workspace / f"f{number}").write_text(f"one {number}")
    manager.create("one")
    for number in range(20):
        (workspace / f"f{number}").write_text(f"two {number}")
    for number in range(5):
        (workspace / f"extra{number}").write_text("extra")
    before = snapshot(workspace)
    context = manager._find()[0]
    present = type(context.store).present
    lost = next(change.old.content for change in manager.diff("one") if change.path == b"f7")
    monkeypatch.setattr(
        type(context.store), "present", lambda self, keys: {k for k in present(self, keys) if k.id != lost}
    )
    with pytest.raises(Damage, match="f7"):
        manager.rollback("one")
    assert difference(before, snapshot(workspace)) == []


@pytest.mark.parametrize(("owner", "maker"), [(placing, "create_file"), (making, "make_file")])
@pytest.mark.parametrize("directory", [".", "new/deep"])
def test_a_failure_while_staging_leaves_the_workspace_as_it_was(
    workspace: Path,
    manager: CheckpointManager,
    monkeypatch: pytest.MonkeyPatch,
    owner: ModuleType,
    maker: str,
    directory: str,
) -> None:
    monkeypatch.setattr(staging, "LEARNT_FOR", 1 if owner is making else 1000)
    (workspace / directory).mkdir(parents=True, exist_ok=True)
    for number in range(9):
        (workspace / directory / f"f{number}").write_text(f"one {number}")
    manager.create("one")
    if directory != ".":
        shutil.rmtree(workspace / "new")
    for number in range(9):
        (workspace / f"f{number}").write_text(f"two {number}")
    before = snapshot(workspace)
    create, made = getattr(owner, maker), []

    def refuse_the_fifth(*args: object, **options: object) -> object:
        made.append(1)
        if len(made) == 5:
            raise OSError(28, "No space left on device")
        return create(*args, **options)

    monkeypatch.setattr(owner, maker, refuse_the_fifth)
    with pytest.raises(StorageFailed, match="nothing was changed"):
        manager.rollback("one")
    assert difference(before, snapshot(workspace)) == []
    monkeypatch.undo()
    assert manager.status().interrupted is None
    assert manager.rollback("one").complete


def between_staging_and_switch(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    stage = Staging.stage

    def stage_then_act(self: Staging) -> None:
        stage(self)
        act()

    monkeypatch.setattr(Staging, "stage", stage_then_act)


@pytest.mark.parametrize("change", ["edited", "removed", "replaced"])
def test_an_entry_that_others_change_meanwhile_is_left_alone_and_reported(
    workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    (workspace / "f").write_text("one")
    (workspace / "g").write_text("one")
    manager.create("one")
    (workspace / "f").write_text("two")
    (workspace / "g").write_text("two")

    def act() -> None:
        if change != "edited":
            (workspace / "f").unlink()
        if change != "removed":
            with open(workspace / "f", "a") as file:
                file.write("precious")

    between_staging_and_switch(monkeypatch, act)
    report = manager.rollback("one")
    assert [problem.path for problem in report.left_alone] == [b"f"]
    assert [item.path for item in report.changes] == [b"g"]
    assert (workspace / "g").read_text() == "one"
    if change != "removed":
        assert (workspace / "f").read_text().endswith("precious")


def test_a_file_that_appears_where_one_is_to_be_placed_is_left_alone(
    workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "f").write_text("one")
    manager.create("one")
    (workspace / "f").unlink()
    between_staging_and_switch(monkeypatch, lambda: (workspace / "f").write_text("precious") and None)
    report = manager.rollback("one")
    assert [problem.path for problem in report.left_alone] == [b"f"]
    assert (workspace / "f").read_text() == "precious"
    assert sorted(os.listdir(workspace)) == ["f"]


@pytest.mark.parametrize("taken", ["file", "full directory"])
def test_a_directory_whose_name_others_take_meanwhile_is_reported_with_all_that_is_in_it(
    workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch, taken: str
) -> None:
    nested(workspace / "x")
    manager.create("one")
    shutil.rmtree(workspace / "x")
    between_staging_and_switch(monkeypatch, lambda: KINDS[taken](workspace / "x"))
    there = "x/f" if taken == "full directory" else "x"
    report = manager.rollback("one")
    left_alone = {problem.path for problem in report.left_alone}
    assert left_alone >= {b"x", b"x/g", b"x/in", b"x/in/deep", b"x/in/deep/f"}
    assert (workspace / there).read_text() in ("file", "in a directory")
    assert os.listdir(workspace) == ["x"]


@pytest.mark.parametrize("mode", [0o500, 0o300, 0o555, 0o2750, 0o755])
def test_directories_come_back_whole_to_who_may_not_write_in_them(mode: int) -> None:
    place = Path(tempfile.mkdtemp(prefix="casnap-modes-"))
    place.chmod(0o777)

    def act() -> None:
        workspace = place / "workspace"
        inner = workspace / "d" / "in" / "deep"
        inner.mkdir(parents=True)
        for number in range(10):
            (inner / f"f{number}").write_text("f")
        os.link(inner / "f1", workspace / "d" / "in" / "linked")
        chain = (inner, inner.parent, inner.parent.parent)
        for directory in chain:
            directory.chmod(mode | 0o500)
        manager = CheckpointManager(workspace, store=place / "store")
        manager.create("one")
        before = snapshot(workspace)
        for directory in chain:
            directory.chmod(0o700)
        shutil.rmtree(workspace / "d")
        assert manager.rollback("one").complete
        assert difference(before, snapshot(workspace)) == []

    try:
        as_nobody(act)
    finally:
        shutil.rmtree(place)


@pytest.mark.parametrize("depth", [1, 3, 300])
def test_what_was_staged_is_taken_away_however_deep_and_whatever_its_modes(depth: int) -> None:
    place = Path(tempfile.mkdtemp(prefix="casnap-staged-"))
    place.chmod(0o777)

    def remove() -> None:
        home = place / "home"
        home.mkdir()
        deep = home
        for level in range(depth):
            deep = deep / f"{level % 7}"
            deep.mkdir()
            (deep / "f").write_text("f")
            (deep / "risen0").mkdir()
        (home / "risen0").mkdir()
        for directory, _, _ in os.walk(home, topdown=False):
            os.chmod(directory, 0o500)
        home.chmod(0o700)
        fd = os.open(place, os.O_RDONLY)
        placing.remove_staging(fd, b"home")
        os.close(fd)

    try:
        as_nobody(remove)
        assert os.listdir(place) == []
    finally:
        shutil.rmtree(place)


def test_a_directory_that_gains_an_entry_meanwhile_stays(
    workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager.create("one")
    (workspace / "d").mkdir()
    (workspace / "d" / "old").write_text("old")
    between_staging_and_switch(monkeypatch, lambda: (workspace / "d" / "new").write_text("precious") and None)
    report = manager.rollback("one")
    assert b"d" in [problem.path for problem in report.left_alone]
    assert os.listdir(workspace / "d") == ["new"]


def test_what_is_written_while_a_file_is_replaced_is_kept_in_a_further_safety_checkpoint(
    workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    nested(workspace / "d")
    manager.create("one")
    (workspace / "d" / "in" / "deep" / "f").write_text("two")
    writer = (workspace / "d" / "in" / "deep" / "f").open("a")
    replace = placing.replace

    def replace_while_written(source: tuple[int, bytes], target: tuple[int, bytes]) -> None:
        replace(source, target)
        writer.write(" and late")
        writer.close()

    monkeypatch.setattr(placing, "replace", replace_while_written)
    manager.rollback("one")
    assert (workspace / "d" / "in" / "deep" / "f").read_text() == "deep"
    monkeypatch.undo()
    late = manager.list(safety=True)[0]
    assert late.safety
    manager.restore_to(tmp_path / "late", late.id)
    assert (tmp_path / "late" / "d" / "in" / "deep" / "f").read_text() == "two and late"


def rewrite_unseen(path: Path, data: bytes) -> None:
    """Other bytes of the same number, and the time of before: nothing but ctime tells of it, which any rename moves."""
    before = path.stat()
    with path.open("r+b") as file:
        file.write(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size


@pytest.mark.parametrize("act", ["remove_file", "replace"])
def test_what_is_written_unseen_while_a_small_file_goes_is_kept_in_a_further_safety_checkpoint(
    workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, act: str
) -> None:
    path = workspace / "f"
    if act == "replace":
        path.write_text("one!")
    manager.create("one")
    path.write_text("old!")
    real = getattr(placing, act)

    def act_after_a_write(*arguments: Any) -> None:
        rewrite_unseen(path, b"NEW!")
        real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(placing, act, act_after_a_write)
        manager.rollback("one")
    late = manager.list(safety=True)[0]
    manager.restore_to(tmp_path / "late", late.id)
    assert (tmp_path / "late" / "f").read_text() == "NEW!"
    manager.undo()
    assert path.read_text() == "old!"


def test_each_small_file_that_goes_is_read_once_more_and_no_large_one(
    workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = [1, 100, switching.READ_AGAIN, switching.READ_AGAIN + 1]
    for number, size in enumerate(sizes):
        (workspace / f"changed{number}").write_bytes(b"1" * size)
    (workspace / "same").write_text("same")
    (workspace / "moded").write_text("moded")
    manager.create("one")
    for number, size in enumerate(sizes):
        (workspace / f"changed{number}").write_bytes(b"2" * size)
        (workspace / f"new{number}").write_bytes(b"2" * size)
    (workspace / "moded").chmod(0o700)
    (workspace / "empty").touch()
    read: list[int] = []
    real = switching.content_id

    def counted(data: bytes) -> bytes:
        read.append(len(data))
        return real(data)

    monkeypatch.setattr(switching, "content_id", counted)
    manager.rollback("one")
    assert sorted(read) == sorted(sizes[:-1] * 2)
    assert sum(one.safety for one in manager.list(safety=True)) == 1


def test_a_directory_that_became_a_link_outside_is_replaced_and_nothing_outside_is_touched(
    workspace: Path, manager: CheckpointManager, tmp_path: Path
) -> None:
    full(workspace / "d")
    manager.create("one")
    first = snapshot(workspace)
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("f", "keep"):
        (outside / name).write_text("outside")
    before = snapshot(outside)
    shutil.rmtree(workspace / "d")
    (workspace / "d").symlink_to(outside)
    assert manager.rollback("one", paths=["d/f"]).complete
    assert difference(first, snapshot(workspace)) == [] or (workspace / "d" / "f").read_text() == "in a directory"
    manager.rollback("one")
    assert difference(first, snapshot(workspace)) == []
    assert difference(before, snapshot(outside)) == []


def test_a_directory_swapped_for_a_link_during_the_switch_leads_nowhere(
    workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    full(workspace / "d")
    manager.create("one")
    (workspace / "d" / "f").write_text("changed")
    (workspace / "d" / "extra").write_text("extra")
    outside = tmp_path / "outside"
    shutil.copytree(workspace / "d", outside)
    before = snapshot(outside)

    def swap() -> None:
        os.rename(workspace / "d", workspace / "moved")
        (workspace / "d").symlink_to(outside)

    between_staging_and_switch(monkeypatch, swap)
    assert not manager.rollback("one").complete
    assert difference(before, snapshot(outside)) == []


def test_a_link_is_replaced_and_not_written_through(
    workspace: Path, manager: CheckpointManager, tmp_path: Path
) -> None:
    (workspace / "x").write_text("saved")
    manager.create("one")
    first = snapshot(workspace)
    victim = tmp_path / "victim"
    victim.write_text("victim")
    before = os.lstat(victim)
    (workspace / "x").unlink()
    (workspace / "x").symlink_to(victim)
    manager.rollback("one")
    assert difference(first, snapshot(workspace)) == []
    assert victim.read_text() == "victim"
    assert os.lstat(victim).st_mtime_ns == before.st_mtime_ns


def test_a_name_outside_of_a_hard_linked_file_is_not_altered(
    workspace: Path, manager: CheckpointManager, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    (workspace / "x").write_text("saved")
    (workspace / "y").write_text("saved")
    manager.create("one")
    first = snapshot(workspace)
    outside.write_text("outside")
    (workspace / "x").unlink()
    os.link(outside, workspace / "x")
    os.link(workspace / "y", tmp_path / "y outside")
    os.chmod(workspace / "y", 0o600)
    before = (outside.read_text(), os.lstat(outside).st_mtime_ns, os.lstat(outside).st_mode)
    manager.rollback("one")
    assert difference(first, snapshot(workspace)) == []
    assert before == (outside.read_text(), os.lstat(outside).st_mtime_ns, os.lstat(outside).st_mode)
    assert stat.S_IMODE(os.lstat(tmp_path / "y outside").st_mode) == 0o600


def test_a_broken_hard_link_group_is_joined_again(workspace: Path, manager: CheckpointManager) -> None:
    (workspace / "c").mkdir()
    (workspace / "a").write_text("one")
    os.link(workspace / "a", workspace / "b")
    os.link(workspace / "a", workspace / "c" / "d")
    manager.create("one")
    first, kept = snapshot(workspace), inodes(workspace)[b"a"]
    os.rename(workspace / "b", workspace / "old")
    shutil.copy2(workspace / "old", workspace / "b")
    (workspace / "old").unlink()
    second = snapshot(workspace)
    manager.rollback("one")
    assert difference(first, snapshot(workspace)) == []
    assert inodes(workspace)[b"a"][0] == kept[0]
    manager.undo()
    assert difference(second, snapshot(workspace)) == []


@pytest.mark.parametrize(
    ("paths", "restored"),
    [(["a"], {"a"}), (["d"], {"d/f", "d/g"}), (["d/f"], {"d/f"}), (["a", "d/g"], {"a", "d/g"})],
)
def test_a_rollback_limited_to_paths_changes_only_them(
    workspace: Path, manager: CheckpointManager, paths: list[str], restored: set[str]
) -> None:
    (workspace / "d").mkdir()
    names = {"a", "b", "d/f", "d/g"}
    for name in names:
        (workspace / name).write_text("one")
    manager.create("one")
    for name in names:
        (workspace / name).write_text("two")
    manager.create("two")
    manager.rollback("one", paths=paths)
    assert {name for name in names if (workspace / name).read_text() == "one"} == restored
    assert manager.show().name == "two"


def test_rolling_back_a_path_brings_the_directories_above_it(workspace: Path, manager: CheckpointManager) -> None:
    nested(workspace / "d")
    os.chmod(workspace / "d" / "in", 0o700)
    manager.create("one")
    shutil.rmtree(workspace / "d")
    (workspace / "d").write_text("a file in the way")
    manager.rollback("one", paths=["d/in/deep/f"])
    assert (workspace / "d" / "in" / "deep" / "f").read_text() == "deep"
    assert stat.S_IMODE(os.lstat(workspace / "d" / "in").st_mode) == 0o700
    assert not (workspace / "d" / "g").exists()
    manager.undo()
    assert (workspace / "d").read_text() == "a file in the way"


def test_a_preview_says_what_the_rollback_does_and_changes_nothing(
    workspace: Path, manager: CheckpointManager, home: Path
) -> None:
    nested(workspace / "d")
    (workspace / "f").write_text("one")
    manager.create("one")
    (workspace / "f").write_text("two")
    (workspace / "new").write_text("new")
    shutil.rmtree(workspace / "d" / "in")
    before, store = snapshot(workspace), snapshot(home / "store", times=False)
    preview = manager.rollback("one", preview=True)
    assert difference(before, snapshot(workspace)) == []
    assert {p: r for p, r in snapshot(home / "store", times=False).items() if not p.startswith(b"cache")} == {
        p: r for p, r in store.items() if not p.startswith(b"cache")
    }
    report = manager.rollback("one")
    assert [(c.path, c.kind) for c in preview.changes] == [(c.path, c.kind) for c in report.changes]
    assert [c.path for c in report.changes] == [b"d/in", b"d/in/deep", b"d/in/deep/f", b"f", b"new"]


def test_a_preview_works_where_the_directory_is_gone(workspace: Path, manager: CheckpointManager) -> None:
    full(workspace / "d")
    manager.create("one")
    shutil.rmtree(workspace)
    preview = manager.rollback("one", preview=True)
    assert [change.path for change in preview.changes] == [b"", b"d", b"d/f"]
    assert not workspace.exists()
    manager.rollback("one")
    assert (workspace / "d" / "f").read_text() == "in a directory"


def test_hard_linked_links_and_pipes_are_joined_and_split_again(workspace: Path, manager: CheckpointManager) -> None:
    for name, kind in (("l", "link to a file"), ("p", "pipe")):
        KINDS[kind](workspace / f"{name}1")
        for number in (2, 3):
            os.link(workspace / f"{name}1", workspace / f"{name}{number}", follow_symlinks=False)
    manager.create("one")
    first = snapshot(workspace)
    for name, kind in (("l", "link to a file"), ("p", "pipe")):
        for number in (1, 3):
            (workspace / f"{name}{number}").unlink()
            KINDS[kind](workspace / f"{name}{number}")
        os.link(workspace / f"{name}2", workspace / f"{name}9", follow_symlinks=False)
    second = snapshot(workspace)
    assert manager.rollback("one").left_alone == ()
    assert difference(first, snapshot(workspace)) == []
    assert manager.undo().left_alone == ()
    assert difference(second, snapshot(workspace)) == []


@pytest.mark.parametrize(("files", "each"), [(3, True), (100, False)])
def test_what_was_written_is_forced_out_before_the_outcome_is_recorded(
    workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch, files: int, each: bool
) -> None:
    for text in ("one", "two"):
        for number in range(files):
            (workspace / f"f{number}").write_text(text)
        manager.create(text)
    acts: list[str] = []
    fdatasync, append = os.fdatasync, type(manager._find()[0].store).commit
    monkeypatch.setattr(os, "fdatasync", lambda fd: acts.append("file") or fdatasync(fd))
    monkeypatch.setattr(restoring, "sync_names", lambda fd: acts.append("names"))
    monkeypatch.setattr(restoring, "sync_filesystem", lambda fd: acts.append("file system"))
    monkeypatch.setattr(Store, "commit", lambda *args, **more: acts.append("commit") or append(*args, **more))
    manager.rollback("one")
    begun, ended = [index for index, act in enumerate(acts) if act == "commit"]
    between = acts[begun + 1 : ended]
    assert between.count("names") == (1 if each else 0)
    assert between.count("file system") == (0 if each else 1)
    assert between.index("names" if each else "file system") == len(between) - 1
    assert between.count("file") == 1 + (files if each else 0)  # the begin line, and each new file


def test_an_undo_goes_back_to_a_head_that_survives(workspace: Path, manager: CheckpointManager) -> None:
    for name in ("one", "two"):
        (workspace / "f").write_text(name)
        manager.create(name)
    manager.rollback("one")
    manager.delete("two")
    manager.undo()
    assert (workspace / "f").read_text() == "two"
    assert manager.show().name == "one"


@pytest.fixture
def public() -> Path:
    """A directory that an ordinary user owns and can reach."""
    if os.geteuid() != 0:
        pytest.skip("changing to another user takes root")
    directory = Path(tempfile.mkdtemp(prefix="casnap-public-"))
    os.chmod(directory, 0o755)
    os.chown(directory, NOBODY, NOBODY)
    yield directory
    shutil.rmtree(directory)


def test_read_only_directories_are_restored_by_their_owner(public: Path) -> None:
    workspace = public / "workspace"

    def act() -> None:
        (workspace / "d" / "e").mkdir(parents=True)
        (workspace / "d" / "f").write_text("one")
        for path, mode in (("d/f", 0o444), ("d/e", 0o500), ("d", 0o555), ("", 0o555)):
            os.chmod(workspace / path, mode)
        manager = CheckpointManager(workspace, store=public / "store")
        manager.create("one")
        first = snapshot(workspace)
        os.chmod(workspace / "d", 0o755)
        (workspace / "d" / "f").unlink()
        (workspace / "d" / "new").write_text("new")
        os.chmod(workspace / "d", 0o555)
        second = snapshot(workspace)
        assert manager.rollback("one").complete
        assert difference(first, snapshot(workspace)) == []
        assert manager.undo().complete
        assert difference(second, snapshot(workspace)) == []

    as_nobody(act)


@pytest.mark.parametrize("edit", ["removed", "attributes removed", "attributes added", "attributes changed"])
def test_attributes_of_read_only_entries_are_restored_by_their_owner(public: Path, edit: str) -> None:
    workspace = public / "workspace"
    names = ("file", "directory")

    def act() -> None:
        (workspace / "directory").mkdir(parents=True)
        (workspace / "file").write_text("one")
        for name in names:
            if edit != "attributes added":
                os.setxattr(workspace / name, "user.kept", b"one")
            os.chmod(workspace / name, 0o500)
        manager = CheckpointManager(workspace, store=public / "store")
        manager.create("one")
        first = snapshot(workspace)
        for name in names:
            os.chmod(workspace / name, 0o700)
            if edit == "removed":
                (workspace / name).unlink() if name == "file" else (workspace / name).rmdir()
                continue
            if edit == "attributes removed":
                os.removexattr(workspace / name, "user.kept")
            else:
                os.setxattr(workspace / name, "user.kept" if edit == "attributes changed" else "user.new", b"two")
            os.chmod(workspace / name, 0o500)
        report = manager.rollback("one")
        assert (report.complete, report.problems) == (True, ())
        assert difference(first, snapshot(workspace)) == []

    as_nobody(act)


def test_what_cannot_be_read_is_neither_changed_nor_removed(public: Path) -> None:
    workspace = public / "workspace"

    def act() -> None:
        for directory in ("closed", "new"):
            (workspace / directory).mkdir(parents=True)
        for name in ("f", "secret", "closed/inner"):
            (workspace / name).write_text("one")
        for name in ("secret", "closed"):
            os.chmod(workspace / name, 0)
        manager = CheckpointManager(workspace, store=public / "store")
        manager.create("one")
        for name in ("f", "new/secret"):
            (workspace / name).write_text("two")
        os.chmod(workspace / "new" / "secret", 0)
        report = manager.rollback("one")
        assert (workspace / "f").read_text() == "one"
        assert {b"secret", b"closed"} <= set(report.kept)
        assert [problem.path for problem in report.left_alone] == [b"new/secret"]
        for name in ("secret", "new/secret", "closed"):
            assert stat.S_IMODE(os.lstat(workspace / name).st_mode) == 0
        os.chmod(workspace / "closed", 0o700)
        assert (workspace / "closed" / "inner").read_text() == "one"

    as_nobody(act)


def test_a_rollback_lists_only_the_directories_that_changed(
    workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(60):
        directory = workspace / f"d{number}" / "e"
        directory.mkdir(parents=True)
        (directory / "f").write_text(str(number))
    (workspace / "left-out").mkdir()
    (workspace / ".casnapignore").write_text("left-out\n")
    settle(workspace)
    manager.create("one")
    manager.create("two")  # by now everything has settled
    before = snapshot(workspace)
    (workspace / "d7" / "e" / "f").write_text("edited")
    (workspace / "d9" / "e" / "new").write_text("new")
    settle(workspace)
    listed: list[object] = []
    listdir = os.listdir

    def counted(place: object) -> object:
        if isinstance(place, int):  # those of the store go by paths
            listed.append(os.readlink(f"/proc/self/fd/{place}"))
        return listdir(place)  # type: ignore[call-overload]

    monkeypatch.setattr(os, "listdir", counted)
    report = manager.rollback("one")
    assert len(report.changes) >= 2
    assert len(listed) < 30, listed  # of 122 directories, in three looks
    assert snapshot(workspace) == before
    listed.clear()
    manager.undo()
    assert len(listed) < 40
    assert (workspace / "d7" / "e" / "f").read_text() == "edited"
