"""``casnap import``: what it says, and to which workspace things go."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from support.cli import Result
from support.histories import OhMyCoder, Pitrrwnd

Call = Callable[..., Result]


@pytest.fixture
def pitr(workspace: Path) -> Pitrrwnd:
    history = Pitrrwnd(workspace)
    history.savepoint("one")
    return history


def test_the_document_has_checkpoints_problems_and_notes(pitr: Pitrrwnd, call: Call) -> None:
    (pitr.snapshot(1) / os.fsdecode(b"\xff")).write_text("extra")
    document = call("import", pitr.workspace, "--json", check=3).json()
    assert document.keys() == {
        "schema", "casnap", "store", "workspace", "system", "imported", "skipped", "problems", "notes",
    }  # fmt: skip
    assert (document["schema"], document["system"]) == ("casnap.import/1", "pitrrwnd")
    assert document["workspace"]["path"] == str(pitr.workspace)
    assert [(one["step"], one["name"], one["created"]) for one in document["imported"]] == [
        (1, "one", "2024-05-06T12:01:00.000001000Z")
    ]
    assert document["problems"][0]["path_b64"]
    again = call("import", pitr.workspace, "--format", "json", check=0).json()
    assert (again["imported"], again["problems"]) == ([], [])
    assert [one["id"] for one in again["skipped"]] == [document["imported"][0]["id"]]


def test_w_names_the_workspace_and_the_history_is_not_registered(pitr: Pitrrwnd, tmp_path: Path, call: Call) -> None:
    (tmp_path / "other").mkdir()
    told = call("import", pitr.workspace, "-w", tmp_path / "other", check=0)
    assert f"workspace {tmp_path / 'other'}\n" in told.stderr
    assert call("list", "-w", tmp_path / "other", check=0).stdout.count(" one ") == 1
    call("list", "-w", pitr.workspace, check=13)


def test_a_copied_history_goes_to_the_workspace_around_here(pitr: Pitrrwnd, tmp_path: Path, call: Call) -> None:
    os.rename(pitr.state, tmp_path / "copy")
    told = call("import", tmp_path / "copy", cwd=pitr.workspace, check=0)
    assert f"workspace {pitr.workspace}\n" in told.stderr


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ((".",), 13, "no history at "),
        (("",), 2, "bad directory '': it is empty"),
        ((), 2, "missing argument 'DIR'"),
        ((".", "--from", "borg"), 2, "'borg' is not one of"),
        ((".", "--from", "pitrrwnd"), 13, "looked for .pitr/manifests"),
        (("nowhere",), 13, "it does not exist"),
    ],
)
def test_a_mistake_is_told_and_nothing_is_registered(
    workspace: Path, home: Path, words: tuple[str, ...], status: int, said: str, call: Call
) -> None:
    told = call("import", *words, cwd=workspace, check=status)
    assert said in told.stderr
    assert not (home / "store").exists()


def test_several_histories_are_told_apart_by_from(pitr: Pitrrwnd, call: Call) -> None:
    id = OhMyCoder(pitr.workspace).create("task", "about it")
    told = call("import", pitr.workspace, check=2)
    assert "hint: say which with --from: pitrrwnd, oh-my-coder\n" in told.stderr
    assert f"name={id} " in call("import", pitr.workspace, "--from", "oh-my-coder", check=0).stdout


def test_strict_counts_what_a_rule_left_out(pitr: Pitrrwnd, call: Call) -> None:
    git = pitr.snapshot(1) / ".git"
    git.mkdir()
    (git / "index.lock").write_text("")
    pitr.edit_manifest(1, lambda facts: facts["files"].update({".git/index.lock": "0" * 64}))
    told = call("import", pitr.workspace, "--strict", check=3)
    assert "note: step 1: left out: 1 git lock\n" in told.stderr
    assert "problem" not in told.stderr
