"""``casnap import`` as somebody types it: three histories, taken over and restored, in processes of their own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.cli import run
from support.histories import OhMyCoder, Pitrrwnd, WsCkpt
from support.oracle import difference, snapshot

Made = tuple[Path, list[tuple[str, Path]]]
"""What to give to import, and for each checkpoint that is to come its name and the tree that it is to hold."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Files of several kinds, and room for three states of them."""
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "main.py").write_text("print(1)\n")
    (root / "src" / os.fsdecode(b"caf\xe9")).write_bytes(os.urandom(2_000_000))
    (root / "run").write_text("#!/bin/sh\n")
    (root / "run").chmod(0o750)
    return root


def _edits(project: Path) -> Iterator[str]:
    """Names of the states, the project being in the next one as each is taken."""
    for number in range(1, 4):
        (project / "src" / "main.py").write_text(f"print({number})\n")
        (project / f"file{number}").write_text(str(number))
        yield f"state-{number}"


def _pitrrwnd(project: Path, _: Path) -> Made:
    history = Pitrrwnd(project)
    made = [(name, history.snapshot(history.savepoint(name))) for name in _edits(project)]
    return project, made


def _oh_my_coder(project: Path, _: Path) -> Made:
    history = OhMyCoder(project)
    ids = [history.create(name, f"about {name}") for name in _edits(project)]
    return project / ".omc", [(id, history.place(id, history.index[id]["task_id"]) / "snapshot") for id in ids]


def _ws_ckpt(project: Path, tmp_path: Path) -> Made:
    history = WsCkpt(tmp_path / "data", "ws", project)
    made = []
    for name in _edits(project):
        history.checkpoint(name, f"about {name}")
        made.append((name, history.snapshots / name))
    return history.index_file, made


@pytest.mark.parametrize("make", [_pitrrwnd, _oh_my_coder, _ws_ckpt], ids=lambda make: make.__name__.strip("_"))
def test_a_history_is_taken_over_and_a_state_of_it_comes_back(
    project: Path, tmp_path: Path, make: Callable[[Path, Path], Made]
) -> None:
    place, made = make(project, tmp_path)
    live = snapshot(project)
    told = run("import", place, cwd=tmp_path, check=0)
    lines = told.stdout.splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["checkpoint", f"step={step}", f"name={name}"] for step, (name, _) in enumerate(made, 1)
    ]
    assert "imported 3 checkpoints from " in told.stderr
    assert difference(live, snapshot(project)) == []
    name, path = made[1]
    run("restore-to", tmp_path / "out", name, "-w", project, check=0)
    assert difference(snapshot(path), snapshot(tmp_path / "out")) == []


def test_what_is_wrong_with_a_history_ends_with_3_and_names_step_and_path(project: Path, tmp_path: Path) -> None:
    history = Pitrrwnd(project)
    for name in _edits(project):
        history.savepoint(name)
    (history.snapshot(2) / "src" / "main.py").write_text("tampered\n")
    told = run("import", project, "-q", cwd=tmp_path, check=3)
    assert [len(line) for line in told.stdout.splitlines()] == [64, 64, 64]
    assert told.stderr == (
        "problem: .pitr/snapshots/0000000002/src/main.py: "
        "step 2: src/main.py does not have the SHA-256 that the manifest lists\n"
    )
