"""Faults that were found by trying to break rollback; each stands for its kind."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyfastcdc  # noqa: F401  # an ordinary user may be unable to reach what is imported late
import pytest
import sqlite_utils  # noqa: F401

from casnap import CheckpointManager, Damage, NotFound
from casnap.engine.recorded import entries
from casnap.fs import placing
from support.oracle import difference, snapshot
from support.scanning import NOBODY, as_nobody

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="changing to another user, and mounting, take root")


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that ordinary users can reach."""
    if os.geteuid() != 0:
        pytest.skip("changing to another user takes root")
    directory = Path(tempfile.mkdtemp(prefix="casnap-public-"))
    os.chmod(directory, 0o755)
    yield directory
    shutil.rmtree(directory)


def deep(workspace: Path, levels: int) -> list[Path]:
    """Three branches, each directory with files named as staged entries are; the files at their ends."""
    ends = []
    for branch in "ABC":
        place = workspace / branch
        for level in range(levels):
            place = place / "d"
            place.mkdir(parents=True)
            for number in range(4):
                (place / str(number)).write_text(f"precious {branch} {level} {number}")
        (place / "file").write_text(branch)
        os.link(place / "file", place / "hard")
        ends.append(place / "file")
    return ends


@pytest.mark.parametrize("levels", [31, 32, 33, 40])
@pytest.mark.parametrize("paths", [None, ["A", "B"]])
def test_more_levels_than_open_descriptors_are_no_danger(
    workspace: Path, manager: CheckpointManager, levels: int, paths: list[str] | None
) -> None:
    ends = deep(workspace, levels)
    manager.create("one")
    first = snapshot(workspace)
    for number, end in enumerate(ends):
        end.unlink()
        if number == 1:
            end.write_text("replaced")
    changed = snapshot(workspace)
    report = manager.rollback("one", paths=paths)
    assert report.left_alone == ()
    now = snapshot(workspace)
    if paths is None:
        assert difference(first, now) == []
    else:
        assert [line for line in difference(first, now) if b"/".join([b"C"]).decode() not in line.split(":")[0]] == []
    assert manager.undo().left_alone == ()
    assert difference(changed, snapshot(workspace)) == []


def make_socket(path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(path.parent)  # such names are short
    try:
        listener.bind(path.name)
    finally:
        os.chdir(here)
        listener.close()


def test_a_socket_in_the_place_of_a_hard_linked_file_takes_no_other_name_with_it(
    workspace: Path, manager: CheckpointManager
) -> None:
    (workspace / "x").write_text("data")
    os.link(workspace / "x", workspace / "y")
    manager.create("one")
    (workspace / "x").unlink()
    make_socket(workspace / "x")
    report = manager.rollback("one")
    assert [problem.path for problem in report.left_alone] == [b"x"]
    assert (workspace / "y").read_text() == "data"
    assert b"x" in [change.path for change in manager.verify("one").changes]


@pytest.mark.parametrize("obstacle", ["socket", "mount"])
@root_only
def test_hard_links_in_a_directory_that_is_not_captured_now_are_left_alone(
    workspace: Path, manager: CheckpointManager, obstacle: str
) -> None:
    (workspace / "d").mkdir()
    (workspace / "d" / "x").write_text("1")
    os.link(workspace / "d" / "x", workspace / "d" / "y")
    (workspace / "q").write_text("one")
    manager.create("one")
    (workspace / "q").write_text("two")
    if obstacle == "mount":
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(workspace / "d")], check=True)
    else:
        shutil.rmtree(workspace / "d")
        make_socket(workspace / "d")
    try:
        report = manager.rollback("one")
    finally:
        if obstacle == "mount":
            subprocess.run(["umount", str(workspace / "d")], check=True)
    assert [problem.path for problem in report.left_alone] == [b"d"]
    assert (workspace / "q").read_text() == "one"
    assert manager.status().interrupted is None


def test_a_hard_link_to_a_name_that_is_to_be_a_directory(workspace: Path, manager: CheckpointManager) -> None:
    (workspace / "x").mkdir()
    (workspace / "x" / "f").write_text("in")
    (workspace / "y").write_text("y")
    manager.create("one")
    first = snapshot(workspace)
    shutil.rmtree(workspace / "x")
    os.chmod(workspace / "y", 0o600)
    os.link(workspace / "y", workspace / "x")
    assert manager.rollback("one").left_alone == ()
    assert difference(first, snapshot(workspace)) == []


