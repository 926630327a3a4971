"""Importing what pitrrwnd left in ``.pitr``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from casnap import CheckpointManager, NotFound, Refused
from casnap.model.report import Problem
from support.histories import Pitrrwnd, nanoseconds, take_over
from support.oracle import difference, snapshot


@pytest.fixture
def pitr(workspace: Path) -> Pitrrwnd:
    """Two steps: a first one, and one with an edit, a removal and a new mode."""
    (workspace / "db").mkdir()
    (workspace / "db" / "store.db").write_bytes(bytes(range(256)) * 5000)
    (workspace / "app.conf").write_text("level = 1\n")
    (workspace / "run.sh").write_text("#!/bin/sh\n")
    (workspace / "link").symlink_to("app.conf")
    history = Pitrrwnd(workspace)
    history.savepoint("first")
    (workspace / "app.conf").write_text("level = 2\n")
    (workspace / "db" / "store.db").unlink()
    (workspace / "run.sh").chmod(0o755)
    history.savepoint("before risky refactor", user="bob", host="laptop")
    return history


def test_each_step_becomes_a_checkpoint_with_step_label_time_and_author(
    pitr: Pitrrwnd, manager: CheckpointManager
) -> None:
    report = take_over(pitr.workspace)
    assert report.system == "pitrrwnd"
    assert (report.problems, report.skipped) == ((), ())
    first, second = report.imported
    assert (first.step, first.name, first.message, first.parent) == (1, "first", "first", None)
    assert (second.step, second.message, second.parent) == (2, "before risky refactor", first.id)
    assert (second.name, second.automatic) == ("ckpt-20240506T120200Z-2", True)
    assert [one.created_ns for one in report.imported] == [nanoseconds(pitr.time(1)), nanoseconds(pitr.time(2))]
    assert [(one.origin.user, one.origin.host) for one in report.imported] == [("alice", "box"), ("bob", "laptop")]
    assert {one.origin.tool for one in report.imported} == {"import from pitrrwnd"}
    assert first.metadata == {
        "imported": {
            "from": "pitrrwnd",
            "id": "1",
            "step": 1,
            "created": "2024-05-06T12:01:00.000001Z",
            "actor": "alice",
            "sound": True,
        }
    }
    assert (second.counts.added, second.counts.changed, second.counts.removed) == (0, 2, 2)  # db and what was in it
    assert [one.head for one in manager.list()] == [True, False]
    assert len(report.notes) == 1
    assert "step 2: bad checkpoint name 'before risky refactor'" in report.notes[0]


def test_restored_steps_are_what_the_snapshots_hold(pitr: Pitrrwnd, manager: CheckpointManager, tmp_path: Path) -> None:
    (pitr.workspace / os.fsdecode(b"caf\xe9")).write_bytes(b"odd")
    pitr.savepoint("odd-name")
    before = {step: snapshot(pitr.snapshot(step)) for step in (1, 2, 3)}
    assert take_over(pitr.workspace).problems == ()
    for step in (1, 2, 3):
        manager.restore_to(tmp_path / str(step), step)
        assert difference(before[step], snapshot(tmp_path / str(step))) == []
        assert difference(before[step], snapshot(pitr.snapshot(step))) == []


def test_the_state_directory_alone_leads_to_its_workspace_too(pitr: Pitrrwnd, manager: CheckpointManager) -> None:
    take_over(pitr.state)
    assert [one.step for one in manager.list()] == [2, 1]
    assert len(take_over(pitr.workspace).skipped) == 2


def test_a_copied_state_directory_is_recognised_and_imported_where_one_says(
    pitr: Pitrrwnd, manager: CheckpointManager, tmp_path: Path
) -> None:
    os.rename(pitr.state, tmp_path / "old-state")
    take_over(tmp_path / "old-state", workspace=pitr.workspace)
    assert [one.step for one in manager.list()] == [2, 1]


def test_a_rollback_leaves_alone_what_the_system_never_keeps(pitr: Pitrrwnd, manager: CheckpointManager) -> None:
    take_over(pitr.workspace)
    (pitr.workspace / ".git").mkdir()
    (pitr.workspace / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    state = snapshot(pitr.state)
    report = manager.rollback("1")
    assert (pitr.workspace / "app.conf").read_text() == "level = 1\n"
    assert set(report.kept) == {b".git", b".pitr"}
    assert (pitr.workspace / ".git" / "HEAD").exists()
    assert difference(state, snapshot(pitr.state)) == []


def test_importing_again_makes_only_what_is_new(pitr: Pitrrwnd, manager: CheckpointManager) -> None:
    first = take_over(pitr.workspace)
    (pitr.workspace / "new").write_text("new")
    pitr.savepoint("third")
    again = take_over(pitr.workspace)
    assert [one.id for one in again.skipped] == [one.id for one in first.imported]
    assert [(one.step, one.name, one.parent) for one in again.imported] == [(3, "third", first.imported[1].id)]
    assert [one.step for one in manager.list()] == [3, 2, 1]
    assert take_over(pitr.workspace).imported == ()


def test_a_deleted_one_is_not_imported_again_and_that_is_said(pitr: Pitrrwnd, manager: CheckpointManager) -> None:
    first, _ = take_over(pitr.workspace).imported
    manager.delete(1)
    again = take_over(pitr.workspace)
    assert again.imported == ()
    assert f"casnap undelete {first.id[:12]}" in again.notes[0]


def test_a_workspace_with_checkpoints_keeps_its_head_and_steps_go_on(
    pitr: Pitrrwnd, manager: CheckpointManager
) -> None:
    manager.create("first")
    report = take_over(pitr.workspace)
    assert [(one.step, one.name, one.automatic) for one in report.imported] == [
        (2, "ckpt-20240506T120100Z-2", True),
        (3, "ckpt-20240506T120200Z-3", True),
    ]
    assert [one.metadata["imported"]["step"] for one in report.imported] == [1, 2]
    assert report.imported[0].parent is None
    assert "step 1: step 1 has the name first already" in report.notes
    assert "head stays where it was" in report.notes
    assert manager.show("@").step == 1
    assert manager.create("next").step == 4


def test_later_steps_keep_their_numbers(pitr: Pitrrwnd, manager: CheckpointManager) -> None:
    pitr.manifest(1).unlink()
    manager.create("mine")
    report = take_over(pitr.workspace)
    assert [one.step for one in report.imported] == [2]
    assert "step 1 has no manifest: it failed there, and is left out" in report.notes


def test_files_that_are_not_what_the_manifest_says_are_told_and_the_checkpoint_is_flagged(
    pitr: Pitrrwnd, manager: CheckpointManager, tmp_path: Path
) -> None:
    base = pitr.snapshot(1)
    (base / "app.conf").write_text("tampered\n")
    (base / "run.sh").unlink()
    (base / "extra").write_text("not listed")
    (base / "db" / "store.db").unlink()
    (base / "db" / "store.db").symlink_to("/etc/passwd")
    before = snapshot(base)
    report = take_over(pitr.workspace)
    top = b".pitr/snapshots/0000000001/"
    assert report.problems == (
        Problem(top + b"app.conf", "step 1: app.conf does not have the SHA-256 that the manifest lists"),
        Problem(top + b"db/store.db", "step 1: db/store.db is not the regular file that the manifest lists"),
        Problem(top + b"extra", "step 1: extra is not in the manifest"),
        Problem(top + b"run.sh", "step 1: run.sh is in the manifest, but not in the snapshot"),
    )
    assert [one.metadata["imported"]["sound"] for one in report.imported] == [False, True]
    manager.restore_to(tmp_path / "out", 1)
    assert difference(before, snapshot(tmp_path / "out")) == []
    assert os.readlink(tmp_path / "out" / "db" / "store.db") == "/etc/passwd"


def test_a_path_in_a_manifest_that_cannot_be_is_a_problem(pitr: Pitrrwnd) -> None:
    names = ["../../etc/passwd", "/etc/passwd", "a/../b", "a//b", "", "nul\0", "x" * 256, "half \ud800"]
    pitr.edit_manifest(2, lambda facts: facts["files"].update(dict.fromkeys(names[:-1], "0" * 64)))
    report = take_over(pitr.workspace)
    assert {problem.path for problem in report.problems} == {b".pitr/manifests/0000000002.json"}
    said = "step 2: its manifest names a path that cannot be: "
    assert [problem.message.removeprefix(said) for problem in report.problems] == [
        *names[:5],
        r"nul\x00",
        names[6],
    ]
    assert report.imported[1].metadata["imported"]["sound"] is False


BAD_MANIFESTS = (
    (b"{", "it is not JSON"),
    (b"[1]", "it is not a JSON object"),
    (b"\xff\xfe{}", "it is not JSON"),
    (b"[" * 100_000, "it is not JSON"),
    (b'{"step": ' + b"9" * 5000 + b"}", "it is not JSON"),
    (b'{"step": 6, "files": []}', "its manifest lists no files"),
    (b'{"step": 1e400, "files": {}}', "its manifest is that of another step"),
    (b'{"step": 8, "files": {"app.conf": 5}}', "its manifest has no SHA-256 of app.conf"),
    (b'{"step": 9, "files": {}, "working_set_sha256": "00"}', "working_set_sha256 of its manifest"),
    (b'{"step": 10, "files": {"\\ud800": "' + b"0" * 64 + b'"}}', "is in the manifest, but not in the snapshot"),
)


def test_a_bad_manifest_is_a_problem_and_its_snapshot_is_imported_all_the_same(
    workspace: Path, manager: CheckpointManager
) -> None:
    history = Pitrrwnd(workspace)
    (workspace / "app.conf").write_text("level = 1\n")
    for number, (text, _) in enumerate(BAD_MANIFESTS, 1):
        history.manifest(history.savepoint(f"label-{number}")).write_bytes(text)
    report = take_over(workspace)
    assert [one.step for one in report.imported] == list(range(1, 11))
    assert {one.metadata["imported"]["sound"] for one in report.imported} == {False}
    assert [one.message for one in report.imported] == [f"label-{n}" for n in range(1, 11)]  # from the audit log
    assert [one.created_ns for one in report.imported] == [nanoseconds(history.time(n)) for n in range(1, 11)]
    for number, (_, said) in enumerate(BAD_MANIFESTS, 1):
        mentioned = [problem.message for problem in report.problems if b"%010d" % number in problem.path]
        assert any(said in message for message in mentioned), (number, mentioned)


def test_without_any_time_that_of_the_directory_is_taken_and_said(pitr: Pitrrwnd) -> None:
    (pitr.state / "audit.jsonl").unlink()
    pitr.edit_manifest(1, lambda facts: facts.update(created_at=10**40, label=None, actor=7))
    os.utime(pitr.snapshot(1), ns=(0, 1_600_000_000_000_000_123))
    report = take_over(pitr.workspace)
    first = report.imported[0]
    assert (first.created_ns, first.message, first.origin.user) == (1_600_000_000_000_000_123, "", "")
    assert "step 1: its time cannot be told, that of its directory is taken" in report.notes
    assert report.problems == ()


def test_a_torn_audit_log_is_a_problem_and_the_rest_of_it_counts(pitr: Pitrrwnd) -> None:
    log = pitr.state / "audit.jsonl"
    log.write_bytes(b'{"op": "savepoint", "step"\n\xff\n' + log.read_bytes())
    report = take_over(pitr.workspace)
    assert report.problems == (Problem(b".pitr/audit.jsonl", "2 of its lines cannot be read"),)
    assert [one.origin.user for one in report.imported] == ["alice", "bob"]


def test_a_manifest_without_its_snapshot_is_a_problem(pitr: Pitrrwnd, manager: CheckpointManager) -> None:
    os.rename(pitr.snapshot(2), pitr.workspace / "elsewhere")
    report = take_over(pitr.workspace)
    assert [one.step for one in report.imported] == [1]
    assert report.problems == (
        Problem(b".pitr/snapshots/0000000002", "step 2 is not imported: No such file or directory"),
    )
    assert manager.show("@").step == 1


def test_a_link_in_the_layout_is_not_followed(pitr: Pitrrwnd, tmp_path: Path) -> None:
    link = "it is a symbolic link, which is not followed"
    expected = {
        "snapshots/0000000002": f"step 2 is not imported: {link}",
        "manifests/0000000001.json": f"step 1 cannot be checked: {link}",
        "audit.jsonl": link,
    }
    for number, place in enumerate(expected):
        os.rename(pitr.state / place, tmp_path / f"moved{number}")
        (pitr.state / place).symlink_to(tmp_path / f"moved{number}")
    report = take_over(pitr.workspace)
    assert {problem.path.decode(): problem.message for problem in report.problems} == {
        f".pitr/{place}": said for place, said in expected.items()
    }
    assert [one.step for one in report.imported] == [1]


@pytest.mark.parametrize("place", [".pitr", ".pitr/snapshots", ".pitr/manifests"])
def test_a_layout_that_is_itself_a_link_is_refused(
    pitr: Pitrrwnd, manager: CheckpointManager, tmp_path: Path, place: str
) -> None:
    os.rename(pitr.workspace / place, tmp_path / "moved")
    (pitr.workspace / place).symlink_to(tmp_path / "moved")
    with pytest.raises(Refused, match="it is a symbolic link, which is not followed"):
        take_over(pitr.workspace)
    with pytest.raises(NotFound):  # nothing was registered
        manager.list()


def test_a_manifest_that_is_no_file_is_a_problem_and_nothing_waits_for_it(pitr: Pitrrwnd) -> None:
    for step, make in ((1, os.mkfifo), (2, os.mkdir)):
        pitr.manifest(step).unlink()
        make(pitr.manifest(step))
    report = take_over(pitr.workspace)
    assert [problem.message for problem in report.problems] == [
        f"step {step} cannot be checked: it is not a regular file" for step in (1, 2)
    ]


def test_what_is_imported_does_not_ask_ignore_files_and_cache_tags(
    pitr: Pitrrwnd, manager: CheckpointManager, tmp_path: Path
) -> None:
    tag = "Signature: 8a477f597d28d172789f06886806bc55"
    for name, text in ((".casnapignore", "*\n"), ("cache/CACHEDIR.TAG", tag), ("cache/item", "kept")):
        path = pitr.workspace / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    pitr.savepoint("third")
    before = snapshot(pitr.snapshot(3))
    report = take_over(pitr.workspace)
    assert (report.problems, report.imported[2].skipped) == ((), 0)
    manager.restore_to(tmp_path / "out", "third")
    assert difference(before, snapshot(tmp_path / "out")) == []


def test_an_empty_history_is_one(workspace: Path, manager: CheckpointManager) -> None:
    Pitrrwnd(workspace)
    report = take_over(workspace)
    assert (report.imported, report.problems) == ((), ())
    assert manager.list() == []


def test_a_half_character_in_a_label_becomes_a_question_mark(pitr: Pitrrwnd) -> None:
    def spoil(facts: dict[str, Any]) -> None:
        facts["label"] = "half \ud800"

    pitr.edit_manifest(1, spoil)
    assert take_over(pitr.workspace).imported[0].message == "half ?"
