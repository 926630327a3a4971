"""Completion: what is offered where, that asking changes nothing and never fails, and that the shells understand it."""

from __future__ import annotations

import os
import pty
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from casnap import CheckpointManager
from casnap.cli.app import VERBS, program
from casnap.cli.completing import ACTIONS, DIRECTORIES, FILES, REVISIONS
from casnap.cli.grammar import ALIASES
from casnap.cli.running import COMPLETE
from support.cli import CHECKOUT, Result, environment
from support.oracle import snapshot
from support.terminal import Terminal

Call = Callable[..., Result]
Complete = Callable[..., list[str]]

UNKNOWABLE = {
    "NAME",
    "[NAME]",
    "[NEW]",
    "TEXT",
    "JSON",
    "N",
    "TIME",
    "AGE",
    "SECONDS",
    "SYSTEM",
    "N|Nd",
    "PATTERN...",
    "-- COMMAND...",
    None,
}
"""What only the person at the keyboard can know, or what is a choice."""


@pytest.fixture
def complete(call: Call, monkeypatch: pytest.MonkeyPatch) -> Complete:
    """What bash is offered at the end of a line, as ``type value``."""

    def complete(line: str, *, cwd: Path, breaks: str = "\"'@><=;|&(:") -> list[str]:
        with monkeypatch.context() as patch:
            patch.setenv("COMP_WORDS", line)
            patch.setenv("COMP_CWORD", breaks)
            patch.setenv(COMPLETE, "bash_complete")
            result = call(cwd=cwd, check=0)
        assert result.stderr == ""
        return [row.replace("\t", " ") for row in result.stdout.splitlines()]

    return complete


def plain(*words: str) -> list[str]:
    return [f"plain {word}" for word in words]


def test_verbs_are_offered_in_their_order_and_other_names_once_begun(workspace: Path, complete: Complete) -> None:
    assert complete("casnap ", cwd=workspace) == plain(*VERBS)
    assert complete("casnap --json re", cwd=workspace) == plain(
        *(name for name in (*VERBS, *ALIASES) if name.startswith("re"))
    )


@pytest.mark.parametrize("verb", [*VERBS, *ALIASES])
def test_every_option_of_every_verb_is_offered(verb: str, workspace: Path, complete: Complete) -> None:
    command = program.get_command(click.Context(program), verb)
    assert command is not None
    options = [option for option in command.params if isinstance(option, click.Option) and not option.hidden]
    names = {name for option in options for name in option.opts}
    assert set(complete(f"casnap {verb} -", cwd=workspace)) == set(plain("-h", "--help", *names))


@pytest.mark.parametrize("verb", [*VERBS, "restore"])
def test_it_is_known_of_every_parameter_what_it_stands_for(verb: str) -> None:
    command = program.get_command(click.Context(program), verb)
    assert command is not None
    known = REVISIONS | DIRECTORIES | FILES | UNKNOWABLE
    for parameter in command.params:
        told = isinstance(parameter.type, click.Choice) or (isinstance(parameter, click.Option) and parameter.is_flag)
        assert told or verb in ACTIONS or parameter.metavar in known, parameter.metavar


def test_revisions_are_words_that_name_checkpoints(history: Path, call: Call, complete: Complete) -> None:
    call("checkpoint", cwd=history, check=0)
    call("checkpoint", "before:x", cwd=history, check=0)
    call("delete", "c2", cwd=history, check=0)
    assert complete("casnap show ", cwd=history)[:3] == plain("@", "latest", "before:x")
    call("run", "--", "true", cwd=history, check=0)
    everything = plain("@", "latest", "@good", "before:x", "4", "c3", "c1")
    for line in ("show ", "info ", "rollback -s ", "delete ", "diff c9 ", "diff --from ", "verify ", "restore-to out "):
        assert complete(f"casnap {line}", cwd=history) == everything, line
    assert complete("casnap delete c1 ", cwd=history) == everything[:-1]
    assert complete("casnap show c", cwd=history)[1:] == plain("c3", "c1")
    assert complete("casnap show 1", cwd=history) == plain("1")
    assert complete("casnap verify --step ", cwd=history) == plain("5", "4", "3", "1")
    assert complete("casnap undelete ", cwd=history) == plain("c2")
    id = call("show", "c1", "--json", cwd=history, check=0).json()["checkpoint"]["id"]
    assert complete(f"casnap show {id[:6]}", cwd=history) == plain(id[:12])
    assert complete(f"casnap show {id[:20]}", cwd=history) == plain(id[:20])


