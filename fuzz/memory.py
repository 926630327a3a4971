"""A bound on the memory of the whole process: the law counts what Python takes, this also what C libraries take."""

from __future__ import annotations

import resource
from pathlib import Path

ROOM = 1 << 30
"""Bytes that a fuzzing process may grow by: enough for itself, nothing near a length of 4 GiB that an input claims."""


def bound(room: int = ROOM) -> None:
    """From now on, and in processes that are begun from here, taking more than ``room`` bytes is a MemoryError."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + room
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