@pytest.mark.parametrize("change", ["time", "mode"])
def test_metadata_of_a_hard_linked_file_is_repaired_through_any_of_its_names(
    workspace: Path, manager: CheckpointManager, change: str
) -> None:
    (workspace / "a").write_text("1")
    for name in ("b", "c"):
        os.link(workspace / "a", workspace / name)
    manager.create("one")
    first = snapshot(workspace)
    if change == "time":
        os.utime(workspace / "a", ns=(1, 1))
    else:
        os.chmod(workspace / "a", 0o600)
    assert manager.rollback("one").left_alone == ()
    assert difference(first, snapshot(workspace)) == []
    assert manager.undo().left_alone == ()


def test_regrouped_hard_links_are_exact_whatever_the_clock_does(
    workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "x").write_text("same")
    for name in ("z", "p"):
        os.link(workspace / "x", workspace / name)
    (workspace / "q").write_text("2")
    os.link(workspace / "q", workspace / "y")
    manager.create("one")
    first = snapshot(workspace)
    for name in ("p", "y"):
        (workspace / name).unlink()
    os.link(workspace / "q", workspace / "p")
    os.link(workspace / "x", workspace / "y")
    second = snapshot(workspace)
    replace = placing.replace
    monkeypatch.setattr(placing, "replace", lambda *ends: time.sleep(0.02) or replace(*ends))
    assert manager.rollback("one").left_alone == ()
    assert difference(first, snapshot(workspace)) == []
    assert manager.undo().left_alone == ()
    assert difference(second, snapshot(workspace)) == []


