"""``casnap run``: a real command between two checkpoints, whatever becomes of it."""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from casnap.cli.run import _attempt
from support.cases import git, make_repository
from support.cli import Result, environment, run
from support.oracle import difference, snapshot
from support.stores import remove_catalogs

Call = Callable[..., Result]

CASNAP = [sys.executable, "-P", "-m", "casnap"]
CHANGE = "echo more >> README; echo new > new; rm src/main.py"


def records(workspace: Path, *options: str) -> list[dict[str, Any]]:
    """The checkpoints, newest first."""
    found: list[dict[str, Any]] = run("list", "--json", "-w", workspace, *options, check=0).json()["checkpoints"]
    return found


def messages(workspace: Path) -> list[str]:
    return [record["message"] for record in records(workspace)]


def shell(workspace: Path, script: str, *options: str, check: int | None = 0, **env: str) -> Result:
    return run("run", *options, "--", "sh", "-c", script, cwd=workspace, check=check, env=env)


def test_a_command_stands_between_two_checkpoints(workspace: Path) -> None:
    first = snapshot(workspace)
    done = shell(workspace, CHANGE, "-m", "an upgrade")
    after, before = records(workspace)
    assert [after["message"], before["message"]] == ["after: an upgrade", "before: an upgrade"]
    assert (before["step"], before["good"], after["parent"], after["head"]) == (1, False, before["id"], True)
    assert after["counts"] == {"added": 1, "changed": 1, "removed": 1}
    said = [line.split()[0] for line in done.stderr.splitlines()]
    assert said == ["workspace", "before:", "note:", "after:", "good:"]
    run("verify", cwd=workspace, check=0)
    run("rollback", "1", cwd=workspace, check=0)
    assert difference(first, snapshot(workspace)) == []


def test_a_tree_that_is_unchanged_makes_no_checkpoint(workspace: Path) -> None:
    shell(workspace, "true")
    assert messages(workspace) == ["before: sh"]
    said = shell(workspace, "exit 3", check=3).stderr
    assert re.findall(r"^(before|after): unchanged step=1 ", said, re.MULTILINE) == ["before", "after"]
    shell(workspace, CHANGE, check=0)
    assert messages(workspace) == ["after: sh", "before: sh"]
    shell(workspace, "echo >> README; exit 3", "-m", "", check=3)
    assert messages(workspace) == ["after (exit 3)", "after: sh", "before: sh"]


def test_the_message_names_the_program_and_no_argument_which_may_be_a_secret(workspace: Path) -> None:
    odd = workspace / os.fsdecode(b"caf\xe9")
    odd.write_text("#!/bin/sh\nexit 1\n")
    odd.chmod(0o755)
    run("run", "--", os.fsencode(odd), "hunter2", cwd=workspace, check=1)
    run("run", "--", "sh", "-c", "echo hunter2 >> README", cwd=workspace, check=0)
    assert messages(workspace) == ["after: sh", r"before: caf\xe9"]


def test_the_command_has_the_streams_and_casnap_speaks_on_stderr(workspace: Path) -> None:
    for options in ([], ["-q"]):
        done = subprocess.run(
            [*CASNAP, "run", *options, "--", "sh", "-c", "cat; echo own >&2"],
            cwd=workspace,
            env=environment(),
            input=b"caf\xe9\0in",
            capture_output=True,
            check=True,
        )
        assert done.stdout == b"caf\xe9\0in"
        said = [line.split()[0] for line in done.stderr.decode().splitlines() if not line.startswith("note:")]
        assert said == (["own"] if options else ["workspace", "before:", "own", "after:", "good:"])


def without_those_of_glibc(mask: re.Match[bytes]) -> bytes:
    """A set of signals but for 32 and 33, which are glibc's own: spawning a process changes them."""
    return b"%016x" % (int(mask[0], 16) & ~(3 << 31))


