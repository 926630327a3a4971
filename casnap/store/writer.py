"""Appending to one pack, which is held by a flock on the pack itself."""

from __future__ import annotations

import os
from collections.abc import Iterable

from casnap.codec.packs import (
    MAX_ENTRIES,
    PACK_HEADER_SIZE,
    SESSION_SIZE,
    IndexEntry,
    encode_index_record,
    encode_pack_header,
    encode_seal,
    encode_session,
    encode_trailer,
)
from casnap.codec.records import RecordKind
from casnap.errors import CasnapError, Damage, StorageFailed
from casnap.fs.appending import AppendFile
from casnap.model.ids import ObjectKey
from casnap.model.operation import PackRange
from casnap.store import packs
from casnap.store.objects import decode_indexed
from casnap.store.packs import PackFiles

BUFFER = 256 << 10
"""Bytes that are gathered before they are written."""

GATHERED = 32 << 10
"""A record of so many bytes is written by itself: to copy it takes as long as a call more."""


class PackWriter:
    """A pack that this process alone may append to; written bytes are never overwritten.

    ``entries`` are the objects from ``start`` on, where nothing is committed yet: those that another session
    left behind and that were adopted, and its own. ``written`` counts the bytes that this session added.
    """

    def __init__(self, pack_id: str, file: AppendFile, start: int, objects: int) -> None:
        self.id = pack_id
        self.file = file
        self.start = start
        self.entries: list[IndexEntry] = []
        self.sealed = False
        self.written = 0
        self._objects = objects
        self._own = file.size
        self._buffer = bytearray()
        self._index: int | None = None
        self._in_session = False
        self._unsynced = file.size > start

    def adopt(self, entries: list[IndexEntry], index: int | None, *, sealed: bool) -> None:
        """Count what lies between ``start`` and the end as one's own; ``index`` is the index record of just that."""
        self.entries = entries
        self._objects += len(entries)
        self._index = index
        self.sealed = sealed

    @property
    def end(self) -> int:
        """Where the next record begins."""
        return self.file.size + len(self._buffer)

    @property
    def is_full(self) -> bool:
        """Whether the pack is to be sealed."""
        return self.end >= packs.PACK_SIZE or self._objects >= MAX_ENTRIES

    @property
    def room(self) -> int:
        """How many objects more still fit into its index."""
        return MAX_ENTRIES - self._objects

    def begin(self, store_id: str) -> int:
        """Begin a session where none is begun; where the next record goes.

        Raises:
            StorageFailed: the disk refused.
        """
        if not self._in_session:
            self._begin(store_id)
        return self.end

    def append(self, key: ObjectKey, record: bytes, store_id: str) -> int:
        """Add the record of one object; the offset at which it begins.

        Raises:
            StorageFailed: the disk refused; of what was not yet forced out, nothing is to be trusted.
        """
        offset = self.begin(store_id)
        self._take(record, [IndexEntry(key.kind, key.id, offset)])
        return offset

    def append_slots(self, objects: Iterable[tuple[ObjectKey, int]], record: bytes, store_id: str) -> int:
        """Add a record with these objects, each in its slot; the offset at which it begins.

        Raises:
            StorageFailed: as for :meth:`append`.
        """
        offset = self.begin(store_id)
        self._take(record, [IndexEntry(key.kind, key.id, offset, slot) for key, slot in objects])
        return offset

    def _take(self, record: bytes, entries: list[IndexEntry]) -> None:
        self._add(record)
        self.entries += entries
        self._objects += len(entries)
        self._index = None

    def flush(self) -> None:
        """Hand what was gathered to the kernel, so that it can be read back."""
        if self._buffer:
            gathered, self._buffer = self._buffer, bytearray()
            self.file.append(gathered)
            self._unsynced = True

    def finish(self, level: int) -> PackRange | None:
        """End a commit: index record, everything forced out; the range to put into its line, None if there is none."""
        if not self.entries:
            return None
        if self._index is None:
            self._index = self.end
            self._add(encode_index_record(self.entries, level))
        self.flush()
        if self._unsynced:
            self._sync()
        return PackRange(self.id, self.start, self.end, self._index)

    def seal(self, files: PackFiles, level: int) -> None:
        """End the pack: index record of this session, index of the whole pack, trailer; all of it forced out.

        Where nothing was committed before, these two indexes are one.
        """
        committed = self._committed_entries(files)
        self._index = self.end
        if committed:
            self._add(encode_index_record(self.entries, level))
        whole = [*committed, *self.entries]
        if len(whole) <= MAX_ENTRIES:
            seal = self.end
            self._add(encode_seal(whole, level))
            self._add(encode_trailer(seal))
        self.sealed = True
        self.finish(level)

    def require_there(self) -> None:
        """See that the pack is there: one that was let go of may have been swept as nobody's.

        Raises:
            StorageFailed: it is not, or not whole.
        """
        try:
            whole = os.stat(self.file.path).st_size >= self.end
        except OSError:
            whole = False
        if not whole and self.entries:
            raise StorageFailed(f"cannot commit: pack {self.id} was taken away meanwhile", hint="try again")

    def confirm(self) -> None:
        """The range that was last finished has been committed."""
        self.start = self._own = self.end
        self.entries = []
        self._index = None

    def abandon(self) -> None:
        """Cut off what this session added and nobody has committed: it is not to be trusted, or there is no room."""
        self._buffer = bytearray()
        try:
            self.file.cut(max(self.start, self._own))
        except CasnapError:
            return

    def _sync(self) -> None:
        try:
            self.file.sync()
        except StorageFailed:
            self._own = self.start  # what was adopted failed to get there too
            raise
        self._unsynced = False

    def _begin(self, store_id: str) -> None:
        if not self.end:
            self._add(encode_pack_header(bytes.fromhex(self.id), bytes.fromhex(store_id)))
        self._add(encode_session(os.urandom(SESSION_SIZE)))
        self._in_session = True

    def _add(self, data: bytes) -> None:
        self.written += len(data)
        if len(data) >= GATHERED:
            self.flush()
            self.file.append(data)
            self._unsynced = True
            return
        self._buffer += data
        if len(self._buffer) >= BUFFER:
            self.flush()

    def _committed_entries(self, files: PackFiles) -> list[IndexEntry]:
        """What earlier commits wrote to this pack, from their index records."""
        known: dict[tuple[int, int], IndexEntry] = {}
        if self.start > PACK_HEADER_SIZE:
            for record in files.surviving(self.id, 0, self.start):
                if record.header.kind is RecordKind.INDEX:
                    try:
                        known |= {(entry.offset, entry.slot): entry for entry in decode_indexed(record)}
                    except Damage:
                        continue
        return list(known.values())
