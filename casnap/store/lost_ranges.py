"""What packs hold that no line of the operation log speaks of any more: the ranges of commits whose lines are lost."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from casnap.codec.packs import PACK_HEADER_SIZE, parse_pack_header
from casnap.codec.records import RecordKind
from casnap.errors import Damage, StorageFailed
from casnap.fs.appending import AppendFile
from casnap.model.operation import PackRange, SpaceFreed
from casnap.store.inspection import Inspection


def lost_ranges(found: Inspection) -> list[PackRange]:
    """Ranges that cover all that is whole in this store's packs and that no line names.

    The end of a pack that somebody is writing to is left out, and so are packs that a line says were removed.

    Raises:
        TooNew: a record is of a newer format.
    """
    removed = _removed(found)
    ranges: list[PackRange] = []
    for pack in sorted(found.layout.pack_ids()):
        if pack not in removed and _is_ours(found, pack):
            with contextlib.suppress(Damage, OSError):
                for start, end, at_end in _gaps(found, pack):
                    ranges += _in_gap(found, pack, start, end, at_end=at_end)
    return ranges


def store_ids(found: Inspection) -> list[str]:
    """The ids of stores that the packs say they belong to, the most frequent first."""
    seen: dict[str, int] = {}
    for pack in found.layout.pack_ids():
        with contextlib.suppress(Damage):
            id = parse_pack_header(found.files.read(pack, 0, PACK_HEADER_SIZE)).store_id.hex()
            seen[id] = seen.get(id, 0) + 1
    return sorted(seen, key=lambda id: -seen[id])


def _removed(found: Inspection) -> set[str]:
    """Packs that a line removed and that no later line named again."""
    gone: dict[str, int] = {}
    for line in found.log.lines:
        if isinstance(line.operation, SpaceFreed):
            gone |= {cut.pack: line.operation.seq for cut in line.operation.cuts if not cut.length}
    return {pack for pack, seq in gone.items() if not any(named > seq for named, _ in found.ranges.get(pack, ()))}


def _is_ours(found: Inspection, pack: str) -> bool:
    """Whether the header says so; one that cannot be read belongs to us if a line names the pack."""
    try:
        header = parse_pack_header(found.files.read(pack, 0, PACK_HEADER_SIZE))
    except Damage:
        return pack in found.ranges
    return header.store_id.hex() == (found.store_id or header.store_id.hex())


def _gaps(found: Inspection, pack: str) -> Iterator[tuple[int, int, bool]]:
    """Where a pack is not covered by lines: first byte, the byte behind the last, and whether that is its end."""
    position = 0
    size = found.size_of(pack)
    for written in sorted((written for _, written in found.ranges.get(pack, ())), key=lambda one: one.start):
        if written.start > max(position, PACK_HEADER_SIZE):
            yield position, written.start, False
        position = max(position, written.end)
    if max(position, PACK_HEADER_SIZE) < size:
        yield position, size, True


def _in_gap(found: Inspection, pack: str, start: int, end: int, *, at_end: bool) -> list[PackRange]:
    """A range for each index record in a gap; one without, which makes readers walk, for objects behind the last."""
    ranges: list[PackRange] = []
    position, reached = start, start
    objects = False
    for record in found.files.surviving(pack, start, end):
        kind = record.header.kind
        if kind is RecordKind.INDEX or (kind is RecordKind.SEAL and objects):  # a seal is the index of a single commit
            ranges.append(PackRange(pack, position, record.end, record.offset))
            position, objects = record.end, False
        elif kind in (RecordKind.SEAL, RecordKind.TRAILER):
            if ranges and ranges[-1].end == record.offset:
                ranges[-1] = PackRange(pack, ranges[-1].start, record.end, ranges[-1].index)
                position = record.end
        elif kind <= RecordKind.GROUP:
            objects = True
        reached = record.end
    if objects and (not at_end or _is_free(found, pack)):
        ranges.append(PackRange(pack, position, reached, position))
    return ranges


def _is_free(found: Inspection, pack: str) -> bool:
    """Whether nobody is writing to a pack."""
    with contextlib.suppress(StorageFailed), contextlib.closing(AppendFile.open(found.layout.pack(pack))) as file:
        return file.lock()
    return False
