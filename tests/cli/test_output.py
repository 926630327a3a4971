"""What a person reads: one-line records, where each word goes, and nothing that a locale or a pipe could break."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.cli import Result, environment, run
from support.terminal import Terminal, plain_environment

Call = Callable[..., Result]

CASNAP = [sys.executable, "-m", "casnap"]


def test_a_checkpoint_is_one_line(workspace: Path, call: Call) -> None:
    line = call("checkpoint", "before-refactor", "-m", "x", cwd=workspace, check=0).stdout
    assert re.fullmatch(
        r"checkpoint step=1 name=before-refactor id=[0-9a-f]{12} digest=[0-9a-f]{12} "
        r"\+3 ~0 -0 \d+(\.\d)? (B|kB) new \d+\.\d\d s\n",
        line,
    )


def test_quiet_leaves_the_id_alone(workspace: Path, call: Call) -> None:
    result = call("checkpoint", "-q", cwd=workspace, check=0)
    assert re.fullmatch(r"[0-9a-f]{64}\n", result.stdout)
    assert result.stderr == ""
    assert call("checkpoint", "--if-changed", "-q", cwd=workspace, check=0).stdout == result.stdout


def test_every_verb_says_which_workspace_it_is_about(history: Path, tmp_path: Path, call: Call) -> None:
    (tmp_path / "link").symlink_to(history)
    for args in (("list",), ("show",), ("status",), ("diff",), ("rollback",), ("verify",), ("recover",), ("init",)):
        result = call(*args, "-w", tmp_path / "link", check=0)
        assert f"workspace {history}\n" in result.stderr
        assert "workspace" not in call(*args, "-q", "-w", history, check=0).stderr


def test_nothing_changed_is_said_and_the_name_not_given(protected: Path, call: Call) -> None:
    result = call("checkpoint", "c2", "--if-changed", cwd=protected, check=0)
    assert re.fullmatch(r"unchanged step=1 name=c1 id=[0-9a-f]{12}\n", result.stdout)
    assert "c2 names nothing" in result.stderr
    call("show", "c2", cwd=protected, check=13)


def test_the_first_checkpoint_names_large_directories_and_likely_secrets(workspace: Path, call: Call) -> None:
    (workspace / "big").mkdir()
    (workspace / "big" / "data").write_bytes(b"x" * 5000)
    (workspace / ".env").write_text("KEY=value\n")
    told = call("checkpoint", cwd=workspace, check=0).stderr
    assert "note: the largest directories are big (5.0 kB), src (13 B)\n" in told
    assert "note: 1 file looks like secrets" in told
    assert "secrets" not in call("checkpoint", cwd=workspace, check=0).stderr


def test_the_list_is_aligned_and_marks_head(history: Path, call: Call) -> None:
    call("rollback", "c2", cwd=history, check=0)
    result = call("list", cwd=history, check=0)
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["STEP", "NAME", "ID", "CREATED", "CHANGES", "NEW", "MESSAGE"]
    assert [line[0] for line in lines[1:]] == [" ", "*", " "]
    column = lines[0].index("NAME")
    assert [line[column : column + 2] for line in lines[1:]] == ["c3", "c2", "c1"]
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}", lines[1])


def test_the_footer_counts_the_safety_checkpoints_that_are_not_shown(history: Path, call: Call) -> None:
    (history / "README").write_text("changed\n")
    call("rollback", "c1", cwd=history, check=0)
    hidden = call("list", cwd=history, check=0)
    assert "1 safety checkpoint is not shown (--safety)\n" in hidden.stderr
    assert "(safety)" not in hidden.stdout
    shown = call("list", "--safety", cwd=history, check=0)
    assert "(safety)" in shown.stdout
    assert "not shown" not in shown.stderr


def test_limit_and_reverse_choose_the_newest_and_turn_them_round(history: Path, call: Call) -> None:
    def names(*args: str) -> list[str]:
        return [one["name"] for one in call("list", *args, "--format", "json", cwd=history, check=0).json()]

    assert names("-n", "2") == ["c3", "c2"]
    assert names("--limit", "2", "--reverse") == ["c2", "c3"]
    assert names("-n", "0") == []
    assert names("-n", "99") == ["c3", "c2", "c1"]


def test_a_rollback_names_its_safety_checkpoint_and_how_to_get_back(history: Path, call: Call) -> None:
    (history / "README").write_text("changed\n")
    (history / "junk").write_text("junk\n")
    result = call("rollback", "c1", cwd=history, check=0)
    match = re.fullmatch(
        r"rollback to step=1 name=c1 id=[0-9a-f]{12} safety=([0-9a-f]{12}) \+0 ~2 -1 \d+\.\d\d s\n", result.stdout
    )
    assert match is not None
    assert "hint: `casnap undo` takes it back\n" in result.stderr
    assert call("show", match[1], "--json", cwd=history, check=0).json()["checkpoint"]["safety"] is True


def test_a_preview_prints_the_plan_and_changes_nothing(history: Path, call: Call) -> None:
    (history / "junk").write_text("junk\n")
    (history / "README").unlink()
    (history / "src" / "main.py").unlink()
    (history / "src" / "main.py").mkdir()
    result = call("rollback", "--preview", cwd=history, check=0)
    assert result.stdout.splitlines() == ["A README", "D junk", "T src/main.py"]
    assert "nothing was changed" in result.stderr
    assert (history / "junk").exists()
    assert call("list", "--safety", "--format", "json", cwd=history, check=0).json()[0]["name"] == "c3"


def test_the_overview_has_five_lines(history: Path, tmp_path: Path, call: Call) -> None:
    (history / "new").write_text("new\n")
    lines = call(cwd=history / "src", check=0).stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["workspace", "head", "changed", "safety", "next"]
    assert str(history) in lines[0]
    assert "step=3 name=c3" in lines[1]
    assert lines[2] == "changed    +1 ~0 -0"
    assert lines[3] == "safety     none yet"
    assert "casnap rollback" in lines[4]
    assert "1 is registered elsewhere" in call(cwd=tmp_path, check=0).stdout


def test_without_a_store_the_overview_and_status_say_so(workspace: Path, call: Call) -> None:
    for args in ((), ("status",)):
        assert call(*args, cwd=workspace, check=0).stdout.startswith("protected  no: ")


@pytest.mark.parametrize("env", [{}, {"NO_COLOR": ""}, {"TERM": "xterm-256color", "COLUMNS": "10"}])
def test_a_pipe_gets_no_control_codes(history: Path, env: dict[str, str]) -> None:
    (history / "esc\x1b[31m").write_text("red\x1b[31m?\n")
    for args in (("list",), ("status",), ("diff", "--name-status"), ("rollback", "--preview")):
        result = run(*args, cwd=history, env=env, check=0)
        assert re.search("[\x00-\x09\x0b-\x1f\x7f]", result.stdout.replace("\t", "")) is None
        assert re.search("[\x00-\x09\x0b-\x1f\x7f]", result.stderr) is None


@pytest.mark.parametrize("env", [{"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}, {"PYTHONIOENCODING": "latin-1"}])
def test_odd_names_break_nothing_in_any_locale(workspace: Path, env: dict[str, str]) -> None:
    for name in (b"\xfe", b"caf\xe9", "日本語".encode(), b"new\nline", rb"\xff", "\u202eright".encode()):
        (workspace / os.fsdecode(name)).write_bytes(name)
    run("checkpoint", "日本語", "-m", "\x1b[31mrot\n日本語", cwd=workspace, env=env, check=0)
    (workspace / "README").write_text("é\n")
    for args in (("list",), ("diff",), ("rollback", "--preview"), ("verify",)):
        result = run(*args, cwd=workspace, env=env)
        assert result.status in (0, 4)
        assert "Traceback" not in result.stderr
    listed = run("show", "--files", cwd=workspace, env=env, check=0).stdout
    assert r"new\nline" in listed
    assert r"caf\xe9" in listed
    assert r"\\xff" in listed
    assert r"\xe2\x80\xaeright" in listed
    if env["PYTHONIOENCODING"] == "ascii":
        assert r"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e" in listed


def test_a_patch_comes_out_byte_for_byte(protected: Path) -> None:
    (protected / "README").write_bytes(b"caf\xe9\r\n\x1b[31m\n")
    patch = subprocess.run(
        [*CASNAP, "diff"],
        cwd=protected,
        env=environment({"PYTHONIOENCODING": "ascii"}),
        capture_output=True,
        check=True,
    ).stdout
    assert b"+caf\xe9\r\n+\x1b[31m\n" in patch


@pytest.mark.parametrize("args", [["list"], ["show", "--files"], ["list", "--json"], ["--help"], ["--version"]])
def test_a_reader_that_goes_away_is_no_error(history: Path, args: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*CASNAP, *args, "-q"], cwd=history, env=environment(), stdout=writing, stderr=-1, check=False
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_full_disk_behind_stdout_is_said(history: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*CASNAP, "list"], cwd=history, env=environment(), stdout=full, stderr=-1, check=False)
    assert done.returncode == 1
    assert b"error: cannot write the output: No space left on device\n" in done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams_do_not_keep_a_command_from_its_work(workspace: Path, closed: str) -> None:
    command = f'"{sys.executable}" -m casnap checkpoint c1 {closed}'
    assert subprocess.run(command, shell=True, cwd=workspace, env=environment(), check=False).returncode == 0
    assert run("show", "c1", "--json", cwd=workspace, check=0).json()["checkpoint"]["step"] == 1
    assert run("verify", "c1", cwd=workspace, check=0)


@pytest.mark.parametrize(
    ("args", "question"),
    [
        (("rollback", "c1"), "back to step=1 name=c1"),
        (("delete", "c1"), "Delete 1 checkpoint of"),
        (("forget", "--drop"), "give up all of its checkpoints?"),
    ],
)
def test_at_a_terminal_a_destructive_verb_asks(
    history: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], question: str, call: Call
) -> None:
    plain_environment(monkeypatch)
    terminal = Terminal(*args, cwd=history, TERM="xterm")
    terminal.wait_for(" [y/N] ")
    assert question in terminal.said
    terminal.type("n\n")
    assert terminal.finish() == 1
    assert "nothing was changed" in terminal.said
    assert (history / "src" / "main.py").read_text() == "print(3)\n"
    call("show", "c1", cwd=history, check=0)
    agreeing = Terminal(*args, cwd=history, TERM="xterm")
    agreeing.wait_for(" [y/N] ")
    agreeing.type("y\n")
    assert agreeing.finish() == 0
    assert (history / "src" / "main.py").read_text() == ("print('one')\n" if args[0] == "rollback" else "print(3)\n")


@pytest.mark.parametrize("word", ["--yes", "-y", "--force"])
def test_who_has_agreed_is_not_asked(history: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    plain_environment(monkeypatch)
    terminal = Terminal("rollback", "c1", word, cwd=history, TERM="xterm")
    assert terminal.finish() == 0
    assert "[y/N]" not in terminal.said


def test_an_agent_at_a_terminal_is_not_asked(history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain_environment(monkeypatch)
    terminal = Terminal("rollback", "c1", cwd=history, TERM="xterm", CLAUDECODE="1")
    assert terminal.finish() == 0
    assert "[y/N]" not in terminal.said


def test_a_terminal_gets_colour_and_no_codes_of_the_files_own(history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain_environment(monkeypatch)
    (history / "README").write_text("red \x1b[31m text\n")
    terminal = Terminal("diff", cwd=history, TERM="xterm")
    assert terminal.finish() == 0
    assert "\x1b[32m+red \\x1b[31m text\x1b[0m" in terminal.said
    table = Terminal("list", cwd=history, TERM="xterm", COLUMNS="200")
    assert table.finish() == 0
    assert "\x1b[1m" in table.said
    for extra in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        plain = Terminal("list", cwd=history, **{"TERM": "xterm", **extra})
        assert plain.finish() == 0
        assert "\x1b" not in plain.said
