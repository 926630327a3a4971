"""Work in a forked process that is waited for only so long."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from casnap.settings.detaching import MOST_TOLD

PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from casnap.settings.detaching import Vanished, apart
{before}
try:
    told = apart(lambda: {act}, seconds={seconds})
except Vanished:
    told = "vanished"
try:
    left = os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    left = None
print(repr(told), left)
"""


def told(act: str, seconds: float, before: str = "") -> str:
    program = PROGRAM.format(act=act, seconds=seconds, before=before)
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("act", "said"),
    [
        ("''", "''"),
        ("'why'", "'why'"),
        ("'\\ud800'", "'?'"),
        ("'x' * 100_000", repr("x" * (MOST_TOLD - 1))),
        ("1 / 0", "'vanished'"),
        ("os._exit(3)", "'vanished'"),
        ("os.kill(os.getpid(), 9)", "'vanished'"),
        ("print('loud') or ''", "''"),
    ],
)
def test_what_ends_in_time_tells_how_it_went_and_is_cleared_away(act: str, said: str) -> None:
    assert told(act, 30) == f"{said} None"


def test_who_ignores_their_children_need_not_clear_them_away() -> None:
    assert told("''", 30, "signal.signal(signal.SIGCHLD, signal.SIG_IGN)") == "'' None"


def test_what_takes_longer_goes_on_in_a_session_of_its_own(tmp_path: Path) -> None:
    went_on = tmp_path / "went on"
    act = f"(time.sleep(1), Path({str(went_on)!r}).write_text(str(os.getsid(0) == os.getpid())))"
    assert told(act, 0.01) == "None (0, 0)"  # whoever reads our output does not wait for it
    for _ in range(600):
        if went_on.exists() and went_on.read_text():
            break
        subprocess.run(["sleep", "0.05"], check=True)
    assert went_on.read_text() == "True"
