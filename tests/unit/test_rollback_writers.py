"""Processes that have files open for writing which a rollback replaces or removes are named."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from casnap import CheckpointManager


@contextmanager
def holding(path: Path, mode: str) -> Iterator[int]:
    """A process that has a file open; its number."""
    code = "import sys; f = open(sys.argv[1], sys.argv[2]); print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, str(path), mode]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


@pytest.mark.parametrize("preview", [False, True])
@pytest.mark.parametrize("what", ["replaced", "removed", "through another name"])
def test_a_writer_of_a_file_that_goes_is_named(
    workspace: Path, manager: CheckpointManager, what: str, preview: bool
) -> None:
    (workspace / "f").write_text("one")
    manager.create("c1")
    path = workspace / ("new" if what == "removed" else "f")
    path.write_text("two")
    held = path
    if what == "through another name":
        held = workspace / "other"
        held.hardlink_to(path)
    with holding(held, "a") as process:
        notes = manager.rollback("c1", preview=preview).notes
    (note,) = notes
    assert note.startswith(f"process {process} (python")
    name = {"f": "(f|other)"}.get(path.name, path.name)
    assert re.search(f" has {name} open for writing: what it writes from now on goes to the file as it was$", note)


def test_a_reader_and_a_writer_of_what_stays_are_not(workspace: Path, manager: CheckpointManager) -> None:
    (workspace / "f").write_text("one")
    (workspace / "g").write_text("one")
    manager.create("c1")
    (workspace / "f").write_text("two")
    with holding(workspace / "f", "r"), holding(workspace / "g", "a"):
        assert manager.rollback("c1").notes == ()
