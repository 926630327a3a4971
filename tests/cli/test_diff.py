"""``casnap diff``: renames, forms and notes, and a workspace that does not hold still."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from casnap import CheckpointManager
from casnap.engine import diff as engine
from casnap.engine.diffing import patch
from casnap.fs.directories import Directories
from casnap.model.report import LineCount
from casnap.model.tree import File
from support.cli import Result

Call = Callable[..., Result]

RENAMED = "README\tdocs/READ ME"


def test_a_renamed_and_edited_file_is_one_change(history: Path, call: Call) -> None:
    text = "".join(f"line {number}\n" for number in range(20))
    (history / "README").write_text(text)
    call("checkpoint", "long", cwd=history, check=0)
    (history / "docs").mkdir()
    (history / "README").rename(history / "docs" / "READ ME")
    (history / "docs" / "READ ME").write_text(text.replace("line 7\n", "seven\n"))
    assert call("diff", "--name-status", cwd=history, check=0).stdout == f"A\tdocs\nR095\t{RENAMED}\n"
    assert call("diff", "--name-status", "--no-renames", cwd=history, check=0).stdout == (
        "D\tREADME\nA\tdocs\nA\tdocs/READ ME\n"
    )
    shown = call("diff", "-U0", cwd=history, check=0)
    assert "similarity index 95%\nrename from README\nrename to docs/READ ME\n" in shown.stdout
    assert "@@ -8 +8 @@\n-line 7\n+seven\n" in shown.stdout
    assert "note:" not in shown.stderr
    _, change = call("diff", "--json", cwd=history, check=0).json()["changes"]
    assert (change["path"], change["kind"], change["change"]) == ("docs/READ ME", "R", "renamed")
    assert (change["renamed_from"], change["similarity"]) == ("README", 95)
    assert change["lines"] == {"added": 1, "removed": 1, "shown": True}
    assert "content" in change["aspects"]


def test_where_a_file_came_from_is_given_byte_for_byte(history: Path, call: Call) -> None:
    odd = Path(os.fsdecode(os.fsencode(history) + b"/caf\xe9"))
    odd.write_text("some text\n")
    call("checkpoint", cwd=history, check=0)
    odd.rename(history / "café")
    (change,) = call("diff", "--json", cwd=history, check=0).json()["changes"]
    assert (change["renamed_from"], base64.b64decode(change["renamed_from_b64"])) == (r"caf\xe9", b"caf\xe9")


def test_paths_limit_what_is_taken_for_a_rename(history: Path, call: Call) -> None:
    (history / "README").rename(history / "read")
    assert call("diff", "--name-status", "--", "read", cwd=history, check=0).stdout == "A\tread\n"


def test_what_a_patch_cannot_say_is_noted_and_counts(history: Path, call: Call) -> None:
    (history / "README").chmod(0o600)
    shown = call("diff", "--exit-code", cwd=history, check=4)
    assert shown.stdout == ""
    assert "note: changes of 1 path are not, or not all, in the patch" in shown.stderr
    assert call("diff", "--name-status", cwd=history, check=0).stdout == "M\tREADME\n"
    assert call("diff", "--stat", cwd=history, check=0).stdout == (
        " README | (mode)\n 0 files changed, 0 insertions(+), 0 deletions(-), 1 other path changed\n"
    )


def test_an_empty_directory_alone_is_noted(history: Path, call: Call) -> None:
    (history / "empty").mkdir()
    shown = call("diff", cwd=history, check=0)
    assert shown.stdout == ""
    assert "note: changes of 1 path are not" in shown.stderr


def test_what_is_cut_is_said_everywhere(history: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patch, "TEXT_LIMIT", 20)
    (history / "README").write_text("more than twenty bytes\n")
    shown = call("diff", "--exit-code", cwd=history, check=4)
    assert shown.stdout == (
        "diff --git a/README b/README\nFiles a/README and b/README are too large to compare and differ\n"
    )
    assert "note: contents of 1 path are not in the patch: too large to compare" in shown.stderr
    assert "hint: --binary makes the patch exact\n" in shown.stderr
    assert " README | Large 8 -> 23 bytes\n" in call("diff", "--stat", cwd=history, check=0).stdout
    document = call("diff", "--json", cwd=history, check=0).json()
    assert document["cut"] == [{"path": "README"}]
    assert document["changes"][0]["lines"] == {"added": 0, "removed": 0, "shown": False}
    assert len(document["notes"]) == 1
    exact = call("diff", "--binary", cwd=history, check=0)
    assert "GIT binary patch" in exact.stdout
    assert "hint" not in exact.stderr


def test_a_file_that_changes_meanwhile_is_a_problem(history: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    live = engine._live

    def changing(directories: Directories) -> engine.Read:
        def read(path: bytes, file: File) -> bytes:
            (history / "README").write_text("ONCE MORE\n")
            return live(directories)(path, file)

        return read

    monkeypatch.setattr(engine, "_live", changing)
    (history / "README").write_text("once more\n")
    shown = call("diff", cwd=history, check=3)
    assert "+ONCE MORE\n" in shown.stdout
    assert "problem: README: it changed while it was compared" in shown.stderr


def test_a_file_that_goes_meanwhile_is_a_problem_and_the_rest_is_shown(
    history: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = engine._live

    def going(directories: Directories) -> engine.Read:
        (history / "README").unlink()
        return live(directories)

    monkeypatch.setattr(engine, "_live", going)
    (history / "README").write_text("once more\n")
    (history / "src" / "main.py").write_text("edited\n")
    shown = call("diff", cwd=history, check=3)
    assert "+edited\n" in shown.stdout
    assert "problem: README: cannot read it: No such file or directory" in shown.stderr


def test_python_gets_the_patch_with_renames(history: Path) -> None:
    (history / "README").rename(history / "read")
    with CheckpointManager(history) as manager:
        found = manager.diff()
    assert str(found) == "diff --git a/README b/read\nsimilarity index 100%\nrename from README\nrename to read\n"
    assert [(change.renamed_from, change.path, change.similarity) for change in found] == [(b"README", b"read", 100)]
    assert found.lines == (LineCount(),)
