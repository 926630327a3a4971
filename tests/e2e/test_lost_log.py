"""What became of an operation log that was cut or lost is said, not passed over."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.cli import run


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "workspace"
    directory.mkdir()
    for name in ("one", "two"):
        (directory / "f").write_text(name)
        run("checkpoint", "-w", directory, name, check=0)
    return directory


def test_a_catalog_that_is_ahead_of_a_lost_log_is_set_aside_and_that_is_said(workspace: Path, home: Path) -> None:
    shutil.rmtree(home / "store" / "oplog")
    (home / "store" / "oplog").mkdir(mode=0o700)
    assert "set aside" in run("list", "--all").stderr


def test_a_last_line_that_was_cut_is_said_by_readers_and_moved_aside_by_writers(workspace: Path, home: Path) -> None:
    log = next((home / "store" / "oplog").glob("*.jsonl"))
    log.write_bytes(log.read_bytes()[:-50])
    listed = run("list", "-w", workspace, "--json", check=0)
    assert [record["name"] for record in listed.json()["checkpoints"]] == ["one"]
    assert "not whole" in listed.stderr
    made = run("checkpoint", "-w", workspace, "three", check=0)
    assert "moved to" in made.stderr
    assert "not whole" not in run("list", "-w", workspace, check=0).stderr
