"""Keeps the tables caught up: the newest catalog that can be proved, and the lines behind it, folded in memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casnap.errors import CasnapError, Damage, StorageFailed
from casnap.fs.appending import Owner, make_file, move_aside, remove
from casnap.store import catalog
from casnap.store.catalog import Catalog, CatalogLost
from casnap.store.index import ReadRange
from casnap.store.layout import Layout
from casnap.store.oplog import Oplog
from casnap.store.rows import Mark
from casnap.store.tables import Table, Tables

if TYPE_CHECKING:
    from casnap.model.operation import AnyOperation

LONG_TAIL = 64
"""Lines that every process folds anew before they are put into the catalog."""

MANY_ROWS = 1_000
"""The same for places of objects."""

_REBUILT_AT_ONCE = 200_000
"""Rows that are held in memory while a catalog is made anew."""


class Follower:
    """Follows the operation log of one store. ``notes`` says what a person should hear about the catalog.

    ``cut`` is called when packs may have been removed: what holds them open keeps the disk from getting their space.
    """

    def __init__(
        self, layout: Layout, oplog: Oplog, read_range: ReadRange, owner: Owner | None, *, cut: Callable[[], None]
    ) -> None:
        self.notes: list[str] = []
        self.tables = Tables(None, read_range)
        self._layout = layout
        self._oplog = oplog
        self._read_range = read_range
        self._owner = owner
        self._cut = cut
        self._bad: dict[Path, str] = {}
        self._lost: dict[Path, str] = {}
        self._claimed = self._missed = 0

    def load(self) -> None:
        """Begin with the newest catalog that can be proved, and catch up.

        Raises:
            Damage, TooNew, StorageFailed: the operation log cannot be read.
        """
        self._begin_with(self._open_catalog())
        try:
            self._fold()
        except Damage:
            # A line that was torn when it was first looked at may have been replaced meanwhile.
            self._begin_with(None)
            self._fold()

    def catch_up(self) -> None:
        """Fold the lines that are new; start afresh when the log is not the one that was followed.

        Raises:
            Damage, TooNew, StorageFailed: the operation log cannot be read.
        """
        if self._is_inherited:
            self.load()
            return
        if self.is_long:
            self._rebase()
        self.tables.index.retry()
        try:
            self._fold()
        except Damage:
            self.load()

    def accept(self, operation: AnyOperation, mark: Mark) -> None:
        """Fold a line that this process has just written; under the commit lock still."""
        try:
            self._apply(operation, mark)
        except CatalogLost as error:
            self.lose(error)
        if self.is_long or self.tables.catalog is None:
            self.flush()

    def lose(self, error: CatalogLost) -> None:
        """Do without the catalog in use, because it cannot be read any more; a bad one is made anew later."""
        if self._is_inherited:
            self.load()
            return
        if (lost := self.tables.catalog) is not None and error.damaged:
            self._lost[lost.path] = self._bad[lost.path] = str(error)
        self._begin_with(None)
        self._fold()

    @property
    def is_long(self) -> bool:
        """Whether the lines that the catalog does not have are many."""
        return self.tables.tail > LONG_TAIL or self.tables.index.rows > MANY_ROWS

    @property
    def catalog_path(self) -> Path | None:
        """The catalog in use."""
        return None if self.tables.catalog is None else self.tables.catalog.path

    @property
    def lacks_catalog(self) -> bool:
        """Whether a catalog is to be made anew: there is none, or what there is is bad."""
        return self.forgotten_line is None and (bool(self._bad) or not self._layout.catalogs())

    @property
    def forgotten_line(self) -> int | None:
        """The seq of a line that a catalog has seen and that the log does not have, or only as a bad last line.

        It was committed, and is not merely torn: whoever went on would take its checkpoints for abandoned bytes.
        """
        seen = self._claimed if self._oplog.tail.bad else self._missed
        return seen if seen > self.tables.mark.seq else None

    def flush(self) -> None:
        """Bring the catalog forward, making a new one where there is none; only under the commit lock, caught up.

        Nothing is lost where this fails: the operation log has it all, and the next commit tries again.
        """
        try:
            if self.tables.catalog is None or self._bad:
                self.load()
            if self.tables.catalog is None or self._bad:
                self._rebuild()
            elif self.is_long or self.tables.index.stored_lengths():
                self._write(self.tables.catalog.path)
            else:
                return
        except CatalogLost as error:
            if error.damaged:
                self.lose(error)
                return
        except StorageFailed:
            pass
        self.load()

    def close(self) -> None:
        """Let go of the catalog."""
        if self.tables.catalog is not None:
            self.tables.catalog.close()

    @property
    def _is_inherited(self) -> bool:
        return self.tables.catalog is not None and self.tables.catalog.is_inherited

    def _fold(self) -> None:
        try:
            for operation, mark in self._oplog.lines(self.tables.mark):
                self._apply(operation, mark)
        except CatalogLost as error:
            self.lose(error)

    def _apply(self, operation: AnyOperation, mark: Mark) -> None:
        from casnap.model.operation import SpaceFreed  # here and below, since often there is nothing to be applied
        from casnap.store.apply import apply

        apply(self.tables, operation, mark)
        if isinstance(operation, SpaceFreed):
            self._cut()

    def _open_catalog(self) -> Catalog | None:
        self._bad = dict(self._lost)
        for number in self._layout.catalogs():
            path = self._layout.catalog(number)
            if path in self._lost:
                continue
            try:
                candidate = Catalog(path)
            except CatalogLost as error:
                if error.damaged:
                    self._bad[path] = str(error)
                continue
            if self._oplog.proves(candidate.mark):
                return candidate
            self._claimed = max(self._claimed, candidate.mark.seq)
            if self._is_ours(candidate):
                self._missed = max(self._missed, candidate.mark.seq)
            self._bad[path] = f"it has seen operation {candidate.mark.seq}, which the operation log does not have"
            candidate.close()
        return None

    def _is_ours(self, candidate: Catalog) -> bool:
        """Whether a catalog that cannot be proved is of this store all the same: it knows a pack that is here."""
        with contextlib.suppress(CatalogLost):
            packs = {row[0] for row in candidate.fetch("SELECT id FROM packs")}
            return not packs.isdisjoint(self._layout.pack_ids())
        return False

    def _rebase(self) -> None:
        """Begin with the catalog again where another process has brought it forward."""
        newer = self._open_catalog()
        if newer is not None and newer.mark.seq > self.tables.base.seq:
            self._begin_with(newer)
            self._cut()
        elif newer is not None:
            newer.close()

    def _begin_with(self, opened: Catalog | None) -> None:
        """Tables that stand where this catalog stands."""
        self.close()
        self.tables = Tables(opened, self._read_range)

    def _rebuild(self) -> None:
        """Make a catalog under a new number from the operation log, and set aside those that are bad.

        It is good at any moment: as far as it got, it is a catalog that lags.
        """
        from casnap.store.apply import apply

        path = self._layout.catalog(self._layout.next_catalog())
        self._create(path)
        self._set_aside()
        self._begin_with(Catalog(path))
        for operation, mark in self._oplog.lines(self.tables.mark):
            apply(self.tables, operation, mark)
            if self.tables.index.rows > _REBUILT_AT_ONCE and self._write(path):
                self._begin_with(Catalog(path))
        self._write(path)

    def _create(self, path: Path) -> None:
        make_file(path, self._owner)
        try:
            catalog.create(path)
        except BaseException:
            for suffix in ("", "-wal", "-shm", "-journal"):
                with contextlib.suppress(CasnapError):
                    remove(path.with_name(path.name + suffix))
            raise

    def _set_aside(self) -> None:
        for path, cause in self._bad.items():
            aside = path.with_name(f"{path.name}.aside")
            move_aside(path, aside)
            move_aside(path.with_name(f"{path.name}-wal"), path.with_name(f"{aside.name}-wal"))
            remove(path.with_name(f"{path.name}-shm"))
            self.notes.append(f"{path.name} was set aside and made anew from the operation log: {cause}")
        self._bad.clear()
        self._lost.clear()

    def _write(self, path: Path) -> bool:
        """Put what is in memory into the catalog; the tables must be begun anew after that.

        False where a pack cannot be read now: a catalog must not claim to know what was not seen, so it lags.
        """
        tables = self.tables
        places = tables.index.rows_to_store()
        if tables.index.unreadable:
            return False
        changed = {table.schema: _values(table) for table in (tables.workspaces, tables.checkpoints)}
        packs, gone = _values(tables.packs), sorted(tables.packs.removed)
        self.close()  # the instant that it shows would keep the WAL from being emptied
        with catalog.writing(path, tables.mark, tables.upkeep) as writer:
            writer.cut_packs(tables.index.stored_lengths(), gone)
            for schema, rows in changed.items():
                writer.put(schema.table, schema.columns, rows)
            numbers = writer.put_packs(packs)
            rows = [(kind, id, numbers[pack], offset, slot, seq) for kind, id, pack, offset, slot, seq in places]
            writer.put_places(sorted(rows))  # as the catalog sorts them: each goes behind the one before
        return True


def _values(table: Table[Any, Any]) -> list[tuple[Any, ...]]:
    return [table.schema.values(row) for row in table.changed.values()]
