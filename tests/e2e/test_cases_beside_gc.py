"""Field case 089 and what is like it: everybody goes on working while a gc frees what was just deleted."""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from casnap import CheckpointManager, NotFound
from casnap.fs import placing
from casnap.store import packs
from casnap.store.store import Store
from support import cli
from support.cases import run_here
from support.histories import Pitrrwnd, take_over
from support.oracle import difference, snapshot
from support.stores import noise
from support.upkeep import (
    Trees,
    ended,
    forked,
    lines_of,
    quick_directory,
    require_exact,
    require_tidy,
    start_small,
)

pytestmark = pytest.mark.slow

SECONDS = float(os.environ.get("CASNAP_CASE_SECONDS", "20"))
ROUNDS = int(os.environ.get("CASNAP_CASE_ROUNDS", "4"))
PACK = 40_000


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the store and all else lies."""
    with quick_directory() as directory:
        monkeypatch.setenv("HOME", str(directory))
        monkeypatch.setenv("CASNAP_STORE", str(directory / "store"))
        yield directory


@pytest.fixture
def workspaces(place: Path) -> list[Path]:
    directories = [place / "ws0", place / "ws1"]
    for directory in directories:
        directory.mkdir()
    return directories


@pytest.fixture
def small_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packs that come and go all the time, and commits that take a while to come: time for others to get between."""
    monkeypatch.setattr(packs, "PACK_SIZE", PACK)
    commit = Store.commit

    def commit_later(self: Store, *arguments: Any, **options: Any) -> Any:
        time.sleep(random.random() ** 3 * 0.2)
        return commit(self, *arguments, **options)

    monkeypatch.setattr(Store, "commit", commit_later)


