"""Copying what is needed of a pack into a new one: every record checked on the way, as it is or compressed better."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from casnap.codec.compression import compress
from casnap.codec.packs import PACK_HEADER_SIZE, PACK_ID_SIZE
from casnap.codec.records import NO_SLOT, Encoding, RecordKind, encode_group, encode_record
from casnap.errors import Damage, StorageFailed
from casnap.fs.appending import AppendFile
from casnap.model.ids import ObjectKey
from casnap.model.operation import PackRange
from casnap.store.objects import ObjectReader
from casnap.store.packs import Record
from casnap.store.rows import Place
from casnap.store.writer import PackWriter

FRAME_SIZE = PACK_HEADER_SIZE + 80 + 56 + 64
"""What a new pack takes beside its records at most: header, session record, and the frames of an index record."""

ENTRY_SIZE = 40
"""What an object takes in an index at most: its id, which does not compress, and its place."""


AT_REST = 15
"""The level of zstd for what is written once and stays: 12 is half as long about it and leaves 4 % more, 19 takes
three times as long for 1 % less (measured).
"""


class Moved(NamedTuple):
    """Where an object is now, and the size of its record."""

    pack: str
    offset: int
    slot: int
    size: int


def entries_size(count: int) -> int:
    """Bytes that an index of so many entries takes at most."""
    return count * ENTRY_SIZE


class Compaction:
    """Takes records over into new packs, which ``begin`` makes. ``written`` counts the bytes of those committed.

    ``parted`` counts differences that were written in full, because they may not build on what they were made to.
    """

    def __init__(
        self,
        reader: ObjectReader,
        begin: Callable[[], PackWriter],
        store_id: str,
        level: int,
        may_build_on: Callable[[Place], bool] | None = None,
    ) -> None:
        """Where ``may_build_on`` is None, each difference stays one."""
        self.written = self.parted = 0
        self._may_build_on = may_build_on
        self._reader = reader
        self._begin = begin
        self._store_id = store_id
        self._level = level
        self._full: list[PackWriter] = []
        self._target: PackWriter | None = None
        self._moved: dict[tuple[str, int, int], Moved] = {}
        self._handed_over = False

    @property
    def is_full(self) -> bool:
        """Whether it is time to commit: a pack is full."""
        return bool(self._full)

    def copy(self, pack: str, offset: int, slots: Iterable[int]) -> list[Moved]:
        """Take over the objects in ``slots`` of the record that lies there; where they are now, in that order.

        Raises:
            Damage: the record is bad. Nothing is made of it that would hide that.
            StorageFailed: the disk refused.
        """
        record, wanted = self._reader.files.record(pack, offset), list(slots)
        if record.header.kind is not RecordKind.GROUP:
            return [self._take(pack, record, slot) for slot in wanted]
        moved = self._copy_group(pack, record, wanted)
        self._moved |= {(pack, offset, slot): one for slot, one in zip(wanted, moved, strict=True)}
        return moved

    def rewrite(self, pack: str, offset: int) -> Moved:
        """Take over the object that lies there, compressed better where that is worth it; differences as they are.

        Raises:
            Damage, StorageFailed: as for :meth:`copy`.
        """
        record = self._reader.files.record(pack, offset)
        return self._take(pack, record, NO_SLOT, better=record.header.encoding is Encoding.ZSTD)

    def add_group(self, objects: Sequence[tuple[ObjectKey, bytes]]) -> list[Moved]:
        """Write objects into one frame, or one that is alone by itself; where they are now, in that order.

        Raises:
            StorageFailed: the disk refused.
        """
        if len(objects) > 1:
            return self._append_group([key for key, _ in objects], encode_group(objects, AT_REST))
        ((key, data),) = objects
        target, record = self._writable(1), self._in_full(key, data)
        return [Moved(target.id, target.append(key, record, self._store_id), NO_SLOT, len(record))]

    def finish(self) -> tuple[PackRange, ...]:
        """End the packs that are being written, forced out; their ranges, for the line that commits them.

        Raises:
            StorageFailed: the disk refused.
        """
        return tuple(filter(None, (writer.finish(self._level) for writer in self._writers())))

    def confirm(self) -> None:
        """What was finished has been committed: the next record begins another pack."""
        self.written += sum(writer.end for writer in self._writers())
        self._close()

    def hand_over(self) -> None:
        """From now on what was finished may be committed, until :meth:`take_back` or :meth:`confirm`."""
        self._handed_over = True

    def take_back(self) -> None:
        """It was not."""
        self._handed_over = False

    def abandon(self) -> None:
        """Take away what was not committed. Where that is not certain it stays, and a sweep takes it."""
        for writer in self._writers() if not self._handed_over else ():
            writer.abandon()
            with contextlib.suppress(StorageFailed):
                writer.file.discard()
        self._close()

    def _writers(self) -> list[PackWriter]:
        return [*self._full, *([self._target] if self._target is not None else [])]

    def _close(self) -> None:
        for writer in self._writers():
            writer.file.close()
        self._full.clear()
        self._moved.clear()
        self._target = None
        self._handed_over = False

    def _take(self, pack: str, record: Record, slot: int, *, better: bool = False) -> Moved:
        key, data = self._reader.open_record(pack, record, slot)
        target = self._writable(1)
        if self._is_to_part(pack, record):
            copied = self._in_full(key, data)
            self.parted += 1
        else:
            copied = self._as_it_is(target, pack, record, key)
        if better:
            copied = min(copied, self._in_full(key, data), key=len)
        moved = Moved(target.id, target.append(key, copied, self._store_id), NO_SLOT, len(copied))
        self._moved[pack, record.offset, NO_SLOT] = moved
        return moved

    def _is_to_part(self, pack: str, record: Record) -> bool:
        if self._may_build_on is None or record.header.encoding is not Encoding.DELTA:
            return False
        return not self._may_build_on(self._reader.base_of(pack, record).place)

    def _copy_group(self, pack: str, record: Record, wanted: Sequence[int]) -> list[Moved]:
        objects = self._reader.open_group(pack, record)
        if not set(wanted) <= set(range(len(objects))):
            raise Damage(f"cannot read pack {pack}: the group at {record.offset} has no slot {max(wanted)}")
        if len(wanted) < len(objects):
            return self.add_group([objects[slot] for slot in wanted])
        header = record.header
        whole = encode_record(header.kind, b"", header.encoding, record.payload, header.raw_size)
        return self._append_group([key for key, _ in objects], whole)

    def _append_group(self, keys: Sequence[ObjectKey], record: bytes) -> list[Moved]:
        target = self._writable(len(keys))
        offset = target.append_slots(((key, slot) for slot, key in enumerate(keys)), record, self._store_id)
        return [Moved(target.id, offset, slot, len(record)) for slot in range(len(keys))]

    def _writable(self, objects: int) -> PackWriter:
        """The pack to append so many objects to."""
        if self._target is not None and (self._target.is_full or self._target.room < objects):
            self._target.seal(self._reader.files, self._level)
            self._full.append(self._target)
            self._target = None
            self._moved.clear()
        if self._target is None:
            self._target = self._begin()
        return self._target

    def _in_full(self, key: ObjectKey, data: bytes) -> bytes:
        encoding, payload = compress(data, AT_REST)
        return encode_record(RecordKind(key.kind), key.id, encoding, payload, len(data))

    def _as_it_is(self, target: PackWriter, pack: str, record: Record, key: ObjectKey) -> bytes:
        """The same payload; a delta points to where its base is now."""
        header = record.header
        distance, slot, base_id = 0, NO_SLOT, b""
        if header.encoding is Encoding.DELTA:
            base = self._reader.base_of(pack, record)
            if (moved := self._moved.get(base.place[:3])) is None:
                base_id = base.key.id
            else:  # where a base has moved to the session has begun: the next record really begins at ``end``
                distance, slot = target.end - moved.offset, moved.slot
        return encode_record(
            header.kind,
            key.id,
            header.encoding,
            record.payload,
            header.raw_size,
            base_distance=distance,
            base_slot=slot,
            base_id=base_id,
            depth=header.depth,
            standing=header.standing,
        )


class _Nowhere(AppendFile):
    """A file that is only measured: what a run would write, for those who ask what it would free."""

    def __init__(self) -> None:
        self.path = Path("(nowhere)")
        self.size = 0

    def append(self, data: bytes | bytearray | memoryview) -> None:
        self.size += len(data)

    def cut(self, size: int) -> None:
        self.size = size

    def sync(self) -> None:
        pass

    def discard(self) -> None:
        pass

    def close(self) -> None:
        pass


def nowhere() -> PackWriter:
    """A new pack that is measured, and not written."""
    return PackWriter(os.urandom(PACK_ID_SIZE).hex(), _Nowhere(), 0, 0)
