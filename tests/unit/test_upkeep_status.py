"""What status says of the store's upkeep, and when a gc begins by itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from casnap import CheckpointManager
from casnap.engine import upkeep as upkeep_engine
from casnap.engine.context import Context
from casnap.engine.gc import collect
from casnap.engine.gc_terms import AUTOMATIC, is_due
from casnap.engine.upkeep import upkeep_status
from casnap.model.operation import AnyOperation, SpaceFreed, StoreChecked
from casnap.model.policy import Policy
from casnap.settings import free_space_if_due, load_settings, open_context
from casnap.store.space import Space
from casnap.store.state import State
from casnap.store.store import Commit
from support.stores import noise

HOUR = 3600 * 10**9
DAY = 24 * HOUR


class Standing:
    """A clock that stands still."""

    def __init__(self, time: int) -> None:
        self.time = time

    def now(self) -> int:
        return self.time

    def sleep(self, seconds: float) -> None:
        raise AssertionError


@pytest.fixture
def context(manager: CheckpointManager, workspace: Path) -> Iterator[Context]:
    for name in ("c1", "c2", "c3"):
        (workspace / "f").write_bytes(noise(name, 50_000))
        manager.create(name)
    opened = open_context(load_settings())
    yield opened
    opened.store.close()


def at(context: Context, hours: float) -> Context:
    """The same, so many hours from now."""
    return replace(context, clock=Standing(context.clock.now() + int(hours * HOUR)))


def checked(context: Context, result: str) -> None:
    def build(_state: State, commit: Commit) -> AnyOperation:
        return StoreChecked(seq=commit.seq, time=commit.time, prev=commit.prev, result=result, found=1)

    context.store.commit(build)


def test_a_store_in_order_gives_no_warning(context: Context) -> None:
    found = upkeep_status(context, 3)
    assert (found.dead_bytes, found.checked_ns, found.collected_ns, found.warnings) == (0, None, None, ())


def test_what_deleted_checkpoints_wrote_is_dead_until_it_is_freed(manager: CheckpointManager, context: Context) -> None:
    gone = manager.delete("c1", "c2").deleted
    assert upkeep_status(context, 1).dead_bytes == sum(one.new_bytes for one in gone) > 100_000
    manager.undelete("c1")
    assert upkeep_status(context, 2).dead_bytes == gone[1].new_bytes
    collect(context)
    after = upkeep_status(context, 2)
    assert after.dead_bytes == 0
    lines = [operation for operation in context.store.operations() if isinstance(operation, SpaceFreed)]
    assert after.collected_ns == lines[-1].time


def test_each_warning_says_what_to_do(
    manager: CheckpointManager, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert upkeep_status(context, 1000).warnings == ()
    (many,) = upkeep_status(context, 1001).warnings
    assert "1001 checkpoints" in many
    assert "casnap cleanup --keep" in many
    with monkeypatch.context() as patch:
        patch.setattr(Space, "free", lambda _space: (999, 10**6))
        tight = replace(context, policy=Policy(min_free=1000))
        (full,) = upkeep_status(tight, 1).warnings
        assert "999" in full
        assert "casnap gc" in full
        assert upkeep_status(replace(context, policy=Policy(min_free=999)), 1).warnings == ()
    manager.delete("c1", "c2")
    for least, expected in ((100_000, 1), (200_000, 0)):
        monkeypatch.setattr(upkeep_engine, "AUTOMATIC", msgspec.structs.replace(AUTOMATIC, least_bytes=least))
        dead = [warning for warning in upkeep_status(context, 1).warnings if "deleted checkpoints take" in warning]
        assert len(dead) == expected


def test_a_check_that_is_long_ago_or_found_damage_is_said(context: Context) -> None:
    assert upkeep_status(at(context, 24 * 29), 3).warnings == ()
    (never,) = upkeep_status(at(context, 24 * 31), 3).warnings
    assert "casnap check" in never
    checked(context, "clean")
    found = upkeep_status(at(context, 24 * 29), 3)
    assert (found.clean, found.warnings) == (True, ())
    assert len(upkeep_status(at(context, 24 * 31), 3).warnings) == 1
    checked(context, "damaged")
    found = upkeep_status(context, 3)
    assert not found.clean
    assert "--repair" in found.warnings[0]
    checked(context, "clean")
    assert upkeep_status(context, 3).warnings == ()


def test_a_gc_is_due_when_much_was_deleted_a_day_ago_and_once_an_hour(
    manager: CheckpointManager, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    from casnap.engine import gc_terms

    monkeypatch.setattr(gc_terms, "AUTOMATIC", msgspec.structs.replace(AUTOMATIC, least_bytes=100_000))
    manager.delete("c1", "c2")
    assert not is_due(at(context, 23.9))
    assert not is_due(replace(at(context, 25), policy=Policy(auto_gc=False)))
    assert is_due(at(context, 25))
    assert not is_due(at(context, 25.9))
    assert is_due(at(context, 26.1))
    monkeypatch.setattr(gc_terms, "AUTOMATIC", msgspec.structs.replace(AUTOMATIC, least_bytes=100_000, least_share=0.9))
    assert not is_due(at(context, 30))
    monkeypatch.setattr(gc_terms, "AUTOMATIC", msgspec.structs.replace(AUTOMATIC, least_bytes=110_000))
    assert not is_due(at(context, 30))


def test_nothing_is_due_right_after_a_gc(
    manager: CheckpointManager, context: Context, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from casnap.engine import gc_terms

    monkeypatch.setattr(gc_terms, "AUTOMATIC", msgspec.structs.replace(AUTOMATIC, least_bytes=0, least_share=0.0))
    monkeypatch.setattr(gc_terms, "GRACE", 0)
    manager.delete("c1")
    collect(context)
    manager.delete("c2")
    assert not is_due(at(context, 0.9))
    assert is_due(at(context, 1.1))


def test_it_is_begun_apart_with_the_same_store_and_its_failure_is_nobodys(
    manager: CheckpointManager, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    from casnap.engine import gc_terms

    begun: list[tuple[list[str], dict[str, Any]]] = []
    monkeypatch.setattr(gc_terms, "is_due", lambda _context: True)
    monkeypatch.setattr(subprocess, "Popen", lambda words, **how: begun.append((words, how)))
    settings = load_settings()
    assert free_space_if_due(settings, context)
    ((words, how),) = begun
    assert words[:3] == [sys.executable, "-m", "casnap"]
    assert words[3:] == ["--store", str(context.store.path), "--wait", "0", "gc", "--automatic"]
    assert how["start_new_session"]
    manager.create("c4")
    assert len(begun) == 2

    def failing(*_words: Any, **_how: Any) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(subprocess, "Popen", failing)
    assert not free_space_if_due(settings, context)
    assert manager.create("c5").step == 5


def test_the_process_that_is_begun_ends_by_itself_and_frees_nothing_early(
    manager: CheckpointManager, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    from casnap.engine import gc_terms

    started: list[Any] = []
    real = subprocess.Popen

    def watched(*words: Any, **how: Any) -> Any:
        started.append(real(*words, **how))
        return started[-1]

    monkeypatch.setattr(gc_terms, "is_due", lambda _context: True)
    monkeypatch.setattr(subprocess, "Popen", watched)
    manager.delete("c1")
    manager.create("c4")
    assert started[0].wait(60) == 0
    assert manager.undelete("c1").checkpoint.name == "c1"
