"""What casnap runs on, for ``casnap doctor``."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from pathlib import Path

from casnap.model.health import Diagnosis, bad, good, note
from casnap.settings.layers import Settings

FEW_WATCHES = 65_536
"""A project with its packages may have as many directories."""

_INOTIFY = Path("/proc/sys/fs/inotify")

_FAULTY_SQLITE = ((3, 7, 0), (3, 51, 3))
"""From the first of these versions up to the second a write-ahead log can be damaged by two connections at once."""

_MENDED_SQLITE = {(3, 44): 6, (3, 50): 7}
"""Older lines that the repair was taken back to, and since when."""


def machine_health(settings: Settings) -> Iterator[Diagnosis]:
    """Python, the libraries, the configuration, and limits of the system."""
    from casnap.codec.chunking import Chunker, ChunkerParameters
    from casnap.store.catalog import sqlite_version

    yield good("Python", f"{platform.python_version()} ({sys.executable})")
    version = sqlite_version()
    shown = ".".join(map(str, version))
    if is_faulty(version):
        yield note(
            "SQLite",
            f"{shown} can damage its log when two programs write at once; casnap keeps its own from doing so, and can "
            "make its catalog anew",
            "a Python with SQLite 3.51.3 or newer has it mended",
        )
    else:
        yield good("SQLite", shown)
    if not Chunker(ChunkerParameters()).content_defined:
        yield note(
            "chunker",
            "pyfastcdc has no compiled core here: versions of large files share little",
            "install a wheel of pyfastcdc for this Python",
        )
    for fault in settings.faults:
        yield bad("configuration", fault.message, fault.hint or "repair it with an editor")
    yield from _inotify(_INOTIFY)


def is_faulty(version: tuple[int, int, int]) -> bool:
    """Whether this version of SQLite has the fault of which ``_FAULTY_SQLITE`` tells."""
    first, mended = _FAULTY_SQLITE
    line = _MENDED_SQLITE.get(version[:2])
    return first <= version < mended and not (line is not None and version[2] >= line)


def _inotify(limits: Path) -> Iterator[Diagnosis]:
    """How many directories a user may watch; nothing where the system has no such limit."""
    try:
        watches = int((limits / "max_user_watches").read_text("ascii"))
        instances = int((limits / "max_user_instances").read_text("ascii"))
    except (OSError, ValueError):
        return
    said = f"{watches} directories can be watched, by {instances} programs"
    if watches < FEW_WATCHES:
        yield note("inotify", said, "raise it with: sysctl fs.inotify.max_user_watches=524288")
    else:
        yield good("inotify", said)
