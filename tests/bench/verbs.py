"""``make bench``: how long the main verbs take, as whole processes, on a generated tree of 2,000 files.

A first look, not a comparison: what is printed holds for this machine and this moment only.
"""

from __future__ import annotations

import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from support.cli import run
from support.oracle import difference, snapshot
from support.trees import make_tree

FILES = 2_000
REPEATS = 5
EDITED = 10


def main() -> None:
    """Print a table: verb, situation, median and slowest of the runs in milliseconds."""
    with tempfile.TemporaryDirectory(prefix="casnap-bench-", ignore_cleanup_errors=True) as scratch:
        os.environ |= {"HOME": scratch, "CASNAP_STORE": f"{scratch}/store"}
        workspace = Path(scratch) / "workspace"
        rng = random.Random(2_000)
        make_tree(workspace, rng, files=FILES)
        size = sum(record.size or 0 for record in snapshot(workspace).values())
        print(f"{FILES} files, {size / 1e6:.1f} MB; median and slowest of {REPEATS} runs (first: one run)\n")
        print(f"{'what':<34}{'median ms':>10}{'slowest ms':>12}")
        measure("start-up (--version)", lambda: run("--version", check=0))
        measure("first checkpoint", lambda: checkpoint(workspace), repeats=1)
        measure("checkpoint, nothing changed", lambda: checkpoint(workspace))
        measure(f"checkpoint, {EDITED} files edited", lambda: checkpoint(workspace), lambda: edit(workspace, rng))
        measure("status", lambda: run("status", "-w", workspace, check=0))
        measure("list", lambda: run("list", "-w", workspace, check=0))
        before = snapshot(workspace)
        measure(f"rollback of {EDITED} edited files", lambda: rollback(workspace), lambda: edit(workspace, rng))
        measure("verify", lambda: run("verify", "-w", workspace, check=0))
        if differences := difference(before, snapshot(workspace)):
            raise SystemExit("error: a rollback was not exact: " + differences[0])


def measure(
    what: str, act: Callable[[], object], prepare: Callable[[], object] | None = None, *, repeats: int = REPEATS
) -> None:
    """Time ``act``; ``prepare`` comes before each run and is not timed."""
    taken = []
    for _ in range(repeats):
        if prepare is not None:
            prepare()
        began = time.perf_counter()
        act()
        taken.append((time.perf_counter() - began) * 1000)
    print(f"{what:<34}{statistics.median(taken):>10.0f}{max(taken):>12.0f}", flush=True)


def checkpoint(workspace: Path) -> None:
    """A checkpoint without a name."""
    run("checkpoint", "-w", workspace, check=0)


def rollback(workspace: Path) -> None:
    """Back to head."""
    run("rollback", "-w", workspace, "--yes", check=0)


def edit(workspace: Path, rng: random.Random) -> None:
    """Append a line to some files that are nobody's hard link."""
    files = sorted(path for path in workspace.rglob("*.py") if path.is_file() and path.stat().st_nlink == 1)
    for path in rng.sample(files, EDITED):
        with path.open("ab") as file:
            file.write(b"# edited %d\n" % rng.getrandbits(32))


if __name__ == "__main__":
    main()
