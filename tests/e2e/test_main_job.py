"""The main job on a real tree: checkpoint, break, roll back, prove. The oracle shares no code with casnap."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from support.cli import run
from support.oracle import difference, inodes, snapshot
from support.trees import make_tree, mutate

pytestmark = pytest.mark.slow

BIG = int(os.environ.get("CASNAP_TREE_FILES", "5000"))
"""Files in the big tree; the promise is made for 20,000 (CASNAP_TREE_FILES), which takes minutes."""


def copy_of_a_real_tree(workspace: Path, files: int) -> None:
    """At least ``files`` files of the Python installation (copied more than once where it is small), and odd ones."""
    workspace.mkdir()
    source = sysconfig.get_path("stdlib")
    copies = 0
    while sum(len(names) for _, _, names in os.walk(workspace)) < files:
        ignored = shutil.ignore_patterns("site-packages", "__pycache__")
        shutil.copytree(source, workspace / f"python{copies}", symlinks=True, ignore=ignored)
        copies += 1
    make_tree(workspace / "odd", random.Random(7), files=120)
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org", "-C", str(workspace / "repo")]
    subprocess.run(["git", "init", "-q", str(workspace / "repo")], check=True)
    (workspace / "repo" / "f").write_text("one\n")
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "c"], check=True)
    os.symlink("nowhere", workspace / "dangling")
    os.symlink("loop", workspace / "loop")
    os.link(workspace / "repo" / "f", workspace / "hard")
    os.chmod(workspace / "hard", 0o4711)
    (workspace / os.fsdecode(b"latin\xe9")).write_bytes(b"x")


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A big workspace with a checkpoint named clean, taken by the first test that asks."""
    workspace = tmp_path_factory.mktemp("big") / "workspace"
    copy_of_a_real_tree(workspace, BIG)
    return workspace


@pytest.fixture(scope="module")
def store(big: Path) -> dict[str, str]:
    return {"CASNAP_STORE": str(big.parent / "store"), "HOME": str(big.parent)}


def test_500_random_changes_to_a_real_tree_are_rolled_back_exactly(big: Path, store: dict[str, str]) -> None:
    run("checkpoint", "-w", big, "clean", env=store, check=0)
    before, before_inodes = snapshot(big), inodes(big)
    mutate(big, random.Random(500), 500)
    broken, broken_inodes = snapshot(big), inodes(big)
    assert len(difference(before, broken)) > 100
    untouched = {
        path: state
        for path, state in broken_inodes.items()
        if path in before and before[path].kind != "directory" and state == before_inodes[path]
    }
    stayed = {
        path
        for path in before.keys() & broken.keys()
        if before[path].kind == broken[path].kind == "directory" and before_inodes[path][0] == broken_inodes[path][0]
    }
    run("rollback", "-w", big, "clean", "--yes", env=store, check=0)
    after = inodes(big)
    assert difference(before, snapshot(big)) == []
    assert {path: after[path] for path in untouched} == untouched
    assert {path: after[path][0] for path in stayed} == {path: before_inodes[path][0] for path in stayed}
    run("verify", "-w", big, "--times", env=store, check=0)


def test_a_rollback_is_undone_and_redone_exactly(big: Path, store: dict[str, str]) -> None:
    mutate(big, random.Random(3), 60)
    (big / "never-captured").write_bytes(b"in no checkpoint")
    dirty = snapshot(big)
    run("rollback", "-w", big, "clean", "--yes", env=store, check=0)
    clean = snapshot(big)
    assert b"never-captured" not in clean
    run("undo", "-w", big, "--yes", env=store, check=0)
    assert difference(dirty, snapshot(big)) == []
    run("undo", "-w", big, "--yes", env=store, check=0)
    assert difference(clean, snapshot(big)) == []


def test_a_workspace_that_was_removed_whole_comes_back_from_elsewhere(big: Path, store: dict[str, str]) -> None:
    run("rollback", "-w", big, "clean", "--yes", env=store, check=0)
    before = snapshot(big)
    subprocess.run(["rm", "-rf", str(big)], check=True)
    run("rollback", "-w", big, "--yes", cwd="/", env=store, check=0)
    assert difference(before, snapshot(big)) == []


def bytes_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in (directory / "packs").iterdir())