def test_bash_gets_what_follows_the_place_where_it_breaks_a_word(
    protected: Path, call: Call, complete: Complete
) -> None:
    call("checkpoint", "before:x", cwd=protected, check=0)
    assert complete("casnap show before:", cwd=protected) == plain("x")
    assert complete("casnap show before:", cwd=protected, breaks=" ") == plain("before:x")
    assert complete("casnap rollback --snapshot=be", cwd=protected) == plain("before:x")
    assert complete("casnap list --format=", cwd=protected) == plain("table", "json")


def test_choices_and_actions_are_offered(protected: Path, complete: Complete) -> None:
    assert complete("casnap list --format ", cwd=protected) == plain("table", "json")
    assert complete("casnap completion ", cwd=protected) == plain("bash", "zsh", "fish")
    assert complete("casnap workspace ", cwd=protected) == plain("list", "move", "gone")
    assert complete("casnap workspace move ", cwd=protected) == ["dir ", *plain(str(protected))]
    assert complete("casnap workspace move a ", cwd=protected) == ["dir "]
    assert complete("casnap config ", cwd=protected) == plain("list", "get", "set", "add", "unset", "import")
    assert complete("casnap config get retention.k", cwd=protected) == plain("retention.keep", "retention.keep_named")
    assert complete("casnap config set retention.keep ", cwd=protected) == []
    assert complete("casnap config import ", cwd=protected) == ["file "]


def test_a_workspace_is_a_directory_or_one_that_is_registered(
    protected: Path, tmp_path: Path, call: Call, complete: Complete
) -> None:
    other = tmp_path / "an other"
    other.mkdir()
    call("init", "-w", other, check=0)
    for option in ("-w ", "--workspace ", "-C ", "list -p ", "list --root "):
        assert complete(f"casnap {option}", cwd=tmp_path) == ["dir ", *plain(str(other), str(protected))]
    assert complete(f"casnap -w {tmp_path}/an", cwd=tmp_path) == [f"dir {tmp_path}/an"]
    above = tmp_path.parent
    assert complete(f"casnap -w {above}/", cwd=tmp_path) == [f"dir {above}/", *plain(str(other), str(protected))]
    assert complete("casnap restore-to ", cwd=tmp_path) == ["dir "]
    assert complete("casnap cat c1 ", cwd=protected) == ["file "]


def test_the_store_and_the_workspace_of_the_line_count(
    protected: Path, tmp_path: Path, call: Call, complete: Complete
) -> None:
    for words in (f"-w {protected}", f"-w{protected}", f"--workspace={protected}", f"-qw {protected}"):
        assert complete(f"casnap {words} show c", cwd=tmp_path) == plain("c1"), words
    assert complete(f"casnap show -w '{protected}' c", cwd=tmp_path) == plain("c1")
    call("checkpoint", "elsewhere", "--store", tmp_path / "s", cwd=protected, check=0)
    assert complete(f"casnap --store {tmp_path / 's'} show e", cwd=protected) == plain("elsewhere")


def test_behind_two_dashes_there_are_only_paths(protected: Path, complete: Complete) -> None:
    for line in ("rollback -- ", "diff c1 -- src/", "rollback c1 -- a -- -"):
        assert complete(f"casnap {line}", cwd=protected) == [f"file {line.split(' ')[-1]}"], line
    for line in ("run -- ", "run -w /elsewhere -- make "):
        assert complete(f"casnap {line}", cwd=protected) == ["file "]
    for line in ("list -- ", "-- ", f"rollback -w {protected} -- "):
        assert complete(f"casnap {line}", cwd=protected) == [], line


def test_what_cannot_be_told_is_not_offered_and_no_error(protected: Path, complete: Complete) -> None:
    for line in (
        "casnap nonsense ",
        "casnap nonsense --",
        "casnap list extra ",
        "casnap list -n ",
        "casnap checkpoint -m ",
        "casnap list --nonsense ",
        "casnap show 'nobody",
        "casnap show nobody~",
        "casnap show %",
        "casnap -w /nowhere/at/all show ",
        "casnap --store /nowhere/at/all show ",
        "casnap --wait x show c",
    ):
        assert [row for row in complete(line, cwd=protected) if row not in plain("c1")] == [], line


