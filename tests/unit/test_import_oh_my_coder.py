"""Importing what Oh My Coder left in ``.omc/checkpoints``."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from casnap import CheckpointManager, Refused
from casnap.model.report import Problem
from support.histories import OhMyCoder, nanoseconds, take_over
from support.oracle import difference, snapshot


@pytest.fixture
def omc(workspace: Path) -> OhMyCoder:
    """Two checkpoints of one task and one of another."""
    (workspace / "src").mkdir()
    (workspace / "src" / "main.py").write_text("print(1)\n")
    (workspace / "empty").mkdir()
    (workspace / "link").symlink_to("src/main.py")
    history = OhMyCoder(workspace)
    history.create("auth", "before the auth module changes")
    (workspace / "src" / "main.py").write_text("print(2)\n")
    (workspace / os.fsdecode(b"caf\xe9")).write_text("odd")
    history.create("parser", "")
    (workspace / "empty").rmdir()
    history.create("auth", "after")
    return history


def test_each_checkpoint_keeps_its_id_description_and_time(omc: OhMyCoder, manager: CheckpointManager) -> None:
    report = take_over(omc.project)
    assert report.system == "oh-my-coder"
    assert (report.problems, report.notes) == ((), ())
    assert [one.name for one in report.imported] == list(omc.index)
    assert [one.message for one in report.imported] == ["before the auth module changes", "", "after"]
    assert [one.step for one in report.imported] == [1, 2, 3]
    assert [one.created_ns for one in report.imported] == [nanoseconds(omc.time(n).astimezone()) for n in (1, 2, 3)]
    first, second, third = report.imported
    assert [one.parent for one in report.imported] == [None, first.id, second.id]
    assert third.head
    assert third.origin.tool == "import from oh-my-coder"
    assert first.metadata == {
        "imported": {
            "from": "oh-my-coder",
            "id": first.name,
            "created": "2024-05-06T12:01:00.1",
            "task_id": "auth",
            "working_dir": "/elsewhere",
        }
    }


def test_restored_checkpoints_are_what_the_snapshots_hold(
    omc: OhMyCoder, manager: CheckpointManager, tmp_path: Path
) -> None:
    before = {id: snapshot(omc.place(id, facts["task_id"]) / "snapshot") for id, facts in omc.index.items()}
    take_over(omc.project)
    for number, (id, held) in enumerate(before.items()):
        manager.restore_to(tmp_path / f"out{number}", id)
        assert difference(held, snapshot(tmp_path / f"out{number}")) == []


def test_more_files_than_a_manifest_lists_are_imported(omc: OhMyCoder, manager: CheckpointManager) -> None:
    for number in range(150):
        (omc.project / f"file{number:03}").write_text(str(number))
    omc.create("big", "")
    assert take_over(omc.project).imported[-1].counts.added == 150


def test_the_history_is_found_from_the_project_and_from_within(omc: OhMyCoder, manager: CheckpointManager) -> None:
    take_over(omc.checkpoints)
    assert [one.name for one in manager.list()] == [*reversed(omc.index)]
    for place in (omc.project, omc.project / ".omc"):
        assert len(take_over(place).skipped) == 3


def test_a_copy_elsewhere_is_imported_when_one_says_what_it_is(
    omc: OhMyCoder, manager: CheckpointManager, tmp_path: Path
) -> None:
    shutil.copytree(omc.checkpoints, tmp_path / "copy", symlinks=True)
    report = take_over(tmp_path / "copy", system="oh-my-coder", workspace=omc.project)
    assert [one.name for one in report.imported] == list(omc.index)


def test_a_stale_or_missing_index_does_not_matter(omc: OhMyCoder) -> None:
    gone = {**omc.index["20240506-120100-1-auth"], "id": "20240101-000000-9-gone"}
    omc.index = {"20240101-000000-9-gone": gone}
    omc.write_index()
    report = take_over(omc.project)
    assert len(report.imported) == 3
    assert report.notes == ("the index names 20240101-000000-9-gone, which is not there",)
    (omc.checkpoints / "index.json").unlink()
    again = take_over(omc.project)
    assert (len(again.skipped), again.imported, again.notes) == (3, (), ())


def test_without_a_manifest_the_index_is_asked(omc: OhMyCoder) -> None:
    first = next(iter(omc.index))
    (omc.place(first, "auth") / "manifest.json").unlink()
    report = take_over(omc.project)
    assert report.imported[0].message == "before the auth module changes"
    assert report.notes == (f"{first} has no manifest: what lies in its snapshot is imported",)
    assert report.problems == ()


def test_without_manifest_and_index_the_id_tells_the_time(omc: OhMyCoder) -> None:
    for manifest in omc.checkpoints.rglob("manifest.json"):
        manifest.unlink()
    (omc.checkpoints / "index.json").write_text("[")
    report = take_over(omc.project)
    assert [one.created_ns for one in report.imported] == [nanoseconds(omc.time(n).astimezone()) for n in (1, 2, 3)]
    assert [problem.path for problem in report.problems] == [b".omc/checkpoints/index.json"]


def test_the_running_number_orders_what_is_of_one_second(omc: OhMyCoder) -> None:
    for serial in range(8, 12):
        id = f"20240507-080000-{serial}-t"
        place = omc.place(id, "t")
        (place / "snapshot").mkdir(parents=True)
        (place / "manifest.json").write_text(json.dumps({"created_at": f"2024-05-07T08:00:00.{serial}"}))
    names = [one.name for one in take_over(omc.project).imported]
    assert names[3:] == [f"20240507-080000-{serial}-t" for serial in range(8, 12)]


def test_a_broken_manifest_is_a_problem_and_its_snapshot_is_imported(omc: OhMyCoder) -> None:
    first = next(iter(omc.index))
    (omc.place(first, "auth") / "manifest.json").write_bytes(b"{]")
    report = take_over(omc.project)
    assert len(report.imported) == 3
    assert report.imported[0].metadata["imported"]["sound"] is False
    assert report.problems[0].path == f".omc/checkpoints/auth/{first}/manifest.json".encode()


def test_a_link_in_the_layout_is_not_followed_and_one_in_a_snapshot_is_an_entry(
    omc: OhMyCoder, manager: CheckpointManager, tmp_path: Path
) -> None:
    first, second, third = omc.index
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    snapshots = [omc.place(id, omc.index[id]["task_id"]) / "snapshot" for id in omc.index]
    shutil.rmtree(snapshots[0])
    snapshots[0].symlink_to(tmp_path / "outside")
    (snapshots[2] / "etc").symlink_to("/etc")
    (omc.checkpoints / "task").symlink_to(tmp_path / "outside")
    report = take_over(omc.project)
    assert [one.name for one in report.imported] == [second, third]
    link = "it is a symbolic link, which is not followed"
    assert set(report.problems) == {
        Problem(f".omc/checkpoints/auth/{first}/snapshot".encode(), f"{first} is not imported: {link}"),
        Problem(b".omc/checkpoints/task", link),
    }
    manager.restore_to(tmp_path / "out", third)
    assert os.readlink(tmp_path / "out" / "etc") == "/etc"


def test_an_id_that_is_a_link_is_a_problem_too(omc: OhMyCoder, tmp_path: Path) -> None:
    first = next(iter(omc.index))
    os.rename(omc.place(first, "auth"), tmp_path / "moved")
    omc.place(first, "auth").symlink_to(tmp_path / "moved")
    report = take_over(omc.project)
    assert len(report.imported) == 2
    assert len(report.problems) == 1
    assert report.problems[0].path == f".omc/checkpoints/auth/{first}/snapshot".encode()
    assert "it is a symbolic link, which is not followed" in report.problems[0].message


@pytest.mark.parametrize("place", [".omc", ".omc/checkpoints"])
def test_a_layout_that_is_itself_a_link_is_refused(omc: OhMyCoder, tmp_path: Path, place: str) -> None:
    os.rename(omc.project / place, tmp_path / "moved")
    (omc.project / place).symlink_to(tmp_path / "moved")
    with pytest.raises(Refused, match="it is a symbolic link, which is not followed"):
        take_over(omc.project)


def test_a_directory_without_a_snapshot_is_left_out_and_that_is_said(omc: OhMyCoder) -> None:
    (omc.checkpoints / "auth" / "20240506-130000-4-auth").mkdir()
    report = take_over(omc.project)
    assert len(report.imported) == 3
    place = ".omc/checkpoints/auth/20240506-130000-4-auth"
    assert report.notes == (f"{place} has no snapshot, and is left out",)


def test_a_rollback_leaves_the_history_itself_alone(omc: OhMyCoder, manager: CheckpointManager) -> None:
    take_over(omc.project)
    before = snapshot(omc.checkpoints)
    manager.rollback(1)
    assert (omc.project / "src" / "main.py").read_text() == "print(1)\n"
    assert difference(before, snapshot(omc.checkpoints)) == []
