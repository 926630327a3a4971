"""All packs of a store looked through, and what that says of any one object."""

from __future__ import annotations

import contextlib
import errno
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from casnap.codec.packs import IndexEntry
from casnap.codec.records import MAX_DEPTH, MAX_HEADER_SIZE, Encoding, parse_header
from casnap.errors import Damage, TooNew
from casnap.model.clock import Progress
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.store.index import ReadRange
from casnap.store.inspection import Inspection
from casnap.store.pack_walk import PackAccount, PackWalk
from casnap.store.rows import PackRow, Place
from casnap.store.scout import Scout, scouting

THREADS = 2
"""Hashing and decompressing leave Python's lock: two packs are then looked through at once."""


@dataclass(slots=True)
class PackSurvey:
    """What the packs are like: accounts of those that could be read, by the id of each.

    ``gone`` are packs that the log names and that are not there, ``unreadable`` those that may not be read, with the
    cause. ``tails`` are how many bytes lie behind what is committed, also in packs that no line names.
    """

    accounts: dict[str, PackAccount] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    unreadable: dict[str, str] = field(default_factory=dict)
    tails: dict[str, int] = field(default_factory=dict)


def survey(found: Inspection, progress: Progress, *, read_data: bool, processes: int = 1) -> PackSurvey:
    """Look through every pack that the log names; with ``read_data`` through every byte, with ``processes`` at work.

    Raises:
        TooNew: a pack or a record is of a newer format.
    """
    result = PackSurvey()
    sizes = _sizes(found, result)
    rows = [row for row in found.packs if row.id in sizes]
    guard = threading.Lock()

    def advance(amount: int) -> None:
        with guard:
            progress.advance(amount)

    lengths = [(row.id, min(sizes[row.id], row.length)) for row in rows]
    progress.begin("checking", sum(length for _, length in lengths))
    try:
        with _scouting(found, lengths, processes=processes if read_data else 1) as scout:

            def walk(row: PackRow) -> PackAccount:
                return _walk(found, row, sizes[row.id], scout, read_data=read_data, advance=advance)

            for account in _each(walk, rows, threads=THREADS if read_data and scout is None else 1):
                result.accounts[account.pack] = account
    finally:
        progress.end()
    return result


def _scouting(
    found: Inspection, lengths: list[tuple[str, int]], *, processes: int
) -> contextlib.AbstractContextManager[Scout | None]:
    """A scout ahead of the walks, where one serves."""

    def offsets(pack: str) -> list[int]:
        return sorted({entry.offset for entry in _entries(found, pack, found.reader.committed)})

    return scouting(lengths, lambda: found.another_reader().files, offsets, processes=processes)


def _each(walk: Callable[[PackRow], PackAccount], rows: Sequence[PackRow], *, threads: int) -> Iterator[PackAccount]:
    """Walk through every pack, in threads where that serves anything."""
    if min(threads, len(rows)) < 2:
        yield from map(walk, rows)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(walk, rows)


def _sizes(found: Inspection, result: PackSurvey) -> dict[str, int]:
    """The sizes of the packs that can be read, named or not; the others are noted."""
    lengths = {row.id: row.length for row in found.packs}
    sizes: dict[str, int] = {}
    for pack in sorted({*lengths, *found.layout.pack_ids()}):
        try:
            sizes[pack] = found.size_of(pack)
        except FileNotFoundError:
            result.gone.add(pack)
        except OSError as error:
            result.unreadable[pack] = error.strerror or errno.errorcode.get(error.errno or 0, "unknown")
        else:
            if (tail := sizes[pack] - lengths.get(pack, 0)) > 0:
                result.tails[pack] = tail
    return sizes


def _walk(
    found: Inspection,
    row: PackRow,
    size: int,
    scout: Scout | None,
    *,
    read_data: bool,
    advance: Callable[[int], None],
) -> PackAccount:
    reader = found.another_reader()
    scouted = scout.sound if scout else _nothing_known
    try:
        return PackWalk(
            reader,
            found.places.places,
            row.id,
            found.store_id,
            size=size,
            length=row.length,
            entries=_entries(found, row.id, reader.committed),
            read_data=read_data,
            advance=advance,
            scouted=scouted,
        ).run()
    except Damage as error:  # the pack went away, or its disk cannot read it at all
        account = PackAccount(row.id)
        account.broken = error.message.partition(": ")[2] or error.message
        return account
    finally:
        reader.files.close()


def _nothing_known(pack: str, offset: int) -> None:
    """Of no record."""


def _entries(found: Inspection, pack: str, committed: ReadRange) -> Iterator[IndexEntry]:
    """What the index records of a pack say, but for what was cut off since."""
    for seq, written in found.ranges.get(pack, ()):
        yield from found.places.left(seq, pack, tuple(committed(written)))


class Soundness:
    """Answers, after a survey, whether an object can be had. ``all_good``: the packs have all that they should have."""

    def __init__(self, found: Inspection, surveyed: PackSurvey) -> None:
        self._found = found
        self._bad = {
            (account.pack, fault.offset)
            for account in surveyed.accounts.values()
            for fault in account.faults
            if fault.lost
        }
        self._whole = {pack for pack, account in surveyed.accounts.items() if not account.broken}
        self.all_good = (
            not self._bad
            and not surveyed.gone
            and not surveyed.unreadable
            and len(self._whole) == len(surveyed.accounts)
        )

    def has_all(self, kind: ObjectKind, ids: Iterable[bytes]) -> bool:
        """Whether every one of these objects can be had; only where nothing at all is wrong with the packs."""
        return self.all_good and self._found.places.holds_all(kind, ids)

    def has(self, key: ObjectKey) -> bool:
        """Whether one place of the object is good, and what it builds on too."""
        if self.all_good:
            return self._found.places.holds(key)
        return any(self._is_good(place, MAX_DEPTH + 1) for place in self._found.places.places(key))

    def _is_good(self, place: Place, below: int) -> bool:
        if place.pack not in self._whole or (place.pack, place.offset) in self._bad:
            return False
        with contextlib.suppress(Damage, TooNew):
            header = parse_header(self._found.files.read(place.pack, place.offset, MAX_HEADER_SIZE))
            if header.encoding is not Encoding.DELTA:
                return True
            if header.depth >= below:
                return False
            if header.base_distance:
                base = place._replace(offset=place.offset - header.base_distance, slot=header.base_slot)
                return self._is_good(base, header.depth)
            key = ObjectKey(ObjectKind(header.kind), header.base_id)
            return any(self._is_good(base, header.depth) for base in self._found.places.places(key))
        return False
