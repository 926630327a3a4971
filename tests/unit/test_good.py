"""What is marked as good stays so, and ``@good`` is the newest of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from casnap import CheckpointManager, NotFound
from casnap.engine.context import Context
from casnap.engine.expunge import expunge
from casnap.engine.good import mark_good
from casnap.engine.pin import set_pinned
from casnap.model.operation import CheckpointsFoundGood
from casnap.model.report import WorkspaceInfo
from casnap.settings import load_settings, open_context, resolve_workspace
from support.stores import remove_catalogs

Mark = Callable[[int], None]


@pytest.fixture
def engine(workspace: Path, manager: CheckpointManager) -> Iterator[tuple[Context, WorkspaceInfo]]:
    """What the manager uses, for what it does not offer: a workspace with c1 to c4."""
    for number in range(1, 5):
        (workspace / "file").write_text(f"{number}\n")
        manager.create(f"c{number}")
    settings = load_settings()
    context = open_context(settings)
    yield context, resolve_workspace(settings, context, str(workspace))
    context.store.close()


@pytest.fixture
def mark(engine: tuple[Context, WorkspaceInfo], manager: CheckpointManager) -> Mark:
    def mark(step: int) -> None:
        assert mark_good(*engine, manager.show(step)).good

    return mark


def test_the_newest_good_one_is_that_with_the_highest_step_however_late_another_was_marked(
    manager: CheckpointManager, mark: Mark
) -> None:
    mark(3)
    mark(1)
    assert manager.show("@good").step == 3
    assert (manager.show("@good~").step, manager.show("@good~2").step) == (2, 1)
    assert [(one.step, one.good) for one in manager.list()] == [(4, False), (3, True), (2, False), (1, True)]


def test_without_a_good_one_there_is_none_and_it_is_said_how_to_get_one(
    engine: tuple[Context, WorkspaceInfo], manager: CheckpointManager
) -> None:
    with pytest.raises(NotFound, match="no good checkpoint in ") as caught:
        manager.show("@good")
    assert (caught.value.exit_status, caught.value.code) == (13, "no-such-checkpoint")
    assert "casnap run -- COMMAND" in (caught.value.hint or "")
    with pytest.raises(NotFound):
        manager.show("@good~1")


def test_the_newest_good_one_is_the_one_before_when_it_is_deleted_and_again_when_it_is_back(
    manager: CheckpointManager, mark: Mark
) -> None:
    mark(2)
    mark(4)
    manager.delete(4)
    assert manager.show("@good").step == 2
    assert manager.undelete(4).checkpoint.good
    assert manager.show("@good").step == 4
    manager.delete(4, 2)
    with pytest.raises(NotFound, match="no good checkpoint"):
        manager.show("@good")


def test_a_safety_checkpoint_is_never_the_newest_good_one(
    engine: tuple[Context, WorkspaceInfo], workspace: Path, manager: CheckpointManager
) -> None:
    (workspace / "file").write_text("five\n")
    safety = manager.rollback(2).safety
    assert safety is not None
    mark_good(*engine, safety)
    assert manager.show(safety.id).good
    with pytest.raises(NotFound, match="no good checkpoint"):
        manager.show("@good")


def test_what_is_good_already_is_not_marked_again(
    engine: tuple[Context, WorkspaceInfo], manager: CheckpointManager, mark: Mark
) -> None:
    mark(2)
    before = engine[0].store.state().seq
    mark(2)
    assert engine[0].store.state().seq == before


def test_what_was_deleted_meanwhile_cannot_be_marked(
    engine: tuple[Context, WorkspaceInfo], manager: CheckpointManager
) -> None:
    found = manager.show(2)
    manager.delete(2)
    with pytest.raises(NotFound, match="deleted already"):
        mark_good(*engine, found)


def test_a_mark_outlives_the_catalog(manager: CheckpointManager, mark: Mark, home: Path) -> None:
    mark(1)
    mark(3)
    manager.delete(3)
    manager.close()
    remove_catalogs(home / "store")
    with CheckpointManager(manager._given) as again:
        assert again.show("@good").step == 1
        assert again.undelete(3).checkpoint.good


def test_what_takes_the_place_of_a_good_one_is_good(
    engine: tuple[Context, WorkspaceInfo], workspace: Path, manager: CheckpointManager, mark: Mark
) -> None:
    (workspace / "secret").write_text("secret\n")
    manager.create("c5")
    mark(2)
    mark(5)
    before = manager.show("@good").id
    expunge(*engine, [b"secret"])
    after = manager.show("@good")
    assert (after.step, after.good, after.id != before) == (5, True, True)
    manager.delete(5)
    assert manager.show("@good").step == 2


def test_a_pin_a_name_and_the_mark_do_not_touch_each_other(
    engine: tuple[Context, WorkspaceInfo], manager: CheckpointManager, mark: Mark
) -> None:
    set_pinned(*engine, [manager.show(2)], pinned=True)
    mark(2)
    found = manager.show("c2")
    assert (found.good, found.pinned, found.automatic) == (True, True, False)
    set_pinned(*engine, [found], pinned=False)
    assert manager.show("c2").good


def test_no_cleanup_spares_a_checkpoint_for_being_good(manager: CheckpointManager, mark: Mark) -> None:
    mark(1)
    mark(2)
    assert [one.step for one in manager.clean(keep=2).deleted] == [2, 1]


def test_the_mark_is_taken_away_by_a_line_that_says_so(
    engine: tuple[Context, WorkspaceInfo], manager: CheckpointManager, mark: Mark
) -> None:
    mark(1)
    mark(2)
    context, workspace = engine
    ids = (manager.show(2).id,)
    context.store.commit(
        lambda _, line: CheckpointsFoundGood(
            seq=line.seq, time=line.time, prev=line.prev, workspace=workspace.id, ids=ids, good=False
        )
    )
    assert not manager.show(2).good
    assert manager.show("@good").step == 1
