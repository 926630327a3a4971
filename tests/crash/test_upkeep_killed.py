"""delete, cleanup and gc that are killed at any moment: nothing is lost, and the next run ends what they began."""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from casnap import CheckpointManager
from casnap.store import packs
from casnap.store.follower import Follower
from casnap.store.space import Space
from support.cases import run_here
from support.oracle import snapshot
from support.stores import noise
from support.upkeep import Trees, ended, forked, quick_directory, require_exact, require_tidy, start_small, stored

pytestmark = pytest.mark.slow

ROUNDS = int(os.environ.get("CASNAP_CASE_ROUNDS", "12"))
PACK = 30_000
DIED = 77


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the store and all else lies."""
    with quick_directory() as directory:
        monkeypatch.setenv("HOME", str(directory))
        monkeypatch.setenv("CASNAP_STORE", str(directory / "store"))
        yield directory


@pytest.fixture
def workspace(place: Path) -> Path:
    directory = place / "ws"
    directory.mkdir()
    return directory


@pytest.fixture
def small_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "PACK_SIZE", PACK)


def history(workspace: Path, count: int) -> tuple[Trees, list[str]]:
    """Checkpoints that share some files and each have some of their own: trees by id, and ids, oldest first."""
    trees: Trees = {}
    with CheckpointManager(workspace) as manager:
        for number in range(count):
            (workspace / f"f{number % 4}").write_bytes(noise(number, 6000))
            (workspace / "text").write_text(f"{number}\n" * 500)
            trees[manager.create(f"c{number}").id] = snapshot(workspace)
    return trees, list(trees)


CALLS = ("pwrite", "ftruncate", "unlink", "fdatasync", "posix_fallocate")


class Deaths:
    """Makes this process die just before or after the call ``at`` of what changes the store."""

    def __init__(self, at: int, *, after: bool) -> None:
        self.at = at
        self.after = after
        self.count = 0
        for name in CALLS:
            setattr(os, name, self.wrapped(getattr(os, name)))
        Follower._write = self.wrapped(Follower._write)  # type: ignore[method-assign]

    def wrapped(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def act(*arguments: Any, **options: Any) -> Any:
            mine = self.count == self.at
            self.count += 1
            if mine and not self.after:
                os._exit(DIED)
            answer = call(*arguments, **options)
            if mine:
                os._exit(DIED)
            return answer

        return act


def tight(store: Path) -> Callable[[Space], tuple[int, int]]:
    """A disk on which there is room for three records besides what the store's packs take now."""
    limit = sum(stored(store).values()) + 20_000

    def free(_space: Space) -> tuple[int, int]:
        return max(0, limit - sum(stored(store).values())) + (64 << 10), 1 << 30

    return free


def died_at(at: int, *, after: bool, room: Callable[[Space], tuple[int, int]] | None, args: list[str]) -> bool:
    """Run a command in a child that dies at this call; whether it came so far."""

    def act() -> None:
        if room is not None:
            Space.free = room  # type: ignore[method-assign]
        Deaths(at, after=after)
        run_here(*args, check=0)

    status = ended(forked(act))
    assert status in (0, DIED)
    return status == DIED


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("verb", ["delete", "cleanup", "gc", "gc on a full disk", "gc --repack"])
def test_case_085_who_dies_at_any_step_of_upkeep_loses_nothing(
    workspace: Path,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    small_packs: None,
    verb: str,
    after: bool,
) -> None:
    trees, ids = history(workspace, 24)
    words = {
        "delete": ["delete", *ids[4:12], "--yes", "-w", str(workspace)],
        "cleanup": ["cleanup", "--keep", "6", "--yes", "-w", str(workspace)],
        "gc --repack": ["gc", "--repack"],
    }.get(verb, ["gc"])
    going = {"delete": set(ids[4:12]), "cleanup": set(ids[:-6])}.get(verb, set())
    if verb.startswith("gc"):
        run_here("delete", *ids[3:9], *ids[10:20:2], "--yes", "-w", workspace, check=0)
    with CheckpointManager(workspace) as manager:
        before = {one.id for one in manager.list()}
    original, steps = place / "store", 0
    for at in range(1000):
        store = place / f"store-{at}"
        shutil.copytree(original, store)
        monkeypatch.setenv("CASNAP_STORE", str(store))
        room = tight(store) if verb == "gc on a full disk" else None
        died = died_at(at, after=after, room=room, args=words)
        left = require_exact(workspace, trees, place / "scratch")
        assert left in (before, before - going)
        if left & going or verb.startswith("gc"):
            run_here(*words, check=0)
        run_here("gc", check=0)
        assert require_exact(workspace, trees, place / "scratch") == before - going
        require_tidy(store)
        run_here("check", "--read-data", check=0)
        assert run_here("gc", check=0).stdout.startswith("0 B freed")
        shutil.rmtree(store)
        if not died:
            break
        steps += 1
    assert steps > (30 if verb.startswith("gc") else 3)


