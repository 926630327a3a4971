"""Commands that share their work with workers, however little it is and however many processors there are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support.cli import PATIENCE, Result, environment

_SHARED = """
import contextlib, os, signal, sys
from casnap.fs import workers
from casnap.settings import layers
from casnap.store import scout
from casnap.workspace import proof, staging
layers.processors = lambda: 2
proof.SHARED = staging.SHARED = 2
scout.WORTH = 0
at_work = workers.at_work
@contextlib.contextmanager
def noted(act):
    with at_work(ACT) as worker:
        print("a worker" if worker else "no worker", file=sys.stderr)
        yield worker
workers.at_work = scout.at_work = noted
FIRST
from casnap.cli import main
main()
"""

KILLED = "lambda tell: os.kill(os.getpid(), signal.SIGKILL)"
"""What a worker does that is killed at once."""


def run_shared(
    *args: str | bytes | os.PathLike[str], cwd: str | os.PathLike[str] | None = None, act: str = "act", first: str = ""
) -> Result:
    """``casnap ARGS``, which says on stderr whether it had a worker; ``act`` is what that does instead of ``act``."""
    script = _SHARED.replace("ACT", act).replace("FIRST", first)
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, *map(os.fspath, args)],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        timeout=PATIENCE,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    stdout, stderr = (stream.decode("utf-8", "backslashreplace") for stream in (done.stdout, done.stderr))
    return Result(tuple(map(os.fsdecode, args)), done.returncode, stdout, stderr)


def left_behind(store: Path) -> list[str]:
    """The processes that have something in a store open."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            links = [os.readlink(f"/proc/{process}/fd/{fd}") for fd in os.listdir(f"/proc/{process}/fd")]
        except OSError:
            continue
        if any(link.startswith(f"{store}/") for link in links):
            found.append(process)
    return found
