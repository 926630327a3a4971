"""A catalog as SQLite itself describes it, for whoever looks for what is wrong; no ordinary command needs this."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import sqlite_utils
from msgspec import Struct

from casnap.store.catalog import CatalogLost
from casnap.store.schema import DDL


class CatalogFacts(Struct, frozen=True):
    """The ``rows`` of each table, as of operation ``seq``.

    ``strange`` is what in its schema is not as in a new one; then there may be no rows to be told of, and seq is 0.
    """

    seq: int
    rows: dict[str, int]
    strange: tuple[str, ...]


def inspect_catalog(path: Path) -> CatalogFacts:
    """Describe the catalog at ``path``; nothing is written.

    Raises:
        CatalogLost: SQLite cannot read it.
    """
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            database = sqlite_utils.Database(connection)
            if strange := sorted(_statements(database) ^ _expected()):
                return CatalogFacts(0, {}, tuple(strange))
            (position,) = database["position"].rows
            rows = {name: database[name].count for name in database.table_names()}
            return CatalogFacts(position["seq"], rows, ())
    except sqlite3.Error as error:
        raise CatalogLost(str(error), damaged=True) from error


def _expected() -> set[str]:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        database = sqlite_utils.Database(connection)
        database.executescript(DDL)
        return _statements(database)


def _statements(database: sqlite_utils.Database) -> set[str]:
    """The statements that make each table and index, white space aside."""
    return {" ".join(statement.split()) for statement in database.schema.split(";\n") if statement.strip()}
