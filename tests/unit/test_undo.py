"""Heads, undo and interruptions: what a rollback does to the history, not to the files alone."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

from casnap import CheckpointManager, Damage, StorageFailed
from casnap.engine.content import Contents
from casnap.fs import placing
from casnap.model.tree import File
from casnap.store.session import WriteSession
from casnap.workspace.cache_file import load_cache
from casnap.workspace.reader import Reader
from casnap.workspace.switching import Switch
from support.oracle import difference, inodes, snapshot


def test_rolling_back_to_a_safety_checkpoint_makes_its_parent_head(workspace: Path, manager: CheckpointManager) -> None:
    for name in ("one", "two"):
        (workspace / "f").write_text(name)
        manager.create(name)
    (workspace / "f").write_text("dirty")
    safety = manager.rollback("one").safety
    assert safety is not None
    assert safety.parent == manager.show("two").id
    manager.rollback(safety.id)
    assert (workspace / "f").read_text() == "dirty"
    assert manager.show().name == "two"
    assert manager.create("three").parent == manager.show("two").id


def interrupt(manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch, revision: str, after: int) -> None:
    """Begin a rollback and die after so many acts of the switch, as a kill would."""
    acts: list[str] = []
    for name in ("_remove", "_place", "_join"):

        def counted(self: Switch, *args: object, _act: object = getattr(Switch, name)) -> None:
            if len(acts) == after:
                raise SystemExit
            acts.append("act")
            _act(self, *args)  # type: ignore[operator]

        monkeypatch.setattr(Switch, name, counted)
    with pytest.raises(SystemExit):
        manager.rollback(revision)
    monkeypatch.undo()


def test_a_rollback_looks_once_at_what_has_nothing_to_do_with_it(
    workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"d{number}/{name}" for number in range(20) for name in ("a", "b", "c")]
    for name in names:
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text(name)
    manager.create("good")
    time.sleep(0.05)  # by then a stat proves something
    manager.create()
    (workspace / "d7" / "a").write_text("edited")
    (workspace / "d8" / "new").write_text("new")
    seen: Counter[str] = Counter()

    def counted(path: bytes | str, *args: Any, _look: Any = os.lstat, **options: Any) -> os.stat_result:
        seen[os.fsdecode(path)] += 1
        found: os.stat_result = _look(path, *args, **options)
        return found

    monkeypatch.setattr(os, "lstat", counted)
    assert len(manager.rollback("good").changes) == 2
    untouched = [name for name in names if not name.startswith(("d7/", "d8/"))]
    assert {seen[name] for name in untouched} == {1}
    monkeypatch.undo()
    assert not manager.status().changes
    assert [(workspace / name).read_text() for name in names] == names
    assert not (workspace / "d8" / "new").exists()


EDITS: dict[str, Callable[[Path], object]] = {
    "a file": lambda root: (root / "one" / "a").unlink(),
    "a link": lambda root: (root / "one" / "link").unlink(),
    "a directory": lambda root: shutil.rmtree(root / "one"),
    "a file in one that may not be changed": lambda root: ((root / "one" / "a").unlink(), (root / "one").chmod(0o500)),
    "a name of two": lambda root: (root / "two" / "twin").unlink(),
    "the last of two names, and a file instead": lambda root: (
        (root / "two" / "twin").unlink(),
        (root / "two" / "twin").write_text("a twin"),
    ),
    "times": lambda root: os.utime(root / "one", (1, 1)),
}


@pytest.mark.parametrize("gone", EDITS)
def test_what_a_rollback_brings_back_into_directories_that_had_long_settled_is_seen(
    workspace: Path, manager: CheckpointManager, gone: str
) -> None:
    for name in ("one/a", "one/b", "two/c", "three/twin"):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text(f"a {name}")
    (workspace / "one" / "link").symlink_to("a")
    os.link(workspace / "three" / "twin", workspace / "two" / "twin")
    manager.create("good")
    good = snapshot(workspace)
    EDITS[gone](workspace)
    for _ in range(2):
        time.sleep(0.05)  # by then a stat proves something
        manager.create()
    report = manager.rollback("good")
    assert (report.left_alone, report.problems) == ((), ())
    assert difference(good, snapshot(workspace)) == []
    assert not manager.status().changes
    assert manager.create(if_changed=True).name == "good"


@pytest.mark.parametrize("after", [0, 1, 3, 5])
@pytest.mark.parametrize("how", ["recover", "the same rollback", "another rollback", "undo", "checkpoint, recover"])
def test_an_interrupted_rollback_is_gone_on_with(
    workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch, how: str, after: int
) -> None:
    trees = {}
    for text in ("one", "two"):
        for number in range(4):
            (workspace / f"f{number}").write_text(f"{text} {number}")
        manager.create(text)
        trees[text] = snapshot(workspace)
    for number in range(3):
        (workspace / f"new{number}").write_text("in no checkpoint")
    dirty = snapshot(workspace)
    interrupt(manager, monkeypatch, "one", after)
    assert [name for name in os.listdir(workspace) if name.startswith(".casnap-")]
    interrupted = manager.status().interrupted
    assert interrupted is not None
    assert interrupted.target == manager.show("one").id
    match how:
        case "recover" | "checkpoint, recover":
            if how != "recover":
                assert manager.create("between").step == 3
            report = manager.recover().rollback
            assert report is not None
            assert report.complete
        case "the same rollback":
            assert manager.rollback("one").complete
        case "another rollback":
            assert manager.rollback("two").complete
            assert difference(trees["two"], snapshot(workspace)) == []
        case "undo":
            assert manager.undo().complete
            assert difference(dirty, snapshot(workspace)) == []
    assert manager.status().interrupted is None
    assert not [name for name in os.listdir(workspace) if name.startswith(".casnap-")]
    if how in ("recover", "the same rollback"):
        assert difference(trees["one"], snapshot(workspace)) == []
        assert manager.undo().complete
        assert difference(dirty, snapshot(workspace)) == []
        assert manager.show().name == "two"


def test_a_recover_that_fails_leaves_the_interrupted_rollback_open(
    workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ("one", "two"):
        for number in range(4):
            (workspace / f"f{number}").write_text(f"{text} {number}")
        manager.create(text)
    (workspace / "new").write_text("in no checkpoint")
    dirty = snapshot(workspace)
    interrupt(manager, monkeypatch, "one", 2)

    def full(*args: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(placing, "create_file", full)
    with pytest.raises(StorageFailed):
        manager.recover()
    monkeypatch.undo()
    assert manager.status().interrupted is not None
    assert manager.recover().rollback is not None
    assert not [name for name in os.listdir(workspace) if name.startswith(".casnap-")]
    assert manager.undo().complete
    assert difference(dirty, snapshot(workspace)) == []


def test_another_directory_at_the_path_is_taken_and_said(workspace: Path, manager: CheckpointManager) -> None:
    (workspace / "f").write_text("one")
    manager.create("one")
    time.sleep(0.05)  # until the root's own stat can be believed
    manager.create("again")
    os.rename(workspace, workspace.with_name("moved"))  # kept, so that its inode is not used again
    workspace.mkdir()
    (workspace / "other").write_text("of the new directory")
    report = manager.rollback("one")
    assert any("another directory" in note for note in report.notes)
    assert (workspace / "f").read_text() == "one"
    manager.undo()
    assert (workspace / "other").read_text() == "of the new directory"


def test_a_file_that_looks_like_a_temporary_one_is_captured_and_kept(
    workspace: Path, manager: CheckpointManager
) -> None:
    (workspace / ".casnap-abcdef012345-0").write_text("the user's own")
    (workspace / "f").write_text("one")
    manager.create("one")
    first = snapshot(workspace)
    (workspace / ".casnap-abcdef012345-0").unlink()
    (workspace / "f").write_text("two")
    manager.rollback("one")
    assert difference(first, snapshot(workspace)) == []


def test_a_safety_checkpoint_is_made_when_only_hard_links_differ_from_head(
    workspace: Path, manager: CheckpointManager
) -> None:
    (workspace / "a").write_text("same")
    os.link(workspace / "a", workspace / "b")
    manager.create("one")
    status = os.stat(workspace)
    shutil.copy2(workspace / "b", workspace / "copy")
    os.replace(workspace / "copy", workspace / "b")
    os.utime(workspace, ns=(status.st_atime_ns, status.st_mtime_ns))
    second = snapshot(workspace)
    report = manager.rollback("one")
    assert report.safety is not None
    assert report.safety.safety
    assert os.path.samefile(workspace / "a", workspace / "b")
    manager.undo()
    assert difference(second, snapshot(workspace)) == []


def test_of_the_names_of_one_inode_those_that_stay_together_keep_it(
    workspace: Path, manager: CheckpointManager
) -> None:
    (workspace / "a").write_text("same")
    os.link(workspace / "a", workspace / "b")
    (workspace / "z").write_text("same")
    manager.create("one")
    first, before = snapshot(workspace), inodes(workspace)
    (workspace / "z").unlink()
    os.link(workspace / "a", workspace / "z")
    manager.rollback("one")
    assert difference(first, snapshot(workspace)) == []
    after = inodes(workspace)
    assert (after[b"a"][0], after[b"b"][0]) == (before[b"a"][0], before[b"b"][0])


def test_names_move_from_one_hard_link_group_to_another(workspace: Path, manager: CheckpointManager) -> None:
    (workspace / "a").write_text("first")
    os.link(workspace / "a", workspace / "n")
    (workspace / "w").write_text("other")
    os.link(workspace / "w", workspace / "y")
    manager.create("one")
    first = snapshot(workspace)
    (workspace / "n").unlink()
    (workspace / "y").unlink()
    os.link(workspace / "a", workspace / "y")
    second = snapshot(workspace)
    report = manager.rollback("one")
    assert report.left_alone == ()
    assert difference(first, snapshot(workspace)) == []
    assert manager.undo().left_alone == ()
    assert difference(second, snapshot(workspace)) == []


def test_an_undeleted_checkpoint_whose_name_is_taken_comes_back_unnamed(
    workspace: Path, manager: CheckpointManager
) -> None:
    first = manager.create("name")
    manager.delete("name")
    second = manager.create("name")
    report = manager.undelete(first.id)
    assert (report.checkpoint.name, report.name_lost) == (None, "name")
    assert manager.show("name").id == second.id
    manager.delete(first.id)
    manager.delete("name")
    assert manager.undelete(second.id).checkpoint.name == "name"


def test_the_cache_after_a_rollback_mirrors_the_checkpoint_that_was_restored(
    workspace: Path, manager: CheckpointManager, home: Path
) -> None:
    for name in ("one", "two"):
        (workspace / "f").write_text(name)
        manager.create(name)
    manager.rollback("one")
    context, found = manager._find()
    path = home / "store" / "cache" / f"{found.id}.stat"
    cache = load_cache(path, store=context.store.id, workspace=found.id, boot=context.boot)
    assert cache is not None
    assert cache.checkpoint.hex() == manager.show("one").id


def test_what_only_a_deleted_checkpoint_held_is_looked_up_and_read_again(
    workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "f").write_text("one")
    manager.create("one")
    reads: list[int] = []
    read, standing = Reader.read, WriteSession.standing
    monkeypatch.setattr(Reader, "read", lambda self, *args: reads.append(1) or read(self, *args))
    manager.create("two")
    assert reads == []
    manager.delete("one", "two")
    manager.create("three")
    assert reads == []  # looked up, and there
    manager.delete("three")
    monkeypatch.setattr(WriteSession, "standing", lambda self, keys: set())  # as if gc had freed it
    manager.create("four")
    assert reads == [1]
    monkeypatch.setattr(WriteSession, "standing", standing)
    assert manager.verify("four")


@pytest.mark.parametrize("after", [0, 2, 3])
def test_recover_can_go_back_to_before_the_interrupted_rollback(
    workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    for text in ("one", "two"):
        for number in range(3):
            (workspace / f"f{number}").write_text(f"{text} {number}")
        manager.create(text)
    (workspace / "uncaptured").write_text("x")
    before, head = snapshot(workspace), manager.show().id
    interrupt(manager, monkeypatch, "one", after)
    report = manager.recover(back=True).rollback
    assert report is not None
    assert report.verb == "recover"
    assert difference(before, snapshot(workspace)) == []
    assert manager.show().id == head
    assert manager.status().interrupted is None
    assert manager.recover(back=True).rollback is None


def test_back_after_a_second_interruption_still_leads_to_before_the_first(
    workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ("one", "two"):
        for number in range(6):
            (workspace / f"f{number}").write_text(f"{text} {number}")
        manager.create(text)
    before = snapshot(workspace)
    interrupt(manager, monkeypatch, "one", 2)
    interrupt(manager, monkeypatch, "one", 1)
    manager.recover(back=True)
    assert difference(before, snapshot(workspace)) == []


def test_recover_says_how_to_go_back_where_the_way_forward_is_damaged(
    workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "f").write_text("one" * 999)
    manager.create("one")
    (workspace / "f").write_text("two" * 999)
    manager.create("two")
    before = snapshot(workspace)
    interrupt(manager, monkeypatch, "one", 0)
    of = Contents.of

    def damaged(contents: Contents, file: File) -> Iterator[bytes]:
        if file.content == blake3(b"one" * 999).digest():
            raise Damage("bad chunk")
        return of(contents, file)

    monkeypatch.setattr(Contents, "of", damaged)
    with pytest.raises(Damage) as failed:
        manager.recover()
    assert failed.value.hint == "go back to before the interrupted run with: casnap recover --back"
    manager.recover(back=True)
    assert difference(before, snapshot(workspace)) == []
