"""A terminal and the lack of one: who is asked, where colour and progress appear, and that a pipe gets neither."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import sys
import termios
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from casnap.cli import progress
from casnap.cli.app import VERBS
from casnap.cli.running import run
from support.cli import Result
from support.oracle import snapshot
from support.terminal import plain_environment

Call = Callable[..., Result]

STREAMS = {"stdin": "r", "stdout": "w", "stderr": "w"}
DESTRUCTIVE = [
    ("rollback", "c1"),
    ("undo",),
    ("delete", "c2"),
    ("cleanup", "--keep", "0"),
    ("expunge", "README"),
    ("forget", "--drop"),
]


@dataclass(frozen=True)
class Seen:
    """What a command left: its status, what the terminal showed, and what went into files instead."""

    status: int
    screen: str
    files: dict[str, str]


AtTerminal = Callable[..., Seen]


@pytest.fixture
def at_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AtTerminal]:
    """Run a command in this process with some of its standard streams at a real terminal, the others at files."""
    handler = signal.getsignal(signal.SIGTERM)
    plain_environment(monkeypatch)
    monkeypatch.delenv("CASNAP_NO_INPUT")
    monkeypatch.setenv("TERM", "xterm-256color")

    def at_terminal(*args: str, cwd: Path, typed: str = "", streams: tuple[str, ...] = tuple(STREAMS)) -> Seen:
        master, slave = pty.openpty()
        modes = termios.tcgetattr(slave)
        modes[1] &= ~termios.OPOST
        modes[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, modes)
        os.write(master, typed.encode())
        files = {name: tmp_path / f".{name}" for name in STREAMS if name not in streams}
        with contextlib.ExitStack() as stack, monkeypatch.context() as patch:
            for name, mode in STREAMS.items():
                if name in files:
                    files[name].write_bytes(b"")
                opened = stack.enter_context(
                    open(files.get(name, slave), mode, encoding="utf-8", closefd=name in files)
                )
                patch.setattr(sys, name, opened)
            patch.chdir(cwd)
            status = run(list(args))
        os.set_blocking(master, False)
        screen = b""
        with contextlib.suppress(BlockingIOError):
            while data := os.read(master, 65536):
                screen += data
        os.close(slave)
        os.close(master)
        return Seen(status, screen.decode(), {name: path.read_text("utf-8") for name, path in files.items()})

    yield at_terminal
    signal.signal(signal.SIGTERM, handler)


@pytest.fixture
def rolled(history: Path, call: Call) -> Path:
    """A workspace with something to undo and something to roll back."""
    call("rollback", "c2", cwd=history, check=0)
    (history / "README").write_text("edited\n")
    return history


@pytest.mark.parametrize("variable", ["CI", "CASNAP_NO_INPUT", "CLAUDECODE", "GEMINI_CLI", "CODEX_X", "OPENCODE"])
def test_scripts_and_agents_at_a_terminal_are_not_asked(
    variable: str, rolled: Path, at_terminal: AtTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "1")
    for args in DESTRUCTIVE:
        seen = at_terminal(*args, cwd=rolled)
        assert (seen.status, "[y/N]" in seen.screen) == (0, False), (args, seen.screen)


@pytest.mark.parametrize("typed", ["n\n", "\n", "yesterday\n", "\x04"])
def test_a_person_who_does_not_say_yes_has_everything_left_as_it_was(
    typed: str, rolled: Path, at_terminal: AtTerminal, call: Call
) -> None:
    files, listed = snapshot(rolled), call("list", "--safety", "--json", cwd=rolled, check=0).stdout
    for args in DESTRUCTIVE:
        seen = at_terminal(*args, cwd=rolled, typed=typed)
        assert seen.status == 1, seen.screen
        assert seen.screen.count("[y/N] ") == 1
        assert "nothing was changed" in seen.screen
        assert snapshot(rolled) == files
        assert call("list", "--safety", "--json", cwd=rolled, check=0).stdout == listed


@pytest.mark.parametrize("typed", ["y\n", "YES\n"])
def test_a_person_who_says_yes_gets_it_done(typed: str, rolled: Path, at_terminal: AtTerminal) -> None:
    for args in DESTRUCTIVE:
        seen = at_terminal(*args, cwd=rolled, typed=typed)
        assert (seen.status, seen.screen.count("[y/N] ")) == (0, 1), (args, seen.screen)


@pytest.mark.parametrize("args", [("checkpoint",), ("rollback", "--preview"), ("cleanup", "--dry-run"), ("recover",)])
def test_what_takes_nothing_away_is_done_without_a_question(
    args: tuple[str, ...], rolled: Path, at_terminal: AtTerminal
) -> None:
    seen = at_terminal(*args, cwd=rolled)
    assert (seen.status, "[y/N]" in seen.screen) == (0, False)


def test_only_whoever_sees_the_question_and_can_answer_is_asked(rolled: Path, at_terminal: AtTerminal) -> None:
    for streams in (("stdin", "stdout"), ("stdout", "stderr"), ()):
        seen = at_terminal("rollback", "c1", cwd=rolled, typed="n\n", streams=streams)
        assert (seen.status, "[y/N]" in f"{seen.screen}{seen.files}") == (0, False), seen
    seen = at_terminal("rollback", "c3", "--json", cwd=rolled, typed="n\n", streams=("stdin", "stderr"))
    assert (seen.status, seen.screen.count("[y/N] ")) == (1, 1)
    assert '"code": "declined"' in seen.files["stdout"]


@pytest.mark.parametrize("env", [{}, {"NO_COLOR": ""}, {"NO_COLOR": "1", "CI": "1", "COLUMNS": "10"}])
def test_a_pipe_gets_neither_esc_nor_cr_from_any_verb(
    env: dict[str, str], rolled: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SILENCE", 0.0)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    (rolled / "red\x1b[31m\r").write_text("plain\n")
    done: set[str] = set()
    for args in (
        ("checkpoint", "c4", "-m", "red \x1b[31m\r"),
        (),
        ("list",),
        ("show", "--files"),
        ("status",),
        ("diff", "c1"),
        ("diff", "c1", "--stat"),
        ("diff", "c1", "--name-status"),
        ("verify", "c1"),
        ("manifest", "c1"),
        ("cat", "c1", "README"),
        ("log",),
        ("log", "--graph"),
        ("du",),
        ("du", "--by", "checkpoint"),
        ("bench", "mark"),
        ("workspace",),
        ("config",),
        ("rename", "c4", "c5"),
        ("pin", "c1"),
        ("unpin", "c1"),
        ("rollback", "c1", "--preview"),
        ("rollback", "c1", "-v"),
        ("undo", "-v"),
        ("recover",),
        ("restore-to", str(tmp_path / "out")),
        ("delete", "c3"),
        ("undelete", "3"),
        ("cleanup", "--keep", "1"),
        ("gc",),
        ("expunge", "\x1b*", "--dry-run"),
        ("expunge", "src", "*\r"),
        ("check",),
        ("import", str(tmp_path / "\x1b[31m\r")),
        ("completion", "zsh"),
        ("hook", "--agent", "\x1b[31m\r"),
        ("plugin", "status"),
        ("doctor",),
        ("run", "--", "\x1b[31m\r"),
        ("init",),
        ("forget",),
        ("show", "\x1b[31m\r"),
    ):
        result = call(*args, cwd=rolled)
        assert not {"\x1b", "\r"} & {*result.stdout, *result.stderr}, (args, result)
        done.update(args[:1])
    assert done == set(VERBS)


def test_a_terminal_gets_colour_unless_somebody_said_no(
    rolled: Path, at_terminal: AtTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "\x1b[1m" in at_terminal("list", cwd=rolled).screen
    assert "\x1b" not in at_terminal("list", "--no-color", cwd=rolled).screen
    assert "\x1b" not in at_terminal("list", "--json", cwd=rolled).screen
    piped = at_terminal("list", cwd=rolled, streams=("stdin", "stderr"))
    assert "\x1b" not in piped.screen + piped.files["stdout"]
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            assert "\x1b" not in at_terminal("list", cwd=rolled).screen


def test_progress_is_a_bar_on_the_terminal_of_standard_error_and_nowhere_else(
    rolled: Path, at_terminal: AtTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    shown = at_terminal("checkpoint", "--full", cwd=rolled, streams=("stderr",))
    assert "━" in shown.screen
    assert "\x1b" not in shown.files["stdout"]
    piped = at_terminal("checkpoint", "--full", cwd=rolled, streams=("stdin", "stdout"))
    assert not {"━", "\x1b", "\r"} & {*piped.screen, *piped.files["stderr"]}
    for option in ("--no-color", "--json", "-q"):
        assert not {"━", "\x1b"} & {*at_terminal("checkpoint", "--full", option, cwd=rolled).screen}, option
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            assert not {"━", "\x1b"} & {*at_terminal("checkpoint", "--full", cwd=rolled).screen}


def test_a_person_hears_what_an_agent_asks_and_answers_it(
    home: Path, at_terminal: AtTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = home / "openclaw"
    program.write_text('#!/bin/sh\nprintf "may it? "\nread answer\nprintf "%s" "$answer" >> "$HOME/answers"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}:{os.environ['PATH']}")
    words = ("plugin", "install", "--runtime", "openclaw")
    seen = at_terminal(*words, cwd=home, typed="yes\nno\n")
    assert (seen.status, seen.screen.count("may it? ")) == (0, 2)
    assert (home / "answers").read_text() == "yesno"
    monkeypatch.setenv("CASNAP_NO_INPUT", "1")
    at_terminal(*words, cwd=home, typed="yes\nyes\n")
    assert (home / "answers").read_text() == "yesno"


def test_a_long_command_without_a_terminal_says_a_line_every_ten_seconds(
    rolled: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert progress.SILENCE == 10
    monkeypatch.setattr(progress, "SILENCE", 0.0)
    said = call("checkpoint", "--full", cwd=rolled, check=0).stderr
    assert "reading: " in said
    assert "reading: " not in call("checkpoint", "--full", "-q", cwd=rolled, check=0).stderr
