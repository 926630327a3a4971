"""A manager shared by threads, and copied into forked children."""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import casnap.manager
from casnap import Busy, CheckpointManager
from casnap.engine.roots import locked_roots
from casnap.settings import load_settings, open_context
from support.scanning import deadline


def in_child(act: Callable[[], object]) -> None:
    """Run ``act`` in a forked child; what it raises fails the test here."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            act()
        except BaseException:
            os.write(writer, traceback.format_exc().encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        said = file.read()
    os.waitpid(child, 0)
    assert not said, said


def test_threads_share_a_manager(workspace: Path, manager: CheckpointManager) -> None:
    (workspace / "f").write_text("0")
    manager.create("first")

    def work(number: int) -> str:
        (workspace / f"f{number}").write_text(str(number))
        made = manager.create(f"c{number}")
        assert manager.show(f"c{number}").id == made.id
        assert len(manager.list()) > 1
        manager.status()
        return made.id

    with deadline(60), ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(work, range(24)))
    assert {made.id for made in manager.list()} == {*ids, manager.show("first").id}
    assert sorted(made.step or 0 for made in manager.list()) == list(range(1, 26))


def test_managers_of_one_workspace_in_threads_take_turns(workspace: Path) -> None:
    (workspace / "f").write_text("0")

    def work(number: int) -> int:
        with CheckpointManager(workspace) as manager:
            return manager.create(f"c{number}").step or 0

    with deadline(60), ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(work, range(12))) == list(range(1, 13))


def test_a_forked_child_and_its_parent_go_on_with_the_same_manager(workspace: Path, manager: CheckpointManager) -> None:
    (workspace / "f").write_text("0")
    manager.create("before")
    with deadline(60):
        in_child(lambda: manager.create("child"))
        manager.create("parent")
        in_child(lambda: manager.rollback("before"))
        assert manager.show().name == "before"
        in_child(manager.close)
        manager.create("after")
    assert [made.name for made in manager.list()] == ["after", "parent", "child", "before"]


def test_a_child_that_is_forked_while_a_thread_is_at_work_is_not_stuck(
    workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "f").write_text("0")
    manager.create("before")
    inside, done = threading.Event(), threading.Event()

    def slow(*args: object) -> object:
        inside.set()
        done.wait(30)
        return status(*args)  # type: ignore[arg-type]

    status = casnap.manager.status
    monkeypatch.setattr(casnap.manager, "status", slow)
    with deadline(60), ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(manager.status)
        inside.wait(30)
        in_child(lambda: manager.list())
        done.set()
        assert waiting.result().checkpoints == 1


def test_a_child_does_not_keep_the_locks_of_its_parent(workspace: Path, manager: CheckpointManager) -> None:
    """Neither the lock of the workspace, nor that of its directory, nor a pack's: all end with the parent's act."""
    (workspace / "f").write_text("0")
    manager.create("before")
    (workspace / "f").write_text("1")
    context = open_context(load_settings(wait=0))
    workspace_info = manager.status().workspace
    reader, writer = os.pipe()
    begun, beginning = os.pipe()
    with locked_roots(context, [workspace_info], "rollback"):
        child = os.fork()
        if child == 0:
            os.close(writer)
            os.write(beginning, b"!")  # by now it has let go of what was its parent's
            os.read(reader, 1)
            os._exit(0)
        os.read(begun, 1)
        with pytest.raises(Busy), locked_roots(open_context(load_settings(wait=0)), [workspace_info], "rollback"):
            pass
    try:
        with locked_roots(context, [workspace_info], "rollback"):
            pass
    finally:
        for end in (writer, reader, begun, beginning):
            os.close(end)
        os.waitpid(child, 0)
        context.store.close()
