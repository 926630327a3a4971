"""Field cases about names, ancestors, output, exit statuses and what a workspace looks like from outside."""

from __future__ import annotations

import fcntl
import json
import os
import random
import re
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from casnap import CheckpointManager, NotFound, Refused, Usage
from support.cases import as_ordinary_user, flip, names_that_change, run_here
from support.cli import CHECKOUT, Result, environment
from support.oracle import difference, snapshot

Call = Callable[..., Result]

REFUSED = [
    "",
    " ",
    ".",
    "..",
    "../x",
    "a/../b",
    "/a",
    "a/",
    "a//b",
    "-f",
    "--all",
    "@",
    "@{now}",
    "n" * 129,
    "n" * 300,
    "a\nb",
    "a\0b",
    "latest",
    "HEAD",
    "1",
    "0123456789",
    "٣",
    "a b",
    "a*",
    "%",
    "🎉",
    "a\u200fb",
    "a\x1b[31m",
    os.fsdecode(b"\xff"),
]
ACCEPTED = ["a/b", "deadbeef" * 8, "é", "日本語", "v1.2_3+x:y-z", "_", "n" * 128, "1a", "Latest", "head", "a.b..c"]


def test_case_111_a_bad_name_is_refused_where_it_would_be_given(protected: Path, call: Call) -> None:
    for name in REFUSED:
        for args in (("checkpoint", f"--name={name}"), ("checkpoint", "-s", name), ("rename", "c1", name)):
            if args[0] == "rename" and name.startswith("-"):
                continue  # that is an option
            told = call(*args, cwd=protected, check=2)
            assert re.match(r"error: bad checkpoint name .*: .+\nhint: .+", told.stderr), told.stderr
        with CheckpointManager(protected) as manager, pytest.raises(Usage, match="bad checkpoint name") as caught:
            manager.create(name)
        assert caught.value.code == "bad-name"
    assert [one["name"] for one in call("list", "--format", "json", cwd=protected, check=0).json()] == ["c1"]


def test_case_111_what_can_be_created_can_be_shown_diffed_rolled_back_to_and_deleted(
    protected: Path, call: Call
) -> None:
    for name in ACCEPTED:
        call("checkpoint", name, cwd=protected, check=0)
        (protected / "README").write_text("changed\n")
        assert call("show", name, "--json", cwd=protected, check=0).json()["checkpoint"]["name"] == name
        assert "README" in call("diff", name, cwd=protected, check=0).stdout
        call("rollback", name, cwd=protected, check=0)
        assert (protected / "README").read_text() == "read me\n"
        call("delete", name, cwd=protected, check=0)
        call("show", name, cwd=protected, check=13)


def test_case_111_forms_of_one_letter_are_one_name(protected: Path, call: Call) -> None:
    composed, decomposed = (unicodedata.normalize(form, "café") for form in ("NFC", "NFD"))
    assert composed != decomposed
    call("checkpoint", decomposed, cwd=protected, check=0)
    assert call("show", composed, "--json", cwd=protected, check=0).json()["checkpoint"]["name"] == composed
    for name in (composed, decomposed, "c1"):
        assert "has that name" in call("checkpoint", name, cwd=protected, check=14).stderr
    with CheckpointManager(protected) as manager, pytest.raises(Refused):
        manager.create(decomposed)


def test_case_112_a_name_comes_before_an_id_and_a_step_before_a_prefix(protected: Path, call: Call) -> None:
    id = call("show", "c1", "--json", cwd=protected, check=0).json()["checkpoint"]["id"]
    name = next(id[:length] for length in range(4, 65) if not id[:length].isdecimal())

    def found(word: str) -> str:
        return str(call("show", word, "--json", cwd=protected, check=0).json()["checkpoint"]["name"])

    assert found(name) == "c1"
    call("checkpoint", name, cwd=protected, check=0)
    assert found(name) == name
    assert found(id) == "c1"
    assert found(id[: len(name) + 1]) == "c1"
    assert (found("1"), found("2")) == ("c1", name)


def test_case_112_wildcards_and_single_letters_match_nothing(history: Path, call: Call) -> None:
    for word in ("%", "_", "*", "?", "", "c", "a", "c%", "c_", "%1", "1%", "c*", "...."):
        for verb in ("show", "rollback", "delete", "verify"):
            call(verb, word, cwd=history, check=2 if word == "" else 13)
    assert len(call("list", "--format", "json", cwd=history, check=0).json()) == 3


