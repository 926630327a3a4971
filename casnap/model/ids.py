"""Names of objects."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

ID_SIZE = 32
"""Bytes in an object id: BLAKE3-256."""

STORE_ID_SIZE = 16
"""Bytes in the id of a store: random ones."""

SHORT_ID = 12
"""Hexadecimal digits of an id that are shown to a person."""

MIN_PREFIX = 4
"""Fewest hexadecimal digits that may stand for an id."""


class ObjectKind(IntEnum):
    """What an id names. The number is part of the store format."""

    CHUNK = 1
    CHUNK_LIST = 2
    TREE = 3
    CHECKPOINT = 4


class ObjectKey(NamedTuple):
    """An object's name: ids of different kinds are different names."""

    kind: ObjectKind
    id: bytes

    def __str__(self) -> str:
        return f"{self.kind.name.lower().replace('_', ' ')} {self.id.hex()}"


def short(object_id: bytes) -> str:
    """The first digits of an id, long enough to use on the command line."""
    return object_id.hex()[:SHORT_ID]
