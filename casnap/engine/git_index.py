"""git's index, as far as it tells which files differ from what is staged (gitformat-index(5), versions 2 to 4)."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from msgspec import Struct

_HEADER = struct.Struct(">4sII")
_STAT = struct.Struct(">10I")
_EXTENDED, _ASSUMED, _STAGE = 0x4000, 0x8000, 0x3000
_SKIP_WORKTREE = 0x4000
_ALIGNMENT = 8


class IndexEntry(Struct, frozen=True):
    """A path that git tracks: what is staged, and the time of the file then. ``merging``: there are several."""

    path: bytes
    mtime_s: int
    mtime_frac: int
    mode: int
    size: int
    blob: bytes
    merging: bool


def parse_index(data: bytes, *, id_size: int = 20) -> Iterator[IndexEntry]:
    """The entries of an index that stand for files in the work tree.

    Raises:
        ValueError: it is no index, or of a version that is not known.
    """
    try:
        signature, version, count = _HEADER.unpack_from(data)
        if signature != b"DIRC" or version not in (2, 3, 4):
            raise ValueError("not an index of a known version")
        at, path = _HEADER.size, b""
        for _ in range(count):
            entry, ignored, at = _entry(data, at, version, path, id_size)
            path = entry.path
            if not ignored:
                yield entry
    except (struct.error, IndexError) as error:
        raise ValueError(f"index is cut short: {error}") from None


def _entry(data: bytes, at: int, version: int, before: bytes, id_size: int) -> tuple[IndexEntry, bool, int]:
    begin = at
    _, _, mtime_s, mtime_frac, _, _, mode, _, _, size = _STAT.unpack_from(data, at)
    at += _STAT.size
    blob = data[at : at + id_size]
    (flags,) = struct.unpack_from(">H", data, at + id_size)
    at += id_size + 2
    ignored = bool(flags & _ASSUMED)
    if flags & _EXTENDED:
        (extended,) = struct.unpack_from(">H", data, at)
        ignored = ignored or bool(extended & _SKIP_WORKTREE)
        at += 2
    path = b""
    if version == 4:
        strip, at = _varint(data, at)
        path = before[: len(before) - strip]
    end = data.find(b"\0", at)
    if end < 0:
        raise IndexError("a path has no end")
    path += data[at:end]
    at = end + 1 if version == 4 else begin + (end - begin + _ALIGNMENT) // _ALIGNMENT * _ALIGNMENT
    return IndexEntry(path, mtime_s, mtime_frac, mode, size, blob, bool(flags & _STAGE)), ignored, at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """git's offset encoding: seven bits a byte, most significant first, one added at each step."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = (value + 1) << 7 | byte & 0x7F
    return value, at + 1