@pytest.mark.parametrize("ignored", ["", "trap '' HUP INT; "])
def test_environment_descriptors_and_signals_are_as_casnap_found_them(workspace: Path, ignored: str) -> None:
    reading, writing = os.pipe()
    with open(reading, "rb"), open(writing, "wb"):
        for command in (
            ["cat", "/proc/self/environ"],
            ["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"],
            ["readlink", f"/proc/self/fd/{writing}"],
            ["pwd"],
        ):
            seen = []
            for through in ([], [*CASNAP, "-q", "run", "--"]):
                words = ["sh", "-c", f'{ignored}exec "$@"', "sh", *through, *command]
                extra = {"ODD": os.fsdecode(b"\xff\n"), "": ""}
                variables = environment({key: value for key, value in extra.items() if key})
                done = subprocess.run(
                    words, cwd=workspace, env=variables, pass_fds=[writing], stdout=subprocess.PIPE, check=True
                )
                seen.append(re.sub(rb"(?<=Sig[BI][lg][kn]:\t)[0-9a-f]{16}", without_those_of_glibc, done.stdout))
            assert seen[0] == seen[1] != b""


def test_the_command_runs_in_the_current_directory_also_with_w(workspace: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert run("run", "-w", workspace, "--", "pwd", cwd=elsewhere, check=0).stdout == f"{elsewhere}\n"
    assert run("run", "--", "pwd", cwd=workspace / "src", check=0).stdout == f"{workspace / 'src'}\n"
    assert {record["workspace"]["path"] for record in records(workspace)} == {str(workspace)}


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (["sh", "-c", "exit 0"], 0),
        (["sh", "-c", "exit 3"], 3),
        (["sh", "-c", "exit 255"], 255),
        (["sh", "-c", "kill -TERM $$"], 143),
        (["sh", "-c", "kill -KILL $$"], 137),
        (["sh", "-c", "kill -PIPE $$"], 141),
        (["no-such-command"], 127),
        (["./no/such"], 127),
        ([""], 127),
        (["./README"], 126),
        (["./src"], 126),
        (["README/x"], 126),
        (["./text"], 126),
    ],
)
def test_the_exit_status_is_what_a_shell_would_say(workspace: Path, command: list[str], status: int) -> None:
    (workspace / "text").write_text("neither a program nor a script\n")
    (workspace / "text").chmod(0o755)
    result = run("run", "--", *command, cwd=workspace, check=status)
    started = status not in (126, 127)
    errors = [line for line in result.stderr.splitlines() if line.startswith(("error:", "hint:"))]
    assert len(errors) == (0 if started else 1)
    assert ("\nafter: " in result.stderr) is started
    assert [record["good"] for record in records(workspace)] == [status == 0]
    if not started:
        assert errors[0].startswith(f"error: cannot run {command[0] or repr('')}: ")


def test_a_command_that_cannot_be_run_changes_nothing_with_rollback_either(workspace: Path) -> None:
    result = run("run", "--rollback-on-failure", "--", "no-such-command", cwd=workspace, check=127)
    assert "rollback" not in result.stderr
    assert len(records(workspace, "--safety")) == 1


@pytest.mark.parametrize("trouble", ["locked", "full", "forbidden"])
def test_without_a_checkpoint_before_it_the_command_is_not_run(workspace: Path, home: Path, trouble: str) -> None:
    shell(workspace, "true")
    (workspace / "README").write_text("changed\n")
    id = run("status", "--json", cwd=workspace, check=0).json()["workspace"]["id"]
    with open(home / "store" / "locks" / f"workspace-{id}.lock", "r+b") as lock:
        if trouble == "locked":
            fcntl.flock(lock, fcntl.LOCK_EX)
        env = {"CASNAP_MIN_FREE": "1000000T"} if trouble == "full" else {}
        options = ("--wait", "0") if trouble == "locked" else ("-w", "/") if trouble == "forbidden" else ()
        status = {"locked": 11, "full": 17, "forbidden": 14}[trouble]
        result = shell(workspace, "echo ran | tee marker", *options, check=status, **env)
    assert (result.stdout, result.stderr.count("error: ")) == ("", 1)
    assert not (workspace / "marker").exists()


