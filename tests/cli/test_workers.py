"""What is much is shared with a worker: what comes of it is the same, also when that is killed or fails."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from casnap import CheckpointManager
from support.cli import Result, run
from support.oracle import difference, snapshot
from support.shared import KILLED, left_behind, run_shared
from support.trees import make_tree, mutate


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    path = tmp_path / "workspace"
    make_tree(path, random.Random(7), files=120)
    run("checkpoint", "one", "-w", path, check=0)
    return path


@pytest.mark.parametrize("seed", range(6))
def test_a_worker_sees_what_has_changed(workspace: Path, seed: int) -> None:
    mutate(workspace, random.Random(seed), 1 + seed)
    alone = run("status", "--json", "-w", workspace).json()
    shared = run_shared("status", "--json", "-w", workspace)
    assert "a worker" in shared.stderr
    assert shared.json()["changes"] == alone["changes"] != []


@pytest.mark.parametrize("act", ["act", KILLED, "lambda tell: 1 / 0"])
def test_a_look_needs_no_worker(workspace: Path, act: str) -> None:
    assert run_shared("checkpoint", "--if-changed", "-w", workspace, act=act).stdout.startswith("unchanged ")
    for path in sorted(workspace.rglob("*"))[::20]:
        os.utime(path, ns=(1, 1), follow_symlinks=False)
    before = snapshot(workspace)
    assert run_shared("checkpoint", "two", "-w", workspace, act=act).status == 0
    mutate(workspace, random.Random(1), 9)
    run("rollback", "two", "-w", workspace, check=0)
    assert difference(before, snapshot(workspace)) == []


def test_a_worker_writes_a_part_of_a_tree(workspace: Path, tmp_path: Path) -> None:
    done = run_shared("restore-to", "-w", workspace, tmp_path / "there")
    assert (done.status, "a worker" in done.stderr) == (0, True)
    assert difference(snapshot(workspace), snapshot(tmp_path / "there")) == []


@pytest.mark.parametrize("seed", range(8))
def test_a_worker_puts_back_a_part_of_a_workspace(workspace: Path, seed: int) -> None:
    before = snapshot(workspace)
    mutate(workspace, random.Random(seed), 60)
    after = snapshot(workspace)
    done = run_shared("rollback", "one", "-w", workspace)
    assert (done.status, "a worker" in done.stderr) == (0, True)
    assert difference(before, snapshot(workspace)) == []
    assert run_shared("undo", "-w", workspace).status == 0
    assert difference(after, snapshot(workspace)) == []


def test_one_directory_is_shared_too(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    (workspace / "only").mkdir(parents=True)
    for number in range(40):
        (workspace / "only" / f"file-{number}").write_text(f"{number}\n" * number)
    run("checkpoint", "one", "-w", workspace, check=0)
    before = snapshot(workspace)
    subprocess.run(["rm", "-r", workspace / "only"], check=True)
    assert "a worker" in run_shared("rollback", "one", "-w", workspace).stderr
    assert difference(before, snapshot(workspace)) == []


def test_what_is_swapped_in_for_a_directory_is_written_through_by_neither(tmp_path: Path) -> None:
    """A link that comes after the safety checkpoint, where a worker and we are about to write."""
    workspace = tmp_path / "workspace"
    for directory in "abcd":
        (workspace / directory).mkdir(parents=True)
        for number in range(9):
            (workspace / directory / f"f{number}").write_text("one\n")
    run("checkpoint", "one", "-w", workspace, check=0)
    for path in workspace.glob("?/*"):
        path.write_text("another\n")
    (tmp_path / "elsewhere").mkdir()
    swap = (
        "from casnap.workspace.staging import Staging; stage = Staging.stage\n"
        "def swapped(self):\n"
        "    for name in (b'b', b'd'):  # one of ours, and one of the worker's\n"
        "        path = self.directories.root_path + b'/' + name\n"
        "        os.rename(path, path + b'-away'); os.symlink(b'../elsewhere', path)\n"
        "    return stage(self)\n"
        "Staging.stage = swapped"
    )
    done = run_shared("rollback", "one", "-w", workspace, first=swap)
    assert (done.status, "a worker" in done.stderr) == (3, True)
    assert os.listdir(tmp_path / "elsewhere") == []
    left_alone = [line for line in done.stderr.splitlines() if line.startswith("left alone: ")]
    assert [sum(f" {directory}/f" in line for line in left_alone) for directory in "abcd"] == [0, 9, 0, 9]
    assert {path.read_text() for path in workspace.glob("[ac]/*")} == {"one\n"}


@pytest.mark.parametrize("verb", ["restore-to", "rollback"])
def test_a_worker_that_is_killed_while_it_writes_leaves_nothing_half_done(
    workspace: Path, tmp_path: Path, verb: str
) -> None:
    mutate(workspace, random.Random(3), 60)
    before = snapshot(workspace)
    where = tmp_path / "there" if verb == "restore-to" else "one"
    done = run_shared(verb, where, "-w", workspace, act=f"act if hasattr(act, '__code__') else {KILLED}")
    assert done.status == 17
    assert "error: cannot write: the process that made a part of it was killed; nothing was changed" in done.stderr
    assert "hint: run the same command again" in done.stderr
    assert not (tmp_path / "there").exists()
    assert difference(before, snapshot(workspace)) == []
    assert left_behind(Path(os.environ["CASNAP_STORE"])) == []


def _report(result: Result) -> dict[str, Any]:
    """What a check says, but for what is another each time."""
    report = {key: value for key, value in result.json().items() if key != "seconds"}
    del report["totals"]["operations"]  # that it was checked is one
    return report


@pytest.mark.parametrize("act", ["act", KILLED])
@pytest.mark.parametrize("seed", range(8))
def test_a_worker_that_scouts_changes_nothing_of_what_a_check_finds(workspace: Path, seed: int, act: str) -> None:
    mutate(workspace, random.Random(seed), 40)
    run("checkpoint", "two", "-w", workspace, check=0)
    rng = random.Random(seed)
    for pack in sorted(Path(os.environ["CASNAP_STORE"], "packs").iterdir()):
        data = bytearray(pack.read_bytes())
        for _ in range(seed % 4):  # none in some
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        pack.write_bytes(data[: len(data) - (seed == 7) * 300])
    shared = run_shared("check", "--read-data", "--json", act=act)
    alone = run("check", "--read-data", "--json")
    assert "a worker" in shared.stderr
    assert (shared.status, _report(shared)) == (alone.status, _report(alone))
    assert (shared.status == 0) == (seed % 4 == 0)


def test_what_a_worker_finds_damaged_is_named_and_nothing_is_changed(workspace: Path, tmp_path: Path) -> None:
    failing = "lambda tell: (_ for _ in ()).throw(__import__('casnap').Damage('cannot restore a: it is bad'))"
    done = run_shared("restore-to", tmp_path / "there", "-w", workspace, act=failing)
    assert done.status == 15
    assert "error: cannot restore a: it is bad" in done.stderr
    assert not (tmp_path / "there").exists()


def test_ctrl_c_ends_a_worker_too(workspace: Path, tmp_path: Path) -> None:
    slow = "lambda tell: (os.kill(os.getppid(), signal.SIGINT), signal.pause())"
    heeded = "signal.signal(signal.SIGINT, signal.default_int_handler)"  # also where the tests run in the background
    done = run_shared("restore-to", tmp_path / "there", "-w", workspace, act=slow, first=heeded)
    assert done.status == 128 + signal.SIGINT
    assert not (tmp_path / "there").exists()
    assert left_behind(Path(os.environ["CASNAP_STORE"])) == []


def test_the_process_of_somebody_else_is_never_forked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from casnap.fs import workers
    from casnap.workspace import proof, staging

    def fork() -> int:
        raise AssertionError("forked")

    monkeypatch.setattr(os, "fork", fork)
    monkeypatch.setattr(workers, "_is_alone", lambda: True)
    monkeypatch.setattr(proof, "SHARED", 1)
    monkeypatch.setattr(staging, "SHARED", 1)
    make_tree(tmp_path / "workspace", random.Random(7), files=20)
    for _ in range(2):
        manager = CheckpointManager(tmp_path / "workspace", store=tmp_path / "store")
        manager.create()
    manager.restore_to(tmp_path / "there")
    assert difference(snapshot(tmp_path / "workspace"), snapshot(tmp_path / "there")) == []