def timed(words: list[str]) -> float:
    """How long a command takes."""
    started = time.monotonic()
    with start_small(PACK, *words) as child:
        said = child.communicate()
    assert child.returncode == 0, said
    return time.monotonic() - started


def killed_after(seconds: float, words: list[str]) -> bool:
    """Start a command and kill it; whether the kill came in time."""
    with start_small(PACK, *words) as child:
        time.sleep(seconds)
        child.kill()
        child.communicate()
    return child.returncode != 0


@pytest.mark.parametrize("verb", ["delete", "cleanup", "gc", "gc --repack"])
def test_case_085_upkeep_that_is_killed_at_any_moment_converges(
    workspace: Path, place: Path, monkeypatch: pytest.MonkeyPatch, small_packs: None, verb: str
) -> None:
    trees, ids = history(workspace, 60)
    words = {
        "delete": ["delete", *ids[1:40:2], "--yes", "-w", str(workspace)],
        "cleanup": ["cleanup", "--keep", "25", "--yes", "-w", str(workspace)],
        "gc --repack": ["gc", "--repack"],
    }.get(verb, ["gc"])
    going = {"delete": set(ids[1:40:2]), "cleanup": set(ids[:-25])}.get(verb, set())
    if verb.startswith("gc"):
        run_here("delete", *ids[1:50:2], *ids[10:20:2], "--yes", "-w", workspace, check=0)
    with CheckpointManager(workspace) as manager:
        before = {one.id for one in manager.list()}
    original, killed, rng = place / "store", 0, random.Random(85)
    longest = 0.0
    for number in range(-1, ROUNDS):
        store = place / f"store-{number}"
        shutil.copytree(original, store)
        monkeypatch.setenv("CASNAP_STORE", str(store))
        if number < 0:
            longest = timed(words)
        else:
            killed += killed_after(longest * (0.25 + 0.75 * (number + rng.random()) / ROUNDS), words)
        left = require_exact(workspace, trees, place / "scratch")
        assert left in (before, before - going)
        if left & going or verb.startswith("gc"):
            run_here(*words, check=0)
        run_here("gc", check=0)
        assert require_exact(workspace, trees, place / "scratch") == before - going
        require_tidy(store)
        run_here("check", "--read-data", check=0)
        shutil.rmtree(store)
    assert killed


def test_case_037_what_killed_first_checkpoints_left_becomes_part_of_one_or_goes(
    place: Path, workspace: Path, small_packs: None
) -> None:
    size = 100 * 400_000
    for number in range(100):
        (workspace / f"f{number}").write_bytes(noise(number, 400_000))
    store = place / "store"
    run_here("init", "-w", workspace, check=0)
    for number in range(20):
        kill_when_written(random.Random(number).randrange(600_000), store, "checkpoint", "-w", workspace)
    assert not newest(workspace)
    live = store / "cache" / f"live.stat.{'cd' * 4}.tmp"
    with live.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # as one who writes it now
        run_here("checkpoint", "-w", workspace, "whole", check=0)
        assert sum(stored(store).values()) <= 1.2 * size
        run_here("gc", check=0)
        assert live.exists()
    run_here("gc", check=0)
    require_tidy(store)
    assert sum(stored(store).values()) <= 1.2 * size
    require_exact(workspace, dict.fromkeys(newest(workspace), snapshot(workspace)), place / "scratch")


def kill_when_written(size: int, store: Path, *args: str | Path) -> None:
    """Run a command until it has added more than ``size`` bytes to packs, and kill it then."""
    before = sum(stored(store).values())
    with start_small(PACK, *args) as child:
        while sum(stored(store).values()) <= before + size:
            assert child.poll() is None, "it ended before it was killed"
            time.sleep(0.0005)
        child.kill()


def newest(workspace: Path) -> list[str]:
    with CheckpointManager(workspace) as manager:
        return [checkpoint.id for checkpoint in manager.list(safety=True)]
