"""Bad input gets one clear error and its exit status, and changes nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from casnap.cli.errors import Terminated, as_casnap_error
from support.cli import Result, run
from support.oracle import snapshot

Call = Callable[..., Result]


def one_error(result: Result) -> str:
    """The message of a result that says exactly one error and nothing on stdout."""
    errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    return errors[0].removeprefix("error: ")


@pytest.mark.parametrize(
    ("args", "status"),
    [
        (("rollback", "nonsense"), 13),
        (("rollback", "%"), 13),
        (("rollback", "*"), 13),
        (("rollback", "_"), 13),
        (("rollback", "c"), 13),
        (("rollback", "c1~9"), 13),
        (("rollback", "-n", "99"), 13),
        (("rollback", "--step", "99"), 13),
        (("rollback", "--step", "9" * 18), 13),
        (("rollback", "--to", "1999-01-01"), 13),
        (("rollback", ""), 2),
        (("rollback", "--", ""), 2),
        (("rollback", "--", "/etc/passwd"), 2),
        (("rollback", "--", "../other"), 2),
        (("show", "9" * 30), 13),
        (("show", "9" * 5000), 13),
        (("show", b"caf\xe9"), 13),
        (("show", "@~" + "9" * 18), 13),
        (("show", "@~" + "9" * 5000), 13),
        (("delete", "c1", "nonsense"), 13),
        (("undelete", "c1"), 14),
        (("undelete", "nonsense"), 13),
        (("checkpoint", "c1"), 14),
        (("checkpoint", "HEAD"), 2),
        (("checkpoint", "12"), 2),
        (("checkpoint", ""), 2),
        (("checkpoint", "-s", "-f"), 2),
        (("checkpoint", "--name", "../x"), 2),
        (("checkpoint", "a b"), 2),
        (("checkpoint", b"caf\xe9"), 2),
        (("checkpoint", "-m", b"caf\xe9"), 2),
        (("checkpoint", "--metadata", "[1]"), 2),
        (("checkpoint", "--metadata", "{"), 2),
        (("checkpoint", "--metadata", ""), 2),
        (("checkpoint", "--metadata", "null"), 2),
        (("checkpoint", "--metadata", '{"a": NaN}'), 2),
        (("checkpoint", "--metadata", '{"a": 1e999}'), 2),
        (("checkpoint", "--metadata", '{"a": "\\ud800"}'), 2),
        (("checkpoint", "--metadata", "[" * 100_000), 2),
        (("undo",), 13),
        (("restore-to", ""), 2),
        (("restore-to", "."), 14),
    ],
)
def test_bad_input_is_refused_with_its_status(
    history: Path, args: tuple[str | bytes, ...], status: int, call: Call
) -> None:
    before, listed = snapshot(history), call("list", "--safety", "--json", cwd=history).stdout
    one_error(call(*args, cwd=history, check=status))
    assert snapshot(history) == before
    assert call("list", "--safety", "--json", cwd=history).stdout == listed


@pytest.mark.parametrize("verb", ["list", "show", "diff", "rollback", "undo", "verify", "recover", "forget"])
def test_a_verb_that_needs_a_store_says_that_there_is_none(workspace: Path, home: Path, verb: str, call: Call) -> None:
    one_error(call(verb, cwd=workspace, check=10))
    assert not (home / "store").exists()


@pytest.mark.parametrize("verb", ["show", "diff", "rollback", "undo", "verify", "recover", "forget"])
def test_outside_any_workspace_a_verb_says_so(protected: Path, tmp_path: Path, verb: str, call: Call) -> None:
    assert "no workspace here" in one_error(call(verb, cwd=tmp_path, check=13))


@pytest.mark.parametrize("verb", ["list", "status", "show", "rollback"])
def test_an_unregistered_directory_is_not_found_and_the_one_around_it_named(
    protected: Path, verb: str, call: Call
) -> None:
    result = call(verb, "-w", protected / "src", cwd=protected, check=13)
    assert str(protected) in one_error(result)


def test_the_maximum_is_named_when_n_goes_beyond_the_history(history: Path, call: Call) -> None:
    result = call("rollback", "-n", "3", "--json", cwd=history, check=13)
    assert result.json()["details"]["maximum"] == 2
    assert "casnap rollback" in result.json()["hint"]


def test_an_ambiguous_prefix_names_the_candidates(workspace: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("casnap.engine.history.MIN_PREFIX", 1)
    begin: dict[str, list[str]] = {}
    while not any(len(ids) > 1 and first.isalpha() for first, ids in begin.items()):
        found = call("checkpoint", "-q", cwd=workspace, check=0).stdout.strip()
        begin.setdefault(found[0], []).append(found)
    first, ids = next((first, ids) for first, ids in begin.items() if len(ids) > 1 and first.isalpha())
    assert f"ambiguous id {first}: 2 checkpoints" in one_error(call("show", first, cwd=workspace, check=13))
    document = call("show", first, "--json", cwd=workspace, check=13).json()
    assert (document["code"], sorted(document["details"]["candidates"])) == ("ambiguous", sorted(ids))
    assert call("show", ids[0][:12], "--json", cwd=workspace, check=0).json()["checkpoint"]["id"] == ids[0]


def test_a_path_in_place_of_a_revision_is_explained(protected: Path, call: Call) -> None:
    for words in ("rollback", "diff"):
        result = call(words, "README", cwd=protected, check=13)
        assert "no checkpoint 'README'" in one_error(result)
        assert f"hint: casnap {words} -- README\n" in result.stderr


def test_what_follows_the_double_dash_is_a_path_even_when_a_checkpoint_is_called_so(
    protected: Path, call: Call
) -> None:
    (protected / "README").write_text("changed\n")
    assert "no c1" in call("rollback", "--", "c1", cwd=protected, check=13).stderr
    (protected / "c1").write_text("a file of that name")
    call("rollback", "--", "c1", cwd=protected, check=0)
    assert not (protected / "c1").exists()
    assert (protected / "README").read_text() == "changed\n"


@pytest.mark.parametrize("place", ["/", "HOME", "HOME/..", "link to HOME", "file", "missing"])
@pytest.mark.parametrize("verb", ["init", "checkpoint"])
def test_a_forbidden_place_is_refused_and_no_store_made(
    home: Path, tmp_path: Path, place: str, verb: str, call: Call
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link to HOME").symlink_to(home)
    path = place.replace("HOME", str(home)) if place.startswith("HOME") else str(tmp_path / place)
    status = 2 if place in ("file", "missing") else 14
    result = call(verb, "-w", path, check=status)
    one_error(result)
    assert ("--allow-home" in result.stderr) == (place in ("HOME", "link to HOME"))
    assert not (home / "store").exists()


def test_home_is_protected_when_that_is_meant(home: Path, call: Call) -> None:
    call("init", "-w", home, "--allow-home", check=0)
    call("checkpoint", "-w", home, check=0)


def test_a_workspace_inside_the_store_is_refused(protected: Path, home: Path, call: Call) -> None:
    one_error(call("init", "-w", home / "store" / "packs", check=14))


def test_a_bad_request_registers_nothing(workspace: Path, home: Path, call: Call) -> None:
    call("checkpoint", "a b", cwd=workspace, check=2)
    call("checkpoint", "--metadata", "7", cwd=workspace, check=2)
    assert not (home / "store").exists()


def test_a_wrong_variable_is_named(workspace: Path) -> None:
    for name in ("CASNAP_MIN_FREE", "CASNAP_COMPRESSION"):
        assert name in one_error(run("checkpoint", cwd=workspace, env={name: "nonsense"}, check=2))


def test_a_lock_that_is_held_is_named_with_its_holder(protected: Path, home: Path, call: Call) -> None:
    import fcntl

    workspace_id = call("status", "--json", cwd=protected, check=0).json()["workspace"]["id"]
    with open(home / "store" / "locks" / f"workspace-{workspace_id}.lock", "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = call("checkpoint", "--wait", "0", cwd=protected, check=11)
    assert "holds it" in one_error(result)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_store_that_cannot_be_made_is_a_storage_failure(workspace: Path, home: Path, call: Call) -> None:
    home.chmod(0o500)
    try:
        one_error(call("checkpoint", cwd=workspace, check=17))
    finally:
        home.chmod(0o700)


def test_a_store_below_a_file_is_a_storage_failure(workspace: Path, tmp_path: Path, call: Call) -> None:
    (tmp_path / "file").write_text("")
    one_error(call("checkpoint", "--store", tmp_path / "file" / "store", cwd=workspace, check=17))


def test_too_little_free_space_stops_a_checkpoint_and_yes_does_not_help(protected: Path) -> None:
    (protected / "new").write_text("new\n")
    result = run("checkpoint", "--yes", cwd=protected, env={"CASNAP_MIN_FREE": "999999T"}, check=17)
    assert "must stay free" in one_error(result)
    assert (
        run("status", "--json", cwd=protected, env={"CASNAP_MIN_FREE": "999999T"}, check=0).json()["protected"] is False
    )
    run("list", cwd=protected, env={"CASNAP_MIN_FREE": "999999T"}, check=0)
    run("checkpoint", cwd=protected, env={"CASNAP_MIN_FREE": "0"}, check=0)


def test_debug_shows_where_an_error_comes_from(protected: Path, call: Call) -> None:
    result = call("show", "nonsense", "--debug", cwd=protected, check=13)
    assert "Traceback" in result.stderr


def test_an_interruption_while_a_class_is_made_is_an_interruption() -> None:
    """Python before 3.12 wraps what a descriptor raises when it learns its name."""
    wrapped = RuntimeError("Error calling __set_name__")
    wrapped.__cause__ = KeyboardInterrupt()
    assert as_casnap_error(wrapped).exit_status == 130
    wrapped.__cause__ = Terminated()
    assert as_casnap_error(wrapped).exit_status == 143
    assert as_casnap_error(RuntimeError("other")).exit_status == 70
