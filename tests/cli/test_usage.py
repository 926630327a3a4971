"""How a command line is read: verbs, options before and after them, what follows ``--``, and its mistakes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from casnap import __version__
from casnap.cli.app import VERBS
from casnap.cli.grammar import ALIASES
from casnap.cli.running import split_paths, wants_json
from support.cli import Result, run
from support.oracle import snapshot

Call = Callable[..., Result]


@pytest.mark.parametrize("args", [("--version",), ("list", "--version"), ("-q", "--version", "--json")])
def test_the_version_is_one_line(args: tuple[str, ...], call: Call) -> None:
    result = call(*args, check=0)
    assert (result.stdout, result.stderr) == (f"casnap {__version__}\n", "")


@pytest.mark.parametrize("args", [("-h",), ("--help",)])
def test_the_help_names_every_verb_and_alias(args: tuple[str, ...], call: Call) -> None:
    text = call(*args, check=0).stdout
    assert [word for word in (*VERBS, *ALIASES) if word not in text] == []


@pytest.mark.parametrize("verb", [*VERBS, *ALIASES])
def test_every_verb_has_help(verb: str, call: Call) -> None:
    text = call(verb, "-h", check=0).stdout
    assert text.startswith("Usage: casnap ")
    assert "--workspace" in text


def test_help_is_given_in_any_locale_and_whatever_the_environment_holds() -> None:
    run("--help", env={"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "CASNAP_MIN_FREE": "nonsense"}, check=0)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("nonsense",), "bad command 'nonsense': there is no such verb"),
        (("chekpoint",), "did you mean `casnap checkpoint`?"),
        (("list", "--nonsense"), "no such option"),
        (("list", "-n", "many"), "invalid value for '-n'"),
        (("list", "-n", "-1"), "invalid value for '-n'"),
        (("list", "extra"), "unexpected extra argument"),
        (("list", "--format", "xml"), "invalid value for '--format'"),
        (("list", "--wait", "nan"), "bad wait nan"),
        (("restore-to",), "missing argument 'DIR'"),
        (("undelete",), "missing argument 'REV'"),
        (("delete",), "no checkpoint to delete"),
        (("rollback", "c1", "--step", "1"), "REV and --step each name a checkpoint"),
        (("rollback", "-s", "c1", "-n", "1"), "-s and -n each name a checkpoint"),
        (("rollback", "c1", "-s", "c1"), "REV and -s each name a checkpoint"),
        (("rollback", "--to", "2026-11-30", "--step", "1"), "--step and --to each name a checkpoint"),
        (("rollback", "-n", "-1"), "bad -n -1: less than 0"),
        (("rollback", "-n", "one"), "bad -n 'one': not an integer"),
        (("rollback", "--step", "0"), "bad --step 0: less than 1"),
        (("rollback", "--step", "-1"), "bad --step -1: less than 1"),
        (("rollback", "--to", "yesterday"), "cannot read time 'yesterday'"),
        (("rollback", "--step", "1", "--step", "2"), "--step was given twice"),
        (("rollback", "c1", "c2"), "unexpected extra argument"),
        (("rollback", "--"), "no path follows --"),
        (("verify", "c1", "-s", "1"), "REV and --step each name a checkpoint"),
        (("verify", "--step", "c1"), "bad --step 'c1': not an integer"),
        (("diff", "a", "-f", "b"), "the older side was given twice"),
        (("diff", "a", "b", "-t", "c"), "the newer side was given twice"),
        (("diff", "a", "b", "c"), "more than two checkpoints"),
        (("diff", "--stat", "--name-status"), "two formats"),
        (("checkpoint", "a", "-s", "b"), "the name was given twice"),
        (("checkpoint", "-s", "a", "--id", "b"), "was given twice"),
        (("checkpoint", "a", "b"), "unexpected extra argument"),
        (("checkpoint", "--", "file"), "takes no paths after --"),
        (("list", "-w", "/a", "-w", "/b"), "was given twice"),
        (("-w", "/a", "list", "-C", "/b"), "was given twice"),
        (("--", "file"), "paths without a verb"),
        (("list", "-w", ""), "its name is empty"),
        (("list", "--store", ""), "--store is empty"),
        (("bench",), "bad arguments: nothing to do"),
        (("bench", "measure"), "bad arguments: measure"),
        (("bench", "mark", "a", "b"), "bad arguments: mark a b"),
        (("bench", "mark", "a", "-w", "b"), "the directory was given twice, as DIRECTORY and -w"),
        (("bench", "mark", ""), "no directory: its name is empty"),
    ],
)
def test_a_wrong_command_line_is_one_error_and_changes_nothing(
    history: Path, args: tuple[str, ...], message: str, call: Call
) -> None:
    before, listed = snapshot(history), call("list", "--json", cwd=history).stdout
    result = call(*args, cwd=history, check=2)
    assert message in result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stdout == ""
    assert snapshot(history) == before
    assert call("list", "--json", cwd=history).stdout == listed


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["rollback"], (["rollback"], None)),
        (["rollback", "--"], (["rollback"], [])),
        (["rollback", "--", "a", "--", "b"], (["rollback"], ["a", "--", "b"])),
        (["rollback", "c1", "--", "-n"], (["rollback", "c1"], ["-n"])),
        (["--"], ([], [])),
    ],
)
def test_the_first_double_dash_divides_words_from_paths(
    arguments: list[str], expected: tuple[list[str], list[str] | None]
) -> None:
    assert split_paths(arguments) == expected


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["list", "--json"], True),
        (["list", "--format", "json"], True),
        (["list", "--format=json"], True),
        (["list", "--format", "table"], False),
        (["show", "json"], False),
    ],
)
def test_a_wish_for_json_is_seen_in_any_command_line(words: list[str], wanted: bool) -> None:
    assert wants_json(words) is wanted


def test_options_of_every_verb_may_stand_on_either_side(history: Path, tmp_path: Path, call: Call) -> None:
    documents = [
        call("-w", history, "--json", "list", cwd=tmp_path, check=0).stdout,
        call("list", "-w", history, "--json", cwd=tmp_path, check=0).stdout,
        call("-C", history, "list", "--json", cwd=tmp_path, check=0).stdout,
        call("--json", "ls", "--root", history, cwd=tmp_path, check=0).stdout,
        call("--json", "-p", history, "ls", "--workspace", history, cwd=tmp_path, check=0).stdout,
    ]
    assert len(set(documents)) == 1


def test_the_store_may_be_named_on_either_side(workspace: Path, tmp_path: Path, call: Call) -> None:
    call("--store", tmp_path / "s", "checkpoint", cwd=workspace, check=0)
    assert "step" in call("list", "--store", tmp_path / "s", "--json", cwd=workspace, check=0).stdout
    call("list", cwd=workspace, check=10)


@pytest.mark.parametrize(("alias", "verb"), [*ALIASES.items()])
def test_an_alias_is_the_verb(alias: str, verb: str, call: Call) -> None:
    def options(name: str) -> str:
        return call(name, "-h", check=0).stdout.partition("Options:")[2]

    if alias == "restore":
        assert "--target DIR" in options(alias)
        assert "--target DIR" not in options(verb)
    else:
        assert options(alias) == options(verb)


def test_the_same_value_given_twice_is_no_contradiction(workspace: Path, call: Call) -> None:
    assert "name=c1 " in call("checkpoint", "c1", "-s", "c1", "-m", "x", "--desc", "x", cwd=workspace, check=0).stdout


@pytest.mark.parametrize("option", ["-s", "--snapshot", "-i", "--id", "--name"])
def test_a_name_may_be_an_option(workspace: Path, option: str, call: Call) -> None:
    assert "name=mine " in call("checkpoint", option, "mine", cwd=workspace, check=0).stdout


@pytest.mark.parametrize("option", ["-m", "--message", "--desc", "--description", "-l", "--label"])
def test_a_message_goes_by_many_names(workspace: Path, option: str, call: Call) -> None:
    call("checkpoint", option, "what for", cwd=workspace, check=0)
    assert call("show", "--json", cwd=workspace, check=0).json()["checkpoint"]["message"] == "what for"
