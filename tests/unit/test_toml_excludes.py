"""``casnap.toml`` and ``pyproject.toml`` in a workspace: they may add excludes, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from casnap import CheckpointManager
from casnap.workspace.rules import MAX_IGNORE_FILE
from casnap.workspace.toml_excludes import CASNAP_TOML, PYPROJECT, excludes_in, remarks_on
from support.scanning import deadline, take


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def left_out(root: Path) -> set[str]:
    return {os.fsdecode(path) for path, _ in take(root).skipped}


def test_both_files_add_excludes_at_the_root_and_casnapignore_has_the_last_word(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "casnap.toml": 'exclude = ["*.log", "!keep.tmp", "/é"]',
            "pyproject.toml": '[project]\nname = "x"\n[tool.casnap]\nexclude = ["*.tmp", "*.o"]',
            ".casnapignore": "!a.o\n",
            "a.log": "",
            "a.o": "",
            "b.o": "",
            "keep.tmp": "",
            "x.tmp": "",
            "é": "",
            "sub/b.log": "",
            "sub/casnap.toml": 'exclude = ["*"]',
        },
    )
    assert left_out(tmp_path) == {"a.log", "b.o", "x.tmp", "é", "sub/b.log"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "exclude = 5",
        'exclude = "*"',
        'exclude = ["*", 5]',
        'exclude = ["a\\n*"]',
        'exclude = ["*"',
        'tool.casnap.exclude = ["*"]',
        'exclude = ["*"]\n' + "a" + ".a" * 200_000 + " = 1",
        'exclude = ["*"]\n' + '"a"' + '."a"' * 100_000 + " = 1",
        "x = " + "[" * 100_000,
    ],
)
def test_what_makes_no_sense_excludes_nothing(text: str) -> None:
    with deadline(5):
        assert excludes_in(CASNAP_TOML, text.encode()) == b""
        remarks = remarks_on(CASNAP_TOML, text.encode())
    assert bool(text) == bool(remarks)
    assert all(remark.startswith("casnap.toml") and len(remark) < 200 for remark in remarks)


def test_a_pyproject_that_does_not_speak_of_casnap_is_not_even_parsed() -> None:
    assert excludes_in(PYPROJECT, b"exclude = [") == b""
    assert remarks_on(PYPROJECT, b"exclude = [") == ()
    assert remarks_on(PYPROJECT, b"[tool]\ncasnap = 5") != ()
    assert remarks_on(PYPROJECT, b'tool = "casnap"') == ()
    assert remarks_on(PYPROJECT, b'[project]\ndescription = "casnap. . . . . . . . . . . . . . . . . . . ."') == ()


def test_any_other_key_is_refused_by_name_and_the_rest_is_counted() -> None:
    text = b'exclude = ["x"]\nretention.keep = 1\n[sensitive]\npolicy = "keep"\n[zork]\na = 1\nb = 2\nc = 3\n'
    assert excludes_in(CASNAP_TOML, text) == b"x"
    assert remarks_on(CASNAP_TOML, text) == (
        "casnap.toml: retention.keep may not be set inside the workspace; it has no effect",
        "casnap.toml: sensitive.policy may not be set inside the workspace; it has no effect",
        "casnap.toml: there is no key zork.a; it has no effect",
        "casnap.toml: 2 more keys have no effect",
    )


def test_an_agents_excludes_are_counted_and_its_settings_change_nothing(
    workspace: Path, manager: CheckpointManager
) -> None:
    write(workspace, {"a": "1", "b": "2"})
    for name in ("c1", "c2", "c3"):
        manager.create(name)
    write(workspace, {"casnap.toml": 'exclude = ["*"]\nretention.keep = 1\nretention.auto = true\n'})
    status = manager.status()
    assert status.left_out == {"ignored": 3}
    assert status.notes == (
        "casnap.toml: retention.auto may not be set inside the workspace; it has no effect",
        "casnap.toml: retention.keep may not be set inside the workspace; it has no effect",
        "the ignore rules have changed since head",
    )
    assert manager.create("c4").skipped == 3
    assert len(manager.list()) == 4
    manager.rollback("c3")
    assert (workspace / "a").read_text() == "1"
    assert (workspace / "casnap.toml").exists()  # it excludes itself: no checkpoint holds it


def test_what_a_toml_file_excluded_then_survives_a_rollback_although_the_file_is_gone(
    workspace: Path, manager: CheckpointManager
) -> None:
    write(workspace, {"pyproject.toml": '[tool.casnap]\nexclude = ["data/"]\n', "a": "1", "data/x": "x"})
    manager.create("c1")
    (workspace / "pyproject.toml").unlink()
    write(workspace, {"a": "2"})
    assert manager.status().notes == ("the ignore rules have changed since head",)
    report = manager.rollback("c1")
    assert (report.kept, report.complete) == ((b"data",), True)
    assert (workspace / "a").read_text() == "1"
    assert (workspace / "data" / "x").read_text() == "x"


def test_an_edit_of_a_toml_file_that_changes_no_exclude_is_no_change_of_rules(
    workspace: Path, manager: CheckpointManager
) -> None:
    write(workspace, {"pyproject.toml": '[tool.casnap]\nexclude = ["data/"]\n'})
    manager.create("c1")
    write(workspace, {"pyproject.toml": 'version = 2\n[tool.casnap]\nexclude = ["data/"]\n'})
    assert manager.status().notes == ()
    write(workspace, {"pyproject.toml": '[tool.casnap]\nexclude = ["data/", "more"]\n'})
    assert manager.status().notes == ("the ignore rules have changed since head",)


def test_a_broken_toml_file_does_not_stop_the_way_back(workspace: Path, manager: CheckpointManager) -> None:
    good = '[tool.casnap]\nexclude = ["data/"]\n'
    write(workspace, {"pyproject.toml": good, "a": "1", "data/x": "x"})
    manager.create("c1")
    write(workspace, {"pyproject.toml": "<<<<<<< [tool.casnap]", "a": "2", "data/y": "y"})
    (note, changed) = manager.status().notes
    assert note.startswith("pyproject.toml cannot be read, and excludes nothing: ")
    assert changed == "the ignore rules have changed since head"
    report = manager.rollback("c1")
    assert (report.complete, report.kept) == (True, (b"data",))
    assert (workspace / "pyproject.toml").read_text() == good
    assert (workspace / "a").read_text() == "1"
    assert {path.name for path in (workspace / "data").iterdir()} == {"x", "y"}


def test_a_toml_file_that_is_too_long_to_be_read_protects_what_exists(
    workspace: Path, manager: CheckpointManager
) -> None:
    write(workspace, {"a": "1"})
    manager.create("c1")
    write(workspace, {"a": "2", "casnap.toml": "#" * (MAX_IGNORE_FILE + 1)})
    report = manager.rollback("c1")
    assert {problem.path for problem in report.left_alone} == {b"a", b"casnap.toml"}
    assert (workspace / "a").read_text() == "2"
