"""``casnap du`` as it is typed, and the commands that it prints, pasted into a shell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.cases import flip
from support.cli import CHECKOUT, Result

Call = Callable[..., Result]

ODD = ["node_modules", "with blank ", 'it\'s "odd"', "$HOME", "*", "a?[b]", "back\\slash", "-dash", "größe", "!not"]


def paste(command: str, cwd: Path, tmp_path: Path) -> None:
    """Run what was printed in a shell that knows casnap."""
    launcher = tmp_path / "bin" / "casnap"
    launcher.parent.mkdir(exist_ok=True)
    launcher.write_text(f'#!/bin/sh\nPYTHONPATH="{CHECKOUT}" exec "{sys.executable}" -m casnap "$@"\n')
    launcher.chmod(0o755)
    environment = os.environ | {"PATH": f"{launcher.parent}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", command], cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_printed_commands_leave_just_these_directories_out_and_lose_no_pattern(
    protected: Path, tmp_path: Path, call: Call
) -> None:
    call("config", "set", "exclude", "*.o", cwd=protected, check=0)
    for place, name in enumerate(ODD):
        (protected / "in" / name).mkdir(parents=True)
        (protected / "in" / name / "file").write_bytes(bytes(1000 + place))
    (protected / "in" / "b").mkdir()  # what a careless pattern for "*" or "a?[b]" would take
    (protected / "in" / "axb").mkdir()
    (protected / "in" / "b" / "file").write_bytes(bytes(10))
    (protected / "in" / "axb" / "file").write_bytes(bytes(10))
    call("checkpoint", cwd=protected, check=0)
    document = call("du", "--json", cwd=protected, check=0).json()
    commands = {one["path"]: one["exclude"] for one in document["directories"]}
    text = call("du", cwd=protected, check=0).stdout
    assert all(f"  {command}\n" in text for command in commands.values())
    for name in ODD:
        paste(commands[f"in/{name}"], protected, tmp_path)
    assert call("config", "get", "exclude", cwd=protected).stdout.splitlines()[0] == "*.o"
    call("checkpoint", "after", cwd=protected, check=0)
    left = call("show", "after", "--json", cwd=protected, check=0).json()
    assert {one["path"] for one in left["skipped"]} == {f"in/{name}" for name in ODD}
    assert {one["reason"] for one in left["skipped"]} == {"ignored"}


def test_a_command_names_the_store_and_the_workspace_that_were_named(
    workspace: Path, tmp_path: Path, call: Call
) -> None:
    options = ("--store", tmp_path / "a store", "-w", workspace)
    call("checkpoint", *options, check=0)
    (command,) = [one["exclude"] for one in call("du", *options, "--json", check=0).json()["directories"]]
    assert command == f"casnap --store '{tmp_path}/a store' -w {workspace} config add exclude /src/"
    paste(command, tmp_path, tmp_path)
    assert call("config", "get", "exclude", *options, check=0).stdout == "/src/\n"


def test_a_directory_that_nobody_can_type_has_no_command(protected: Path, call: Call) -> None:
    odd = protected / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    (odd / "file").write_bytes(bytes(5000))
    call("checkpoint", cwd=protected, check=0)
    (first, _) = call("du", "--json", cwd=protected, check=0).json()["directories"]
    assert (first["path"], first["exclude"], first["bytes"]) == ("caf\\xe9", None, 5000)
    assert "(no pattern that can be typed names it)" in call("du", cwd=protected, check=0).stdout


def test_directories_of_a_revision_and_so_many_of_them(history: Path, call: Call) -> None:
    first = call("du", "c1", cwd=history, check=0).stdout
    lines = [line.strip() for line in first.splitlines()]
    assert lines[:2] == ["13 B         1 file  src", "casnap config add exclude /src/"]
    assert re.fullmatch(r"21 B        2 files  in all of step=1 name=c1 id=\w{12}", lines[2])
    assert call("du", "c1", "-n", "0", "--json", cwd=history, check=0).json()["directories"] == []


def test_patterns_of_the_shell_are_stronger_and_that_is_said(
    protected: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "CASNAP_EXCLUDE" not in call("du", cwd=protected, check=0).stderr
    monkeypatch.setenv("CASNAP_EXCLUDE", "*.o")
    assert "note: CASNAP_EXCLUDE is set" in call("du", cwd=protected, check=0).stderr


def test_checkpoints_newest_first_with_safety_ones_marked_and_deleted_ones_below(history: Path, call: Call) -> None:
    (history / "README").write_text("dirty\n")
    call("rollback", cwd=history, check=0)
    call("delete", "c1", cwd=history, check=0)
    lines = call("du", "--by", "checkpoint", cwd=history, check=0).stdout.splitlines()
    assert lines[0].split() == ["STEP", "NAME", "ID", "CREATED", "SIZE", "ALONE"]
    assert [line.split()[:3][-1 if line.startswith("*") else 1] for line in lines[1:4]] == ["(safety)", "c3", "c2"]
    assert re.fullmatch(r"total: 3 checkpoints, [\d.]+ k?B stored", lines[4])
    assert re.fullmatch(r"deleted, not yet freed: 1 checkpoint, [\d.]+ k?B held by nothing else", lines[5])
    document = call("du", "--by", "checkpoint", "--json", cwd=history, check=0).json()
    assert [one["size"] for one in document["checkpoints"]] == [6 + 9, 8 + 9, 8 + 9]
    assert all(0 < one["alone"] < document["stored"] for one in document["checkpoints"])


def test_workspaces_of_the_store_from_anywhere(protected: Path, tmp_path: Path, call: Call) -> None:
    lines = call("du", "--by", "workspace", cwd=tmp_path, check=0).stdout.splitlines()
    assert lines[0].split() == ["ID", "CHECKPOINTS", "STORED", "ALONE", "PATH"]
    assert lines[1].endswith(str(protected))
    assert lines[2].startswith("total: 1 workspace, ")


@pytest.mark.parametrize("by", ["checkpoint", "workspace"])
def test_what_is_about_directories_is_refused_elsewhere(by: str, protected: Path, call: Call) -> None:
    for more in (("c1",), ("-n", "3")):
        told = call("du", "--by", by, *more, cwd=protected, check=2)
        assert "REV and --limit are about directories" in told.stderr


def test_damage_is_named_and_the_exit_status_is_15(protected: Path, home: Path, call: Call) -> None:
    tree = call("show", "--json", cwd=protected, check=0).json()["checkpoint"]["id"]
    (protected / "README").write_text("more\n")
    call("checkpoint", "c2", cwd=protected, check=0)
    flip(home / "store", bytes.fromhex(tree)[:8], -16)
    told = call("du", "--by", "checkpoint", cwd=protected, check=15)
    assert told.stdout.splitlines()[-1].startswith("total: 2 checkpoints")
    assert "problem: checkpoint c1 is not counted in full: cannot read checkpoint" in told.stderr
    assert call("du", "--by", "workspace", "--json", cwd=protected, check=15).json()["problems"] != []
    call("du", cwd=protected, check=0)
    call("du", "c1", cwd=protected, check=15)
