"""Going back and forth: rollback, undo, verify, restore-to, delete, undelete, recover, as commands."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from support.cli import Result, run
from support.oracle import Snapshot, snapshot

Call = Callable[..., Result]


def content(workspace: Path) -> str:
    return (workspace / "src" / "main.py").read_text()


def head(workspace: Path, call: Call) -> str:
    name: str = call("show", "--json", cwd=workspace, check=0).json()["checkpoint"]["name"]
    return name


@pytest.mark.parametrize(
    ("args", "name"),
    [
        ((), "c3"),
        (("c2",), "c2"),
        (("2",), "c2"),
        (("@",), "c3"),
        (("HEAD",), "c3"),
        (("latest",), "c3"),
        (("@~1",), "c2"),
        (("@~2",), "c1"),
        (("c3~",), "c2"),
        (("-n", "0"), "c3"),
        (("-n", "1"), "c2"),
        (("--num-ancestors", "2"), "c1"),
        (("--step", "1"), "c1"),
        (("-s", "c1"), "c1"),
        (("-s", "1"), "c1"),
        (("--snapshot", "@~1"), "c2"),
        (("--to", "2999-01-01"), "c3"),
        (("@{2999-01-01 10:11}",), "c3"),
    ],
)
def test_each_way_of_naming_a_checkpoint_leads_there(
    history: Path, args: tuple[str, ...], name: str, call: Call
) -> None:
    (history / "src" / "main.py").write_text("broken\n")
    call("rollback", *args, cwd=history, check=0)
    assert content(history) == {"c1": "print('one')\n", "c2": "print(2)\n", "c3": "print(3)\n"}[name]
    assert head(history, call) == name


def test_an_id_or_the_beginning_of_one_names_a_checkpoint(history: Path, call: Call) -> None:
    first = call("list", "--format", "json", cwd=history, check=0).json()[-1]["id"]
    for revision in (first, first[:12], first[:12].upper()):
        call("rollback", "c3", cwd=history, check=0)
        call("rollback", revision, cwd=history, check=0)
        assert content(history) == "print('one')\n"


def test_safety_checkpoints_are_no_steps_and_no_ancestors(history: Path, call: Call) -> None:
    (history / "README").write_text("dirty\n")
    call("rollback", "-n", "1", cwd=history, check=0)
    assert head(history, call) == "c2"
    call("rollback", "c1", cwd=history, check=0)
    assert "step=4 " in call("checkpoint", "c4", cwd=history, check=0).stdout
    call("rollback", "-n", "1", cwd=history, check=0)
    assert head(history, call) == "c1"


def test_a_rollback_of_paths_leaves_the_rest_and_head(history: Path, call: Call) -> None:
    (history / "README").write_text("changed\n")
    call("rollback", "c1", "--", "src", cwd=history, check=0)
    assert content(history) == "print('one')\n"
    assert (history / "README").read_text() == "changed\n"
    assert head(history, call) == "c3"


def test_a_removed_path_can_be_named(history: Path, call: Call) -> None:
    (history / "src" / "main.py").unlink()
    (history / "src").rmdir()
    call("rollback", "--", "src/main.py", cwd=history, check=0)
    assert content(history) == "print(3)\n"


def test_undo_goes_back_to_before_files_and_head_and_a_second_one_forth(history: Path, call: Call) -> None:
    (history / "never saved").write_text("precious\n")
    (history / "README").unlink()
    before = snapshot(history)
    call("rollback", "c1", cwd=history, check=0)
    after = snapshot(history)
    assert after != before
    undone = call("undo", cwd=history, check=0)
    assert undone.stdout.startswith("undo to id=")
    assert "this is how it stood at" in undone.stderr
    assert (snapshot(history), head(history, call)) == (before, "c3")
    call("undo", cwd=history, check=0)
    assert (snapshot(history), head(history, call)) == (after, "c1")


def test_verify_names_every_difference(history: Path, call: Call) -> None:
    call("verify", cwd=history, check=0)
    (history / "README").chmod(0o600)
    (history / "src" / "main.py").write_text("print(4)\n")
    (history / "new").symlink_to("nowhere")
    result = call("verify", cwd=history, check=4)
    assert result.stdout.splitlines() == ["M README  (mode)", "A new", "M src/main.py  (content)"]
    document = call("verify", "--json", cwd=history, check=4).json()
    assert document["equal"] is False
    assert [one["path"] for one in document["changes"]] == ["README", "new", "src/main.py"]


def test_verify_counts_times_only_when_asked_to(history: Path, call: Call) -> None:
    (history / "README").touch()
    call("verify", cwd=history, check=0)
    assert call("verify", "--times", cwd=history, check=4).stdout == "M README  (time)\n"


def test_diff_says_by_its_status_whether_anything_differs_when_asked_to(history: Path, call: Call) -> None:
    assert call("diff", cwd=history, check=0).stdout == ""
    call("diff", "--exit-code", cwd=history, check=0)
    assert call("diff", "c1", "c2", "--exit-code", cwd=history, check=4).stdout != ""


def test_diff_takes_its_sides_by_place_or_by_option(history: Path, call: Call) -> None:
    patches = [
        call("diff", "c1", "c2", cwd=history, check=0).stdout,
        call("diff", "-f", "c1", "-t", "c2", cwd=history, check=0).stdout,
        call("diff", "c1", "--to", "c2", cwd=history, check=0).stdout,
        call("diff", "--from", "c1", "-t", "2", cwd=history, check=0).stdout,
    ]
    assert set(patches) == {
        "diff --git a/src/main.py b/src/main.py\nindex 65489e7..d0e0fd6 100644\n--- a/src/main.py\n+++ b/src/main.py\n"
        "@@ -1 +1 @@\n-print('one')\n+print(2)\n"
    }


def test_diff_can_be_short_and_limited_to_paths(history: Path, call: Call) -> None:
    (history / "README").write_text("changed\n")
    (history / "new").write_text("new\n")
    assert call("diff", "c1", "--name-status", cwd=history, check=0).stdout == "M\tREADME\nA\tnew\nM\tsrc/main.py\n"
    assert call("diff", "--name-status", "--", "new", cwd=history, check=0).stdout == "A\tnew\n"
    assert call("diff", "--name-status", "--", "no/such", cwd=history, check=0).stdout == ""
    assert call("diff", "--stat", cwd=history, check=0).stdout == (
        " README | 2 +-\n new    | 1 +\n 2 files changed, 2 insertions(+), 1 deletion(-)\n"
    )


def test_diff_shows_as_many_lines_around_as_are_wanted(protected: Path, call: Call) -> None:
    lines = [f"{number}\n" for number in range(9)]
    (protected / "README").write_text("".join(lines))
    call("checkpoint", "lines", cwd=protected, check=0)
    lines[4] = "changed\n"
    (protected / "README").write_text("".join(lines))
    assert call("diff", "-U", "0", cwd=protected, check=0).stdout.endswith("@@ -5 +5 @@\n-4\n+changed\n")
    assert "@@ -2,7 +2,7 @@\n 1\n" in call("diff", cwd=protected, check=0).stdout


def test_restore_to_writes_a_checkpoint_elsewhere(history: Path, tmp_path: Path) -> None:
    run("rollback", "c1", cwd=history, check=0)
    first: Snapshot = snapshot(history)
    run("rollback", "c3", cwd=history, check=0)
    run("restore-to", "out", "c1", cwd=history.parent, env={"CASNAP_WORKSPACE": str(history)}, check=0)
    assert snapshot(tmp_path / "out") == first
    run("restore-to", "../out", "c1", cwd=history, check=14)
    run("restore-to", tmp_path / "part", "c2", "--", "src", cwd=history, check=0)
    assert [path.name for path in (tmp_path / "part").iterdir()] == ["src"]
    assert content(tmp_path / "part") == "print(2)\n"


def test_delete_moves_head_to_the_nearest_ancestor_that_is_left(history: Path, call: Call) -> None:
    files = snapshot(history)
    call("delete", "c2", cwd=history, check=0)
    told = call("rm", "c3", "-s", "c3", cwd=history, check=0)
    assert told.stdout.count("deleted") == 1
    assert "note: head is now " in told.stderr
    assert head(history, call) == "c1"
    assert snapshot(history) == files


def test_all_or_none_are_deleted(history: Path, call: Call) -> None:
    call("delete", "c1", "nonsense", cwd=history, check=13)
    call("delete", "c1", "c2", cwd=history, check=0)
    assert [one["name"] for one in call("list", "--format", "json", cwd=history, check=0).json()] == ["c3"]


def test_undelete_brings_a_checkpoint_back_without_a_name_that_was_taken(history: Path, call: Call) -> None:
    call("delete", "c2", cwd=history, check=0)
    call("show", "c2", cwd=history, check=13)
    (history / "README").write_text("other\n")
    call("checkpoint", "c2", cwd=history, check=0)
    told = call("undelete", "2", cwd=history, check=0)
    assert "the name c2 was taken meanwhile" in told.stderr
    assert call("show", "2", "--json", cwd=history, check=0).json()["checkpoint"]["name"] is None
    call("delete", "c3", cwd=history, check=0)
    assert "name=c3 " in call("undelete", "c3", cwd=history, check=0).stdout


def test_with_nothing_to_recover_nothing_is_done(history: Path, call: Call) -> None:
    for args in (("recover",), ("recover", "--all", "--force"), ("recover", "--yes")):
        result = call(*args, cwd=history, check=0)
        assert result.stdout == ""
        assert f"{history}: nothing to recover\n" in result.stderr


def test_what_no_rule_leaves_out_and_cannot_be_read_is_status_3(
    history: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    (history / "README").chmod(0)
    result = call("checkpoint", cwd=history, check=3)
    assert "problem: README: " in result.stderr


def test_what_a_rule_leaves_out_is_counted_and_shown_and_status_0(history: Path, call: Call) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(history / "socket"))
    told = call("checkpoint", "c4", cwd=history, check=0)
    assert "note: left out: 1 socket; `casnap show` names them" in told.stderr
    assert "left out   socket (socket)\n" in call("show", cwd=history, check=0).stdout
    skipped = call("show", "--json", cwd=history, check=0).json()["skipped"]
    assert skipped == [{"path": "socket", "type": "omitted", "reason": "socket"}]


def test_without_safety_head_stays_and_there_is_no_way_back(history: Path, call: Call) -> None:
    result = call("rollback", "c1", "--no-safety", cwd=history, check=0)
    assert "safety=none" in result.stdout
    assert "cannot be undone" in result.stderr
    assert content(history) == "print('one')\n"
    assert head(history, call) == "c3"
    call("undo", cwd=history, check=13)


@pytest.fixture
def hidden(protected: Path, call: Call) -> Path:
    """A workspace in which a rule hides what only the checkpoint A has; the rule's own file is hidden, too."""
    (protected / "x.tmp").write_text("1\n")
    call("checkpoint", "A", cwd=protected, check=0)
    (protected / ".casnapignore").write_text(".casnapignore\n*.tmp\n")
    (protected / "x.tmp").unlink()
    return protected


