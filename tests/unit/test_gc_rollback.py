"""Rollback beside gc, at the very moments that matter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from casnap import CheckpointManager, NotFound
from casnap.engine import rollback as rollback_engine
from casnap.engine import safety as safety_engine
from casnap.engine.context import Context
from casnap.engine.gc import collect
from casnap.engine.gc_terms import Terms
from casnap.engine.late import LateWrites
from casnap.fs import placing
from casnap.settings import load_settings, open_context
from casnap.store import packs
from support.oracle import difference, snapshot
from support.stores import noise

EVERYTHING = Terms(grace=0, share=0.0)


@pytest.fixture
def context(manager: CheckpointManager, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Context]:
    """The store opened once more after a first checkpoint; packs are so small that nobody goes on with one."""
    monkeypatch.setattr(packs, "PACK_SIZE", 5_000)
    (workspace / "f").write_bytes(noise("first", 6000))
    manager.create("first")
    opened = open_context(load_settings())
    yield opened
    opened.store.close()


def test_late_bytes_that_a_gc_took_before_they_were_committed_are_written_anew(
    manager: CheckpointManager, workspace: Path, context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "same").write_bytes(noise("second", 6000) + noise("late", 6000))
    (workspace / "f").write_bytes(noise("second", 6000))
    writer = (workspace / "f").open("ab")
    replace, late, freed = placing.replace, LateWrites.checkpoint, []

    def replace_while_written(source: tuple[int, bytes], target: tuple[int, bytes]) -> None:
        replace(source, target)
        writer.write(noise("late", 6000))
        writer.close()

    def before_a_gc(*arguments: Any) -> bytes:
        id = late(*arguments)
        freed.append([one.name for one in collect(context, EVERYTHING).checkpoints])
        return id

    with CheckpointManager(other) as beside:
        beside.create("theirs")
        beside.delete("theirs")
    monkeypatch.setattr(placing, "replace", replace_while_written)
    monkeypatch.setattr(LateWrites, "checkpoint", before_a_gc)
    manager.rollback("first")
    monkeypatch.undo()
    assert freed == [["theirs"], []]
    newest = manager.list(safety=True)[0]
    manager.restore_to(tmp_path / "late", newest.id)
    assert (tmp_path / "late" / "f").read_bytes() == noise("second", 6000) + noise("late", 6000)


def test_a_target_that_goes_for_good_before_the_rollback_begins_changes_nothing(
    manager: CheckpointManager, workspace: Path, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "f").write_bytes(noise("second", 6000))
    manager.create("second")
    here, begin = snapshot(workspace), safety_engine._begun

    def after_a_gc(*arguments: Any) -> Any:
        delete_by_hand(context, "first")
        assert [one.name for one in collect(context, EVERYTHING).checkpoints] == ["first"]
        return begin(*arguments)

    monkeypatch.setattr(safety_engine, "_begun", after_a_gc)
    with pytest.raises(NotFound, match="freed meanwhile"):
        manager.rollback("first")
    monkeypatch.undo()
    assert difference(here, snapshot(workspace)) == []
    assert [one.name for one in manager.list(safety=True)] == ["second"]
    assert manager.create("third").step == 3


def delete_by_hand(context: Context, name: str) -> None:
    """Let a checkpoint go while a rollback holds its workspace's lock, as a drop would."""
    from casnap.model.operation import CheckpointsDeleted
    from casnap.store.state import State
    from casnap.store.store import Commit

    (row,) = context.store.state().workspaces()
    found = context.store.state().named(row.id, name)
    assert found is not None

    def build(_: State, commit: Commit) -> CheckpointsDeleted:
        return CheckpointsDeleted(
            seq=commit.seq, time=commit.time, prev=commit.prev, workspace=row.id, ids=(found.id.hex(),)
        )

    context.store.commit(build)


def test_a_target_that_is_deleted_once_the_rollback_has_begun_is_put_back_all_the_same(
    manager: CheckpointManager, workspace: Path, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = snapshot(workspace)
    (workspace / "f").write_bytes(noise("second", 6000))
    manager.create("second")
    begin = rollback_engine.begin

    def before_a_gc(*arguments: Any) -> Any:
        point = begin(*arguments)
        delete_by_hand(context, "first")
        assert collect(context, EVERYTHING).checkpoints == ()
        return point

    monkeypatch.setattr(rollback_engine, "begin", before_a_gc)
    manager.rollback("first")
    monkeypatch.undo()
    assert difference(first, snapshot(workspace)) == []