@pytest.mark.parametrize(("own", "status"), [(0, 10), (5, 5)])
def test_a_checkpoint_that_fails_afterwards_is_said_and_is_the_status_of_a_command_that_succeeded(
    workspace: Path, own: int, status: int
) -> None:
    result = shell(workspace, f'echo done; rm -rf "$CASNAP_STORE"; exit {own}', check=status)
    assert result.stdout == "done\n"
    assert re.findall("^error: .*store: there is none$", result.stderr, re.MULTILINE) != []
    assert "after:" not in result.stderr


@pytest.mark.parametrize(("ending", "status"), [("exit 5", 5), ("kill -INT $$", 130)])
def test_a_failure_is_rolled_back_and_undo_brings_it_again(workspace: Path, ending: str, status: int) -> None:
    before = snapshot(workspace)
    result = shell(workspace, f"{CHANGE}; cp -r . ../failed; {ending}", "--rollback-on-failure", check=status)
    assert difference(before, snapshot(workspace)) == []
    assert messages(workspace) == ["before: sh"]
    (safety,) = [record for record in records(workspace, "--safety") if record["safety"]]
    assert f"\nrollback to step=1 name={records(workspace)[0]['name']} " in result.stderr
    assert f" safety={safety['id'][:12]} " in result.stderr
    run("undo", cwd=workspace, check=0)
    assert (workspace / "README").read_text() == "read me\nmore\n"
    assert sorted(os.listdir(workspace)) == sorted(os.listdir(workspace.parent / "failed")) == ["README", "new", "src"]
    assert os.listdir(workspace / "src") == []
    run("undo", cwd=workspace, check=0)
    assert difference(before, snapshot(workspace)) == []


def test_a_failure_that_changed_nothing_is_rolled_back_to_no_effect(workspace: Path) -> None:
    assert "safety=none +0 ~0 -0" in shell(workspace, "exit 1", "--rollback-on-failure", check=1).stderr
    assert len(records(workspace, "--safety")) == 1


def test_a_success_is_not_rolled_back(workspace: Path) -> None:
    shell(workspace, CHANGE, "--rollback-on-failure")
    assert (workspace / "new").exists()
    assert [record["good"] for record in records(workspace)] == [True, False]


def test_a_workspace_that_the_command_deleted_comes_back(workspace: Path) -> None:
    before = snapshot(workspace)
    shell(workspace, f"rm -rf {workspace}; exit 1", "--rollback-on-failure", check=1)
    assert difference(before, snapshot(workspace)) == []


def test_a_cleanup_after_each_checkpoint_does_not_take_what_the_rollback_goes_back_to(workspace: Path) -> None:
    run("init", cwd=workspace, check=0)
    for key, value in (("retention.auto", "true"), ("retention.keep", "1")):
        run("config", "set", key, value, cwd=workspace, check=0)
    before = snapshot(workspace)
    for _ in range(3):
        shell(workspace, f"{CHANGE}; exit 1", "--rollback-on-failure", check=1)
        assert difference(before, snapshot(workspace)) == []


def test_a_rollback_that_fails_is_said_and_the_checkpoint_after_is_made(workspace: Path) -> None:
    make_repository(workspace)
    script = "git commit -q --allow-empty -m more && touch .git/index.lock; exit 5"
    result = shell(workspace, script, "--rollback-on-failure", check=5, GIT_AUTHOR_NAME="a", GIT_COMMITTER_NAME="a",
                   GIT_AUTHOR_EMAIL="a@b", GIT_COMMITTER_EMAIL="a@b")  # fmt: skip
    assert result.stderr.count("\nerror: ") == 1
    assert "git" in result.stderr
    assert messages(workspace) == ["after (exit 5): sh", "before: sh"]
    (workspace / ".git" / "index.lock").unlink()
    run("rollback", "1", cwd=workspace, check=0)
    assert git(workspace, "rev-list", "--count", "HEAD").strip() == "2"


