"""The files that SQLite keeps beside a database, by their names (sqlite.org/tempfiles.html)."""

from __future__ import annotations

from casnap.model.paths import split
from casnap.model.tree import AnyEntry, File

JOURNAL = b"-journal"
LOGS = (b"-wal", JOURNAL)
"""What commits, or the way back from them, is in beside the database."""

INDEX = b"-shm"
"""Rebuilt from the log by whoever opens a database; it is written through a mapping, so its stat proves nothing."""

SIDE_FILES = (*LOGS, INDEX)

PAGE = 512
"""The size of a database is a multiple of this many bytes."""


def database_of(path: bytes) -> bytes:
    """The database that a file belongs to, if its name is one of a side file; else the path itself."""
    if path.endswith(SIDE_FILES):
        for suffix in SIDE_FILES:
            if path.endswith(suffix) and split(path)[1] != suffix:
                return path.removesuffix(suffix)
    return path


def may_be_database(entry: AnyEntry | None) -> bool:
    """Whether an entry has the size of a database."""
    return isinstance(entry, File) and is_database_size(entry.size)


def is_database_size(size: int) -> bool:
    """Whether a database can have this many bytes: an empty file has no log that would matter."""
    return size > 0 and size % PAGE == 0
