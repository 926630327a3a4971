"""One catalog file: a view of the operation log in SQLite. Losing it costs time and nothing else."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec.structs import astuple

from casnap.store.rows import START, Mark, Upkeep
from casnap.store.schema import APPLICATION_ID, DDL, VERSION

_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT})
_POSITION = "seq, hash, segment, offset, collected, collected_at, checked_at, checked_clean"

_TROUBLE = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite says of a file that is damaged or out of reach."""

_ROWS_AT_ONCE = 100
"""Rows that one statement adds: a third less time than with one each, and few enough values for any SQLite."""

_WAIT = 2.0
"""Seconds to wait for another connection that recovers the WAL."""

_inherited: list[sqlite3.Connection] = []
"""Connections of a parent process: neither used nor closed in the child, which SQLite forbids."""

_forks = 0
"""How often this process has come about by a fork since the module was loaded."""


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)


class CatalogLost(Exception):
    """A catalog cannot be read; its owner folds the operation log instead.

    ``damaged`` says that the file itself is bad, so that another try would not help.
    """

    def __init__(self, cause: str, *, damaged: bool) -> None:
        super().__init__(cause)
        self.damaged = damaged


class Catalog:
    """A catalog as it was at one instant: one read transaction, which shows nothing that is written later."""

    def __init__(self, path: Path) -> None:
        """Open the file for reading.

        Raises:
            CatalogLost: it is no whole catalog, or cannot be read here and now.
        """
        self.path = path
        self._forks = _forks
        with _translated():
            self._connection = _connect(path, "ro")
        try:
            self.mark = self._begin()
        except CatalogLost:
            self.close()
            raise

    def _begin(self) -> Mark:
        with _translated():
            self._connection.execute("BEGIN")
            # The first read, not BEGIN, fixes the instant.
            application = self._connection.execute("PRAGMA application_id").fetchone()[0]
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if application == APPLICATION_ID and version != VERSION:
                raise CatalogLost(f"it is of version {version}", damaged=False)
            rows = self._connection.execute(f"SELECT {_POSITION} FROM position").fetchall()
        if application != APPLICATION_ID or len(rows) != 1:
            raise CatalogLost("it is no catalog", damaged=True)
        if not _is_position(rows[0]):
            raise CatalogLost("its position is none", damaged=True)
        seq, line_hash, segment, offset, collected, collected_at, checked_at, checked_clean = rows[0]
        self.upkeep = Upkeep(collected, collected_at, checked_at, bool(checked_clean))
        return Mark(seq, line_hash, segment, offset)

    def fetch(self, query: str, parameters: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows that ``query`` finds.

        Raises:
            CatalogLost: it cannot be read any more.
        """
        self._require_own()
        try:
            return self._connection.execute(query, tuple(parameters)).fetchall()
        except _TROUBLE as error:
            raise _lost(error) from error

    def iterate(self, query: str) -> Iterator[tuple[Any, ...]]:
        """The rows that ``query`` finds, one by one.

        Raises:
            CatalogLost: it cannot be read any more.
        """
        self._require_own()
        with _translated():
            yield from self._connection.execute(query)

    def _require_own(self) -> None:
        """In a process that was forked since, open the file anew, which must show the same."""
        if not self.is_inherited:
            return
        anew = Catalog(self.path)
        if anew.mark != self.mark:
            anew.close()
            raise CatalogLost("it has gone on since this process was forked", damaged=False)
        _inherited.append(self._connection)
        self._connection, self._forks = anew._connection, anew._forks

    @property
    def is_inherited(self) -> bool:
        """Whether this process was forked after the catalog had been opened."""
        return self._forks != _forks

    def close(self) -> None:
        """Let go of the file, and of the instant."""
        if self.is_inherited:
            _inherited.append(self._connection)
        else:
            self._connection.close()


class CatalogWriter:
    """Brings a catalog forward in one transaction; only under the commit lock. ``shrinks`` once rows have gone."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.shrinks = False
        self._connection = connection

    def put(self, table: str, columns: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Write whole rows over what has their key."""
        places = ", ".join("?" * (columns.count(",") + 1))
        self._connection.executemany(f"INSERT OR REPLACE INTO {table} ({columns}) VALUES ({places})", rows)

    def put_packs(self, rows: Iterable[tuple[Any, ...]]) -> dict[str, int]:
        """Write rows (id, length, objects, repacked); the numbers that stand for the packs in this catalog."""
        query = "SELECT id, number FROM packs"
        numbers: dict[str, int] = dict(self._connection.execute(query))
        last = max(numbers.values(), default=0)
        for row in rows:
            if row[0] not in numbers:
                last += 1
                numbers[row[0]] = last
            self._connection.execute("INSERT OR REPLACE INTO packs VALUES (?, ?, ?, ?, ?)", (*row, numbers[row[0]]))
        return numbers

    def cut_packs(self, lengths: dict[str, int], removed: Iterable[str]) -> None:
        """Take away the places from ``lengths`` on, by the id of the pack, and packs that are gone."""
        numbers = dict(self._connection.execute("SELECT id, number FROM packs"))
        cuts = {numbers[pack]: length for pack, length in lengths.items() if pack in numbers}
        if cuts:  # all in one pass, because no index leads from a pack to its places
            self._connection.create_function("cut_at", 1, cuts.get, deterministic=True)
            self._connection.execute("DELETE FROM places WHERE offset >= cut_at(pack)")
            self.shrinks = True
        self._connection.executemany("DELETE FROM packs WHERE id = ?", ((pack,) for pack in removed))

    def put_places(self, rows: Sequence[tuple[int, bytes, int, int, int, int]]) -> None:
        """Add rows (kind, id, pack number, offset, slot, seq); one that is there keeps the line that it has."""
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            some = rows[start : start + _ROWS_AT_ONCE]
            values = ", ".join(["(?, ?, ?, ?, ?, ?)"] * len(some))
            self._connection.execute(f"INSERT OR IGNORE INTO places VALUES {values}", [*chain.from_iterable(some)])


@contextlib.contextmanager
def writing(path: Path, mark: Mark, upkeep: Upkeep) -> Iterator[CatalogWriter]:
    """Bring a catalog forward to ``mark``, with ``upkeep`` as of then: all of the with block, or nothing.

    Raises:
        CatalogLost: it could not be written; the file is as it was.
    """
    with _translated(), contextlib.closing(_connect(path, "rw")) as connection:
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("BEGIN IMMEDIATE")
        try:
            writer = CatalogWriter(connection)
            yield writer
            connection.execute("DELETE FROM position")
            places = ", ".join("?" * (_POSITION.count(",") + 1))
            values = (*astuple(mark), *astuple(upkeep))
            connection.execute(f"INSERT INTO position (one, {_POSITION}) VALUES (1, {places})", values)
            connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        if writer.shrinks:
            with contextlib.suppress(sqlite3.Error):  # what is not given back now is used again
                connection.executescript("PRAGMA incremental_vacuum")  # execute() would give one page back
        # At once and under the lock, never by whichever reader happens to be the last; readers are not waited for.
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def create(path: Path) -> None:
    """Fill the empty file at ``path`` with a catalog of nothing; only under the commit lock.

    Raises:
        CatalogLost: SQLite cannot write it.
    """
    with _translated(), contextlib.closing(_connect(path, "rw")) as connection:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # what gc took away is to be given back
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        # One script, because a second one would begin by committing the first.
        connection.executescript(
            f"BEGIN; {DDL}"
            f"INSERT INTO position (one, {_POSITION})"
            f" VALUES (1, {START.seq}, '{START.hash}', {START.segment}, {START.offset}, 0, 0, 0, 1);"
            f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}; COMMIT;"
        )


def _is_position(row: tuple[Any, ...]) -> bool:
    """Whether each value is of its type: SQLite sees to that, but not where its pages are damaged."""
    return all(isinstance(value, str if column == 1 else int) for column, value in enumerate(row))


def sqlite_version() -> tuple[int, int, int]:
    """The version of the SQLite that Python was built with, or found."""
    return sqlite3.sqlite_version_info


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    quoted = "".join(f"%{byte:02x}" for byte in os.fsencode(path.absolute()))  # Path.as_uri() imports urllib
    return sqlite3.connect(
        f"file:{quoted}?mode={mode}", uri=True, timeout=_WAIT, isolation_level=None, check_same_thread=False
    )


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """Trouble with SQLite as CatalogLost."""
    try:
        yield
    except _TROUBLE as error:
        raise _lost(error) from error


def _lost(error: sqlite3.Error | UnicodeDecodeError) -> CatalogLost:
    if isinstance(error, UnicodeDecodeError):
        return CatalogLost("a text in it is none", damaged=True)
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE) & 0xFF
    return CatalogLost(str(error), damaged=code in _DAMAGED)
