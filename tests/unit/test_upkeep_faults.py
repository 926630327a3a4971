"""Writes that fail while delete, cleanup and gc run: each command says so or works, and nothing is lost."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from casnap import CheckpointManager
from casnap.store import packs
from support.cases import run_here
from support.oracle import snapshot
from support.stores import noise
from support.upkeep import Trees, require_exact, require_tidy

VERBS: dict[str, list[str]] = {
    "delete": ["delete", "c1", "c4", "--yes"],
    "cleanup": ["cleanup", "--keep", "3", "--yes"],
    "gc": ["gc"],
    "repack": ["gc", "--repack"],
}


@pytest.fixture
def trees(workspace: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Trees:
    """A store of several packs, of which some are dead and some are loose; what its checkpoints hold."""
    monkeypatch.setattr(packs, "PACK_SIZE", 20_000)
    trees = {}
    with CheckpointManager(workspace) as manager:
        for number in range(10):
            (workspace / "f").write_bytes(noise(number, 9000))
            (workspace / f"g{number % 3}").write_bytes(noise((number, "g"), 3000))
            trees[manager.create(f"c{number}").id] = snapshot(workspace)
        manager.delete("c2", "c3", "c5", "c6")
    return trees


def copies(home: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The store as it was made, once more."""
    copy = home / f"store-{number}"
    shutil.copytree(home / "store", copy)
    monkeypatch.setenv("CASNAP_STORE", str(copy))
    return copy


def failing(call: Callable[..., Any], at: int, *, forever: bool) -> tuple[Callable[..., Any], list[int]]:
    """``call``, but that the disk is full when it is called for the time ``at``, or from then on."""
    calls: list[int] = []

    def act(*arguments: Any, **options: Any) -> Any:
        calls.append(len(calls))
        if len(calls) - 1 == at or (forever and len(calls) > at):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return call(*arguments, **options)

    return act, calls


def works_again(workspace: Path, trees: Trees, scratch: Path, store: Path, verb: str) -> None:
    """See that nothing was lost, and that the same command works now."""
    listed = require_exact(workspace, trees, scratch)
    again = run_here(*VERBS[verb], "-w", workspace)
    assert again.status == 0 or (verb == "delete" and "no checkpoint" in again.stderr)
    gone = {"delete": {"c1", "c4"}, "cleanup": {"c0", "c1", "c4"}, "gc": set(), "repack": set()}[verb]
    with CheckpointManager(workspace) as manager:
        names = {str(one.name) for one in manager.list()}
        assert names == {f"c{number}" for number in (0, 1, 4, 7, 8, 9)} - gone
    assert require_exact(workspace, trees, scratch) <= listed
    run_here("gc", check=0)
    require_tidy(store)
    run_here("check", "--read-data", check=0)
    require_exact(workspace, trees, scratch)


@pytest.mark.slow
@pytest.mark.parametrize("forever", [False, True], ids=["once", "from-then-on"])
@pytest.mark.parametrize("call", ["pwrite", "ftruncate", "unlink", "fdatasync"])
@pytest.mark.parametrize("verb", sorted(VERBS))
def test_a_disk_that_refuses_at_any_call_loses_nothing(
    workspace: Path,
    home: Path,
    trees: Trees,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    verb: str,
    call: str,
    forever: bool,
) -> None:
    statuses = []
    for at in range(1000):
        store = copies(home, at, monkeypatch)
        with monkeypatch.context() as patch:
            act, calls = failing(getattr(os, call), at, forever=forever)
            patch.setattr(os, call, act)
            done = run_here(*VERBS[verb], "-w", workspace)
        assert done.status in (0, 17), done.stderr
        assert done.status == 0 or "error: cannot " in done.stderr
        statuses.append(done.status)
        works_again(workspace, trees, tmp_path / "scratch", store, verb)
        shutil.rmtree(store)
        if len(calls) <= at:
            break
    assert statuses[-1] == 0
