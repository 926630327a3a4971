"""``make demo`` as a person runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.cli import CHECKOUT, environment

pytestmark = pytest.mark.slow


def test_the_demonstration_succeeds_and_leaves_nothing_behind(tmp_path: Path) -> None:
    variables = environment({"TMPDIR": str(tmp_path)})
    done = subprocess.run(
        [sys.executable, CHECKOUT / "docs/tutorial/demo.py"],
        capture_output=True,
        text=True,
        check=False,
        env=variables,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    commands = [line.split()[2] for line in done.stdout.splitlines() if line.startswith("$ casnap ")]
    assert commands == ["checkpoint", "status", "diff", "rollback", "verify", "undo", "undo", "verify", "list"]
    assert done.stdout.count("\nok: ") == 3
    assert list(tmp_path.iterdir()) == []