@pytest.mark.parametrize("words", [(), ("--", "x.tmp")], ids=["everything", "a path"])
def test_what_a_rule_hides_and_a_rollback_puts_back_is_counted_and_not_left_alone(
    words: tuple[str, ...], hidden: Path, call: Call
) -> None:
    shown = call("rollback", "A", "--preview", "--json", *words, cwd=hidden, check=0).json()
    done = call("rollback", "A", "--json", *words, cwd=hidden, check=0).json()
    assert (hidden / "x.tmp").read_text() == "1\n"
    assert [change["path"] for change in done["changes"]] == ["x.tmp"] == [one["path"] for one in shown["changes"]]
    assert done["left_alone"] == []
    assert done["complete"]


def test_what_takes_the_place_of_another_kind_and_is_hidden_by_that_is_counted(protected: Path, call: Call) -> None:
    (protected / "build").mkdir()
    (protected / "build" / "f").write_text("1\n")
    call("checkpoint", "A", cwd=protected, check=0)
    (protected / ".casnapignore").write_text(".casnapignore\nbuild/\n")
    (protected / "build" / "f").unlink()
    (protected / "build").rmdir()
    (protected / "build").write_text("a file\n")
    shown = call("rollback", "A", "--preview", "--json", cwd=protected, check=0).json()
    done = call("rollback", "A", "--json", cwd=protected, check=0).json()
    assert [(one["path"], one["change"]) for one in done["changes"]] == [
        (one["path"], one["change"]) for one in shown["changes"]
    ]
    assert (protected / "build" / "f").read_text() == "1\n"


