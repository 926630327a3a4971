"""A command as a whole process: how long it took, what it cost, and what it said."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 900
"""Seconds after which a command is killed."""

Command = list[str] | str
"""Words, or a line for ``sh``."""

_NOT_INHERITED = ("BORG_", "BUP_", "CASNAP_", "CASYNC_", "GIT_", "JJ_", "PYTHON", "RESTIC_", "RSYNC_", "XDG_")


class Failed(Exception):
    """A command ended with another status than 0."""


@dataclass(frozen=True)
class Run:
    """One run: seconds on the clock, seconds of processor time (its children too), and what was printed."""

    seconds: float
    cpu: float
    output: str


def environment(home: Path, extra: Mapping[str, str]) -> dict[str, str]:
    """The caller's environment without what configures one of the programs, and with another home."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)}
    return {**kept, "HOME": str(home), "LC_ALL": "C.UTF-8", "CASNAP_NO_INPUT": "1", **extra}


def run(command: Command, *, cwd: Path, env: Mapping[str, str]) -> Run:
    """Run ``command`` to its end.

    Raises:
        Failed: its status is not 0; the message has the last of what it printed.
    """
    words = ["sh", "-c", command] if isinstance(command, str) else command
    with tempfile.TemporaryFile() as said:
        began = time.perf_counter()
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env=dict(env),
            start_new_session=True,
        )
        status, cpu = _wait(process)
        seconds = time.perf_counter() - began
        said.seek(0)
        output = said.read().decode(errors="replace")
    if status:
        raise Failed(f"{' '.join(words)}: exit {status}: {output.strip()[-300:]}")
    return Run(seconds, cpu, output)


def _wait(process: subprocess.Popen[bytes]) -> tuple[int, float]:
    def kill(_number: int, _frame: object) -> None:
        os.killpg(process.pid, signal.SIGKILL)

    before = signal.signal(signal.SIGALRM, kill)
    signal.alarm(PATIENCE)
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        kill(0, None)
        raise
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime
