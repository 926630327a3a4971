"""The command line as a program that somebody runs: a process, its output and its exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
PATIENCE = 300
"""Seconds after which a command counts as hanging."""


@dataclass(frozen=True)
class Result:
    """What a command left behind; ``stdout`` and ``stderr`` are text, bytes that are no UTF-8 escaped."""

    args: tuple[str, ...]
    status: int
    stdout: str
    stderr: str

    def json(self) -> Any:
        """The document on stdout."""
        return json.loads(self.stdout)


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a command: nothing of the caller's own casnap or agent but HOME and CASNAP_STORE.

    Those two must point to a temporary place (tests/conftest.py sees to it), so that no test can reach a
    store that somebody lives from.
    """
    home, store = os.environ["HOME"], os.environ["CASNAP_STORE"]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)}
    own = {
        "HOME": home,
        "XDG_DATA_HOME": f"{home}/.local/share",
        "XDG_CONFIG_HOME": f"{home}/.config",
        "XDG_CACHE_HOME": f"{home}/.cache",
        "CASNAP_STORE": store,
        "CASNAP_NO_INPUT": "1",
        "PYTHONPATH": str(CHECKOUT),
    }
    return inherited | own | dict(extra or {})


_NOT_INHERITED = ("PYTHONDONTWRITEBYTECODE", "CASNAP_", "XDG_", "CLAUDE", "CODEX_", "GEMINI_", "OPENCODE")


def run(
    *args: str | bytes | os.PathLike[str],
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    check: int | None = None,
    said: bytes = b"",
) -> Result:
    """Run ``casnap ARGS`` with no terminal, which reads what is ``said``; ``check`` is the exit status, None any."""
    words = [os.fspath(word) for word in args]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "casnap", *words],  # -P: import nothing from the current directory
        cwd=cwd,
        env=environment(env),
        input=said,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    result = Result(
        tuple(os.fsdecode(word) for word in words),
        done.returncode,
        done.stdout.decode("utf-8", "backslashreplace"),
        done.stderr.decode("utf-8", "backslashreplace"),
    )
    if check is not None:
        assert result.status == check, (
            f"casnap {' '.join(result.args)}: exit {result.status}, {check} was expected\n"
            f"--- stdout\n{result.stdout}\n--- stderr\n{result.stderr}"
        )
    return result


def peak_memory(*args: str | Path) -> int:
    """Bytes that a command held at most. A small process starts it: what a large one held counts for its children."""
    measure = (
        "import resource, subprocess, sys; "
        "status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode; "
        "print(status, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10)"
    )
    command = [sys.executable, "-P", "-m", "casnap", *map(str, args)]
    done = subprocess.run(
        [sys.executable, "-c", measure, *command], env=environment(), capture_output=True, text=True, check=True
    )
    status, most = map(int, done.stdout.split())
    assert status in (0, 4), done.stderr
    return most