def test_asking_without_a_store_makes_none(workspace: Path, home: Path, complete: Complete) -> None:
    for line in ("casnap show ", "casnap rollback -s x", "casnap undelete ", "casnap rollback --step "):
        assert complete(line, cwd=workspace) == []
    assert complete("casnap -w ", cwd=workspace) == ["dir "]
    assert list(home.iterdir()) == []


def test_asking_changes_nothing_and_reads_no_object(
    history: Path, home: Path, complete: Complete, monkeypatch: pytest.MonkeyPatch
) -> None:
    def contents() -> dict[bytes, object]:
        return {path: (record.kind, record.sha256) for path, record in snapshot(home).items()}

    def refuse(*_args: object) -> bytes:
        raise AssertionError("an object was read")

    files, store = snapshot(history), contents()
    monkeypatch.setattr("casnap.store.store.Store.read", refuse)
    assert complete("casnap show c", cwd=history) == plain("c3", "c2", "c1")
    assert snapshot(history) == files
    assert contents() == store


def test_a_store_in_trouble_is_not_the_shells_affair(history: Path, home: Path, complete: Complete) -> None:
    (home / "store" / "oplog").rename(home / "store" / "lost")
    assert complete("casnap show ", cwd=history) == []
    assert complete("casnap sho", cwd=history) == plain("show")


@pytest.mark.parametrize("asked", ["tcsh_complete", "bash", "nonsense", "bash_complete"])
def test_a_question_that_no_script_asks_has_an_empty_answer(
    asked: str, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv(COMPLETE, asked)
        result = call(check=0)
    assert (result.stdout, result.stderr) == ("", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_printed_and_needs_no_store(shell: str, home: Path, call: Call) -> None:
    script = call("completion", shell, check=0).stdout
    assert COMPLETE in script
    assert call("completion", shell, "--json", check=0).json()["script"] == script
    assert list(home.iterdir()) == []


class Shell(Terminal):
    """A shell that somebody types into."""

    def __init__(self, words: list[str], *, cwd: Path, env: dict[str, str]) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvpe(words[0], words, env)
        self.said = ""


SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(casnap completion bash)"'),
    "zsh": (["zsh", "-f", "-i"], 'autoload -U compinit && compinit -D -u && eval "$(casnap completion zsh)"'),
    "fish": (["fish", "--no-config", "-i"], "casnap completion fish | source"),
}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_a_verb_an_option_a_name_and_a_workspace(shell: str, tmp_path: Path, home: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    workspace = tmp_path / "a place" / "my project"
    (workspace / "only-file").mkdir(parents=True)
    with CheckpointManager(workspace) as manager:
        manager.create("before:refactor")
    (home / "casnap").write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m casnap "$@"\n')
    (home / "casnap").chmod(0o755)
    words, setup = SHELLS[shell]
    env = environment({"PATH": f"{home}:{os.environ['PATH']}", "TERM": "dumb", "PS1": "", "HISTFILE": ""})
    terminal = Shell(words, cwd=workspace, env=env | {"PYTHONPATH": str(CHECKOUT)})
    terminal.type(f"{setup}; echo rea''dy\n")
    terminal.wait_for("ready")
    for typed, completed in (
        ("casnap restore-", "<casnap><restore-to>"),
        ("casnap list --reve", "<casnap><list><--reverse>"),
        ("casnap show before:re", "<casnap><show><before:refactor>"),
        (f"casnap -w {tmp_path}/a\\ place/my", f"<casnap><-w><{workspace}"),
        (f"casnap -w {tmp_path}/a", f"<casnap><-w><{workspace.parent}"),
        ("casnap diff -- only-", "<casnap><diff><--><only-file"),
    ):
        terminal.said = ""
        terminal.type(f"{typed}\t\x01printf '<%s>' \n")  # control-A: to the beginning of the line
        terminal.wait_for(completed)
    terminal.type("exit\n")
    terminal.finish()
