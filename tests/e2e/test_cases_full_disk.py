"""Field cases 040 and 041: a store that has filled its disk to the last byte is got out of with delete and gc."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from casnap import CheckpointManager
from support.cli import Result, run
from support.oracle import snapshot
from support.upkeep import Trees, require_exact, require_tidy, stored, strangers

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")]

DISK = 64 << 20
EAGER = {"CASNAP_MIN_FREE": "0"}


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A disk of 64 MiB, which the store will lie on."""
    target = tmp_path / "disk"
    target.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", target], check=False)
    if done.returncode:
        pytest.skip("nothing can be mounted here")
    monkeypatch.setenv("CASNAP_STORE", str(target / "store"))
    yield target
    subprocess.run(["umount", "-l", target], check=True)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "ws"
    directory.mkdir()
    return directory


def fill(disk: Path) -> None:
    """Take every byte of the disk, the last part of a page included."""
    with open(disk / "filler", "ab", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    assert os.statvfs(disk).f_bavail == 0


def used(disk: Path) -> int:
    status = os.statvfs(disk)
    return (status.f_blocks - status.f_bfree) * status.f_frsize


def fill_with_checkpoints(workspace: Path, sizes: list[int]) -> Trees:
    """Checkpoints of so much noise each, one after the other in the same file, with a small one beside it."""
    trees = {}
    with CheckpointManager(workspace) as manager:
        for number, size in enumerate(sizes):
            (workspace / "big").write_bytes(random.Random(number).randbytes(size))
            (workspace / "d").mkdir(exist_ok=True)
            (workspace / "d" / f"small-{number % 5}").write_text(f"{number}\n" * 100)
            trees[manager.create(f"c{number}").id] = snapshot(workspace)
    return trees


def said(result: Result) -> str:
    assert "Traceback" not in result.stderr
    return result.stderr


def quiet(*args: str | Path, workspace: Path) -> Result:
    """Run a command that must work, and see that it warns of nothing."""
    done = run(*args, "-w", workspace, check=0)
    assert "error" not in said(done)
    assert "No space" not in said(done)
    return done


def listed(workspace: Path) -> list[str]:
    return [record["name"] for record in run("list", "-w", workspace, "--format", "json", check=0).json()]


@pytest.mark.parametrize("catalog", ["kept", "removed"])
@pytest.mark.parametrize("form", ["many small", "one record a mebibyte"])
def test_case_041_a_full_disk_is_got_out_of_with_delete_and_gc(
    disk: Path, workspace: Path, tmp_path: Path, form: str, catalog: str
) -> None:
    sizes = [200_000] * 250 if form == "many small" else [1 << 20] * 50
    trees = fill_with_checkpoints(workspace, sizes)
    names = [f"c{number}" for number in reversed(range(len(sizes)))]
    if catalog == "removed":
        for file in (disk / "store").glob("catalog-*"):
            file.unlink()
    fill(disk)
    assert listed(workspace) == names
    quiet("status", workspace=workspace)
    full = used(disk)
    gone = names[1::2]
    quiet("delete", *gone, "--yes", workspace=workspace)
    assert listed(workspace) == names[::2]
    quiet("gc", workspace=workspace)
    assert used(disk) < full - sum(sizes) * 0.4
    (workspace / "new").write_bytes(random.Random("new").randbytes(300_000))
    run("checkpoint", "-w", workspace, "new", check=0, env=EAGER)
    (record,) = [one for one in run("list", "-w", workspace, "--format", "json").json() if one["name"] == "new"]
    trees[record["id"]] = snapshot(workspace)
    assert listed(workspace) == ["new", *names[::2]]
    require_exact(workspace, trees, tmp_path / "scratch")
    run("check", "--read-data", check=0)
    require_tidy(disk / "store")


def without_reserve(disk: Path) -> None:
    (disk / "store" / "reserve").unlink()
    fill(disk)


def test_case_041_where_the_reserve_is_used_up_too_nothing_is_lost_and_that_is_said(
    disk: Path, workspace: Path, tmp_path: Path
) -> None:
    trees = fill_with_checkpoints(workspace, [1 << 20] * 45)
    names = [f"c{number}" for number in reversed(range(45))]
    without_reserve(disk)
    before = stored(disk / "store")
    ids = [record["id"] for record in run("list", "-w", workspace, "--format", "json").json()]
    refused = 0
    while refused < 2:  # the last page of the operation log may have room for a few lines
        args = ["delete", ids[-1], "--yes"] if not refused else ["cleanup", "--keep", "5", "--yes"]
        done = run(*args, "-w", workspace)
        assert done.status in (0, 17)
        if done.status:
            refused += 1
            assert f"error: cannot write {disk}/store/oplog/0000000001.jsonl: No space left on device" in said(done)
        else:
            names.remove(f"c{len(trees) - len(ids)}")
            ids.pop()
        assert listed(workspace) == names
    assert len(names) > 30
    assert stored(disk / "store") == before
    require_exact(workspace, trees, tmp_path / "scratch")
    os.truncate(disk / "filler", os.stat(disk / "filler").st_size - 200_000)
    quiet("cleanup", "--keep", "5", "--yes", workspace=workspace)
    fill(disk)
    assert "No space left on device" in said(run("gc", check=17))
    assert listed(workspace) == names[:5]
    assert stored(disk / "store") == before
    os.truncate(disk / "filler", os.stat(disk / "filler").st_size - (1 << 20) - 400_000)
    quiet("gc", workspace=workspace)
    assert sum(stored(disk / "store").values()) < 6 << 20
    require_exact(workspace, trees, tmp_path / "scratch")
    run("check", "--read-data", check=0)
    require_tidy(disk / "store")


def test_case_040_a_checkpoint_that_fills_the_disk_leaves_nothing_behind_and_works_once_there_is_space(
    disk: Path, workspace: Path, tmp_path: Path
) -> None:
    store = disk / "store"
    trees = fill_with_checkpoints(workspace, [1 << 20] * 10)
    before, size = stored(store), used(disk)
    (workspace / "huge").write_bytes(random.Random("huge").randbytes(DISK - size - 2000))  # and what frames it
    done = run("checkpoint", "-w", workspace, "too-much", "--yes", env=EAGER, check=17)
    assert f"error: cannot write {store}/packs/" in said(done)
    assert "No space left on device" in done.stderr
    assert stored(store) == before
    assert used(disk) <= size + 4096
    assert strangers(store) == []
    assert listed(workspace) == [f"c{number}" for number in reversed(range(10))]
    require_exact(workspace, trees, tmp_path / "scratch")
    require_tidy(store)
    quiet("cleanup", "--keep", "1", "--yes", workspace=workspace)
    quiet("gc", workspace=workspace)
    (workspace / "huge").write_bytes(random.Random("huge").randbytes(50 << 20))
    run("checkpoint", "-w", workspace, "fits", "--yes", env=EAGER, check=0)
    quiet("verify", "fits", workspace=workspace)
    run("check", "--read-data", check=0)


def test_what_a_killed_checkpoint_left_makes_room_on_a_disk_without_any(
    disk: Path, workspace: Path, tmp_path: Path
) -> None:
    store = disk / "store"
    trees = fill_with_checkpoints(workspace, [1 << 20] * 40)
    (pack,) = (store / "packs").iterdir()
    with pack.open("ab") as file:  # whole records or not is no matter: no line tells of them
        file.write(random.Random("tail").randbytes(8 << 20))
    quiet("delete", *(f"c{number}" for number in range(1, 40, 2)), "--yes", workspace=workspace)
    without_reserve(disk)
    done = quiet("gc", workspace=workspace)
    assert "note" not in done.stderr
    assert sum(stored(store).values()) < 21 << 20
    assert len(require_exact(workspace, trees, tmp_path / "scratch")) == 20
    require_tidy(store)