def test_a_second_workspace_that_shares_most_bytes_adds_little(tmp_path: Path, home: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    rng = random.Random(1)
    first.mkdir()
    for number in range(1000):
        (first / f"{number}.bin").write_bytes(rng.randbytes(10_000))
    shutil.copytree(first, second)
    for number in range(100):
        (second / f"{number}.bin").write_bytes(rng.randbytes(10_000))
    run("checkpoint", "-w", first, check=0)
    alone = bytes_of(home / "store")
    run("checkpoint", "-w", second, check=0)
    assert bytes_of(home / "store") - alone <= 0.12 * alone


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """A workspace with checkpoints c1, c2, c3 of which file ``f`` holds the name."""
    workspace = tmp_path / "three"
    workspace.mkdir()
    for name in ("c1", "c2", "c3"):
        (workspace / "f").write_text(name)
        run("checkpoint", "-w", workspace, name, check=0)
    return workspace


def listed(workspace: Path) -> dict[str, dict[str, object]]:
    records = run("list", "-w", workspace, "--format", "json", check=0).json()
    return {record["name"]: record for record in records}


@pytest.mark.parametrize(
    ("args", "content"),
    [
        (["-n", "1"], "c2"),
        (["-n", "0"], "c3"),
        (["-n", "2"], "c1"),
        (["c3"], "c3"),
        (["--step", "1"], "c1"),
        (["@~2"], "c1"),
        (["latest"], "c3"),
        (["-s", "c2"], "c2"),
        ([], "c3"),
    ],
)
def test_a_revision_says_what_it_says(three: Path, args: list[str], content: str) -> None:
    (three / "f").write_text("dirty")
    run("rollback", "-w", three, *args, "--yes", check=0)
    assert (three / "f").read_text() == content


def test_a_prefix_of_an_id_is_a_revision(three: Path) -> None:
    ids = {record["name"]: str(record["id"]) for record in listed(three).values()}
    length = next(n for n in range(4, 65) if len({i[:n] for i in ids.values()}) == 3 and not ids["c1"][:n].isdigit())
    run("rollback", "-w", three, ids["c1"][:length], "--yes", check=0)
    assert (three / "f").read_text() == "c1"


def test_safety_checkpoints_take_no_step(three: Path) -> None:
    for target in ("c1", "c3", "c2"):
        (three / "f").write_text(f"before {target}")
        run("rollback", "-w", three, target, "--yes", check=0)
    made = run("savepoint", "-w", three, "--label", "next", "--json", check=0).json()
    assert made["checkpoint"]["step"] == 4
    assert made["checkpoint"]["parent"] == listed(three)["c2"]["id"]


def test_a_lost_catalog_is_rebuilt_to_the_same_list(three: Path, home: Path) -> None:
    (three / "f").write_text("dirty")
    run("rollback", "-w", three, "c1", "--yes", check=0)
    run("delete", "-w", three, "c2", check=0)
    run("checkpoint", "-w", three, "c4", "-m", "with a message", "--metadata", '{"k": [1, "ü"]}', check=0)
    before = run("list", "--all", "--safety", "--json", check=0).stdout
    for path in (home / "store").glob("catalog-*"):
        path.unlink()
    assert run("list", "--all", "--safety", "--json", check=0).stdout == before
    run("checkpoint", "-w", three, "c5", check=0)
    assert run("list", "-w", three, "--json", check=0).json()["checkpoints"][0]["step"] == 5


def test_the_snippet_of_oh_my_coder_runs(tmp_path: Path) -> None:
    project_path = tmp_path / "project"
    project_path.mkdir()
    (project_path / "f").write_text("stable\n")
    script = """
import sys
from casnap import CheckpointManager
project_path = sys.argv[1]
manager = CheckpointManager(project_path)
cp = manager.create(name="before-refactor", description="stable before the refactor"); print(cp.id, cp.timestamp)
for cp in manager.list(): print(cp.name, cp.timestamp)
open(project_path + "/f", "w").write("broken\\n")
print(manager.diff("before-refactor")); manager.rollback("before-refactor"); manager.delete("before-refactor")
"""
    import sys

    from support.cli import environment

    done = subprocess.run(
        [sys.executable, "-c", script, str(project_path)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "before-refactor" in done.stdout
    assert "-stable\n+broken\n" in done.stdout
    assert (project_path / "f").read_text() == "stable\n"
    assert run("list", "-w", project_path, "--format", "json", check=0).json() == []
