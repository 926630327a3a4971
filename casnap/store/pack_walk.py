"""One pack from its first byte to the last that is committed: every record, against what the index says of it."""

from __future__ import annotations

import bisect
import contextlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from casnap.codec.full_records import open_full
from casnap.codec.packs import (
    PACK_HEADER_SIZE,
    TRAILER_SIZE,
    IndexEntry,
    parse_pack_header,
    parse_trailer,
)
from casnap.codec.records import (
    ALIGNMENT,
    HEADER_SIZE,
    MAGIC,
    MAX_HEADER_SIZE,
    NO_SLOT,
    Encoding,
    RecordHeader,
    RecordKind,
    check_payload,
    parse_header,
)
from casnap.errors import Damage
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.store.objects import FindPlaces, ObjectReader
from casnap.store.packs import PackFiles, Record

if TYPE_CHECKING:
    from casnap.store.scout import Sound

MOST_ON_ONE_BASE = 64
"""Objects that may be deltas on one base: more would all be lost with it."""

_SEARCH_READ = 1 << 20
_READ_AHEAD = 1 << 20


@dataclass(frozen=True, slots=True)
class RecordFault:
    """What is wrong with what begins at ``offset``: ``keys`` are the objects that should be there.

    ``lost`` says that they are not, here at least; otherwise readers do without what is damaged.
    """

    offset: int
    cause: str
    keys: tuple[ObjectKey, ...] = ()
    lost: bool = True


@dataclass(slots=True)
class PackAccount:
    """What a walk through one pack found; ``broken`` says why it could not be walked, empty where it could.

    ``whole`` is where the last record ends whose header is good, and ``cut`` says that the file ends before what is
    committed.
    """

    pack: str
    records: int = 0
    objects: int = 0
    bytes: int = 0
    faults: list[RecordFault] = field(default_factory=list)
    broken: str = ""
    whole: int = PACK_HEADER_SIZE
    cut: bool = False


def search_record(files: PackFiles, pack: str, offset: int, end: int) -> int | None:
    """Where, behind ``offset`` and before ``end``, the next valid header begins; None when none does.

    Raises:
        TooNew: its kind or encoding is not known.
    """
    start = offset + ALIGNMENT
    while start < end:
        data = files.read(pack, start, min(_SEARCH_READ, end - start))
        found = data.find(MAGIC)
        while found >= 0:
            if not found % ALIGNMENT:
                with contextlib.suppress(Damage):
                    parse_header(files.read(pack, start + found, MAX_HEADER_SIZE))
                    return start + found
            found = data.find(MAGIC, found + 1)
        start += _SEARCH_READ
    return None


