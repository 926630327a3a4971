"""What the tests of gc share: what the operation log leaves of each pack, and whether a store holds anything else."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from casnap import CheckpointManager
from support import cli
from support.cases import remove, run_here
from support.oracle import Snapshot, difference, snapshot

Trees = dict[str, Snapshot]
"""What each checkpoint, by its id, must restore to."""

_STORE = re.compile(
    r"casnap-store\.json|README\.txt|CACHEDIR\.TAG|reserve|catalog-\d+\.db(-wal|-shm)?"
    r"|packs/[0-9a-f]{32}\.pack|oplog/\d{10}\.jsonl|locks/[a-z0-9-]+\.lock"
    r"|cache/(oplog-synced|[0-9a-f]+\.(stat|stat-patch|path)|CACHEDIR\.TAG)"
)
"""All that a store that nobody uses just now may hold."""

SMALL_PACKS = """
import os, sys
from casnap.store import packs
packs.PACK_SIZE = int(sys.argv.pop(1))
from casnap.cli import main
main()
"""
"""A program like casnap, with the size of packs as its first argument."""


@contextlib.contextmanager
def quick_directory() -> Iterator[Path]:
    """A directory in memory where there is one: forcing out to a busy disk takes most of the time."""
    place = Path(tempfile.mkdtemp(prefix="casnap-upkeep-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    try:
        yield place
    finally:
        shutil.rmtree(place)


def lines_of(store: Path) -> list[dict[str, Any]]:
    """The operation log, read with nothing but the standard library."""
    segments = sorted((store / "oplog").glob("*.jsonl"))
    return [json.loads(line) for segment in segments for line in segment.read_bytes().splitlines()]


def committed(store: Path) -> dict[str, int]:
    """How long each pack is by the operation log."""
    lengths: dict[str, int] = {}
    for line in lines_of(store):
        for pack, length in line.get("cuts", ()):
            lengths[pack] = min(lengths.get(pack, 0), length)
            if not lengths[pack]:
                del lengths[pack]
        for pack, _, end, _ in line.get("packs", ()):
            lengths[pack] = max(lengths.get(pack, 0), end)
    return lengths


def stored(store: Path) -> dict[str, int]:
    """How long each pack is."""
    return {path.stem: path.stat().st_size for path in (store / "packs").iterdir()}


def strangers(store: Path) -> list[str]:
    """The files in a store that have no business there."""
    names = (str(path.relative_to(store)) for path in store.rglob("*") if not path.is_dir())
    return sorted(name for name in names if not _STORE.fullmatch(name))


def size_below(directory: Path, *, but: tuple[str, ...] = ("reserve",)) -> dict[str, int]:
    """Apparent bytes of a store by its first names, directories and the files in ``but`` not counted."""
    sizes: dict[str, int] = {}
    for path in directory.rglob("*"):
        name = path.relative_to(directory).parts[0]
        if path.is_file() and name not in but:
            sizes[name] = sizes.get(name, 0) + path.stat().st_size
    return sizes


def require_tidy(store: Path) -> None:
    """See that a store holds what its operation log says, to the byte, and nothing else."""
    assert stored(store) == committed(store)
    found = strangers(store)
    assert not found, found


def require_exact(workspace: Path, trees: Trees, scratch: Path, store: Path | None = None) -> set[str]:
    """See that everything listed restores to what it was when it was made; the ids."""
    with CheckpointManager(workspace, store=store) as manager:
        listed = manager.list(safety=True)
        for checkpoint in listed:
            if scratch.exists():
                remove(scratch)
            manager.restore_to(scratch, checkpoint.id)
            assert difference(trees[checkpoint.id], snapshot(scratch)) == [], checkpoint
    return {checkpoint.id for checkpoint in listed}


def require_clean() -> None:
    """See that every byte of the store is what its name says."""
    done = run_here("check", "--read-data", check=0)
    assert "clean" in done.stdout


def start_small(size: int, *args: str | Path) -> subprocess.Popen[bytes]:
    """Start ``casnap ARGS`` with packs of ``size`` bytes."""
    return subprocess.Popen(
        [sys.executable, "-P", "-c", SMALL_PACKS, str(size), *map(str, args)],
        env=cli.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def forked(act: Callable[[], object]) -> int:
    """Do something in a child process and give its pid; it ends with 0, or with 1 and a traceback on stderr."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            act()
            status = 0
        except BaseException:
            sys.__stderr__.write(traceback.format_exc())  # type: ignore[union-attr]
            sys.__stderr__.flush()  # type: ignore[union-attr]
        finally:
            os._exit(status)
    return child


def ended(child: int) -> int:
    """How a child ended: its exit status, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
