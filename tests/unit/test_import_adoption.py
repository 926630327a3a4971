"""What all imports have in common."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from casnap import Busy, CheckpointManager, NotFound, StorageFailed, Usage
from casnap.engine.importing.adopt import import_history
from casnap.engine.importing.recognise import open_history
from casnap.fs.directories import Directories
from casnap.model.operation import CheckpointMade
from casnap.model.report import Problem
from casnap.settings import load_settings, protect
from casnap.store.space import Space
from casnap.store.store import Store
from support.histories import OhMyCoder, Pitrrwnd, nanoseconds, take_over
from support.oracle import difference, snapshot
from support.scanning import as_nobody


@pytest.fixture
def pitr(workspace: Path) -> Pitrrwnd:
    """Three steps, each with a file more."""
    history = Pitrrwnd(workspace)
    for label in ("one", "two", "three"):
        (workspace / label).write_text(label)
        history.savepoint(label)
    return history


def test_what_is_no_history_says_what_was_looked_for(workspace: Path, tmp_path: Path) -> None:
    (workspace / "snapshots" / "x").mkdir(parents=True)
    (workspace / "file").write_text("text")
    for place in (workspace, workspace / "file"):
        with pytest.raises(NotFound, match=r"looked for \.pitr/manifests .*\.omc/checkpoints.*index\.json") as raised:
            take_over(place)
        assert (raised.value.code, raised.value.exit_status) == ("no-history", 13)
    with pytest.raises(NotFound, match="it does not exist"):
        take_over(tmp_path / "nowhere")


@pytest.mark.parametrize("place", ["snapshots/0000000001", "snapshots"])
def test_a_part_of_a_history_is_not_taken_for_another_one(pitr: Pitrrwnd, place: str) -> None:
    (pitr.snapshot(1) / "one").unlink()
    (pitr.snapshot(1) / "directory").mkdir()
    with pytest.raises(NotFound, match="looked for"):
        take_over(pitr.state / place)


def test_two_histories_in_one_place_must_be_told_apart(pitr: Pitrrwnd) -> None:
    OhMyCoder(pitr.workspace).create("task", "")
    with pytest.raises(Usage, match="there are several") as raised:
        take_over(pitr.workspace)
    assert raised.value.hint == "say which with --from: pitrrwnd, oh-my-coder"
    assert [one.step for one in take_over(pitr.workspace, system="oh-my-coder").imported] == [1]
    assert len(take_over(pitr.workspace, system="pitrrwnd").imported) == 3


def test_an_index_is_for_ws_ckpt_alone(pitr: Pitrrwnd) -> None:
    with pytest.raises(Usage, match="--index is for ws-ckpt"):
        take_over(pitr.workspace, system="pitrrwnd", index=pitr.manifest(1))


def test_what_ends_an_import_leaves_whole_checkpoints_and_the_next_goes_on(
    pitr: Pitrrwnd, manager: CheckpointManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = Store.commit
    made = []

    def failing(self: Store, build: Callable[..., Any], *args: Any, **options: Any) -> Any:
        def counted(*state: Any) -> Any:
            operation = build(*state)
            if isinstance(operation, CheckpointMade):
                made.append(operation.step)
                if operation.step == 3:
                    raise StorageFailed("cannot write: the disk is full")
            return operation

        return commit(self, counted, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "commit", failing)
        with pytest.raises(StorageFailed):
            take_over(pitr.workspace)
    assert made == [1, 2, 3]
    assert [(one.step, one.head) for one in manager.list()] == [(2, False), (1, False)]
    report = take_over(pitr.workspace)
    assert ([one.step for one in report.skipped], [one.step for one in report.imported]) == ([1, 2], [3])
    assert report.imported[0].parent == report.skipped[1].id
    assert manager.show("@").step == 3
    manager.restore_to(tmp_path / "out", 3)
    assert difference(snapshot(pitr.snapshot(3)), snapshot(tmp_path / "out")) == []


def test_each_checkpoint_is_told_of_as_soon_as_it_is_made(pitr: Pitrrwnd, manager: CheckpointManager) -> None:
    seen: list[tuple[int | None, int]] = []
    take_over(pitr.workspace, made=lambda one, seconds: seen.append((one.step, len(manager.list()))))
    assert seen == [(1, 1), (2, 2), (3, 3)]


def test_the_workspace_is_locked_all_the_time(pitr: Pitrrwnd) -> None:
    locked = []

    def try_too(*_: object) -> None:
        context = protect(load_settings(wait=0), str(pitr.workspace)).context
        with pytest.raises(Busy, match="casnap import"):
            import_history(context, workspace, open_history(os.fspath(pitr.workspace)))
        locked.append(True)
        context.store.close()

    workspace = protect(load_settings(), str(pitr.workspace)).workspace
    take_over(pitr.workspace, made=try_too)
    assert locked == [True] * 3


def test_no_room_for_what_is_new_ends_it_before_anything_is_written(
    pitr: Pitrrwnd, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    (pitr.workspace / "big").write_bytes(os.urandom(5000))
    pitr.savepoint("big")
    (pitr.workspace / "small").write_bytes(b"s")
    pitr.savepoint("small")
    monkeypatch.setattr(Space, "free", lambda space: (6000, 10**6))
    monkeypatch.setenv("CASNAP_MIN_FREE", "1001")
    with pytest.raises(StorageFailed, match="cannot import: 5000 bytes are new") as raised:
        take_over(pitr.workspace)
    assert raised.value.code == "min-free"
    assert [one.step for one in manager.list()] == [3, 2, 1]
    monkeypatch.setenv("CASNAP_MIN_FREE", "1000")
    report = take_over(pitr.workspace)  # step 5 has 5001 bytes, of which 1 is new
    assert [one.step for one in report.imported] == [4, 5]


def test_the_newest_at_a_time_goes_by_when_it_was_made_there(pitr: Pitrrwnd, manager: CheckpointManager) -> None:
    mine = manager.create("mine")
    take_over(pitr.workspace)
    assert manager.show("@{2024-05-06T12:02:30Z}").message == "two"
    assert manager.show(f"@{{{mine.created}}}").id == mine.id


def test_an_unreadable_file_is_a_problem_and_the_rest_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as open_place:  # tmp_path is closed to others
        os.chmod(open_place, 0o777)
        monkeypatch.setenv("CASNAP_STORE", f"{open_place}/store")
        workspace = Path(open_place) / "workspace"
        history = Pitrrwnd(workspace)
        for name in ("one", "two"):
            (workspace / name).write_text(name)
            history.savepoint(name)
        (history.snapshot(2) / "one").chmod(0)

        def act() -> None:
            report = take_over(workspace)
            assert report.problems == (Problem(b".pitr/snapshots/0000000002/one", "not captured: Permission denied"),)
            assert [one.metadata["imported"]["sound"] for one in report.imported] == [True, False]

        as_nobody(act) if os.geteuid() == 0 else act()


def test_a_snapshot_that_is_exchanged_while_it_is_opened_is_not_read(
    pitr: Pitrrwnd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, snapshots = Directories.__init__, pitr.state / "snapshots"

    def late(self: Directories, root: bytes) -> None:
        if root == os.fsencode(pitr.snapshot(2)) and not (tmp_path / "moved").exists():
            snapshots.rename(tmp_path / "moved")
            snapshots.symlink_to(tmp_path / "fake")
        real(self, root)

    (tmp_path / "fake" / "0000000002").mkdir(parents=True)
    (tmp_path / "fake" / "0000000002" / "secret").write_text("secret")
    monkeypatch.setattr(Directories, "__init__", late)
    report = take_over(pitr.workspace)
    assert Problem(b".pitr/snapshots/0000000002", "it was exchanged while it was opened") in report.problems
    assert [one.step for one in report.imported] == [1]
    assert "there is no head, since the entry that it was is not imported" in report.notes


def test_times_come_back_to_the_nanosecond(pitr: Pitrrwnd) -> None:
    pitr.edit_manifest(1, lambda facts: facts.update(created_at="2024-05-06T12:01:00.123456789+00:00"))
    assert take_over(pitr.workspace).imported[0].created_ns == nanoseconds(pitr.time(1)) - 1000 + 123_456_789
