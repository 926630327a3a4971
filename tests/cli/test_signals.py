"""A command that is stopped from outside says so, with the status that shells expect."""

from __future__ import annotations

import fcntl
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.cli import Result, environment

Call = Callable[..., Result]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_command_that_waits(
    protected: Path, home: Path, call: Call, number: signal.Signals, status: int
) -> None:
    workspace_id = call("status", "--json", cwd=protected, check=0).json()["workspace"]["id"]
    with open(home / "store" / "locks" / f"workspace-{workspace_id}.lock", "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = subprocess.Popen(
            [sys.executable, "-m", "casnap", "checkpoint", "--wait", "600", "--json"],
            cwd=protected,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert waiting.stderr is not None
        assert waiting.stderr.readline() == f"workspace {protected}\n"
        waiting.send_signal(number)
        stdout, stderr = waiting.communicate(timeout=120)
    assert waiting.returncode == status
    assert stderr.startswith("error: stopped: ")
    assert json.loads(stdout)["exit"] == status
    assert [one["name"] for one in call("list", "--format", "json", cwd=protected, check=0).json()] == ["c1"]