def test_commits_that_go_back_are_said_on_stderr(workspace: Path) -> None:
    make_repository(workspace)
    script = "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m more; exit 5"
    result = shell(workspace, script, "--rollback-on-failure", check=5)
    assert (result.stdout, "git .git: 1 commit and " in result.stderr) == ("", True)


def test_what_a_successful_command_leaves_is_good(workspace: Path, call: Call) -> None:
    shell(workspace, "echo 1 >> README")
    shell(workspace, "echo 2 >> README; exit 2", check=2)
    run("show", "@good", "--json", cwd=workspace, check=0)
    assert [(record["step"], record["good"]) for record in records(workspace)] == [(3, False), (2, True), (1, False)]
    assert call("show", "@good", "--json", cwd=workspace, check=0).json()["checkpoint"]["step"] == 2
    assert "good: step=3 " in shell(workspace, "true").stderr  # it has changed nothing: what is there is good
    seq = call("log", "--json", cwd=workspace, check=0).json()["operations"][0]["seq"]
    assert "good: step=3 " in shell(workspace, "true").stderr
    top = call("log", "--json", cwd=workspace, check=0).json()["operations"][0]
    assert (top["seq"], top["operation"], top["facts"]["good"]) == (seq, "good", True)
    assert top["checkpoints"] == [records(workspace)[0]["id"]]
    assert f"found good {top['checkpoints'][0][:12]}" in call("log", cwd=workspace, check=0).stdout
    rows = call("list", cwd=workspace, check=0).stdout.splitlines()[1:]
    assert [row.split()[0] for row in rows] == ["*+", "+", "1"]
    assert re.search(r"^is +head, good, automatic$", call("show", cwd=workspace, check=0).stdout, re.MULTILINE)
    graph = call("log", "--graph", cwd=workspace, check=0).stdout.splitlines()
    assert [re.findall(r"\((?:head|good)[^)]*\)", line) for line in graph if "step=" in line] == [
        ["(head, good)"],
        ["(good)"],
        [],
    ]


def test_the_newest_good_one_outlives_deletion_the_catalog_and_an_expunge(
    workspace: Path, home: Path, call: Call
) -> None:
    def good() -> int:
        step: int = call("show", "@good", "--json", cwd=workspace, check=0).json()["checkpoint"]["step"]
        return step

    (workspace / "secret").write_text("hunter2\n")
    for number in range(3):
        shell(workspace, f"echo {number} >> README")
    assert good() == 4
    call("delete", "@good", cwd=workspace, check=0)
    assert good() == 3
    remove_catalogs(home / "store")
    assert good() == 3
    call("expunge", "secret", "--yes", cwd=workspace, check=0)
    assert good() == 3
    call("undelete", "4", cwd=workspace, check=0)
    assert good() == 4
    call("rollback", "@good~1", cwd=workspace, check=0)
    assert (workspace / "README").read_text() == "read me\n0\n1\n"