def test_what_a_rule_hides_that_the_rollback_brings_with_it_is_counted(
    protected: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rule counts only by a setting that the checkpoint was made without."""
    for name in ("a.log", "same.log"):
        (protected / name).write_text("1\n")
    (protected / ".gitignore").write_text("*.log\n")
    call("checkpoint", "A", cwd=protected, check=0)
    (protected / ".gitignore").unlink()
    (protected / "a.log").write_text("two\n")
    monkeypatch.setenv("CASNAP_USE_GITIGNORE", "true")
    done = call("rollback", "A", "--json", cwd=protected, check=0).json()
    assert [one["path"] for one in done["changes"]] == [".gitignore", "a.log"]
    assert (protected / "a.log").read_text() == "1\n"


def test_an_undo_that_leaves_what_the_undone_run_brought_says_so(hidden: Path, call: Call) -> None:
    call("rollback", "A", cwd=hidden, check=0)
    undone = call("undo", "--json", cwd=hidden, check=3).json()
    assert [one["path"] for one in undone["left_alone"]] == ["x.tmp"]
    assert (hidden / "x.tmp").read_text() == "1\n"


def test_an_undo_says_nothing_of_what_a_rule_hid_all_along(protected: Path, call: Call) -> None:
    (protected / "x.tmp").write_text("1\n")
    call("checkpoint", "A", cwd=protected, check=0)
    (protected / ".casnapignore").write_text(".casnapignore\n*.tmp\n")
    (protected / "README").write_text("changed\n")
    call("rollback", "A", cwd=protected, check=0)
    (protected / "y.tmp").write_text("new and hidden\n")
    assert call("undo", "--json", cwd=protected, check=0).json()["left_alone"] == []


def test_an_undo_tells_what_a_rollback_brought_that_was_limited_to_a_path(hidden: Path, call: Call) -> None:
    (hidden / "y.tmp").write_text("not brought\n")
    call("checkpoint", "B", cwd=hidden, check=0)
    call("rollback", "A", cwd=hidden, check=0)  # brings x.tmp, but is not what is undone
    call("rollback", "B", cwd=hidden, check=0)
    (hidden / "x.tmp").unlink()
    call("rollback", "A", "--", "x.tmp", cwd=hidden, check=0)
    undone = call("undo", "--json", cwd=hidden, check=3).json()
    assert [one["path"] for one in undone["left_alone"]] == ["x.tmp"]


def test_a_redo_is_undone_with_what_it_brought(protected: Path, call: Call) -> None:
    """Head never held it: the undo brought it from a safety checkpoint."""
    (protected / "x.tmp").write_text("1\n")
    call("rollback", "c1", cwd=protected, check=0)
    (protected / ".casnapignore").write_text(".casnapignore\n*.tmp\n")
    call("undo", cwd=protected, check=0)
    assert (protected / "x.tmp").read_text() == "1\n"
    undone = call("undo", "--json", cwd=protected, check=3).json()
    assert [one["path"] for one in undone["left_alone"]] == ["x.tmp"]
