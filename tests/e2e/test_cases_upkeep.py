"""Field cases of upkeep: how small a store becomes, and what happens to those who work beside a gc."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from casnap import CheckpointManager
from support.cli import run
from support.oracle import snapshot
from support.upkeep import Trees, require_exact, require_tidy, size_below

pytestmark = pytest.mark.slow

CHECKPOINTS, KEPT = 300, 100


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "ws"
    directory.mkdir()
    return directory


def text(rng: random.Random, size: int) -> bytes:
    words = b" ".join(rng.choice((b"alpha", b"beta", b"%d" % rng.randrange(10**6))) for _ in range(size // 5))
    return words[:size]


def make_files(workspace: Path, rng: random.Random) -> None:
    """Some files of text and of noise that stay as they are."""
    (workspace / "d" / "e").mkdir(parents=True)
    for number in range(10):
        (workspace / "d" / f"text-{number}").write_bytes(text(rng, rng.randrange(1000, 50_000)))
        (workspace / "d" / "e" / f"noise-{number}").write_bytes(rng.randbytes(rng.randrange(1000, 50_000)))


def change(workspace: Path, rng: random.Random) -> None:
    """Write one to three files anew: 1 KB to 200 KB of text, of noise, or a little of what was there."""
    for _ in range(rng.randint(1, 3)):
        path = workspace / rng.choice(("a", "b", "d/c", "d/e/f", "g"))
        size = int(1000 * 200 ** rng.random())
        match rng.randrange(3):
            case 0:
                path.write_bytes(text(rng, size))
            case 1:
                path.write_bytes(rng.randbytes(size))
            case _:
                with path.open("ab") as file:
                    file.write(b"one more line\n")


def history(workspace: Path, rng: random.Random, count: int) -> Trees:
    trees = {}
    with CheckpointManager(workspace) as manager:
        for _ in range(count):
            change(workspace, rng)
            trees[manager.create().id] = snapshot(workspace)
    return trees


def fresh_store(workspace: Path, survivors: list[str], place: Path) -> Path:
    """A store that never held anything but these checkpoints, oldest first."""
    other = place / "other"
    with CheckpointManager(workspace) as source, CheckpointManager(other, store=place / "fresh") as copy:
        for id in survivors:
            shutil.rmtree(other, ignore_errors=True)
            source.restore_to(other, id)
            copy.create()
    return place / "fresh"


def test_case_085_after_a_gc_a_store_takes_what_one_does_that_never_held_more(
    workspace: Path, tmp_path: Path, home: Path
) -> None:
    rng, store = random.Random(85), home / "store"
    make_files(workspace, rng)
    trees = history(workspace, rng, CHECKPOINTS)
    run("cleanup", "-w", workspace, "--keep", str(KEPT), "--yes", check=0)
    before = sum(size_below(store).values())
    run("gc", check=0)
    listed = run("list", "-w", workspace, "--format", "json", check=0).json()
    assert [record["id"] for record in listed] == [*reversed(trees)][:KEPT]
    assert require_exact(workspace, trees, tmp_path / "scratch") == set(list(trees)[-KEPT:])
    run("check", "--read-data", check=0)
    require_tidy(store)
    small, fresh = size_below(store), size_below(fresh_store(workspace, list(trees)[-KEPT:], tmp_path))
    assert sum(small.values()) <= 1.1 * sum(fresh.values()), (small, fresh)
    assert sum(small.values()) < before / 2