def test_a_mark_whose_line_is_lost_is_brought_back_from_the_catalog(
    workspace: Path, home: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell(workspace, "echo 1 >> README")
    monkeypatch.setattr("casnap.store.follower.LONG_TAIL", 0)  # so that the catalog sees it with the next line
    call("pin", "1", cwd=workspace, check=0)
    (log,) = (home / "store" / "oplog").glob("*.jsonl")
    lines = log.read_bytes().splitlines(keepends=True)
    (at,) = [number for number, line in enumerate(lines) if b'"op":"good"' in line]
    lines[at] = lines[at][:10] + b"\xff" * (len(lines[at]) - 20) + lines[at][-10:]
    log.write_bytes(b"".join(lines))
    call("check", cwd=workspace, check=15)
    call("check", "--repair", cwd=workspace, check=0)
    assert call("show", "@good", "--json", cwd=workspace, check=0).json()["checkpoint"]["step"] == 2


def test_the_command_may_use_casnap_itself(workspace: Path) -> None:
    inner = f"echo 1 >> README; {' '.join(CASNAP)} checkpoint inner >&2; echo 2 >> README; {' '.join(CASNAP)} undo"
    result = shell(workspace, inner, "--wait", "0", check=13)  # there is nothing to undo yet
    assert "error: " in result.stderr
    assert [record["name"] for record in records(workspace)][1] == "inner"
    assert len(records(workspace)) == 3


def test_what_a_rule_left_out_counts_with_strict_and_only_where_the_command_succeeded(workspace: Path) -> None:
    (workspace / ".casnapignore").write_text("left-out\n")
    (workspace / "left-out").write_text("\n")
    shell(workspace, "true", check=0)
    shell(workspace, "true", "--strict", check=3)
    shell(workspace, "rm left-out", "--strict", check=3)
    shell(workspace, "touch left-out", "--strict", check=3)
    shell(workspace, "exit 5", "--strict", check=5)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "no command follows --"),
        (("--",), "no command follows --"),
        (("true",), "hint: write: casnap run -- true\n"),
        (("-m", "x", "touch", "mark er", "--", "true"), "hint: write: casnap run -- touch 'mark er'\n"),
        (("touch", "--reference", "x"), "the command and its options follow --"),
        (("--json", "--", "touch", "marker"), "run has no JSON"),
        (("--format", "json", "--", "touch", "marker"), "run has no JSON"),
        (("-m", os.fsdecode(b"\xff"), "--", "touch", "marker"), "bad message: it is not UTF-8 text"),
        (("-w", ".", "-w", "src", "--", "touch", "marker"), "-w was given twice"),
    ],
)
def test_a_wrong_command_line_runs_nothing_and_registers_nothing(
    workspace: Path, words: tuple[str, ...], message: str, home: Path
) -> None:
    result = run("run", *words, cwd=workspace, check=2)
    assert message in result.stderr
    assert not (workspace / "marker").exists()
    assert not (home / "store").exists()


WITH_GRACE = """
import sys
from casnap.cli import child, main
child.GRACE = float(sys.argv.pop(1))
main()
"""


class Running:
    """``casnap run`` of a shell script that says ``ready`` when a signal may come, in a process group of its own."""

    def __init__(self, workspace: Path, script: str, *options: str, grace: float) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", WITH_GRACE, str(grace), "run", *options, "--", "sh", "-c", script],
            cwd=workspace,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n", self.process.stderr and self.process.stderr.read()

    def end(self) -> tuple[int, str]:
        """The exit status and what was said on stderr."""
        _, said = self.process.communicate(timeout=120)
        return self.process.returncode, said


WAITING = "echo ready; while :; do sleep 0.02; done"
HEEDING = """
import signal, sys
signals = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
print("ready", flush=True)
signal.sigwait(signals)
heard = 1
while signal.sigtimedwait(signals, 0.3):
    heard += 1
with open("heard", "w") as file:
    file.write(str(heard))
sys.exit(7)
"""
"""Counts how often it hears of a signal."""

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2]


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("heeded", [True, False])
def test_a_signal_ends_the_command_and_not_casnap(workspace: Path, number: signal.Signals, heeded: bool) -> None:
    script = f"exec {shlex.join([sys.executable, '-c', HEEDING])}" if heeded else WAITING
    running = Running(
        workspace, f"echo 1 >> README; {script}", grace=60
    )  # it has the signal by itself, and ends before it would be passed on
    os.killpg(running.process.pid, number)
    status = 7 if heeded else 128 + number
    assert running.end()[0] == status
    assert messages(workspace) == [f"after (exit {status}): sh", "before: sh"]
    assert (workspace / "README").read_text() == "read me\n1\n"
    if heeded:
        assert (workspace / "heard").read_text() == "1"


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_to_casnap_alone_is_passed_on(workspace: Path, number: signal.Signals) -> None:
    running = Running(workspace, f"echo 1 >> README; {WAITING}", "--rollback-on-failure", grace=0.1)
    os.kill(running.process.pid, number)
    status, said = running.end()
    assert status == 128 + number
    assert "\nrollback to step=1 " in said
    assert (workspace / "README").read_text() == "read me\n"


