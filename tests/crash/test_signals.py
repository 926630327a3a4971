"""A signal that comes while something is committed waits until it has been said that it happened."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.cli import environment, run

INTERRUPTED_IN_COMMIT = """
import os, signal, sys
from casnap.cli import main
from casnap.store.oplog import Oplog
append, operation, number = Oplog.append, os.fsencode(sys.argv[1]), int(sys.argv[2])
def interrupted(self, line):
    if b'"op":"%s"' % operation in line:
        os.kill(os.getpid(), number)
    return append(self, line)
Oplog.append = interrupted
del sys.argv[1:3]
main()
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize(
    ("operation", "verb"),
    [("checkpoint", ["checkpoint", "two"]), ("rollback-end", ["rollback", "one"]), ("delete", ["delete", "one"])],
)
def test_what_was_committed_is_reported_before_a_signal_ends_the_program(
    tmp_path: Path, operation: str, verb: list[str], number: signal.Signals, status: int
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "f").write_text("one")
    run("checkpoint", "-w", workspace, "one", check=0)
    (workspace / "f").write_text("two")
    done = subprocess.run(
        [sys.executable, "-P", "-c", INTERRUPTED_IN_COMMIT, operation, str(int(number)), *verb, "-w", workspace],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert len(done.stdout.splitlines()) == 1
    assert done.stdout.split()[0].startswith(verb[0])
    assert run("status", "-w", workspace, "--json", check=0).json()["interrupted"] is None
