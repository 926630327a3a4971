"""A store as its operation log and its packs show it, whatever is damaged: no catalog is believed, nothing written."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from casnap.codec.lines import NO_PREVIOUS
from casnap.codec.records import NO_SLOT
from casnap.errors import Damage, NoStore
from casnap.fs.durable import failed
from casnap.model.ids import ObjectKey
from casnap.model.operation import PackRange, SpaceFreed, StoreRepaired
from casnap.store import creation
from casnap.store.apply import apply
from casnap.store.catalog_audit import audit_catalogs, open_catalogs
from casnap.store.format import Format, decode_format
from casnap.store.layout import Layout
from casnap.store.log_lines import LogAccount
from casnap.store.objects import LongestIndex, ObjectReader
from casnap.store.packs import PackFiles
from casnap.store.place_table import PlaceTable
from casnap.store.rows import CheckpointRow, Mark, PackRow, Place, WorkspaceRow
from casnap.store.tables import Tables


class Inspection:
    """What can be known of the store at ``path`` (ObjectSource).

    ``format_fault`` is what is wrong with the format file, None when nothing is; ``catalog_faults`` are damaged
    catalogs, each with its name and the cause, and ``claimed`` is the newest operation that a catalog has seen.
    """

    def __init__(self, path: Path, *, explicit: bool = False) -> None:
        """Look at the log and the catalog; packs are not read before they are asked for.

        Raises:
            NoStore: there is none.
            TooNew: it, or a line of its operation log, is of a newer format.
            Refused: it belongs to another user.
            StorageFailed: a file cannot be read.
        """
        self.layout = Layout(path)
        creation.check_owner(path, explicit=explicit)
        self.opened = open_catalogs(self.layout)
        self.format_fault: str | None = None
        self.format = self._read_format()
        self.log = LogAccount(self.layout)
        if self.format is None and self.log.first_operation is None and not self._looks_like_a_store():
            raise NoStore(f"cannot open store {path}: there is none", hint="name the store with --store")
        self.files = PackFiles(self.layout)
        self.places = PlaceTable()
        self.reader = ObjectReader(self.files, self._find, LongestIndex())
        self.ranges: dict[str, list[tuple[int, PackRange]]] = {}
        self._tables = Tables(None, lambda written: ())
        self._fold()
        self.catalog_faults, self.claimed = audit_catalogs(self)

    def _looks_like_a_store(self) -> bool:
        return bool(self.layout.pack_ids() or self.layout.segments() or self.layout.catalogs())

    def _read_format(self) -> Format | None:
        try:
            return decode_format(self.layout.format.read_bytes(), self.layout.format.name)
        except FileNotFoundError:
            self.format_fault = "it is gone"
        except Damage as error:
            self.format_fault = error.message.partition(": ")[2]
        except OSError as error:
            raise failed("read", self.layout.format, error) from error
        return None

    def _fold(self) -> None:
        """Apply every whole line, those behind a gap too: they say more than nothing."""
        for line in self.log.lines:
            operation = line.operation
            apply(self._tables, operation, Mark(operation.seq, line.hash, line.segment, line.end))
            for written in getattr(operation, "packs", ()):
                self.ranges.setdefault(written.pack, []).append((operation.seq, written))
            if isinstance(operation, SpaceFreed):
                self.places.cut(operation.seq, operation.cuts)

    def load_places(self) -> None:
        """Read the index records of all packs; an index that is damaged is replaced by a walk through its records."""
        for pack, ranges in self.ranges.items():
            for seq, written in ranges:
                if self.places.is_left(Place(pack, written.start, NO_SLOT, seq)):
                    with contextlib.suppress(Damage):  # the pack is gone: that is told of the pack
                        self.places.add(seq, pack, self.reader.committed(written))
        self.places.settle()

    def add_ranges(self, ranges: Iterable[PackRange]) -> None:
        """Take it that these are committed too, by a line after the last; before places are loaded."""
        mark = Mark(self.log.seq + 1, NO_PREVIOUS, 1, 0)
        repaired = StoreRepaired(seq=mark.seq, time=0, prev=NO_PREVIOUS, packs=tuple(ranges))
        apply(self._tables, repaired, mark)
        for written in repaired.packs:
            self.ranges.setdefault(written.pack, []).append((mark.seq, written))

    def tables_at(self, seq: int) -> Tables:
        """The tables as of the line ``seq``."""
        tables = Tables(None, lambda written: ())
        for line in self.log.lines:
            if line.operation.seq > seq:
                break
            apply(tables, line.operation, Mark(line.operation.seq, line.hash, line.segment, line.end))
        return tables

    @property
    def checkpoints(self) -> list[CheckpointRow]:
        """All checkpoints that the log knows, freed ones too, oldest first."""
        return sorted(self._tables.checkpoints.changed.values(), key=lambda row: (row.seq, row.id))

    @property
    def workspaces(self) -> dict[str, WorkspaceRow]:
        """All workspaces by their ids."""
        return self._tables.workspaces.changed

    @property
    def packs(self) -> list[PackRow]:
        """All packs that the log names, by their ids."""
        return sorted(self._tables.packs.changed.values(), key=lambda row: row.id)

    @property
    def first_format(self) -> Format | None:
        """The format as the first line of the log repeats it; None where that line is gone."""
        first = self.log.first_operation
        return None if first is None else decode_format(msgspec.json.encode(first.format), "the operation log")

    @property
    def store_id(self) -> str:
        """The id of the store as its format file or its first line says; empty where neither does."""
        if self.format is not None:
            return self.format.id
        first = self.first_format
        return "" if first is None else first.id

    def read(self, key: ObjectKey) -> bytes:
        """The object's bytes, checked against its name, from any of its places.

        Raises:
            Damage: it is missing, or no stored copy matches its name.
        """
        return self.reader.load_any(key, self.places.places(key))

    def another_reader(self) -> ObjectReader:
        """A reader of the same store for another thread; its files are the caller's to close."""
        return ObjectReader(PackFiles(self.layout), self._find, self.reader.decode_index_of)

    def size_of(self, pack: str) -> int:
        """Bytes of a pack's file.

        Raises:
            OSError: there is none, or it cannot be looked at.
        """
        path = self.layout.pack(pack)
        if not os.access(path, os.R_OK) and os.path.lexists(path):
            raise PermissionError(13, "Permission denied")
        return os.stat(path, follow_symlinks=False).st_size

    def close(self) -> None:
        """Let go of all files."""
        self.files.close()
        for catalog in self.opened.catalogs:
            catalog.close()

    def _find(self, key: ObjectKey) -> list[Place]:
        return self.places.places(key)
