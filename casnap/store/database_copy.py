"""A consistent copy of a live SQLite database, through SQLite's backup interface (sqlite.org/backup.html)."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from casnap.errors import CasnapError
from casnap.fs.durable import scratch_file

TRIES = 200
"""How often a read transaction is tried for where writers leave hardly a gap; each time waits for ``WAIT``."""

WAIT = 0.01
"""Seconds; SQLite's own waits grow with time, and would miss the gaps."""


def copy_database(directory_fd: int, name: bytes, scratch: Path) -> int | None:
    """Copy the database ``name``, which is in use, as its last commit left it; nothing of it is written to.

    The copy lies in ``scratch`` for as long as the descriptor that is returned, the caller's to close, is open.
    None: SQLite cannot read it, or another file was swapped in for it.
    """
    try:
        with contextlib.closing(_open(directory_fd, name)) as source:
            with scratch_file(scratch) as (path, copy):
                target = sqlite3.connect(path, isolation_level=None)
            try:  # without a name from here on: a killed process leaves nothing
                _back_up(source, target)
            except BaseException:
                os.close(copy)
                raise
            return copy
    except (sqlite3.Error, OSError, CasnapError):
        return None


def _back_up(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    with contextlib.closing(target):
        target.execute("PRAGMA journal_mode=OFF")
        target.execute("PRAGMA synchronous=OFF")
        source.backup(target)


def _open(directory_fd: int, name: bytes) -> sqlite3.Connection:
    """A connection within a read transaction, which sees one commit and cannot be kept waiting from here on."""
    status = os.lstat(name, dir_fd=directory_fd)
    before = set(_descriptors())
    address = f"file:/proc/self/fd/{directory_fd}/{quote(name)}?mode=ro"
    connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=WAIT)
    try:
        _begin_reading(connection)
        # SQLite goes by paths, which may have come to lead elsewhere
        opened = [os.fstat(fd) for fd in set(_descriptors()) - before]
        if not any(os.path.samestat(status, other) for other in opened):
            raise sqlite3.OperationalError("another file was opened")
    except BaseException:
        connection.close()
        raise
    return connection


def _begin_reading(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN")
    for tries_left in reversed(range(TRIES)):
        try:
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or not tries_left:
                raise


def _descriptors() -> list[int]:
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the listing's own is closed by now
            os.fstat(int(name))
            found.append(int(name))
    return found
