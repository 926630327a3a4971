"""Groups that were taken apart lately: whoever reads one object of a group mostly reads its neighbours next."""

from __future__ import annotations

from collections import OrderedDict

from casnap.codec.records import decode_payload, split_group
from casnap.model.ids import ObjectKey
from casnap.store.packs import PackFiles, Record

KEPT_BYTES = 8 << 20
"""Raw bytes of groups that are kept in memory."""

Objects = tuple[tuple[ObjectKey, bytes], ...]
"""The objects of a group by slot: their names, computed from their bytes, and these."""


class GroupCache:
    """The groups of a store's packs, decoded. Nothing is remembered of a pack that was let go of, for it may change."""

    def __init__(self, files: PackFiles) -> None:
        self._files = files
        self._forgotten = files.forgotten
        self._groups: OrderedDict[tuple[str, int], tuple[bytes, Objects, int]] = OrderedDict()
        self._bytes = 0

    def at(self, pack: str, offset: int) -> Objects | None:
        """The group that begins there where it is in memory; the disk is not looked at."""
        self._keep_up()
        known = self._groups.get((pack, offset))
        if known is None:
            return None
        self._groups.move_to_end((pack, offset))
        return known[1]

    def take_apart(self, pack: str, record: Record) -> Objects:
        """The objects of a group that was read just now.

        Raises:
            Damage: it cannot be decoded.
        """
        self._keep_up()
        known = self._groups.get((pack, record.offset))
        if known is not None and known[0] == record.payload:
            return known[1]
        objects = split_group(decode_payload(record.header, record.payload, None))
        self._drop((pack, record.offset))
        self._groups[pack, record.offset] = (record.payload, objects, record.header.raw_size)
        self._bytes += record.header.raw_size
        while self._bytes > KEPT_BYTES and len(self._groups) > 1:
            self._drop(next(iter(self._groups)))
        return objects

    def _keep_up(self) -> None:
        if self._forgotten != self._files.forgotten:
            self._forgotten = self._files.forgotten
            self._groups.clear()
            self._bytes = 0

    def _drop(self, at: tuple[str, int]) -> None:
        if (known := self._groups.pop(at, None)) is not None:
            self._bytes -= known[2]
