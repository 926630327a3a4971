"""Giving space back: packs that nothing needs go, and what is needed of the others moves together.

The order is what keeps it safe. What is needed is copied and forced out first; then a line of the operation log says
which packs are cut or removed; only then they are. Whoever stops in between leaves bytes that nobody names.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from casnap.errors import StorageFailed, TooNew
from casnap.fs.appending import AppendFile
from casnap.fs.durable import sync_directory
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.objects import ObjectSource
from casnap.model.operation import PackCut, PackRange
from casnap.store.adoption import held_packs_limit
from casnap.store.compaction import FRAME_SIZE, Compaction, entries_size, nowhere
from casnap.store.format import Format
from casnap.store.marks import Arrival, Marks, PackMarks
from casnap.store.neighbours import Neighbours
from casnap.store.parts import Parts
from casnap.store.reach import reach
from casnap.store.repacking import Repacking
from casnap.store.rows import Place
from casnap.store.space import NEEDED, Space
from casnap.store.store import Store


@dataclass(slots=True)
class _Held:
    """A pack that is locked (unless this is a dry run, or its file is gone), and the bytes of its file.

    ``copied`` are those of its objects that have been copied since it was last cut.
    """

    marks: PackMarks
    file: AppendFile | None
    size: int
    copied: int = 0


class Collection:
    """One run over a store. With ``dry`` nothing is locked or written.

    With ``parts`` what a checkpoint leads to is written in full where it builds on what none leads to.

    ``source`` gives the store's objects. ``freed_bytes`` counts what was cut off and removed, ``in_use`` packs that
    others write to.
    """

    def __init__(self, made_of: Parts, source: ObjectSource, space: Space, *, dry: bool, parts: bool = False) -> None:
        self.marks = Marks(made_of.state, made_of.reader)
        begin = nowhere if dry else made_of.taker.create
        may_build_on = self._is_reached if parts else None
        self.compaction = Compaction(made_of.reader, begin, made_of.store_id, made_of.level, may_build_on)
        self.freed_bytes = 0
        self.in_use = 0
        self._parts = made_of
        self._source = source
        self._space = space
        self._dry = dry
        self._held: dict[str, _Held] = {}
        self._arrivals: list[Arrival] = []
        self._lengths: dict[str, int] = {}

    def mark(self, checkpoints: Iterable[bytes]) -> None:
        """All that these checkpoints lead to is needed. What was marked before costs little.

        Raises:
            Damage: something cannot be read, so that it is not known what is needed.
        """
        reach(self._source, (ObjectKey(ObjectKind.CHECKPOINT, id) for id in checkpoints), self.marks.mark)

    @property
    def total_bytes(self) -> int:
        """Bytes that are committed to packs."""
        return sum(marks.length for marks in self.marks.packs.values())

    @property
    def dead_bytes(self) -> int:
        """Bytes of packs that would not be missed."""
        return sum(max(0, marks.length - _used_size(marks)) for marks in self.marks.packs.values())

    def dead(self) -> list[str]:
        """The packs of which nothing is needed."""
        return sorted(marks.id for marks in self.marks.packs.values() if not marks.kept)

    def loose(self, share: float) -> list[str]:
        """The packs of which more than ``share`` would not be missed, those that are quickest to rewrite first."""
        packs = [(_used_size(marks), marks) for marks in self.marks.packs.values() if marks.kept]
        chosen = [(size, marks.id) for size, marks in packs if marks.length - size > share * marks.length]
        return [pack for _, pack in sorted(chosen)]

    def unrested(self, share: float) -> list[str]:
        """The packs that are not in the form for what is at rest, and :meth:`loose` ones; the smallest first."""
        loose = set(self.loose(share))
        chosen = [one for one in self.marks.packs.values() if one.kept and (not one.repacked or one.id in loose)]
        return [marks.id for marks in sorted(chosen, key=lambda marks: (_packed_size(marks), marks.id))]

    def hold(self, packs: Iterable[str]) -> list[str]:
        """Lock packs, as many as may be held and are neither written to nor changed: those that were locked."""
        wanted = list(packs)[: held_packs_limit() - len(self._held)]
        for pack in wanted:
            if (held := self._locked(self.marks.packs[pack])) is not None:
                self._held[pack] = held
        known, _ = self._parts.look()
        for pack in [pack for pack in wanted if pack in self._held]:
            row = known.get(pack)
            if row is None or row.length != self.marks.packs[pack].length:
                self._let_go(pack)
        self.in_use += sum(pack not in self._held for pack in wanted)
        return [pack for pack in wanted if pack in self._held]

    def fits(self, pack: str) -> bool:
        """Whether there is room to copy what is needed of a pack."""
        return bool(self.fitting([pack]))

    def fitting(self, packs: Iterable[str]) -> list[str]:
        """As many packs, from the first on, as there is room for to copy what is needed of them."""
        room = self._space.free()[0] - NEEDED
        fit = []
        for pack in packs:
            room -= _packed_size(self.marks.packs[pack])
            if room < 0 and not self._dry:
                break
            fit.append(pack)
        return fit

    def copy(self, pack: str) -> PackCut:
        """Take over all that is needed of a pack that is held; by the next line it can be removed.

        Raises:
            Damage: a record is bad.
            StorageFailed: the disk refused.
        """
        self._copy(self._held[pack], 0)
        return PackCut(pack, 0)

    def repack(self, packs: Iterable[str], neighbours: Neighbours) -> list[PackCut]:
        """Take over all that is needed of packs that are held, like by like; by the next line they can be removed.

        Raises:
            Damage, StorageFailed: as for :meth:`copy`.
        """
        held = {pack: self._held[pack] for pack in packs}
        sources = [one.marks for one in held.values()]
        for (pack, offset, slot), moved in Repacking(self._parts.reader, self.compaction, neighbours, sources).run():
            held[pack].copied += 1
            self._arrivals.append(Arrival(*moved, held[pack].marks.is_reached_at(offset, slot)))
        return [PackCut(pack, 0) for pack in held]

    def cut_back(self, pack: str) -> PackCut | None:
        """Copy as much from the end of a pack as there is room for, so that it can be cut there.

        None when there is not even room for one record.

        Raises:
            Damage: a record is bad.
            StorageFailed: the disk refused.
        """
        held = self._held[pack]
        records = list(held.marks.records())
        if _end(records) < held.marks.length:
            return PackCut(pack, _end(records))
        room = self._space.free()[0] - NEEDED // 2 - FRAME_SIZE
        start = held.marks.length
        while records and room >= records[-1][1] + entries_size(len(held.marks.slots(records[-1][0]))):
            start, size = records.pop()
            room -= size + entries_size(len(held.marks.slots(start)))
        if start == held.marks.length:
            return None
        self._copy(held, start)
        return PackCut(pack, _end(records))

    def finish(self) -> tuple[PackRange, ...]:
        """Force out what was copied; the ranges for the line.

        Raises:
            StorageFailed: the disk refused.
        """
        ranges = self.compaction.finish()
        self._lengths = {written.pack: written.end for written in ranges}
        if ranges and not self._dry:
            sync_directory(self._parts.layout.packs)
        return ranges

    def still_free(self, cuts: Iterable[PackCut]) -> tuple[PackCut, ...]:
        """Those of ``cuts`` that take nothing away that is needed by now; under the commit lock, after :meth:`mark`."""
        return tuple(
            cut for cut in cuts if self.marks.packs[cut.pack].kept_from(cut.length) == self._held[cut.pack].copied
        )

    def carry_out(self, cuts: Iterable[PackCut]) -> None:
        """What was finished is committed: cut and remove the packs that the line names."""
        self.marks.adopt(self._arrivals, self._lengths)
        self._arrivals = []
        self.compaction.confirm()
        for cut in cuts:
            self._cut(self._held[cut.pack], cut)

    def hand_over(self) -> None:
        """From now on a line may name what was copied: it is not taken away, whatever happens."""
        self.compaction.hand_over()

    def take_back(self) -> None:
        """No line names it."""
        self.compaction.take_back()

    def release(self) -> None:
        """Let go of all packs that are held, and take away what was copied and is not committed."""
        self.compaction.abandon()
        self._arrivals = []
        for pack in list(self._held):
            self._let_go(pack)

    def _copy(self, held: _Held, start: int) -> None:
        marks = held.marks
        for offset, _ in marks.records(start):
            slots = marks.slots(offset)
            held.copied += len(slots)
            for slot, moved in zip(slots, self.compaction.copy(marks.id, offset, slots), strict=True):
                self._arrivals.append(Arrival(*moved, marks.is_reached_at(offset, slot)))

    def _cut(self, held: _Held, cut: PackCut) -> None:
        self.freed_bytes += held.size - cut.length
        if held.file is not None:
            self._parts.reader.files.forget(cut.pack)
            with contextlib.suppress(StorageFailed):  # what is left is nobody's: the next run takes it away
                held.file.cut(cut.length) if cut.length else held.file.discard()
        held.copied, held.size = 0, cut.length
        if cut.length:
            held.marks.cut(cut.length)
        else:
            self._let_go(cut.pack)
            del self.marks.packs[cut.pack]

    def _is_reached(self, place: Place) -> bool:
        """Whether a checkpoint leads to what lies there, as far as is known: of what came later it is not."""
        at = self.marks.at(place)
        return at is None or at[0].is_reached(at[1])

    def _locked(self, marks: PackMarks) -> _Held | None:
        path = self._parts.layout.pack(marks.id)
        try:
            size = os.stat(path).st_size
        except OSError:
            return _Held(marks, None, 0)
        if self._dry:
            return _Held(marks, None, size)
        with contextlib.suppress(StorageFailed):
            file = AppendFile.open(path)
            with contextlib.suppress(StorageFailed):
                if file.lock():
                    return _Held(marks, file, file.size)
            file.close()
        return None

    def _let_go(self, pack: str) -> None:
        held = self._held.pop(pack)
        if held.file is not None:
            held.file.close()


def collection_of(store: Store, *, dry: bool, parts: bool = False) -> Collection:
    """What gives space back in a store, as it is now; ``dry`` only reckons, ``parts`` is as for :class:`Collection`.

    Raises:
        TooNew: the store has features that this version does not know, and might destroy.
    """
    require_collectable(store.format, store.path)
    store.state()
    return Collection(store.parts, store, store.space, dry=dry, parts=parts)


def require_collectable(store_format: Format, path: Path) -> None:
    """See that space may be given back in a store of this format.

    Raises:
        TooNew: it has features that this version does not know, and might destroy.
    """
    if unknown := store_format.unknown_to_collect:
        cause = f"it uses {', '.join(unknown)}, which this casnap does not know"
        raise TooNew(f"cannot free anything in store {path}: {cause}", hint="use a newer casnap")


def _packed_size(marks: PackMarks) -> int:
    """At most how many bytes what is needed of a pack takes in a new one."""
    return FRAME_SIZE + marks.kept_bytes + entries_size(marks.kept) if marks.kept else 0


def _used_size(marks: PackMarks) -> int:
    """About how many bytes it takes there, groups of which not all is needed being written anew."""
    return FRAME_SIZE + marks.used_bytes + entries_size(marks.kept) if marks.kept else 0


def _end(records: list[tuple[int, int]]) -> int:
    """Where the last record ends; 0 when there is none."""
    return sum(records[-1]) if records else 0
