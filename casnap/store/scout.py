"""A scout: a worker that looks ahead, in the later half of what a store holds, for plain records that are sound.

What it passes over is looked at by the walk (:mod:`casnap.store.pack_walk`), which compares all with the index.
"""

from __future__ import annotations

import contextlib
import marshal
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

from casnap.codec.full_records import open_full
from casnap.codec.records import HEADER_SIZE
from casnap.errors import CasnapError, Damage
from casnap.fs.workers import Lost, Tell, Worker, at_work
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.store.packs import PackFiles

Sound = tuple[ObjectKey, int]
"""The object in a sound record, and where the record ends."""

Offsets = Callable[[str], Sequence[int]]
"""Where the records of a pack begin, as its indexes say."""

WORTH = 8 << 20
"""So many bytes of packs are worth forking a worker."""

_WINDOW = 2 << 20


class Scout:
    """What is known of records ahead.

    ``packs`` are walked through in their order; ``begins`` is from where on each is scouted.
    """

    def __init__(self, worker: Worker | None, packs: Sequence[str], begins: Sequence[int]) -> None:
        self._told = iter(()) if worker is None else worker.told()
        self._number = {pack: number for number, pack in enumerate(packs)}
        self._begins = begins
        self._reached = (0, 0)
        self._found: dict[int, Sound] = {}

    def sound(self, pack: str, offset: int) -> Sound | None:
        """The record at ``offset``, if it was found to be sound; walks ask for each once, in order."""
        number = self._number[pack]
        if offset < self._begins[number]:
            return None
        while self._reached < (number, offset + 1) and self._hear():
            pass
        return self._found.pop(offset, None) if self._reached[0] == number else None

    def _hear(self) -> bool:
        """Take in what was found next; whether there was anything."""
        with contextlib.suppress(CasnapError, Lost):  # the walk looks by itself then
            for said in self._told:
                number, reached, found = marshal.loads(said)
                if number != self._reached[0]:
                    self._found.clear()
                self._found.update((offset, (ObjectKey(ObjectKind(kind), id), end)) for offset, kind, id, end in found)
                self._reached = (number, reached)
                return True
        self._reached = (len(self._begins), 0)
        return False


@contextlib.contextmanager
def scouting(
    lengths: Sequence[tuple[str, int]], open_files: Callable[[], PackFiles], offsets: Offsets, *, processes: int
) -> Iterator[Scout | None]:
    """A block in which packs, each with its length, are scouted; None where that is not worth it, or cannot be."""
    total = sum(length for _, length in lengths)
    if processes < 2 or total < WORTH:
        yield None
        return
    packs = [pack for pack, _ in lengths]
    begins, before = [], 0
    for _, length in lengths:
        begins.append(max(0, total // 2 - before))
        before += length

    def look(tell: Tell) -> None:
        files = open_files()
        for number, (pack, length) in enumerate(lengths):
            if begins[number] < length:
                with contextlib.suppress(Damage):
                    known = offsets(pack)
                    for reached, found in _plain(files, pack, known[bisect_left(known, begins[number]) :], length):
                        tell(marshal.dumps((number, reached, found)))
                tell(marshal.dumps((number, length, [])))

    with at_work(look) as worker:
        yield None if worker is None else Scout(worker, packs, begins)


def _plain(
    files: PackFiles, pack: str, offsets: Sequence[int], end: int
) -> Iterator[tuple[int, list[tuple[int, int, bytes, int]]]]:
    """The sound full records that begin at ``offsets``, some at a time, with how far that is."""
    start, window = 0, b""
    found: list[tuple[int, int, bytes, int]] = []
    for offset in offsets:
        opened = open_full(window, offset - start) if start <= offset < start + len(window) - HEADER_SIZE else None
        if opened is None:
            yield offset, found
            start, window, found = offset, files.read(pack, offset, min(_WINDOW, end - offset)), []
            opened = open_full(window, 0)
        if opened is not None:
            (kind, id), _, after = opened
            found.append((offset, int(kind), id, start + after))
    yield end, found
