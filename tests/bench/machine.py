"""On what it was measured, in general words."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path

from bench.peer import Peer
from casnap import __version__


def machine() -> dict[str, str]:
    """Processor, memory, kernel and Python."""
    return {
        "processor": _field(Path("/proc/cpuinfo"), "model name") or platform.machine(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / (1 << 30):.0f} GiB",
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def _field(path: Path, name: str) -> str:
    if not path.exists():
        return ""
    lines = (line.partition(":") for line in path.read_text("utf-8").splitlines())
    return next((value.strip() for key, _, value in lines if key.strip() == name), "")


def versions(peers: Sequence[type[Peer]]) -> dict[str, str]:
    """What each program says of its version."""
    return {peer.name: f"casnap {__version__}" if peer.name == "casnap" else peer.version() for peer in peers}
