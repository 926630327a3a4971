"""Importing snapshots of ws-ckpt."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from casnap import CheckpointManager, NotFound, Usage
from casnap.engine.importing import ws_ckpt
from support.histories import WsCkpt, nanoseconds, take_over
from support.oracle import difference, snapshot


@pytest.fixture
def ckpt(workspace: Path, tmp_path: Path) -> WsCkpt:
    """a, then b and (from a again) c; the workspace descends from b."""
    (workspace / "empty").mkdir()
    (workspace / "file").write_text("a")
    (workspace / "link").symlink_to("/nowhere")
    os.link(workspace / "file", workspace / "hard")
    os.mkfifo(workspace / "pipe")
    history = WsCkpt(tmp_path / "data", "ws1", workspace)
    history.checkpoint("a", "first", metadata={"ticket": 7})
    (workspace / "file").write_text("b")
    history.checkpoint("b", pinned=True)
    history.go_to("a")
    history.checkpoint("c", "second approach", metadata=["no", "object"])
    history.go_to("b")
    return history


def test_each_snapshot_keeps_message_metadata_pin_time_parents_and_head(
    ckpt: WsCkpt, manager: CheckpointManager
) -> None:
    report = take_over(ckpt.index_file)
    assert (report.system, report.problems, report.notes) == ("ws-ckpt", (), ())
    a, b, c = report.imported
    assert [(one.name, one.step, one.message, one.pinned) for one in report.imported] == [
        ("a", 1, "first", False),
        ("b", 2, "", True),
        ("c", 3, "second approach", False),
    ]
    assert [one.parent for one in report.imported] == [None, a.id, a.id]
    assert [one.head for one in report.imported] == [False, True, False]
    assert [one.created_ns for one in report.imported] == [nanoseconds(ckpt.time(n)) for n in (1, 2, 3)]
    said = "2024-05-06T12:01:00.000001+00:00"
    assert a.metadata == {"ticket": 7, "imported": {"from": "ws-ckpt", "id": "a", "created": said}}
    assert b.metadata["imported"].keys() == {"from", "id", "created"}
    assert c.metadata["imported"]["metadata"] == ["no", "object"]
    assert manager.create("next").parent == b.id


def test_index_and_snapshots_lead_to_each_other(ckpt: WsCkpt, manager: CheckpointManager, tmp_path: Path) -> None:
    report = take_over(ckpt.snapshots)
    assert [one.message for one in report.imported] == ["first", "", "second approach"]
    for place in (ckpt.index_file, ckpt.index_file.parent):
        assert len(take_over(place).skipped) == 3
    os.rename(ckpt.snapshots, tmp_path / "moved")
    assert len(take_over(tmp_path / "moved", index=ckpt.index_file).skipped) == 3
    assert [one.name for one in manager.list()] == ["c", "b", "a"]


def test_the_place_where_ws_ckpt_keeps_its_indexes_is_looked_at(
    ckpt: WsCkpt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.rename(ckpt.index_file.parent.parent, tmp_path / "elsewhere")
    monkeypatch.setattr(ws_ckpt, "SYSTEM_INDEXES", os.fsencode(tmp_path / "elsewhere"))
    assert [one.message for one in take_over(ckpt.snapshots).imported] == ["first", "", "second approach"]


def test_an_index_of_other_snapshots_is_not_taken(ckpt: WsCkpt) -> None:
    ckpt.index["snapshots"] = {"other": {"message": "not here"}}
    ckpt.write_index()
    report = take_over(ckpt.snapshots, workspace=ckpt.workspace)
    assert {one.message for one in report.imported} == {""}
    assert "there is no index: messages, times and parents cannot be told; name it with --index" in report.notes


def test_without_an_index_the_directories_tell_the_times(ckpt: WsCkpt, manager: CheckpointManager) -> None:
    ckpt.index_file.unlink()
    for number, id in enumerate(("c", "a", "b")):
        os.utime(ckpt.snapshots / id, ns=(0, 10**18 + number))
    os.rename(ckpt.snapshots / "b", ckpt.snapshots / os.fsdecode(b"b\xff"))
    report = take_over(ckpt.snapshots, workspace=ckpt.workspace)
    assert [one.name for one in report.imported] == ["c", "a", "ckpt-20010909T014640Z-3"]
    assert [one.created_ns for one in report.imported] == [10**18, 10**18 + 1, 10**18 + 2]
    assert [one.parent for one in report.imported] == [None, report.imported[0].id, report.imported[1].id]
    assert report.imported[2].metadata["imported"]["id"] == r"b\xff"
    assert report.problems == ()


def test_restored_snapshots_are_what_the_directories_hold(
    ckpt: WsCkpt, manager: CheckpointManager, tmp_path: Path
) -> None:
    before = {id: snapshot(ckpt.snapshots / id) for id in "abc"}
    take_over(ckpt.index_file)
    for id, held in before.items():
        manager.restore_to(tmp_path / f"out-{id}", id)
        assert difference(held, snapshot(tmp_path / f"out-{id}")) == []
        assert difference(held, snapshot(ckpt.snapshots / id)) == []


def test_what_is_missing_is_left_out_and_its_children_go_to_the_nearest_ancestor(
    ckpt: WsCkpt, manager: CheckpointManager
) -> None:
    ckpt.go_to("b")
    ckpt.checkpoint("d")
    ckpt.index["snapshots"]["b"]["missing"] = True
    ckpt.index["snapshots"]["gone"] = {"created_at": "2024-05-06T12:00:00Z"}
    ckpt.go_to("b")
    report = take_over(ckpt.index_file)
    assert [one.name for one in report.imported] == ["a", "c", "d"]
    assert report.imported[2].parent == report.imported[0].id
    assert manager.show("@").name == "a"  # the head was b, and a is what is left above it
    assert report.notes == (
        "b is missing, as the index says, and is left out",
        "gone is not there, and is left out",
    )
    assert report.problems == ()


def test_parents_come_first_whatever_the_times_say(ckpt: WsCkpt, manager: CheckpointManager) -> None:
    ckpt.index["snapshots"]["a"]["created_at"] = "2025-01-01T00:00:00Z"
    ckpt.write_index()
    report = take_over(ckpt.index_file)
    assert [one.name for one in report.imported] == ["a", "b", "c"]
    assert [one.parent for one in report.imported] == [None, report.imported[0].id, report.imported[0].id]


def test_children_tell_the_parent_where_that_is_not_said(ckpt: WsCkpt) -> None:
    for facts in ckpt.index["snapshots"].values():
        del facts["parent_id"]
    ckpt.write_index()
    a, b, c = take_over(ckpt.index_file).imported
    assert [one.parent for one in (a, b, c)] == [None, a.id, a.id]


def test_an_index_that_knows_no_parents_is_a_line(ckpt: WsCkpt) -> None:
    for facts in ckpt.index["snapshots"].values():
        del facts["parent_id"], facts["child_ids"]
    del ckpt.index["head"]
    ckpt.write_index()
    a, b, c = take_over(ckpt.index_file).imported
    assert [one.parent for one in (a, b, c)] == [None, a.id, b.id]
    assert c.head


def test_parents_that_go_round_are_a_problem_and_end_nothing(ckpt: WsCkpt) -> None:
    ckpt.index["snapshots"]["a"]["parent_id"] = "b"
    ckpt.write_index()
    report = take_over(ckpt.index_file)
    assert len(report.imported) == 3
    assert [problem.message for problem in report.problems] == ["the parents of a go round in the index"]


def test_names_that_cannot_be_and_links_are_problems(ckpt: WsCkpt, tmp_path: Path) -> None:
    listed = ckpt.index["snapshots"]
    listed |= {"../outside": {}, "": {}, "x/y": {}, "n\0l": {}, "link": {}, "plain": {}, "\ud800": {}, "number": 7}
    ckpt.write_index()
    (ckpt.snapshots / "link").symlink_to("/etc")
    (ckpt.snapshots / "plain").write_text("no directory")
    report = take_over(ckpt.index_file)
    assert [one.name for one in report.imported] == ["a", "b", "c"]
    assert {(problem.path, problem.message) for problem in report.problems} == {
        (b"", "the index names a snapshot that cannot be: ../outside"),
        (b"", "the index names a snapshot that cannot be: "),
        (b"", "the index names a snapshot that cannot be: x/y"),
        (b"", r"the index names a snapshot that cannot be: n\x00l"),
        (b"link", "it is not imported: it is a symbolic link, which is not followed"),
        (b"plain", "it is not imported: it is not a directory"),
    }


def test_what_the_index_does_not_list_is_left_out_and_that_is_said(ckpt: WsCkpt) -> None:
    (ckpt.snapshots / "half").mkdir()
    assert take_over(ckpt.index_file).notes == ("half is not in the index, and is left out",)


def test_any_metadata_is_kept_as_far_as_json_goes(workspace: Path, tmp_path: Path) -> None:
    history = WsCkpt(tmp_path / "data", "ws1", workspace)
    for id, metadata in (("big", {"n": 10**30, "imported": "mine"}), ("nan", {"n": float("nan")}), ("text", "words")):
        history.checkpoint(id, metadata=metadata)
    report = take_over(history.index_file)
    big, nan, text = ({**one.metadata, **one.metadata["imported"]} for one in report.imported)
    assert (big["n"], big["imported"]) == (10**30, "mine")
    assert nan.keys() == {"imported", "from", "id", "created"}
    assert (text["metadata"], report.imported[2].metadata.keys()) == ("words", {"imported"})
    assert [note.partition(": bad")[0] for note in report.notes] == ["nan: its metadata cannot be kept"]


def test_metadata_that_is_too_long_is_a_problem_of_that_snapshot(ckpt: WsCkpt) -> None:
    ckpt.index["snapshots"]["a"]["metadata"] = {"long": "x" * (5 << 20)}
    ckpt.write_index()
    report = take_over(ckpt.index_file)
    assert [one.name for one in report.imported] == ["b", "c"]
    assert [problem.path for problem in report.problems] == [b"a"]
    assert report.problems[0].message.startswith("it is not imported: cannot record checkpoint")


def test_a_workspace_path_that_cannot_be_is_a_mistake(ckpt: WsCkpt) -> None:
    for said in ("relative", 7, "/nul\0"):
        ckpt.index["workspace_path"] = said
        ckpt.write_index()
        with pytest.raises(Usage, match=r"names .* which is no absolute path"):
            take_over(ckpt.index_file)


def test_a_workspace_that_is_gone_can_be_named(ckpt: WsCkpt, tmp_path: Path) -> None:
    ckpt.index["workspace_path"] = "/nowhere/at/all"
    ckpt.write_index()
    with pytest.raises(Usage, match="cannot protect /nowhere/at/all"):
        take_over(ckpt.index_file)
    assert len(take_over(ckpt.index_file, workspace=ckpt.workspace).imported) == 3


def test_an_index_without_its_snapshots_says_where_it_looked(ckpt: WsCkpt) -> None:
    shutil.rmtree(ckpt.snapshots)
    with pytest.raises(NotFound, match=r"no snapshots for .*index\.json: looked in ") as raised:
        take_over(ckpt.index_file)
    assert str(ckpt.snapshots) in raised.value.message
    assert raised.value.hint == "say where they are: casnap import DIR --index FILE"


def test_a_file_that_is_no_index_is_no_history(workspace: Path) -> None:
    for text in ("[", "[]", "{}", '{"snapshots": []}', json.dumps({"a": 1})):
        (workspace / "index.json").write_text(text)
        with pytest.raises(NotFound, match="no history at "):
            take_over(workspace / "index.json")
