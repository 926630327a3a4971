"""SIGKILL at random moments: what is listed restores exactly, and the next command goes on."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.cli import environment, run
from support.oracle import Snapshot, difference, snapshot
from support.trees import make_tree, mutate

pytestmark = pytest.mark.slow

ROUNDS = int(os.environ.get("CASNAP_CRASH_ROUNDS", "6"))
FILES = int(os.environ.get("CASNAP_CRASH_FILES", "500"))

Trees = dict[str, Snapshot]


def kill_after(seconds: float, *args: str | Path) -> bool:
    """Run a command and kill it; whether the kill came in time."""
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "casnap", *map(str, args)],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(seconds)
    child.send_signal(signal.SIGKILL)
    return child.wait() == -signal.SIGKILL


def duration(*args: str | Path) -> float:
    """How long a command takes, in seconds: it bounds the moments at which the next one is killed."""
    started = time.monotonic()
    run(*args, check=0)
    return time.monotonic() - started


def every_listed_checkpoint_restores(workspace: Path, trees: Trees, scratch: Path) -> None:
    """Each checkpoint restores; one whose tree is known restores to exactly that."""
    for record in run("list", "-w", workspace, "--safety", "--format", "json", check=0).json():
        shutil.rmtree(scratch, ignore_errors=True)
        run("restore-to", "-w", workspace, scratch, record["id"], check=0)
        if record["name"] in trees:
            assert difference(trees[record["name"]], snapshot(scratch)) == []


def test_a_killed_checkpoint_leaves_whole_checkpoints_only(tmp_path: Path) -> None:
    workspace, rng = tmp_path / "workspace", random.Random(20)
    make_tree(workspace, rng, files=FILES)
    run("checkpoint", "-w", workspace, "base", check=0)
    trees = {"base": snapshot(workspace)}
    mutate(workspace, rng, FILES // 4)
    longest = duration("checkpoint", "-w", workspace, "timed")
    trees["timed"] = snapshot(workspace)
    killed = 0
    for number in range(ROUNDS):
        mutate(workspace, rng, FILES // 4)
        trees[f"k{number}"] = snapshot(workspace)
        killed += kill_after(rng.uniform(0.05, longest), "checkpoint", "-w", workspace, f"k{number}")
        every_listed_checkpoint_restores(workspace, trees, tmp_path / "scratch")
    assert killed
    run("checkpoint", "-w", workspace, "last", check=0)
    trees["last"] = snapshot(workspace)
    every_listed_checkpoint_restores(workspace, trees, tmp_path / "scratch")


def test_a_killed_rollback_converges(tmp_path: Path) -> None:
    workspace, rng = tmp_path / "workspace", random.Random(21)
    make_tree(workspace, rng, files=FILES)
    run("checkpoint", "-w", workspace, "old", check=0)
    trees = {"old": snapshot(workspace)}
    mutate(workspace, rng, FILES // 2)
    run("checkpoint", "-w", workspace, "new", check=0)
    trees["new"] = snapshot(workspace)
    longest = duration("rollback", "-w", workspace, "old", "--yes")
    killed = 0
    for number in range(ROUNDS):
        target = ("new", "old")[number % 2]
        killed += kill_after(rng.uniform(0.1, longest), "rollback", "-w", workspace, target, "--yes")
        if number % 4 < 2:
            run("recover", "-w", workspace, "--yes", check=0)
            found = snapshot(workspace)
            assert not difference(trees["old"], found) or not difference(trees["new"], found)
        run("rollback", "-w", workspace, target, "--yes", check=0)
        assert difference(trees[target], snapshot(workspace)) == []
        assert run("status", "-w", workspace, "--json", check=0).json()["interrupted"] is None
        if number % 5 == 0:
            every_listed_checkpoint_restores(workspace, trees, tmp_path / "scratch")
    assert killed
    every_listed_checkpoint_restores(workspace, trees, tmp_path / "scratch")
