"""Small objects of one commit that are written together: one frame, one header and one checksum for all of them."""

from __future__ import annotations

from casnap.codec.records import NO_SLOT, encode_group
from casnap.model.ids import ObjectKey, ObjectKind

KINDS = frozenset({ObjectKind.TREE})
"""What is gathered. Chunks are not: reading a file must not cost more than decoding it. Nor are checkpoints, which lead
to all else: they must not be lost together, or with what they lead to.
"""

LARGEST = 256
"""Bytes of a tree that is gathered at most: a directory of a few files. Of longer ones the frame is a small part, and
they lead to more than should be lost with their neighbours.
"""

MOST_BYTES = 32 << 10
"""Bytes that are written together: decoding them takes some 40 µs."""


class Gathering:
    """Objects that wait to be written, in the order in which they came; ``level`` is that of zstd."""

    def __init__(self, level: int) -> None:
        self.objects: dict[ObjectKey, tuple[bytes, bytes]] = {}
        self._level = level
        self._size = 0

    def takes(self, key: ObjectKey, data: bytes) -> bool:
        """Whether an object is one of those that are gathered."""
        return key.kind in KINDS and len(data) <= LARGEST

    def add(self, key: ObjectKey, data: bytes, alone: bytes) -> None:
        """Let an object wait; ``alone`` is the record that it has where it is the only one."""
        self.objects[key] = (data, alone)
        self._size += len(data)

    @property
    def is_full(self) -> bool:
        """Whether it is time to write them."""
        return self._size >= MOST_BYTES

    def take(self, most: int) -> tuple[dict[ObjectKey, int], bytes]:
        """The first of them, at most so many: the slot that each has, and the record that holds them."""
        taken = {key: self.objects.pop(key) for key in list(self.objects)[:most]}
        self._size -= sum(len(data) for data, _ in taken.values())
        if len(taken) == 1:
            ((key, (_, alone)),) = taken.items()
            return {key: NO_SLOT}, alone
        record = encode_group([(key, data) for key, (data, _) in taken.items()], self._level)
        return {key: slot for slot, key in enumerate(taken)}, record
