"""Bad input gets one clear error and its exit status, and changes nothing."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from casnap import CheckpointManager
from support.cli import Result, run
from support.oracle import Snapshot, difference, snapshot

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="mounting takes root")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with steps 1 (one) and 2 (two)."""
    return fill(tmp_path / "workspace")


def fill(directory: Path, env: dict[str, str] | None = None) -> Path:
    directory.mkdir()
    for name in ("one", "two"):
        (directory / "f").write_text(name)
        run("checkpoint", "-w", directory, name, env=env, check=0)
    (directory / "f").write_text("dirty")
    (directory / "existing").write_text("kept")
    return directory


def refused(status: int, *args: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> Result:
    """Run a command that must fail with ``status``, one error line, and JSON that says the same."""
    done = run(*args, cwd=cwd, env=env, check=status)
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    document = run(*args[:1], "--json", *args[1:], cwd=cwd, env=env, check=status).json()
    assert (document["schema"], document["exit"]) == ("casnap.error/1", status)
    return done


CASES = {
    "unknown revision": (13, ["rollback", "nothing"]),
    "unknown step": (13, ["rollback", "--step", "99"]),
    "unknown id": (13, ["show", "abcdef0123"]),
    "a wildcard is literal": (13, ["rollback", "%"]),
    "beyond the history": (13, ["rollback", "-n", "99"]),
    "ancestors beyond the history": (13, ["show", "@~7"]),
    "far beyond the history": (13, ["rollback", "-n", "9" * 30]),
    "a step beyond all numbers": (13, ["rollback", "--step", "9" * 30]),
    "the root of the file system": (14, ["rollback", "-w", "/"]),
    "a file as workspace": (2, ["rollback", "-w", "f"]),
    "a path behind a revision": (2, ["rollback", "one", "existing"]),
    "negative ancestors": (2, ["rollback", "-n", "-1"]),
    "two selectors": (2, ["rollback", "one", "--step", "1"]),
    "a path without --": (13, ["rollback", "existing"]),
    "a path outside": (2, ["rollback", "one", "--", "../outside"]),
    "empty name": (2, ["checkpoint", "-s", ""]),
    "name of digits": (2, ["checkpoint", "-s", "12"]),
    "name with a dash in front": (2, ["checkpoint", "-s=-f"]),
    "reserved name": (2, ["checkpoint", "-s", "latest"]),
    "name that climbs": (2, ["checkpoint", "-s", "../x"]),
    "name with a space": (2, ["checkpoint", "a b"]),
    "name with a newline": (2, ["checkpoint", "a\nb"]),
    "long name": (2, ["checkpoint", "x" * 300]),
    "taken name": (14, ["checkpoint", "one"]),
    "metadata that is a list": (2, ["checkpoint", "--metadata", "[1]"]),
    "metadata that is no JSON": (2, ["checkpoint", "--metadata", "{"]),
    "unknown option": (2, ["checkpoint", "--nonsense"]),
    "bad time": (2, ["rollback", "--to", "yesterday"]),
    "time before the first": (13, ["rollback", "--to", "2001-01-01"]),
    "undo of nothing": (13, ["undo"]),
    "delete of nothing": (13, ["delete", "nothing"]),
    "undelete of what is not deleted": (14, ["undelete", "one"]),
}


@dataclass(frozen=True)
class Lasting:
    """A workspace for all cases, since none may change it, and what it and the list must stay."""

    workspace: Path
    env: dict[str, str]
    tree: Snapshot
    listed: str


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Lasting:
    place = tmp_path_factory.mktemp("lasting")
    env = {"CASNAP_STORE": str(place / "store")}
    workspace = fill(place / "workspace", env)
    listed = run("list", "--all", "--safety", "--json", env=env, check=0).stdout
    return Lasting(workspace, env, snapshot(workspace), listed)


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_refused_and_changes_nothing(lasting: Lasting, case: str) -> None:
    status, args = CASES[case]
    refused(status, *args, cwd=lasting.workspace, env=lasting.env)
    assert difference(lasting.tree, snapshot(lasting.workspace)) == []
    assert run("list", "--all", "--safety", "--json", env=lasting.env).stdout == lasting.listed


def test_a_path_that_is_no_revision_gets_the_spelling_that_works(workspace: Path) -> None:
    assert "casnap rollback -- existing" in refused(13, "rollback", "existing", cwd=workspace).stderr


def test_going_back_too_far_says_how_far_it_goes(workspace: Path) -> None:
    document = run("rollback", "-n", "9", "--json", cwd=workspace, check=13).json()
    assert document["details"]["maximum"] == 1
    assert "casnap rollback" in document["hint"]


def test_an_ambiguous_prefix_names_its_candidates(tmp_path: Path) -> None:
    workspace = tmp_path / "many"
    workspace.mkdir()
    ids: dict[str, list[str]] = {}
    with CheckpointManager(workspace) as manager:
        for _ in range(2000):
            made = manager.create().id
            ids.setdefault(made[:4], []).append(made)
            if len(ids[made[:4]]) > 1 and not made[:4].isdecimal():
                break
    document = run("show", "-w", workspace, made[:4], "--json", check=13).json()
    assert document["code"] == "ambiguous"
    assert sorted(document["details"]["candidates"]) == sorted(ids[made[:4]])


def test_an_unregistered_directory_is_not_found_and_the_enclosing_one_is_named(workspace: Path) -> None:
    (workspace / "sub").mkdir()
    assert str(workspace) in refused(13, "rollback", "-w", workspace / "sub").stderr


@pytest.mark.parametrize("verb", ["init", "checkpoint"])
def test_what_must_not_be_a_workspace_is_refused(tmp_path: Path, home: Path, verb: str) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "to-home").symlink_to(home)
    refused(2, verb, "-w", tmp_path / "file")
    refused(2, verb, "-w", tmp_path / "missing")
    refused(14, verb, "-w", "/")
    refused(14, verb, "-w", home)
    refused(14, verb, "-w", home.parent)
    refused(14, verb, "-w", tmp_path / "to-home")
    assert not (home / "store" / "packs").exists() or not list((home / "store" / "packs").iterdir())
    run("init", "-w", home, "--allow-home", check=0)


