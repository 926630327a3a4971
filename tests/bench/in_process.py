"""What is done within one Python: ``time WORKSPACE TIMES`` and ``grow WORKSPACE CHECKPOINTS FILE``; see own_rows."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from casnap import CheckpointManager


def compare(workspace: str, times: str) -> None:
    """Print the seconds of each ``create()`` where nothing has changed, and of each round of lstat in between."""
    paths = [f"{directory}/{name}" for directory, _, names in os.walk(workspace) for name in names]

    def look() -> None:
        for path in paths:
            os.lstat(path)

    taken: dict[str, list[float]] = {"casnap": [], "lstat": []}
    with CheckpointManager(workspace) as manager:
        manager.create()
        for _ in range(int(times)):
            taken["casnap"].append(_seconds(manager.create))
            taken["lstat"].append(_seconds(look))
    print(json.dumps(taken))


def _seconds(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def grow(workspace: str, checkpoints: str, file: str) -> None:
    """Make so many checkpoints, a line more in one file before each."""
    with CheckpointManager(workspace) as manager:
        for number in range(int(checkpoints)):
            with (Path(workspace) / file).open("a", encoding="utf-8") as edited:
                edited.write(f"# {number}\n")
            manager.create()


if __name__ == "__main__":
    if sys.argv[1] == "time":
        compare(*sys.argv[2:])
    else:
        grow(*sys.argv[2:])
