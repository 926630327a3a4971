"""``casnap bench mark``: a directory is measured, and nothing is left of it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from casnap.engine import mark
from casnap.engine.context import Context
from casnap.model.report import RestoreReport
from support.cases import as_ordinary_user, flip, run_here
from support.cli import Result, environment
from support.oracle import snapshot

Call = Callable[..., Result]

CONTENT = random.Random(1).randbytes(500)
"""The same in the packs as in the file."""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory in which each restored directory has to be loosened before it can be removed."""
    top = tmp_path / "measured"
    deep = top / "a" / "b" / "c"
    deep.mkdir(parents=True)
    (deep / "text").write_bytes(CONTENT)
    (top / "same").write_bytes(CONTENT)
    (top / "link").symlink_to("same")
    for path in (deep, deep.parent, deep.parent.parent):
        path.chmod(0o555)
    return top


def test_a_mark_leaves_neither_the_store_nor_the_directory_nor_a_trace(
    protected: Path, directory: Path, home: Path, call: Call
) -> None:
    files, store = snapshot(directory), snapshot(home / "store")
    result = call("bench", "mark", directory, check=0)
    assert snapshot(directory) == files
    assert (snapshot(home / "store"), os.listdir(home)) == (store, ["store"])
    lines = result.stdout.splitlines()
    assert [line.split("  ")[0] for line in lines[1:5]] == [
        "first checkpoint",
        "checkpoint, nothing changed",
        "restore",
        "check --read-data",
    ]
    assert lines[5].startswith("6 entries, 1.0 kB, stored in ")
    assert result.stderr == f"directory {directory}, temporary store in {home}\n"


def test_what_is_counted_is_what_is_there(directory: Path, home: Path, call: Call) -> None:
    document = call("bench", "mark", "--json", cwd=directory, check=0).json()
    assert document["directory"] == {"path": str(directory)}
    assert document["place"] == {"path": str(home)}
    assert (document["entries"], document["bytes"], document["clean"]) == (6, 1000, True)
    assert [(len(step["runs"]), step["bytes"] > 0) for step in document["steps"]] == [
        (1, True),
        (5, False),
        (1, True),
        (1, True),
    ]
    assert all(sorted(step["runs"])[len(step["runs"]) // 2] == step["seconds"] for step in document["steps"])
    assert 0 < document["stored"] < 5_000
    assert list(home.iterdir()) == []


def test_the_place_is_beside_the_store_or_where_it_is_said(directory: Path, tmp_path: Path, call: Call) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    for store in (disk, disk / "not" / "there"):
        document = call("bench", "mark", directory, "--store", store, "--json", check=0).json()
        assert document["place"] == {"path": str(disk)}
    call("checkpoint", "-w", directory, "--store", disk / "store", check=0)
    document = call("bench", "mark", "-w", directory, "--store", disk / "store", "--json", check=0).json()
    assert document["place"] == {"path": str(disk)}
    assert os.listdir(disk) == ["store"]


def test_a_directory_that_would_hold_the_temporary_store_is_refused(
    directory: Path, home: Path, tmp_path: Path, call: Call
) -> None:
    for refused in (home, home.parent):
        result = call("bench", "mark", refused, "--json", check=14)
        assert result.json()["code"] == "forbidden-path"
    result = call("bench", "mark", directory, "--store", directory / "store", check=14)
    assert result.stderr.splitlines()[-1] == "hint: name a place outside of it with --store DIR"
    assert call("bench", "mark", "/", check=14).stderr.startswith("error: cannot protect /: ")
    assert "absent: No such file or directory" in call("bench", "mark", tmp_path / "absent", check=2).stderr
    assert list(home.iterdir()) == []


def test_what_cannot_be_read_is_named_and_what_was_restored_without_permissions_is_removed() -> None:
    def act(place: Path) -> None:
        (place / "measured" / "closed").mkdir(parents=True)
        (place / "measured" / "closed" / "text").write_text("text\n")
        (place / "measured" / "secret").write_text("secret\n")
        (place / "measured" / "secret").chmod(0)
        (place / "measured" / "closed").chmod(0o555)
        options = ("--store", place / "store")
        result = run_here("bench", "mark", place / "measured", *options, check=3)
        assert result.stderr.splitlines()[-1].startswith("problem: secret: ")
        assert os.listdir(place) == ["measured"]

    run_here("bench", "mark", Path(__file__).parent / "conftest.py", check=2)  # imports what nobody cannot
    as_ordinary_user(act)


def test_damage_is_an_error(directory: Path, home: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    restore = mark.restore_to

    def damaging(context: Context, *rest: Any) -> RestoreReport:
        report = restore(context, *rest)
        flip(Path(context.store.path), CONTENT, 0)
        return report

    monkeypatch.setattr(mark, "restore_to", damaging)
    result = call("bench", "mark", directory, check=15)
    assert result.stderr.splitlines()[-1].startswith("damage: ")
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_mark_that_is_interrupted_takes_its_temporary_store_away(
    directory: Path, home: Path, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    script = f"""
import sys
from casnap.engine import mark
from casnap.cli.running import run
restore = mark.restore_to
def wait(*words):
    report = restore(*words)
    with open({str(pipe)!r}, "w"):  # two checkpoints are committed, and a tree is restored
        pass
    with open({str(pipe)!r}):  # nobody opens the other end: a signal is what ends it
        return report
mark.restore_to = wait
sys.exit(run(["bench", "mark", {str(directory)!r}]))
"""
    running = subprocess.Popen(
        [sys.executable, "-c", script], env=environment(), stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        with pipe.open():
            assert len(list(home.glob("casnap-mark-*/restored/a/b/c/text"))) == 1
        running.send_signal(number)
        stdout, stderr = running.communicate(timeout=60)
    finally:
        running.kill()
    assert (running.returncode, stdout) == (status, "")
    assert stderr.startswith("error: stopped: ")
    assert list(home.iterdir()) == []
