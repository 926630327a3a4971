"""Layered tables: what the newest lines changed, in memory, over what the catalog holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import msgspec

from casnap.store.catalog import Catalog, CatalogLost
from casnap.store.index import Index, ReadRange
from casnap.store.rows import START, Mark, Upkeep
from casnap.store.schema import CHECKPOINTS, PACKS, WORKSPACES, Schema

Key = TypeVar("Key")
Row = TypeVar("Row")


NONE = b""
"""Stands for the id of no checkpoint."""


class Table(Generic[Key, Row]):
    """Rows by key; ``changed`` holds those that are newer than the catalog, ``removed`` keys that are gone since."""

    def __init__(self, schema: Schema[Key, Row], catalog: Catalog | None) -> None:
        self.schema = schema
        self.changed: dict[Key, Row] = {}
        self.removed: set[Key] = set()
        self._catalog = catalog

    def get(self, key: Key) -> Row | None:
        """The row with this key, if there is one."""
        if key in self.changed:
            return self.changed[key]
        if key in self.removed:
            return None
        return next(iter(self._fetch(f"{self.schema.key_column} = ?", (key,))), None)

    def put(self, row: Row) -> None:
        """Add a row, or replace the one with its key."""
        key = self.schema.key(row)
        self.changed[key] = row
        self.removed.discard(key)

    def remove(self, key: Key) -> None:
        """Take the row with this key away."""
        self.changed.pop(key, None)
        self.removed.add(key)

    def select(self, condition: str, parameters: Iterable[Any], matches: Callable[[Row], bool]) -> list[Row]:
        """All rows for which ``condition`` (in SQL) holds; ``matches`` says the same of a row in memory."""
        key = self.schema.key
        stored = [
            row
            for row in self._fetch(condition, parameters)
            if key(row) not in self.changed and key(row) not in self.removed
        ]
        return stored + [row for row in self.changed.values() if matches(row)]

    def _fetch(self, condition: str, parameters: Iterable[Any]) -> list[Row]:
        if self._catalog is None:
            return []
        query = f"SELECT {self.schema.columns} FROM {self.schema.table} WHERE {condition}"
        try:
            return [self.schema.row(values) for values in self._catalog.fetch(query, parameters)]
        except (msgspec.MsgspecError, TypeError, ValueError) as error:
            raise CatalogLost(f"a row of {self.schema.table} cannot be read: {error}", damaged=True) from error


class Tables:
    """Everything that the lines up to ``mark`` amount to. Only :mod:`casnap.store.apply` changes it."""

    def __init__(self, catalog: Catalog | None, read_range: ReadRange) -> None:
        self.catalog = catalog
        self.base = START if catalog is None else catalog.mark
        self.mark: Mark = self.base
        self.workspaces = Table(WORKSPACES, catalog)
        self.checkpoints = Table(CHECKPOINTS, catalog)
        self.packs = Table(PACKS, catalog)
        self.index = Index(catalog, read_range)
        self.upkeep = Upkeep() if catalog is None else catalog.upkeep

    @property
    def tail(self) -> int:
        """Lines that the catalog does not have yet."""
        return self.mark.seq - self.base.seq


def surviving_ancestor(tables: Tables, parent: bytes) -> bytes:
    """``parent``, or the nearest of its ancestors that is not deleted; empty where there is none."""
    seen = set()
    while parent and parent not in seen:
        row = tables.checkpoints.get(parent)
        if row is None:
            return NONE
        if not row.deleted:
            return parent
        seen.add(parent)  # parents of one checkpoint cannot go round, but claims in a line can
        parent = row.parent
    return NONE
