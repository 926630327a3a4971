"""What became of a log that was cut or lost, or of a damaged checkpoint, is said, not passed over."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.cli import run
from support.oracle import difference, snapshot


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "workspace"
    directory.mkdir()
    for name in ("one", "two"):
        (directory / "f").write_text(name)
        run("checkpoint", "-w", directory, name, check=0)
    return directory


@pytest.mark.parametrize("emptied", [False, True])
def test_a_store_whose_log_is_gone_is_damaged_and_not_new(workspace: Path, home: Path, emptied: bool) -> None:
    shutil.rmtree(home / "store" / "oplog")
    if emptied:
        (home / "store" / "oplog").mkdir(mode=0o700)
    for args in (("list", "--all"), ("checkpoint", "-w", workspace), ("status",), ("rollback", "-w", workspace)):
        refused = run(*args, check=15)
        assert "its operation log is gone" in refused.stderr
        assert "casnap check" in refused.stderr
    assert len(list((home / "store" / "packs").iterdir())) == 1


def test_packs_without_a_format_file_and_a_log_are_no_new_store(workspace: Path, home: Path) -> None:
    shutil.rmtree(home / "store" / "oplog")
    for path in (*(home / "store").glob("catalog-*"), home / "store" / "casnap-store.json"):
        path.unlink()
    refused = run("checkpoint", "-w", workspace, check=15)
    assert "casnap check" in refused.stderr
    assert not (home / "store" / "oplog").exists()


def test_a_last_line_that_was_cut_is_said_by_readers_and_moved_aside_by_writers(workspace: Path, home: Path) -> None:
    log = next((home / "store" / "oplog").glob("*.jsonl"))
    log.write_bytes(log.read_bytes()[:-50])
    (home / "store" / "cache" / "oplog-synced").unlink()  # it was not forced out, so nothing says that it was
    listed = run("list", "-w", workspace, "--json", check=0)
    assert [record["name"] for record in listed.json()["checkpoints"]] == ["one"]
    assert "not whole" in listed.stderr
    made = run("checkpoint", "-w", workspace, "three", check=0)
    assert "moved to" in made.stderr
    assert "not whole" not in run("list", "-w", workspace, check=0).stderr


@pytest.mark.parametrize("cut", [50, None], ids=["within the line", "before it"])
def test_a_committed_line_that_was_cut_off_is_missed_and_brought_back(
    workspace: Path, home: Path, tmp_path: Path, cut: int | None
) -> None:
    log = next((home / "store" / "oplog").glob("*.jsonl"))
    data = log.read_bytes()
    log.write_bytes(data[:-cut] if cut else data[: data.rindex(b"\n", 0, -1) + 1])
    assert "committed lines are missing" in run("list", "-w", workspace, check=0).stderr
    for words in (["checkpoint", "-w", workspace, "three"], ["gc"], ["delete", "-w", workspace, "one", "--yes"]):
        assert "committed lines are missing" in run(*words, check=15).stderr
    assert "committed lines are missing" in run("check", check=15).stdout
    run("check", "--repair", check=0)
    run("gc", check=0)
    records = run("list", "-w", workspace, "--json", check=0).json()["checkpoints"]
    assert len(records) == 2
    assert records[1]["name"] == "one"
    run("restore-to", "-w", workspace, str(tmp_path / "two"), records[0]["id"], check=0)
    assert difference(snapshot(workspace), snapshot(tmp_path / "two")) == []
    run("checkpoint", "-w", workspace, "three", check=0)


def test_a_damaged_checkpoint_is_marked_where_it_is_shown(workspace: Path, home: Path) -> None:
    id = run("show", "-w", workspace, "two", "--json", check=0).json()["checkpoint"]["id"]
    pack = next(path for path in (home / "store" / "packs").iterdir() if bytes.fromhex(id)[:8] in path.read_bytes())
    data = bytearray(pack.read_bytes())
    data[data.index(bytes.fromhex(id)[:8]) + 30] ^= 0xFF
    pack.write_bytes(data)
    rows = run("list", "-w", workspace, check=0).stdout.splitlines()
    assert [("damaged" in row) for row in rows] == [False, True, False]
    refused = run("rollback", "-w", workspace, "two", check=15)
    assert f"error: checkpoint {id[:12]} is damaged: " in refused.stderr
    assert refused.stderr.count(id) == 1
    shown = run("show", "-w", workspace, "two")
    assert "damaged" in shown.stdout + shown.stderr
    run("rollback", "-w", workspace, "one", check=0)