def test_a_signal_that_the_command_sends_to_casnap_does_not_come_back(workspace: Path) -> None:
    shell(workspace, "kill -TERM $PPID; sleep 1; echo 1 >> README")
    assert messages(workspace) == ["after: sh", "before: sh"]


def test_ctrl_c_at_a_terminal_reaches_the_command_once(workspace: Path) -> None:
    import pty

    pid, fd = pty.fork()
    if pid == 0:
        script = "trap 'echo heard >> heard' INT; echo rea''dy; while [ ! -e stop ]; do sleep 0.02; done; exit 7"
        os.chdir(workspace)
        os.execve(CASNAP[0], [*CASNAP, "run", "--", "sh", "-c", script], environment())
    said = b""
    while b"ready" not in said:
        said += os.read(fd, 4096)
    os.write(fd, b"\x03")
    heard = workspace / "heard"
    while not heard.exists():
        assert os.waitpid(pid, os.WNOHANG) == (0, 0)
    subprocess.run(["sleep", "0.8"], check=True)  # longer than casnap waits before it passes a signal on
    (workspace / "stop").touch()
    while True:
        try:
            if not os.read(fd, 4096):
                break
        except OSError:
            break
    os.close(fd)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert heard.read_text() == "heard\n"
    assert messages(workspace) == ["after (exit 7): sh", "before: sh"]


INTERRUPTED_IN_COMMIT = """
import os, signal, sys
from casnap.cli import main
from casnap.store.oplog import Oplog
append, which, number = Oplog.append, int(sys.argv[1]), int(sys.argv[2])
made = []
def interrupted(self, line):
    if b'"op":"checkpoint"' in line:
        made.append(line)
        if len(made) == which:
            os.kill(os.getpid(), number)
    return append(self, line)
Oplog.append = interrupted
del sys.argv[1:3]
main()
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("which", [1, 2])
def test_a_signal_before_the_command_keeps_it_from_being_run(
    workspace: Path, which: int, number: signal.Signals, status: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", INTERRUPTED_IN_COMMIT, str(which), str(int(number)),
         "run", "--", "sh", "-c", "echo ran; echo 1 >> README"],
        cwd=workspace,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    if which == 1:
        assert (done.returncode, done.stdout) == (status, "")
        said = [line.split()[0] for line in done.stderr.splitlines()]
        assert said == ["workspace", "before:", "note:", "error:", "hint:"]
        assert messages(workspace) == ["before: sh"]
    else:  # one that comes afterwards changes nothing any more
        assert (done.returncode, done.stdout) == (0, "ran\n")
        assert [record["good"] for record in records(workspace)] == [True, False]


def test_neither_a_file_of_the_store_nor_a_thread_is_left_while_the_command_runs(workspace: Path, home: Path) -> None:
    result = shell(workspace, "readlink /proc/$PPID/fd/* /proc/$$/fd/*; ls /proc/$PPID/task", check=0)
    assert len(re.findall(r"^\d+$", result.stdout, re.MULTILINE)) == 1  # a thread would take signals meant for casnap
    assert str(home) not in result.stdout


def test_an_interruption_that_python_wraps_stops_what_is_done_after_the_command() -> None:
    """Before 3.12 one that comes while a class is made becomes a RuntimeError, but is no failure to be passed over."""

    def step() -> int:
        raise RuntimeError("Error calling __set_name__") from KeyboardInterrupt()

    with pytest.raises(KeyboardInterrupt):
        _attempt(None, step)  # type: ignore[arg-type]
