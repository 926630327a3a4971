"""A first checkpoint of a workspace that is like another: what differs a little is written as a difference to it."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from casnap import CheckpointManager
from casnap.engine import siblings
from support.cli import run
from support.oracle import difference, snapshot
from support.stores import chunk, open_store

FILES = 40


def lines(rng: random.Random, count: int = 300) -> str:
    return "".join(f"{rng.getrandbits(64):016x} {rng.getrandbits(64):016x}\n" for _ in range(count))


@pytest.fixture
def original(tmp_path: Path) -> Path:
    rng = random.Random(1)
    path = tmp_path / "original"
    for number in range(FILES):
        file = path / f"directory-{number % 4}" / f"file-{number}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(lines(rng))
    run("checkpoint", "-w", path, check=0)
    return path


def copied(original: Path, name: str, *, edited: int = 20) -> Path:
    """A copy that differs in a line of some files."""
    copy = original.with_name(name)
    shutil.copytree(original, copy)
    for file in sorted(copy.rglob("file-*"))[:edited]:
        file.write_text(f"{name}\n{file.read_text()}")
    return copy


def store_of(workspace: Path) -> Path:
    """The store that a workspace has its checkpoints in."""
    return Path(run("status", "-w", workspace, "--json").json()["store"])


def first_bytes(workspace: Path) -> int:
    """Bytes that the first checkpoint of a workspace adds to the store."""
    run("checkpoint", "-w", workspace, check=0)
    size: int = run("show", "-w", workspace, "--json").json()["checkpoint"]["new_bytes"]
    return size


def test_a_copy_costs_what_differs(original: Path) -> None:
    whole = sum(file.stat().st_size for file in sorted(original.rglob("file-*"))[:20])
    assert first_bytes(copied(original, "copy")) < whole / 20


def test_what_is_not_alike_is_no_sibling(original: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "elsewhere").mkdir(parents=True)
    shutil.copytree(copied(original, "copy") / "directory-0", other / "directory-0")
    whole = sum(file.stat().st_size for file in (other / "directory-0").iterdir())
    assert first_bytes(other) > whole / 4


def test_of_many_copies_each_builds_on_the_newest(original: Path) -> None:
    """So that what stands on one object is counted: a check would tell of more than 64."""
    workspaces = [copied(original, f"copy-{number}", edited=2) for number in range(70)]
    store = Path(workspaces[0].parent / "store-of-many")
    CheckpointManager(original, store=store).create()
    for workspace in workspaces:
        CheckpointManager(workspace, store=store).create()
    report = run("--store", store, "check", "--read-data", "--json").json()
    assert (report["clean"], report["notes"]) == (True, [])
    for workspace in workspaces[::23]:
        there = workspace.with_name(f"{workspace.name}-restored")
        CheckpointManager(workspace, store=store).restore_to(there)
        assert difference(snapshot(workspace), snapshot(there)) == []


@pytest.mark.parametrize("act", ["forgotten", "expunged", "deleted"])
def test_a_copy_outlives_what_it_was_like(original: Path, act: str) -> None:
    copy = copied(original, "copy")
    run("checkpoint", "-w", copy, check=0)
    if act == "forgotten":
        run("forget", "--drop", "-w", original, check=0)
        shutil.rmtree(original)
    elif act == "expunged":
        expunged = chunk((original / "directory-0/file-0").read_bytes())
        run("expunge", "--yes", "-w", original, "directory-0/", check=0)
        assert open_store(store_of(original)).present([expunged]) == set()
    else:
        (original / "directory-0/file-0").write_text("another\n")
        run("checkpoint", "-w", original, check=0)
        run("delete", "1", "-w", original, check=0)
    run("gc", check=0)
    assert run("check", "--read-data").status == 0
    there = copy.with_name("restored")
    run("restore-to", there, "-w", copy, check=0)
    assert difference(snapshot(copy), snapshot(there)) == []


def test_what_is_damaged_in_a_sibling_is_not_built_on(original: Path) -> None:
    copy = copied(original, "copy", edited=FILES)
    (pack,) = (store_of(original) / "packs").iterdir()
    data = bytearray(pack.read_bytes())
    for at in range(1_000, len(data), 3_000):
        data[at] ^= 1
    pack.write_bytes(data)
    run("checkpoint", "-w", copy, check=0)
    there = copy.with_name("restored")
    run("restore-to", there, "-w", copy, check=0)
    assert difference(snapshot(copy), snapshot(there)) == []


def test_only_the_first_checkpoint_asks_and_only_of_what_is_new(
    original: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = copied(original, "copy", edited=3)  # all in one directory
    asked: list[bytes] = []
    sibling_of = siblings.sibling_of

    def watched(*arguments: object) -> object:
        entry = sibling_of(*arguments)  # type: ignore[arg-type]
        assert entry is not None

        def noted(path: bytes) -> object:
            asked.append(path)
            return entry(path)

        return noted

    monkeypatch.setattr(siblings, "sibling_of", watched)
    manager = CheckpointManager(copy, store=store_of(original))
    manager.create()
    edited = {b"directory-0/file-0", b"directory-0/file-12", b"directory-0/file-16"}
    assert {path for path in asked if b"file" in path} == edited
    assert {path for path in asked if b"file" not in path} == {b"", b"directory-0"}
    asked.clear()
    (copy / "directory-1/file-1").write_text("new\n")
    manager.create()
    assert asked == []
