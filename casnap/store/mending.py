"""Mending what a store consists of, so that it can be opened again: its format file, its log, its catalog.

Nothing is destroyed: what was there is moved aside. A kill at any moment leaves the old log or the new one.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
from collections.abc import Iterator
from pathlib import Path

from casnap.codec.lines import NO_PREVIOUS
from casnap.errors import Damage, StorageFailed
from casnap.fs.appending import AppendFile, Owner, give, make_file, make_private_directory, move_aside, remove
from casnap.fs.durable import sync_directory, write_whole
from casnap.fs.locks import locked
from casnap.fs.swapping import exchange
from casnap.model.clock import Clock
from casnap.model.ids import short
from casnap.model.operation import CheckpointMade, StoreCreated, StoreRepaired
from casnap.model.tree import NANOSECONDS
from casnap.store import creation, media
from casnap.store.catalog_memory import recall, with_memory
from casnap.store.format import Format, encode_format
from casnap.store.found_checkpoints import find_checkpoints, recovered_workspaces, with_workspaces
from casnap.store.inspection import Inspection
from casnap.store.layout import Layout
from casnap.store.lost_ranges import lost_ranges, store_ids
from casnap.store.new_lines import Planned, chain
from casnap.store.oplog import SEGMENT_SIZE

COMMIT_LOCK, GC_LOCK = "commit", "gc"

MOST_RANGES = 5000
"""Pack ranges in one line: it may have a mebibyte, some 80 bytes a range."""


class Mender:
    """Mends one store; ``by`` is who asked, as a line records it, ``holder`` what others are told who have to wait."""

    def __init__(
        self, path: Path, *, explicit: bool, clock: Clock, wait: float, by: tuple[str, ...], holder: str
    ) -> None:
        self._layout = Layout(path)
        self._explicit = explicit
        self._clock = clock
        self._wait = wait
        self._by = by
        self._holder = holder
        self._owner: Owner | None = None
        self.done: list[str] = []

    def run(self) -> list[str]:
        """Mend what has to be mended; what was done, in sentences.

        Raises:
            NoStore, Refused: there is none, or it is another user's.
            TooNew: something in it is of a newer format.
            Busy: somebody else is writing to it.
            Damage: nothing says any more which store it is.
            StorageFailed: the disk refuses.
        """
        self._owner = creation.check_owner(self._layout.root, explicit=self._explicit)
        self._inspect().close()  # nothing is made where there is no store
        make_private_directory(self._layout.locks, self._owner)
        make_private_directory(self._layout.packs, self._owner)
        with self._lock(GC_LOCK), self._lock(COMMIT_LOCK):
            self._finish_swap()
            found = self._inspect()
            with contextlib.closing(found):
                self._mend(found)
        return self.done

    def _inspect(self) -> Inspection:
        return Inspection(self._layout.root, explicit=self._explicit)

    @contextlib.contextmanager
    def _lock(self, name: str) -> Iterator[None]:
        path = self._layout.lock(name)
        make_file(path, self._owner)
        with locked(path, wait=self._wait, holder=self._holder):
            yield

    def _mend(self, found: Inspection) -> None:
        store_format = self._format(found)
        self._require_writable(store_format)
        if not found.log.whole or found.claimed > found.log.seq:
            self._mend_log(found, store_format)
        if found.format_fault is not None or found.format != store_format:
            write_whole(self._layout.format, encode_format(store_format))
            give(self._layout.format, self._owner)
            self.done.append("the format file was written anew")
        for name, cause in found.catalog_faults:
            if (self._layout.root / name).exists():
                self._set_aside(name, cause)

    def _require_writable(self, store_format: Format) -> None:
        """Refuse what every other writer refuses; that a directory is missing is what is to be mended."""
        obstacle = store_format.obstacle or media.obstacle(self._layout.root, self._layout.format)
        if obstacle is not None and not obstacle.endswith("is missing"):
            raise StorageFailed(f"cannot repair store {self._layout.root}: {obstacle}")

    def _format(self, found: Inspection) -> Format:
        """What the first line says, else the file, else what every pack says of whose it is."""
        if (known := found.first_format or found.format) is not None:
            return known
        if not (ids := store_ids(found)):
            raise Damage(
                f"cannot repair store {self._layout.root}: nothing in it says which store it is",
                hint="restore casnap-store.json or the oplog directory from a copy",
            )
        return Format(id=ids[0])

    def set_aside(self, names: list[str]) -> None:
        """Move catalogs aside that have other places of objects than the packs.

        Raises:
            Busy: somebody else is writing to the store.
            StorageFailed: the disk refuses.
        """
        with self._lock(COMMIT_LOCK):
            for name in names:
                self._set_aside(name, "its places of objects were not those of the packs")

    def _set_aside(self, name: str, cause: str) -> None:
        path = self._layout.root / name
        aside = path.with_name(f"{name}.aside")
        move_aside(path, aside)
        move_aside(path.with_name(f"{name}-wal"), path.with_name(f"{aside.name}-wal"))
        remove(path.with_name(f"{name}-shm"))
        if cause:
            self.done.append(f"{name} was set aside, to be made anew: {cause}")

    def _mend_log(self, found: Inspection, store_format: Format) -> None:
        now = self._clock.now()
        planned = [Planned(line.operation, line.operation.seq) for line in found.log.lines]
        if found.log.first_operation is None:
            created = StoreCreated(seq=1, time=now, prev=NO_PREVIOUS, format=store_format.as_dict())
            planned.insert(0, Planned(created))
        memory = recall(found)
        if memory is not None:
            planned = with_memory(planned, memory, now)
        planned = with_workspaces(found, planned, now)
        ranges = tuple(lost_ranges(found))
        seen = max(found.log.seq, found.claimed, memory.seq if memory else 0)
        repaired = StoreRepaired(
            seq=0,
            time=now,
            prev=NO_PREVIOUS,
            by=self._by,
            lost=max(seen - len(found.log.lines), sum(fault.lines for fault in found.log.faults)),
            before=found.log.hash_before_fault,
            packs=ranges[:MOST_RANGES],
        )
        found.add_ranges(ranges)
        found.load_places()
        planned.append(Planned(repaired))
        for start in range(MOST_RANGES, len(ranges), MOST_RANGES):
            more = ranges[start : start + MOST_RANGES]
            planned.append(Planned(StoreRepaired(seq=0, time=now, prev=NO_PREVIOUS, by=self._by, packs=more)))
        back = find_checkpoints(found, planned, now)
        self._replace_log(chain([*planned, *back])[1])
        for number in self._layout.catalogs():  # of the old log: the new one does not prove them
            self._set_aside(self._layout.catalog(number).name, "")
        self._tell(repaired, back, planned)

    def _tell(self, repaired: StoreRepaired, back: list[Planned], planned: list[Planned]) -> None:
        where = f" behind {short(bytes.fromhex(repaired.before))}" if repaired.before else ""
        lines = _count(repaired.lost, "line of it", "lines of it")
        outcome = f"{lines} cannot be read" if repaired.lost else "every line that is left could be read or put right"
        self.done.append(f"the operation log was written anew{where}: {outcome}")
        if listed := sum(isinstance(one.operation, CheckpointMade) for one in back):
            found = _count(listed, "checkpoint", "checkpoints")
            self.done.append(f"found in packs and listed again: {found} that no line knows")
        for path in recovered_workspaces([*planned, *back]):
            self.done.append(
                f"where the workspace {path} really is nobody knows any more: say it with "
                f"`casnap workspace move {path} DIRECTORY`"
            )

    def _replace_log(self, lines: list[bytes]) -> None:
        """Put a whole new log in the place of the old one, which is kept aside."""
        new = self._layout.root / f"{self._layout.oplog.name}-new"
        making = self._layout.root / f"{self._layout.oplog.name}-aside-{self._stamp()}-unfinished"
        make_private_directory(making, self._owner)
        self._write_segments(making, lines)
        move_aside(making, new)
        self._finish_swap(fresh=True)

    def _write_segments(self, directory: Path, lines: list[bytes]) -> None:
        file: AppendFile | None = None
        number = 0
        for line in lines:
            if file is None or file.size >= SEGMENT_SIZE:
                self._end(file)
                number += 1
                file = AppendFile.create(directory / self._layout.segment(number).name, self._owner)
            file.append(line)
        self._end(file)
        sync_directory(directory)

    def _end(self, file: AppendFile | None) -> None:
        if file is not None:
            file.sync()
            file.close()

    def _finish_swap(self, *, fresh: bool = False) -> None:
        """Give a new log its place. One that a killed repair left counts only where there is no other log."""
        old, new = self._layout.oplog, self._layout.root / f"{self._layout.oplog.name}-new"
        if not new.exists():
            return
        aside = self._layout.root / f"{old.name}-aside-{self._stamp()}"
        if not old.exists():
            move_aside(new, old)
        elif not fresh:
            move_aside(new, aside)
        elif exchange(old, new):
            move_aside(new, aside)
            self.done.append(f"the old operation log is kept in {aside.name}")
        else:  # a kill between these two leaves no log but the new one, which the next repair finds
            move_aside(old, aside)
            move_aside(new, old)
            self.done.append(f"the old operation log is kept in {aside.name}")
        remove(self._layout.synced)  # it was about the old one

    def _stamp(self) -> str:
        moment = dt.datetime.fromtimestamp(self._clock.now() // NANOSECONDS, dt.UTC)
        return f"{moment:%Y%m%dT%H%M%SZ}-{os.urandom(2).hex()}"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
