"""What objects take in packs: the sizes of their records."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from casnap.codec.records import MAX_HEADER_SIZE, NO_SLOT, decode_payload, parse_header, split_group
from casnap.errors import Damage, TooNew
from casnap.model.ids import ObjectKey
from casnap.store.layout import Layout
from casnap.store.packs import PackFiles
from casnap.store.rows import Place
from casnap.store.store import Store

_ASKED_AT_ONCE = 10_000


def record_sizes(store: Store, keys: Iterable[ObjectKey]) -> dict[ObjectKey, int]:
    """Bytes of each object's record, header and padding included; what has no record that can be read is not in it.

    Of several records the one counts that is read. The objects of a group share its size evenly. Only headers are
    read, in the order in which they lie on the disk.
    """
    found: dict[ObjectKey, int] = {}
    files = PackFiles(Layout(store.path))
    measure = _Measure(files)
    waiting = iter(keys)
    try:
        while batch := list(itertools.islice(waiting, _ASKED_AT_ONCE)):
            places = store.state().places(batch)
            for key in sorted(places, key=lambda key: places[key][0][:3]):
                size = measure.first(places[key])
                if size is not None:
                    found[key] = size
    finally:
        files.close()
    return found


class _Measure:
    """Sizes by place; how many objects are in a group is remembered."""

    def __init__(self, files: PackFiles) -> None:
        self._files = files
        self._groups: dict[tuple[str, int], int] = {}

    def first(self, places: Iterable[Place]) -> int | None:
        """The size at the first of these places where there is a record."""
        for place in places:
            try:
                return self._at(place)
            except (Damage, TooNew):
                continue
        return None

    def _at(self, place: Place) -> int:
        size = parse_header(self._files.read(place.pack, place.offset, MAX_HEADER_SIZE)).size
        if place.slot == NO_SLOT:
            return size
        share, rest = divmod(size, self._count(place.pack, place.offset))
        return share + (place.slot < rest)

    def _count(self, pack: str, offset: int) -> int:
        if (pack, offset) not in self._groups:
            record = self._files.record(pack, offset)
            self._groups[pack, offset] = len(split_group(decode_payload(record.header, record.payload, None)))
        return self._groups[pack, offset]