class Recorded:
    """What checkpoints must restore to, told by the process that made them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, id: str, tree: Any) -> None:
        with self.path.open("ab") as file:
            file.write(pickle.dumps((id, tree)))

    def trees(self) -> Trees:
        found: Trees = {}
        with contextlib.suppress(FileNotFoundError, EOFError), self.path.open("rb") as file:
            while True:
                id, tree = pickle.load(file)
                found[id] = tree
        return found


def edit(workspace: Path, rng: random.Random) -> None:
    """Write one of a few contents, which come back all the time, into one of a few files."""
    path = workspace / rng.choice(("a", "b", "d/c", "d/e/f"))
    path.parent.mkdir(parents=True, exist_ok=True)
    seed = rng.randrange(12)
    path.write_bytes(noise(seed, 500 * (seed + 1) ** 2))


def checkpointing(workspace: Path, seed: int, until: float) -> None:
    rng, recorded = random.Random(seed), Recorded(workspace.with_suffix(".trees"))
    with CheckpointManager(workspace) as manager:
        while time.monotonic() < until:
            edit(workspace, rng)
            recorded.add(manager.create().id, snapshot(workspace))


def freeing(workspaces: list[Path], seed: int, until: float) -> None:
    """Delete most of what there is, and gc, again and again."""
    rng = random.Random(seed)
    while time.monotonic() < until:
        for workspace in workspaces:
            with contextlib.suppress(NotFound), CheckpointManager(workspace) as manager:
                listed = manager.list(safety=True)
                old = listed[rng.randrange(4) :]
                if old:
                    manager.delete(*(one.id for one in old if rng.random() < 0.8))
        run_here("gc", check=0)


def all_went_well(children: list[int]) -> None:
    assert [ended(child) for child in children] == [0] * len(children)


def freed_in(store: Path) -> int:
    return sum(len(line.get("freed", ())) for line in lines_of(store) if line["op"] == "gc")


def test_case_089_what_was_just_deleted_keeps_coming_back_beside_a_gc(
    place: Path, workspaces: list[Path], small_packs: None
) -> None:
    for workspace in workspaces:
        run_here("init", "-w", workspace, check=0)
    until = time.monotonic() + SECONDS
    children = [
        forked(lambda workspace=workspace, seed=seed: checkpointing(workspace, seed, until))  # type: ignore[misc]
        for seed, workspace in enumerate(workspaces)
    ]
    children.append(forked(lambda: freeing(workspaces, 89, until)))
    all_went_well(children)
    assert freed_in(place / "store") > SECONDS / 2
    require_all(place, workspaces)


def require_all(place: Path, workspaces: list[Path]) -> None:
    """See that all that is listed is as it was recorded, before and after one more gc."""
    for _ in range(2):
        for workspace in workspaces:
            require_exact(workspace, Recorded(workspace.with_suffix(".trees")).trees(), place / "scratch")
        run_here("check", "--read-data", check=0)
        run_here("gc", check=0)
    require_tidy(place / "store")


def test_case_089_commands_of_their_own_beside_a_gc(place: Path, workspaces: list[Path]) -> None:
    for workspace in workspaces:
        run_here("init", "-w", workspace, check=0)
    until = time.monotonic() + SECONDS

    def commands(workspace: Path, seed: int) -> None:
        rng, recorded = random.Random(seed), Recorded(workspace.with_suffix(".trees"))
        while time.monotonic() < until:
            edit(workspace, rng)
            made = cli.run("checkpoint", "-w", workspace, "--json", check=0).json()
            recorded.add(made["checkpoint"]["id"], snapshot(workspace))

    def free() -> None:
        while time.monotonic() < until:
            for workspace in workspaces:
                cli.run("cleanup", "--keep", "2", "--yes", "-w", workspace, check=0)
            cli.run("gc", check=0)

    children = [
        forked(lambda workspace=workspace, seed=seed: commands(workspace, seed))  # type: ignore[misc]
        for seed, workspace in enumerate(workspaces)
    ]
    children.append(forked(free))
    all_went_well(children)
    assert freed_in(place / "store") > 0
    require_all(place, workspaces)


def rolling_back(workspace: Path, seed: int, until: float) -> None:
    """Edit, checkpoint, roll back to anything that is listed, and undo."""
    rng, recorded = random.Random(seed), Recorded(workspace.with_suffix(".trees"))
    with CheckpointManager(workspace) as manager:
        recorded.add(manager.create().id, snapshot(workspace))
        while time.monotonic() < until:
            edit(workspace, rng)
            if rng.random() < 0.5:
                recorded.add(manager.create().id, snapshot(workspace))
                edit(workspace, rng)
            before, known = snapshot(workspace), recorded.trees()
            try:
                target = rng.choice(manager.list()).id
                report = manager.rollback(target)
            except (NotFound, IndexError):  # it was deleted and freed meanwhile
                assert difference(before, snapshot(workspace)) == []
                continue
            if report.safety is not None:
                recorded.add(report.safety.id, before)
            assert difference(known[target], snapshot(workspace)) == []
            if rng.random() < 0.3:
                there = snapshot(workspace)
                undone = manager.undo()
                if undone.safety is not None:
                    recorded.add(undone.safety.id, there)
                assert difference(before, snapshot(workspace)) == []


def test_rollbacks_and_undos_beside_a_gc_are_exact(place: Path, workspaces: list[Path], small_packs: None) -> None:
    for workspace in workspaces:
        run_here("init", "-w", workspace, check=0)
    until = time.monotonic() + SECONDS
    children = [
        forked(lambda workspace=workspace, seed=seed: rolling_back(workspace, seed, until))  # type: ignore[misc]
        for seed, workspace in enumerate(workspaces)
    ]
    children.append(forked(lambda: freeing(workspaces, 7, until)))
    all_went_well(children)
    ops = [line["op"] for line in lines_of(place / "store")]
    assert ops.count("rollback-end") > SECONDS / 2
    require_all(place, workspaces)


def test_what_others_write_during_a_rollback_beside_a_gc_is_whole(
    place: Path, workspaces: list[Path], small_packs: None
) -> None:
    workspace = workspaces[0]
    run_here("init", "-w", workspace, check=0)
    until = time.monotonic() + SECONDS / 2

    def turning() -> None:
        rng, replace = random.Random(8), placing.replace

        def replace_while_written(source: tuple[int, bytes], target: tuple[int, bytes]) -> None:
            with (workspace / "a").open("ab") as file:
                replace(source, target)
                file.write(noise(rng.randrange(12), 5000))

        placing.replace = replace_while_written
        with CheckpointManager(workspace) as manager:
            while time.monotonic() < until:
                (workspace / "a").write_bytes(noise(rng.randrange(12), 3000))
                manager.create()
                (workspace / "a").write_bytes(noise(rng.randrange(12), 3000))
                with contextlib.suppress(NotFound, IndexError):
                    manager.rollback(rng.choice(manager.list()).id)

    all_went_well([forked(turning), forked(lambda: freeing([workspace], 7, until))])
    assert sum(bool(line.get("late")) for line in lines_of(place / "store")) > SECONDS / 5
    for _ in range(2):
        with CheckpointManager(workspace) as manager:
            for one in manager.list(safety=True):
                manager.restore_to(place / "scratch", one.id)
                shutil.rmtree(place / "scratch")
        run_here("check", "--read-data", check=0)
        run_here("gc", check=0)
    require_tidy(place / "store")


def test_imports_beside_a_gc_are_whole(place: Path, workspaces: list[Path], small_packs: None) -> None:
    until = time.monotonic() + SECONDS / 2
    run_here("init", "-w", workspaces[0], check=0)

    def importing() -> None:
        number = 0
        while time.monotonic() < until:
            number += 1
            project = place / f"project-{number}"
            project.mkdir()
            history, rng = Pitrrwnd(project), random.Random(number % 3)
            for name in ("one", "two", "three"):
                edit(project, rng)
                edit(project, rng)
                history.savepoint(name)
            take_over(project)
            with CheckpointManager(project) as manager:
                for step, one in enumerate(reversed(manager.list()), 1):
                    manager.restore_to(place / "imported", one.id)
                    plain = [snapshot(there, times=False) for there in (history.snapshot(step), place / "imported")]
                    assert {path: record.sha256 for path, record in plain[0].items()} == {
                        path: record.sha256 for path, record in plain[1].items()
                    }
                    shutil.rmtree(place / "imported")
            run_here("forget", "--drop", "-w", project, check=0)

    def collecting() -> None:
        while time.monotonic() < until:
            run_here("gc", check=0)

    all_went_well([forked(importing), forked(collecting), forked(lambda: checkpointing(workspaces[0], 3, until))])
    assert freed_in(place / "store") > 3
    require_all(place, workspaces[:1])


@pytest.mark.parametrize("when", ["between", "beside"])
def test_a_first_checkpoint_that_was_killed_is_resumed_whatever_a_gc_took(
    place: Path, workspaces: list[Path], small_packs: None, when: str
) -> None:
    workspace, rng = workspaces[0], random.Random(7)
    for number in range(40):
        (workspace / f"f{number}").write_bytes(rng.randbytes(500_000))
    tree = snapshot(workspace)
    (workspaces[1] / "f").write_text("f")
    for number in range(ROUNDS):
        store = place / f"store-{number}"
        os.environ["CASNAP_STORE"] = str(store)
        run_here("checkpoint", "-w", workspaces[1], check=0)
        with start_small(PACK * 20, "checkpoint", "-w", workspace) as child:
            while not (store / "packs").exists() or packs_size(store) < (number + 1) * 3_000_000:
                assert child.poll() is None
                time.sleep(0.002)
            child.kill()
        assert packs_size(store) > 3_000_000
        if when == "between":
            run_here("gc", check=0)
            assert packs_size(store) < 10_000
            run_here("checkpoint", "-w", workspace, "whole", check=0)
        else:
            resumed_beside(workspace)
        with CheckpointManager(workspace, store=store) as manager:
            manager.restore_to(place / "scratch", "whole")
        assert difference(tree, snapshot(place / "scratch")) == []
        shutil.rmtree(place / "scratch")
        run_here("check", "--read-data", check=0)
        run_here("gc", check=0)
        require_tidy(store)
        shutil.rmtree(store)


def packs_size(store: Path) -> int:
    return sum(path.stat().st_size for path in (store / "packs").iterdir())


def resumed_beside(workspace: Path) -> None:
    """Checkpoint while one gc after the other runs."""
    stop = time.monotonic() + 60

    def collecting() -> None:
        while time.monotonic() < stop and not (workspace.parent / "stop").exists():
            run_here("gc", check=0)

    child = forked(collecting)
    try:
        run_here("checkpoint", "-w", workspace, "whole", check=0)
    finally:
        (workspace.parent / "stop").touch()
        assert ended(child) == 0
        (workspace.parent / "stop").unlink()


def deleted_packs(pid: int) -> list[str]:
    """The packs that a process has open and that have no name any more."""
    found = []
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(descriptor))
    return [name for name in found if name.endswith(".pack (deleted)")]


@pytest.mark.parametrize("call", ["list", "create", "restore_to"])
def test_who_holds_a_store_open_gives_removed_packs_back_with_the_next_call(
    place: Path, workspaces: list[Path], small_packs: None, call: str
) -> None:
    workspace = workspaces[0]
    acts: dict[str, Callable[[CheckpointManager], object]] = {
        "list": lambda manager: manager.list(),
        "create": lambda manager: manager.create(),
        "restore_to": lambda manager: manager.restore_to(place / "again", "c11"),
    }
    ready, told = os.pipe(), os.pipe()
    with CheckpointManager(workspace) as manager:
        for number in range(12):
            (workspace / "f").write_bytes(noise(number, 15_000))
            manager.create(f"c{number}")

    def holding() -> None:
        with CheckpointManager(workspace) as manager:
            for number in range(12):
                manager.restore_to(place / f"out-{number}", f"c{number}")
            os.write(ready[1], b"1")
            os.read(told[0], 1)
            acts[call](manager)
            os.write(ready[1], b"2")
            os.read(told[0], 1)

    child = forked(holding)
    try:
        assert os.read(ready[0], 1) == b"1"
        run_here("delete", *(f"c{number}" for number in range(10)), "--yes", "-w", workspace, check=0)
        run_here("gc", check=0)
        assert deleted_packs(child)  # it could not know yet
        os.write(told[1], b"1")
        assert os.read(ready[0], 1) == b"2"
        assert deleted_packs(child) == []
    finally:
        os.kill(child, signal.SIGKILL)
        assert ended(child) == -signal.SIGKILL