def test_an_error_before_the_switch_leaves_no_rollback_open(
    workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "f").write_text("one")
    manager.create("one")
    (workspace / "f").write_text("two")
    before = snapshot(workspace)

    def fail(*args: object, **options: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(placing, "create_file", fail)
    with pytest.raises(ZeroDivisionError):
        manager.rollback("one")
    assert manager.status().interrupted is None
    assert difference(before, snapshot(workspace)) == []


def test_a_path_that_neither_side_knows_is_an_error(workspace: Path, manager: CheckpointManager) -> None:
    (workspace / "f").write_text("one")
    (workspace / "link").symlink_to(".")
    manager.create("one")
    (workspace / "f").write_text("two")
    for path in ("nosuch", "link/f", "f/below"):
        with pytest.raises(NotFound, match=path):
            manager.rollback("one", paths=["f", path])
        with pytest.raises(NotFound, match=path):
            manager.rollback("one", paths=[path], preview=True)
    assert (workspace / "f").read_text() == "two"


def test_what_its_user_may_not_change_above_is_no_hindrance_below(public: Path) -> None:
    shared = public / "shared"
    (shared / "mine").mkdir(parents=True)
    (public / "home").mkdir()
    os.chown(shared / "mine", NOBODY, NOBODY)
    os.chown(public / "home", NOBODY, NOBODY)

    def act() -> None:
        (shared / "mine" / "a").write_text("1")
        manager = CheckpointManager(shared, store=public / "home" / "store")
        manager.create("one")
        first = snapshot(shared)
        (shared / "mine" / "a").write_text("2")
        (shared / "mine" / "b").write_text("2")
        assert manager.rollback("one").left_alone == ()
        assert difference(first, snapshot(shared)) == []

    as_nobody(act)


def test_a_checkpoint_that_was_deleted_and_came_back_is_head_again(workspace: Path, manager: CheckpointManager) -> None:
    (workspace / "f").write_text("one")
    manager.create("one")
    manager.delete("one")
    manager.undelete("one")
    (workspace / "f").write_text("two")
    manager.rollback()
    assert (workspace / "f").read_text() == "one"


def test_looking_does_not_move_access_times(workspace: Path, manager: CheckpointManager) -> None:
    (workspace / "d").mkdir()
    (workspace / "d" / "f").write_text("one")
    manager.create("one")
    for path in (workspace, workspace / "d", workspace / "d" / "f"):
        os.utime(path, (1, os.stat(path).st_mtime))
    manager.create("two")
    manager.status()
    manager.diff("one")
    manager.verify("one")
    manager.rollback("one", preview=True)
    assert [int(os.stat(p).st_atime) for p in (workspace, workspace / "d", workspace / "d" / "f")] == [1, 1, 1]


def flip(store: Path, needle: bytes, at: int) -> None:
    """Damage the pack that holds ``needle`` raw, ``at`` bytes behind it."""
    pack = next(path for path in (store / "packs").iterdir() if needle in path.read_bytes())
    data = bytearray(pack.read_bytes())
    data[data.index(needle) + at] ^= 0xFF
    pack.write_bytes(data)


def test_case_091_a_damaged_object_is_written_anew_when_its_content_is_read_again(
    workspace: Path, manager: CheckpointManager, home: Path, tmp_path: Path
) -> None:
    noise = os.urandom(100_000)
    (workspace / "big").write_bytes(noise)
    manager.create("one")
    flip(home / "store", noise[:32], 50_000)
    with pytest.raises(Damage, match="big"):
        manager.restore_to(tmp_path / "damaged", "one")
    assert not (tmp_path / "damaged").exists()
    os.utime(workspace / "big")
    manager.create("two")
    manager.restore_to(tmp_path / "healed", "one")
    assert (tmp_path / "healed" / "big").read_bytes() == noise


def damage(store: Path, id: bytes) -> None:
    """Flip a byte in the record of the object with this id."""
    for path in (store / "packs").iterdir():
        data = bytearray(path.read_bytes())
        at = data.find(id[:8])
        if at >= 0:
            data[at + 30] ^= 0xFF
            path.write_bytes(data)
            return
    raise AssertionError(id)


def test_one_damaged_checkpoint_leaves_the_others_usable(
    workspace: Path, manager: CheckpointManager, home: Path, tmp_path: Path
) -> None:
    (workspace / "f").write_text("one")
    manager.create("one")
    first = snapshot(workspace)
    (workspace / "f").write_text("two")
    damaged = manager.create("two", "a message")
    manager.close()
    damage(home / "store", bytes.fromhex(damaged.id))
    manager = CheckpointManager(workspace)
    assert [(c.name, c.damaged) for c in manager.list()] == [("two", True), ("one", False)]
    with pytest.raises(Damage, match=damaged.id[:12]):
        manager.restore_to(tmp_path / "x", "two")
    (workspace / "f").write_text("three")
    assert manager.create("three").parent == damaged.id
    assert manager.verify("three")
    assert manager.rollback("one").complete
    assert difference(first, snapshot(workspace)) == []
    assert manager.delete("two").deleted[0].damaged
    assert [c.name for c in manager.list()] == ["three", "one"]


@pytest.mark.parametrize("act", ["checkpoint", "rollback", "status", "preview"])
def test_a_damaged_tree_that_the_workspace_still_has_is_no_hindrance(
    workspace: Path, manager: CheckpointManager, home: Path, act: str
) -> None:
    for name in ("d", "e"):
        (workspace / name).mkdir()
        for number in range(20):
            (workspace / name / f"f{number}").write_text(f"{name} {number}")
    manager.create("one")
    (workspace / "e" / "f1").write_text("two")
    (workspace / "d" / "f1").write_text("two")
    time.sleep(0.05)
    manager.create("two")
    context, _ = manager._find()
    trees = dict(entries(context, manager.show("two")))
    manager.close()
    damage(home / "store", trees[b"d"].tree)
    manager = CheckpointManager(workspace)
    (workspace / "d" / "f3").write_text("changed")
    match act:
        case "checkpoint":
            manager.create("three")
            assert manager.verify("three")
        case "rollback":
            assert manager.rollback("one").complete
            assert (workspace / "d" / "f1").read_text() == "d 1"
            assert manager.undo().complete
            assert (workspace / "d" / "f3").read_text() == "changed"
        case "status":
            assert manager.status().checkpoints == 2
        case "preview":
            changed = [change.path for change in manager.rollback("one", preview=True).changes]
            assert changed == [b"d/f1", b"d/f3", b"e/f1"]