def test_a_workspace_inside_the_store_is_refused(workspace: Path, home: Path) -> None:
    refused(14, "checkpoint", "-w", home / "store" / "cache")


def test_a_store_of_a_newer_format_is_refused_by_every_verb(workspace: Path, home: Path) -> None:
    path = home / "store" / "casnap-store.json"
    document = json.loads(path.read_text())
    document["format"] = 2
    path.write_text(json.dumps(document))
    for args in (["list"], ["status"], ["checkpoint"], ["rollback", "one"], ["verify"], ["delete", "one"]):
        refused(16, *args, cwd=workspace)


def test_a_reading_verb_makes_no_store(tmp_path: Path, home: Path) -> None:
    for verb in ("list", "show", "diff", "verify", "undo", "rollback"):
        refused(10, verb, cwd=tmp_path)
    run("status", cwd=tmp_path, check=0)
    run(cwd=tmp_path, check=0)
    assert not (home / "store").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)], check=True)
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@root_only
def test_a_full_store_disk_refuses_to_write_and_still_answers(tmp_path: Path, small_disk: Path) -> None:
    workspace, env = tmp_path / "workspace", {"CASNAP_STORE": str(small_disk / "store"), "CASNAP_MIN_FREE": "0"}
    workspace.mkdir()
    (workspace / "f").write_text("one")
    run("checkpoint", "-w", workspace, "one", env=env, check=0)
    with open(small_disk / "filler", "wb") as filler:
        try:
            while True:
                filler.write(b"x" * 65536)
                filler.flush()
        except OSError:
            pass
    (workspace / "f").write_bytes(os.urandom(100_000))
    before = snapshot(workspace)
    refused(17, "checkpoint", "-w", workspace, "two", env=env)
    refused(17, "rollback", "-w", workspace, "one", env=env)
    assert difference(before, snapshot(workspace)) == []
    assert [c["name"] for c in run("list", "-w", workspace, "--json", env=env, check=0).json()["checkpoints"]] == [
        "one"
    ]
    run("status", "-w", workspace, env=env, check=0)
    (small_disk / "filler").unlink()
    run("checkpoint", "-w", workspace, "two", env=env, check=0)


@root_only
def test_a_store_that_cannot_be_written_still_answers(workspace: Path, home: Path) -> None:
    store = home / "store"
    subprocess.run(["mount", "--bind", str(store), str(store)], check=True)
    subprocess.run(["mount", "-o", "remount,ro,bind", str(store)], check=True)
    try:
        before = snapshot(workspace)
        refused(17, "checkpoint", "-w", workspace, "three")
        refused(17, "rollback", "-w", workspace, "one")
        refused(17, "delete", "-w", workspace, "one")
        assert difference(before, snapshot(workspace)) == []
        assert len(run("list", "-w", workspace, "--json", check=0).json()["checkpoints"]) == 2
        status = run("status", "-w", workspace, "--json", check=0).json()
        assert status["protected"] is False
        run("diff", "-w", workspace, check=0)
        assert run("verify", "-w", workspace, "one").status == 4
        run("rollback", "-w", workspace, "one", "--no-safety", check=0)
        assert (workspace / "f").read_text() == "one"
    finally:
        subprocess.run(["umount", str(store)], check=True)


@root_only
def test_a_first_checkpoint_that_takes_more_than_half_of_the_free_space_asks_first(
    tmp_path: Path, small_disk: Path
) -> None:
    workspace, env = tmp_path / "workspace", {"CASNAP_STORE": str(small_disk / "store")}
    workspace.mkdir()
    (workspace / "big").write_bytes(bytes(4_500_000))
    done = refused(17, "checkpoint", "-w", workspace, env=env)
    assert "--yes" in done.stderr
    assert not list((small_disk / "store" / "packs").iterdir())
    run("checkpoint", "-w", workspace, "--yes", env=env, check=0)
    (workspace / "bigger").write_bytes(bytes(9_000_000))
    assert "CASNAP_MIN_FREE" in refused(17, "checkpoint", "-w", workspace, "--yes", env=env).stderr
