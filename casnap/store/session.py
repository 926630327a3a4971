"""A write session: puts new objects into packs, which nobody sees before they are committed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from casnap.codec.records import NO_SLOT, encode_full
from casnap.errors import CasnapError, Damage, StorageFailed
from casnap.fs.durable import sync_directory
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.store.compressing import Compressed, Compressing
from casnap.store.deltas import Differences
from casnap.store.gathering import Gathering
from casnap.store.rows import Place

if TYPE_CHECKING:
    from casnap.codec.packs import IndexEntry
    from casnap.model.objects import ObjectSource
    from casnap.model.operation import PackRange
    from casnap.store.parts import Parts
    from casnap.store.writer import PackWriter


class Swept(CasnapError):
    """A gc freed what a session had found in the store and relied on; done again, it is written anew."""

    code = "swept"


class WriteSession:
    """Takes objects, and gives those that are there or that it has taken (ObjectSink and ObjectSource).

    No pack is opened before the first object that is new. What is put becomes part of the store with the
    commit that the session is handed to; without one, the next session adopts it.
    """

    def __init__(self, parts: Parts, *, source: ObjectSource) -> None:
        """``source`` gives what is committed."""
        self._layout = parts.layout
        self._store_id = parts.store_id
        self._state = parts.state
        self._source = source
        self._reader = parts.reader
        self._parts = parts
        self._look = parts.look
        self._level = parts.level
        self._since = parts.state.seq
        self._packs: list[PackWriter] | None = None
        self._target: PackWriter | None = None
        self._own: dict[ObjectKey, Place] = {}
        self._adopted: dict[ObjectKey, Place] = {}
        self._ahead: set[ObjectKey] = set()
        self._compressing = Compressing(parts.level)
        self._gathering = Gathering(parts.level)
        self._sound: set[ObjectKey] = set()
        self._absent: set[ObjectKey] = set()
        self._damaged: set[ObjectKey] = set()
        self._differences = Differences(self._reader, self._readable)
        self._failed: StorageFailed | None = None
        self._checkpoints: list[ObjectKey] = []
        self._asked: dict[ObjectKey, list[Place]] = {}

    @property
    def new_bytes(self) -> int:
        """Bytes that this session has added to packs: records, and what frames them."""
        return sum(writer.written for writer in self._packs or ())

    def put(self, key: ObjectKey, data: bytes, base: ObjectKey | None = None) -> None:
        """Keep an object. One that is there costs nothing, provided that its record is still sound.

        One that replaces ``base`` is written as a difference to that, where this is worth it.

        Raises:
            StorageFailed: the disk refused; the session is of no more use then.
        """
        if key.kind is ObjectKind.CHECKPOINT:
            self._checkpoints.append(key)
        if key in self._own or key in self._ahead or key in self._sound:
            return
        if self._is_there(key):
            return
        if key in self._damaged:
            base = None  # what is written to heal stands by itself
        self._check()
        if self._packs is None:
            self._take_packs()
            if key in self._own:
                return
        self._ahead.add(key)
        if self._compressing.add(key, data, base):
            self._append_all(self._compressing.ready())

    def present(self, keys: Iterable[ObjectKey]) -> set[ObjectKey]:
        """Those of ``keys`` that are there, or that this session has taken."""
        wanted = set(keys)
        mine = (wanted & self._own.keys()) | (wanted & self._ahead)
        self._asked = self._state.places(wanted - mine)  # it is asked next whether their records are sound
        stored = self._asked.keys()
        self._absent |= wanted - mine - stored
        return mine | stored

    def standing(self, keys: Iterable[ObjectKey]) -> set[ObjectKey]:
        """Those of ``keys`` that are there with all that they build on, or that this session has taken."""
        wanted = set(keys)
        mine = (wanted & (self._own.keys() - self._adopted.keys())) | (wanted & self._ahead)
        places = {key: [self._adopted[key]] for key in wanted & self._adopted.keys()}
        places |= self._state.places(wanted - mine - places.keys())
        return mine | {key for key, found in places.items() if self._reader.stands(key, found)}

    def read(self, key: ObjectKey) -> bytes:
        """The object's bytes, checked against its name.

        Raises:
            Damage: it is missing, or no stored copy matches its name.
            StorageFailed: the disk refused what was put before; the session is of no more use then.
        """
        if key in self._ahead:
            self._append_all(self._compressing.rest(), last=True)
        if (place := self._own.get(key)) is not None:
            self._flush()
            return self._reader.load(key, place)
        return self._source.read(key)

    def finish(self) -> tuple[PackRange, ...]:
        """Force everything out that was put; the ranges to commit. May be called again.

        Raises:
            StorageFailed: the disk refused; the session is of no more use then.
        """
        self._check()
        self._append_all(self._compressing.rest(), last=True)
        try:
            ranges = tuple(filter(None, (writer.finish(self._level) for writer in self._packs or ())))
            if any(not written.start for written in ranges):
                sync_directory(self._layout.packs)
        except StorageFailed as error:
            self._abandon(error)
            raise
        return ranges

    def require_whole(self) -> None:
        """See that all that is to be committed is there; under the commit lock, caught up.

        Raises:
            Swept: a gc has taken away what one of the checkpoints that were put leads to.
            StorageFailed: a pack that this session wrote and let go of is gone.
        """
        for writer in self._packs or ():
            writer.require_there()
        if self._state.upkeep.collected <= self._since:
            return
        from casnap.store.reach import reach  # here, since seldom does a gc come between

        try:
            if len(self.standing(self._differences.bases)) < len(self._differences.bases):
                raise Damage("a base is gone")
            reach(self, self._checkpoints, _Missing(self.standing).mark)
        except Damage as damage:
            raise Swept("cannot commit: a gc took away what this builds on", hint="try again") from damage

    def confirm(self) -> None:
        """What was finished has been committed."""
        for writer in self._packs or ():
            writer.confirm()

    def close(self) -> None:
        """Let go of the packs; what is not finished is lost."""
        self._compressing.close()
        for writer in self._packs or ():
            writer.file.close()

    def _is_there(self, key: ObjectKey) -> bool:
        """Whether the store has the object in a record that can be relied on; a bad one is written anew."""
        if key in self._absent:
            return False
        places = self._asked.get(key) or self._state.places([key]).get(key)
        if not places or not self._reader.is_sound(key, places[0]):
            self._absent.add(key)
            if places:
                self._damaged.add(key)
            return False
        self._sound.add(key)
        return True

    def _flush(self) -> None:
        """Hand what was put to the kernel, so that it can be read back."""
        self._check()
        try:
            for writer in self._packs or ():
                writer.flush()
        except StorageFailed as error:
            self._abandon(error)
            raise

    def _check(self) -> None:
        if self._failed is not None:
            raise self._failed

    def _take_packs(self) -> None:
        self._packs = self._parts.taker.take(self._look)
        for writer in self._packs:
            for entry in writer.entries:
                key = ObjectKey(entry.kind, entry.id)
                self._adopted.setdefault(key, self._own.setdefault(key, _place(writer, entry)))

    def _append_all(self, objects: Iterable[Compressed], *, last: bool = False) -> None:
        """Write objects, or have them gathered; with ``last`` these are written too."""
        try:
            for (key, data, base), (encoding, payload) in objects:
                difference = None if base is None else self._differences.encode(data, base, len(payload))
                writer = self._target  # after a base may have been written, which may have filled a pack
                if writer is None or writer.sealed:
                    writer = self._writable()
                if difference is not None:
                    record = difference.record(key, len(data), writer.id, writer.begin(self._store_id))
                elif key not in self._damaged and self._gathering.takes(key, data):
                    self._gathering.add(key, data, encode_full(key.kind, key.id, encoding, payload, len(data)))
                    if self._gathering.is_full:
                        self._write_gathered()
                    continue
                else:
                    record = encode_full(key.kind, key.id, encoding, payload, len(data))
                self._own[key] = Place(writer.id, writer.append(key, record, self._store_id), NO_SLOT, 0)
                self._ahead.discard(key)
                if writer.is_full:
                    writer.seal(self._reader.files, self._level)
            if last:
                self._write_gathered()
        except StorageFailed as error:
            self._abandon(error)
            raise

    def _write_gathered(self) -> None:
        while self._gathering.objects:
            writer = self._writable()
            slots, record = self._gathering.take(writer.room)
            offset = writer.append_slots(slots.items(), record, self._store_id)
            self._own |= {key: Place(writer.id, offset, slot, 0) for key, slot in slots.items()}
            self._ahead -= slots.keys()
            if writer.is_full:
                writer.seal(self._reader.files, self._level)

    def _readable(self, key: ObjectKey) -> Place | None:
        """Where an object lies, and can be read now."""
        if key in self._gathering.objects:
            self._write_gathered()
        if (place := self._own.get(key)) is not None:
            self._flush()
            return place
        places = self._state.places([key]).get(key)
        return places[0] if places else None

    def _writable(self) -> PackWriter:
        """The pack to append to: one that is held and has room, else a new one."""
        if self._target is None or self._target.sealed:
            packs = self._packs if self._packs is not None else []
            for writer in packs:
                if not writer.sealed and writer.is_full:
                    writer.seal(self._reader.files, self._level)
            self._target = next((writer for writer in packs if not writer.sealed), None)
            if self._target is None:
                self._target = self._parts.taker.create()
                packs.append(self._target)
            self._let_go(packs)
        return self._target

    def _let_go(self, packs: list[PackWriter]) -> None:
        """Unlock the oldest sealed packs when there are too many: it does no harm when another session adopts them."""
        from casnap.store.adoption import held_packs_limit

        for writer in packs[: -held_packs_limit()]:
            if writer.sealed:
                writer.file.close()

    def _abandon(self, error: StorageFailed) -> None:
        self._failed = error
        for writer in self._packs or ():
            writer.abandon()


class _Missing:
    """Marks what was reached, and stops at what is not there."""

    def __init__(self, present: Callable[[Iterable[ObjectKey]], set[ObjectKey]]) -> None:
        self._present = present
        self._reached: set[ObjectKey] = set()

    def mark(self, keys: Collection[ObjectKey]) -> list[ObjectKey]:
        """Those of ``keys`` that are new.

        Raises:
            Damage: one is not there.
        """
        new = [key for key in keys if key not in self._reached]
        self._reached.update(new)
        missing = set(new) - self._present(new)
        if missing:
            raise Damage(f"cannot read {min(missing)}: the store does not have it")
        return new


def _place(writer: PackWriter, entry: IndexEntry) -> Place:
    return Place(writer.id, entry.offset, entry.slot, 0)
