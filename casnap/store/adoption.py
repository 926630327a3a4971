"""Which packs a session appends to, and what it makes of bytes that a killed session left uncommitted in them."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Callable, Iterable

from casnap.codec.packs import MAX_ENTRIES, PACK_HEADER_SIZE, PACK_ID_SIZE, IndexEntry, parse_pack_header
from casnap.codec.records import RecordKind
from casnap.errors import Damage, StorageFailed, TooNew
from casnap.fs.appending import AppendFile, Owner
from casnap.store import packs
from casnap.store.identity import Identity
from casnap.store.layout import Layout
from casnap.store.objects import ObjectReader, decode_indexed
from casnap.store.packs import PackFiles, Record
from casnap.store.rows import PackRow
from casnap.store.writer import PackWriter

Look = Callable[[], tuple[dict[str, PackRow], bool]]
"""Gives the packs as committed by now, by id, and whether bytes behind that may be cut off: they may not while
the last line of the operation log is bad, for it may be what committed them."""


def held_packs_limit() -> int:
    """How many packs a session may hold at once: a quarter of the descriptors that the user allows."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 1024 if soft == resource.RLIM_INFINITY else max(4, min(1024, soft // 4))


class PackTaker:
    """Takes hold of packs for a session, if it is still the store that was opened: a session may be long."""

    def __init__(self, layout: Layout, reader: ObjectReader, identity: Identity, owner: Owner | None) -> None:
        self._layout = layout
        self._reader = reader
        self._files: PackFiles = reader.files
        self._identity = identity
        self._owner = owner

    def take(self, look: Look) -> list[PackWriter]:
        """Every unlocked pack with an uncommitted tail, and one that can be appended to if there is one.

        ``look`` is asked again whenever a lock has been taken: only then is it certain what is committed.
        """
        self._identity.require()
        known, _ = look()
        tails, others = self._survey(known)
        locked = [pair for pack_id in tails[: held_packs_limit()] if (pair := self._lock(pack_id))]
        writers = self._open_all(locked, look)
        kept = [writer for writer in writers if writer.entries]
        spare = [writer for writer in writers if not writer.entries]
        if all(writer.sealed for writer in kept):
            kept += spare[:1] or self._first_open(others, look)
        for writer in spare:
            if writer not in kept:
                writer.file.close()
        return kept

    def create(self) -> PackWriter:
        """A new pack, held."""
        self._identity.require()
        while True:
            pack_id = os.urandom(PACK_ID_SIZE).hex()
            file = AppendFile.create(self._layout.pack(pack_id), self._owner)
            if file.lock():
                return PackWriter(pack_id, file, 0, 0)
            file.close()  # another session was quicker to find the empty pack

    def _survey(self, known: dict[str, PackRow]) -> tuple[list[str], list[str]]:
        """Packs that seem to have a tail, and the others that have room, the fullest first."""
        tails: list[PackRow] = []
        others: list[PackRow] = []
        for pack_id in sorted(self._layout.pack_ids()):
            row = known.get(pack_id) or PackRow(pack_id, 0, 0)
            if not _is_full(row):
                (tails if self._size(pack_id) > row.length else others).append(row)
        others.sort(key=lambda row: row.length, reverse=True)
        return [row.id for row in tails], [row.id for row in others]

    def _first_open(self, pack_ids: Iterable[str], look: Look) -> list[PackWriter]:
        """The first of these packs that can be appended to, alone in a list."""
        for pack_id in pack_ids:
            if (locked := self._lock(pack_id)) and (writers := self._open_all([locked], look)):
                return writers
        return []

    def _open_all(self, locked: list[tuple[str, AppendFile]], look: Look) -> list[PackWriter]:
        if not locked:
            return []
        (known, may_cut), writers = look(), []
        for pack_id, file in locked:
            writer = self._open(known.get(pack_id) or PackRow(pack_id, 0, 0), file, may_cut=may_cut)
            if writer is None:
                file.close()
            else:
                writers.append(writer)
        return writers

    def _size(self, pack_id: str) -> int:
        try:
            return self._layout.pack(pack_id).stat().st_size
        except OSError:
            return 0

    def _lock(self, pack_id: str) -> tuple[str, AppendFile] | None:
        with contextlib.suppress(StorageFailed):
            file = AppendFile.open(self._layout.pack(pack_id))
            with contextlib.suppress(StorageFailed):
                if file.lock():
                    return pack_id, file
            file.close()
        return None

    def _open(self, row: PackRow, file: AppendFile, *, may_cut: bool) -> PackWriter | None:
        """The pack, its tail adopted; None when it is not to be appended to and has nothing to adopt."""
        if file.size < row.length or _is_full(row) or self._files.is_sealed(row.id, row.length):
            return None
        try:
            if not self._check_header(row, file, may_cut=may_cut):
                return None
            tail = _Tail(self._reader, row, file.size)
            if tail.end < file.size:
                if not may_cut:
                    return None
                file.cut(tail.end)
        except (TooNew, StorageFailed):
            return None
        writer = PackWriter(row.id, file, row.length, row.objects)
        writer.adopt(tail.entries, tail.index, sealed=tail.sealed)
        return writer

    def _check_header(self, row: PackRow, file: AppendFile, *, may_cut: bool) -> bool:
        """Whether the file begins as this store's pack of that id, or can be made to."""
        try:
            header = parse_pack_header(file.read(0, PACK_HEADER_SIZE))
        except Damage:
            if row.length or (file.size and not may_cut):
                return False
            file.cut(0)  # nobody has come as far as to write it
            return True
        return (header.pack_id.hex(), header.store_id.hex()) == (row.id, self._identity.id)


class _Tail:
    """What lies in a pack behind its committed bytes: everything up to the first record that is not whole."""

    def __init__(self, reader: ObjectReader, row: PackRow, size: int) -> None:
        self.entries: list[IndexEntry] = []
        self.index: int | None = None
        self.sealed = False
        self.end = row.length
        self._last_index: Record | None = None
        self._seal: Record | None = None
        if not row.length and size >= PACK_HEADER_SIZE:
            self.end = PACK_HEADER_SIZE
        for record in reader.files.records(row.id, row.length, size):
            try:
                self.entries += reader.entries(row.id, record)
            except Damage:
                break
            self._note(record)
            self.end = record.end
        self._settle()

    def _note(self, record: Record) -> None:
        kind = record.header.kind
        if kind is RecordKind.INDEX:
            self._last_index = record
        elif kind is RecordKind.SEAL:
            self._seal = record
        elif kind is RecordKind.TRAILER:
            self.sealed = True

    def _settle(self) -> None:
        """Keep the index and the end of a sealed pack only where they fit what was found."""
        index = self._last_index or self._seal
        covered = False
        if index is not None:
            with contextlib.suppress(Damage):
                covered = list(decode_indexed(index)) == self.entries
        follows = self._seal.offset if self._seal is not None else self.end
        if index is not None and covered and (index is self._seal or index.end == follows):
            self.index = index.offset
        if self._seal is None or self.index is None:
            self.sealed = False
        if self._seal is not None and not self.sealed:
            self.end = self._seal.offset
            self.index = None if index is self._seal else self.index


def _is_full(row: PackRow) -> bool:
    return row.repacked or row.length >= packs.PACK_SIZE or row.objects >= MAX_ENTRIES