class PackWalk:
    """A walk through one pack of ``size`` bytes, ``length`` of them committed; ``entries`` is what its indexes say."""

    def __init__(
        self,
        reader: ObjectReader,
        find: FindPlaces,
        pack: str,
        store_id: str,
        *,
        size: int,
        length: int,
        entries: Iterable[IndexEntry],
        read_data: bool,
        advance: Callable[[int], None],
        scouted: Callable[[str, int], Sound | None],
    ) -> None:
        """``scouted`` tells of sound records that were looked at before."""
        self.account = PackAccount(pack)
        self._reader = reader
        self._find = find
        self._pack = pack
        self._store_id = store_id
        self._size, self._length = size, length
        self._read_data = read_data
        self._advance = advance
        self._scouted = scouted
        self._expected: dict[int, list[IndexEntry]] = defaultdict(list)
        for entry in entries:
            self._expected[entry.offset].append(entry)
        for offset, at in self._expected.items():
            if len(at) > 1:  # a group; or several lines told of it
                self._expected[offset] = list(dict.fromkeys(at))
        self._offsets = sorted(self._expected)
        self._visited: set[int] = set()
        self._bases: Counter[tuple[int, int]] = Counter()
        self._unknown: list[int] = []
        self._seal: int | None = None
        self._ahead = _READ_AHEAD if read_data else MAX_HEADER_SIZE
        self._window, self._window_start = b"", 0

    def run(self) -> PackAccount:
        """Walk.

        Raises:
            TooNew: the pack or a record is of a newer format.
        """
        self._check_header()
        end = min(self._size, self._length)
        offset = PACK_HEADER_SIZE
        while offset < end:
            after = self._pass_sound(offset, end) if self._read_data else offset
            if after == offset:
                after = self._look(offset, end)
            self._advance(after - offset)
            offset = after
        self.account.cut = self._size < self._length
        if self.account.cut:
            cause = f"the pack is cut: it has {self._size} bytes, {self._length} are committed"
            self.account.faults.append(RecordFault(self._size, cause, lost=False))
        for missed in self._offsets:
            if missed not in self._visited:
                cause = "no whole record begins here" if missed < end else "it lies behind the end of the pack"
                self._fault(missed, cause)
        if self._unknown:
            cause = f"{len(self._unknown)} of the objects from here on are in no index"
            self._fault(self._unknown[0], cause, lost=False)
        for (base, _), count in self._bases.items():
            if count > MOST_ON_ONE_BASE:
                self._fault(base, f"{count} objects are deltas on this one", lost=False)
        self.account.bytes = end
        return self.account

    def _check_header(self) -> None:
        try:
            header = parse_pack_header(self._reader.files.read(self._pack, 0, PACK_HEADER_SIZE))
        except Damage as error:
            self._fault(0, error.message.partition(": ")[2], lost=False)
            return
        if header.pack_id.hex() != self._pack:
            self._fault(0, f"its header says that it is pack {header.pack_id.hex()}", lost=False)
        elif self._store_id and header.store_id.hex() != self._store_id:
            self._fault(0, f"its header says that it belongs to store {header.store_id.hex()}", lost=False)

    def _pass_sound(self, offset: int, end: int) -> int:
        """Go over full records that are what the index says, up to the first that must be looked at more closely."""
        passed = 0
        while (found := self._scouted(self._pack, offset) or self._sound(offset)) is not None:
            (kind, id), after = found
            if after > end or self._expected.get(offset) != [(kind, id, offset, NO_SLOT)]:
                break
            self._visited.add(offset)
            passed += 1
            offset = after
        self.account.records += passed
        self.account.objects += passed
        if passed:
            self.account.whole = offset
        return offset

    def _sound(self, offset: int) -> Sound | None:
        """The object in the full record at ``offset``, and where that ends, if it is sound."""
        self._bytes(offset, HEADER_SIZE)
        opened = open_full(self._window, offset - self._window_start)
        return None if opened is None else (opened[0], self._window_start + opened[2])

    def _look(self, offset: int, end: int) -> int:
        """Look at what begins at ``offset``; where the next record begins."""
        self._visited.add(offset)
        try:
            header = parse_header(self._bytes(offset, MAX_HEADER_SIZE))
            after = offset + header.size
            if after > end:
                raise Damage("cannot read record: it is cut short")
        except Damage as error:
            self._fault(offset, error.message.partition(": ")[2])
            return self._next_known(offset, end)
        self.account.records += 1
        self.account.whole = after
        try:
            self._check(offset, header)
        except Damage as error:
            self._fault(offset, error.message.partition(": ")[2] or error.message, lost=header.kind <= RecordKind.GROUP)
            known = bisect.bisect_right(self._offsets, offset)  # its end may have gone, and what followed moved there
            return min([after, *self._offsets[known : known + 1]])
        return after

    def _bytes(self, offset: int, size: int) -> bytes:
        """Bytes of the pack, fewer at its end: from what was read ahead, since all of it is looked at in order."""
        start = offset - self._window_start
        if not 0 <= start <= len(self._window) - size:
            self._window = self._reader.files.read(self._pack, offset, max(size, self._ahead))
            self._window_start, start = offset, 0
        return self._window[start : start + size]

    def _next_known(self, offset: int, end: int) -> int:
        """Where to go on behind a header that cannot be read: its length is not known.

        A file's bytes may look like records, so what the index knows comes before the search.
        """
        at = bisect.bisect_right(self._offsets, offset)
        if at < len(self._offsets):
            return min(self._offsets[at], end)
        return search_record(self._reader.files, self._pack, offset, end) or end

    def _check(self, offset: int, header: RecordHeader) -> None:
        self._check_index(offset, header)
        skip = header.kind is RecordKind.CHUNK and not self._read_data
        if header.encoding is Encoding.DELTA:
            self._check_base(offset, header)
        if skip:
            return
        record = Record(offset, header, check_payload(header, self._bytes(offset, header.size)))
        if self._read_data and header.kind <= RecordKind.GROUP:
            self._check_names(offset, self._reader.entries(self._pack, record))
        elif header.kind in (RecordKind.INDEX, RecordKind.SEAL):
            self._check_listed(record)
        elif header.kind is RecordKind.TRAILER:
            self._check_trailer(record)

    def _check_index(self, offset: int, header: RecordHeader) -> None:
        """See that the index says of this record what its header says."""
        expected = self._expected.get(offset, ())
        if header.kind is RecordKind.GROUP:
            self.account.objects += len(expected)
            if any(entry.slot == NO_SLOT for entry in expected):
                raise Damage("cannot read record: the index takes a group for a single object")
        elif header.kind.is_object:
            self.account.objects += 1
            if not expected:
                self._unknown.append(offset)
            for entry in expected:
                if (entry.slot, int(entry.kind)) != (NO_SLOT, header.kind) or entry.id[:8] != header.id_prefix:
                    raise Damage("cannot read record: it is not the object that the index says")
        elif expected:
            raise Damage("cannot read record: it holds no object, and the index says that it does")

    def _check_base(self, offset: int, header: RecordHeader) -> None:
        if header.base_distance:
            places = [(self._pack, offset - header.base_distance, header.base_slot)]
            if places[0][1] < PACK_HEADER_SIZE:
                raise Damage("cannot read delta: its base lies before the pack")
            self._bases[places[0][1:]] += 1
        else:
            key = ObjectKey(ObjectKind(header.kind), header.base_id)
            places = [place[:3] for place in self._find(key)]
        if not any(self._may_be_base(pack, base, slot, header) for pack, base, slot in places):
            raise Damage("cannot read delta: its base is missing, damaged, or as deep as itself")

    def _may_be_base(self, pack: str, offset: int, slot: int, delta: RecordHeader) -> bool:
        try:
            base = parse_header(self._reader.files.read(pack, offset, MAX_HEADER_SIZE))
        except Damage:
            return False
        return base.kind is (delta.kind if slot == NO_SLOT else RecordKind.GROUP) and base.depth < delta.depth

    def _check_names(self, offset: int, found: Sequence[IndexEntry]) -> None:
        """See that what a record decodes to is what the index says."""
        wanted = self._expected.get(offset, ())
        if not set(wanted) <= set(found):
            raise Damage("cannot read record: its bytes do not match the name in the index")

    def _check_listed(self, record: Record) -> None:
        if record.header.kind is RecordKind.SEAL:
            self._seal = record.offset
        for entry in self._reader.decode_index_of(record):
            if entry not in self._expected.get(entry.offset, ()):
                raise Damage("cannot read index: it names an object that no committed index has")

    def _check_trailer(self, record: Record) -> None:
        if parse_trailer(self._reader.files.read(self._pack, record.offset, TRAILER_SIZE)) != self._seal:
            raise Damage("cannot read trailer: it does not lead to the seal")

    def _fault(self, offset: int, cause: str, *, lost: bool = True) -> None:
        keys = tuple(ObjectKey(entry.kind, entry.id) for entry in self._expected.get(offset, ()))
        self.account.faults.append(RecordFault(offset, cause, keys, lost and bool(keys)))