def test_case_112_an_ambiguous_prefix_is_an_error_that_lists_the_candidates(
    protected: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    with CheckpointManager(protected) as manager:
        ids = [manager.create().id for _ in range(31)]
    monkeypatch.setattr("casnap.engine.history.MIN_PREFIX", 1)
    first = next(digit for digit in "abcdef0" if sum(id.startswith(digit) for id in ids) > 1)  # 1 to 9 are steps
    ids = [one["id"] for one in call("list", "--format", "json", cwd=protected, check=0).json()]
    told = call("delete", first, "--json", cwd=protected, check=13)
    document = told.json()
    assert document["code"] == "ambiguous"
    assert sorted(document["details"]["candidates"]) == sorted(id for id in ids if id.startswith(first))
    assert len(call("list", "--format", "json", cwd=protected, check=0).json()) == 32


def test_case_112_the_ids_that_list_prints_are_long_enough_to_use(history: Path, call: Call) -> None:
    shown = re.findall(r"\b[0-9a-f]{12}\b", call("list", cwd=history, check=0).stdout)
    names = [call("show", id, "--json", cwd=history, check=0).json()["checkpoint"]["name"] for id in shown]
    assert names == ["c3", "c2", "c1"]


def by_command(call: Call, workspace: Path, back: int) -> str | None:
    name: str | None = call("rollback", "-n", str(back), "--json", cwd=workspace, check=0).json()["target"]["name"]
    return name


def by_python(_call: Call, workspace: Path, back: int) -> str | None:
    with CheckpointManager(workspace) as manager:
        return manager.rollback(n=back).target.name


both_ways = pytest.mark.parametrize("go_back", [by_command, by_python])
GoBack = Callable[[Call, Path, int], str | None]


@both_ways
@pytest.mark.parametrize("dirty", [False, True])
def test_case_113_one_back_is_the_parent_of_head_whether_files_changed_or_not(
    history: Path, dirty: bool, go_back: GoBack, call: Call
) -> None:
    if dirty:
        (history / "README").write_text("edited\n")
    assert go_back(call, history, 1) == "c2"
    if dirty:
        (history / "README").write_text("edited again\n")
    assert go_back(call, history, 1) == "c1"  # the safety checkpoints in between do not count
    assert (history / "src" / "main.py").read_text() == "print('one')\n"
    assert (history / "README").read_text() == "read me\n"


@both_ways
def test_case_113_zero_back_is_head(history: Path, go_back: GoBack, call: Call) -> None:
    (history / "README").write_text("edited\n")
    assert go_back(call, history, 0) == "c3"
    assert (history / "README").read_text() == "read me\n"


@both_ways
def test_case_113_ancestors_follow_parents_and_not_time(history: Path, go_back: GoBack, call: Call) -> None:
    call("rollback", "c1", cwd=history, check=0)
    (history / "README").write_text("another branch\n")
    call("checkpoint", "c4", cwd=history, check=0)
    assert go_back(call, history, 1) == "c1"


@both_ways
def test_case_113_a_deleted_checkpoint_is_stepped_over(history: Path, go_back: GoBack, call: Call) -> None:
    call("delete", "c2", cwd=history, check=0)
    assert go_back(call, history, 1) == "c1"


def test_case_113_beyond_the_history_is_an_error_with_the_maximum(history: Path, call: Call) -> None:
    before = snapshot(history)
    told = call("rollback", "-n", "99", "--json", cwd=history, check=13).json()
    assert told["details"] == {"maximum": 2}
    assert "2" in told["message"]
    call("rollback", "-n", "-1", cwd=history, check=2)
    with CheckpointManager(history) as manager:
        with pytest.raises(NotFound) as caught:
            manager.rollback(n=99)
        assert caught.value.details == {"maximum": 2}
        with pytest.raises(Usage):
            manager.rollback(n=-1)
    assert snapshot(history) == before


def test_case_115_stdout_is_one_document_whatever_names_there_are(workspace: Path, call: Call) -> None:
    call("init", cwd=workspace, check=0)
    assert call("list", "--json", cwd=workspace, check=0).json()["checkpoints"] == []
    assert call("list", "--format", "json", cwd=workspace, check=0).json() == []
    for name in (b"%s", b"\xff", b"{}", b'"', b"\\", b"\n", b"\xed\xa0\x80", "\u2028".encode()):
        (workspace / os.fsdecode(name)).write_bytes(name)
    call("checkpoint", "c1", "-m", '%s "\\ \u2028 {}', cwd=workspace, check=0)
    for name in (b"%s", b"\xff"):
        (workspace / os.fsdecode(name)).unlink()
    keys: dict[tuple[str, ...], object] = {}
    for args in (("show", "--files"), ("status",), ("diff",), ("verify",), ("log",), ("rollback", "--preview")):
        for _ in range(2):
            stdout = call(*args, "--json", cwd=workspace).stdout
            document, end = json.JSONDecoder().raw_decode(stdout)
            assert stdout[end:] == "\n"
            assert keys.setdefault(args, document.keys()) == document.keys()
            assert re.fullmatch(r"casnap\.[a-z-]+/1", document["schema"])


def test_case_116_a_reader_that_has_seen_enough_is_no_error(workspace: Path) -> None:
    for number in range(1500):
        (workspace / f"a file with a rather long name, number {number}").touch()
    with CheckpointManager(workspace) as manager:
        manager.create("c1")
    script = f'set -o pipefail; "{sys.executable}" -P -m casnap show --files | head -1'
    for env in ({}, {"NO_COLOR": ""}, {"TERM": "dumb", "COLUMNS": "10"}):
        variables = environment({"TERM": "xterm"} | env)
        done = subprocess.run(["bash", "-c", script], cwd=workspace, env=variables, capture_output=True, check=False)
        assert done.returncode == 0
        assert re.fullmatch(rb"checkpoint [0-9a-f]{64}\n", done.stdout)
        assert done.stderr == f"workspace {workspace}\n".encode()


def test_case_117_each_outcome_has_a_status_of_its_own(protected: Path, home: Path, call: Call) -> None:
    content = random.Random(117).randbytes(5000)
    (protected / "data").write_bytes(content)
    call("checkpoint", "c2", cwd=protected, check=0)
    (protected / "data").write_bytes(b"other")

    def expect(status: int, *args: str) -> None:
        call(*args, cwd=protected, check=status)
        told = call(*args, "--json", cwd=protected, check=status).json()
        assert told.get("exit", status) == status

    expect(0, "status")
    expect(2, "rollback", "-n", "x")
    expect(4, "verify", "c2")
    expect(4, "diff", "c2", "--exit-code")
    expect(13, "show", "nobody")
    expect(14, "checkpoint", "c1")
    (lock,) = (home / "store" / "locks").glob("workspace-*.lock")
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        expect(11, "rollback", "c1", "--wait", "0")
    flip(home / "store", content[:64], 1000)
    expect(15, "rollback", "c2")
    expect(10, "list", "--store", str(home / "nowhere"))


def test_case_117_what_could_not_be_read_has_a_status_of_its_own(tmp_path: Path) -> None:
    def act(place: Path) -> None:
        (place / "workspace").mkdir()
        (place / "workspace" / "secret").write_text("secret\n")
        (place / "workspace" / "secret").chmod(0)
        for form in ((), ("--json",)):
            run_here("checkpoint", "--store", place / "store", "-w", place / "workspace", *form, check=3)

    as_ordinary_user(act)


PROCESS_INSIDE = """
import os, sys
print("ready", flush=True)
sys.stdin.readline()
print(os.getcwd(), flush=True)
open("made-here", "w").close()
"""


def test_case_119_who_is_inside_stays_inside(history: Path, call: Call) -> None:
    inside = history / "src"
    call("rollback", "c2", cwd=history, check=0)
    (history / "README").write_text("edited\n")
    inodes = {path: path.stat().st_ino for path in (history, inside)}
    with subprocess.Popen(
        [sys.executable, "-c", PROCESS_INSIDE],
        cwd=inside,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        with names_that_change(history, inside) as seen:
            call("rollback", "c1", cwd=history, check=0)
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == f"{inside}\n"
            process.wait()
    assert {path: path.stat().st_ino for path in (history, inside)} == inodes
    assert (inside / "made-here").exists()
    assert {b"main.py", b"README", b"made-here"} <= set(seen)


def test_case_127_a_workspace_is_a_plain_directory_before_during_and_after(
    workspace: Path, home: Path, call: Call
) -> None:
    (workspace / "link").symlink_to("README")
    before, parent = snapshot(workspace), sorted(workspace.parent.iterdir())
    inode = os.lstat(workspace).st_ino
    for args in (("init",), ("checkpoint", "c1"), ("status",), ("rollback", "c1"), ("forget", "--drop")):
        call(*args, cwd=workspace, check=0)
        assert os.lstat(workspace).st_ino == inode
        assert not os.path.ismount(workspace)
        assert difference(before, snapshot(workspace)) == []
        assert sorted(workspace.parent.iterdir()) == parent
    assert {path.name for path in home.iterdir()} == {"store"}


def test_case_110_an_age_is_the_same_in_every_zone(
    workspace: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        call("checkpoint", f"c{number}", cwd=workspace, check=0)
    told = set()
    for zone in ("UTC", "Pacific/Kiritimati", "America/St_Johns", "Europe/Berlin"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        told.add(call("cleanup", "--older-than", "1h", "--dry-run", cwd=workspace, check=0).stdout)
        told.add(call("cleanup", "--keep", "1", "--older-than", "0s", "--dry-run", cwd=workspace, check=0).stdout)
        created = call("list", "--json", cwd=workspace, check=0).json()["checkpoints"][0]["created"]
        assert created.endswith("Z")
    monkeypatch.undo()
    time.tzset()
    assert len(told) == 2


def test_case_108_an_instant_means_the_newest_state_that_was_complete_by_then(workspace: Path, call: Call) -> None:
    created = []
    for number in range(3):
        (workspace / "f").write_text(f"{number}")
        made = call("checkpoint", f"c{number}", "--json", cwd=workspace, check=0).json()["checkpoint"]
        created.append(made["created"])
        time.sleep(0.02)

    def at(instant: str) -> str:
        call("rewind", "--to", instant, cwd=workspace, check=0)
        return (workspace / "f").read_text()

    assert [at(instant) for instant in created] == ["0", "1", "2"]
    assert at("2999-01-01") == "2"
    nanoseconds = int(created[1][20:29])
    assert at(f"{created[1][:20]}{max(nanoseconds - 1, 0):09d}Z") == ("0" if nanoseconds else "1")
    zoned = created[1].replace("Z", "+00:00")
    assert at(zoned) == "1"
    early = call("rewind", "--to", "2001-01-01T00:00:00Z", cwd=workspace, check=13)
    assert created[0] in early.stderr
