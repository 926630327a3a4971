"""How the bytes of an object become the payload of a record, and back (docs/format/record.md)."""

from __future__ import annotations

import struct
import threading
from collections.abc import Sequence
from enum import IntEnum

import zstandard

from casnap.errors import Damage

MAX_RAW = 4 << 20
"""Most bytes that any raw object or record may have: what a reader must be ready to hold."""

# zstd may need a window as long as base and object together; a frame that asks for more is not ours.
_MAX_WINDOW = 2 * MAX_RAW

_LENGTHS = struct.Struct("<II")


class Encoding(IntEnum):
    """What a record's payload is. The number is part of the store format."""

    RAW = 1
    ZSTD = 2
    DELTA = 3
    GROUP = 4


class _Reused(threading.local):
    """Contexts of zstd: making one costs as much as compressing 4 KB, and none may be shared by threads."""

    def __init__(self) -> None:
        self.compressors: dict[int, zstandard.ZstdCompressor] = {}
        self.decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)


_reused = _Reused()


def compress(data: bytes, level: int) -> tuple[Encoding, bytes]:
    """The smaller of ``data`` itself and its zstd frame at ``level``."""
    return _smaller(data, compress_frame(data, level))


def compress_all(batch: Sequence[bytes], level: int, threads: int) -> list[tuple[Encoding, bytes]]:
    """What :func:`compress` makes of each, by ``threads`` threads of zstd, in one call that leaves Python free."""
    for data in batch:
        _check_raw(data)
    long: list[bytes | bytearray | memoryview] = [
        data for data in batch if data
    ]  # zstd refuses a batch with an empty one
    frames = iter(_compressor(level).multi_compress_to_buffer(long, threads=threads) if long else ())
    return [_smaller(data, next(frames).tobytes()) if data else (Encoding.RAW, data) for data in batch]


def _smaller(data: bytes, frame: bytes) -> tuple[Encoding, bytes]:
    return (Encoding.ZSTD, frame) if len(frame) < len(data) else (Encoding.RAW, data)


def compress_frame(data: bytes, level: int) -> bytes:
    """One zstd frame that states the length of ``data``."""
    _check_raw(data)
    return _compressor(level).compress(data)


def _compressor(level: int) -> zstandard.ZstdCompressor:
    compressor = _reused.compressors.get(level)
    if compressor is None:
        compressor = _reused.compressors[level] = zstandard.ZstdCompressor(level=level)
    return compressor


def decompress(frame: bytes, raw_size: int) -> bytes:
    """The ``raw_size`` bytes in one zstd frame.

    Raises:
        Damage: it is no such frame, something follows it, or it holds another number of bytes.
    """
    return _decompress(_reused.decompressor, frame, raw_size)


def compress_long(data: bytes, level: int) -> bytes:
    """Any number of bytes as zstd frames of at most :data:`MAX_RAW` bytes each, its two lengths before each."""
    packed = []
    for start in range(0, len(data), MAX_RAW):
        piece = data[start : start + MAX_RAW]
        frame = compress_frame(piece, level)
        packed += [_LENGTHS.pack(len(frame), len(piece)), frame]
    return b"".join(packed)


def decompress_long(packed: memoryview) -> bytes:
    """What :func:`compress_long` was given.

    Raises:
        Damage: it is not what that made.
    """
    pieces = []
    while packed:
        if len(packed) < _LENGTHS.size:
            raise Damage("cannot decompress: it ends within the lengths of a frame")
        size, raw_size = _LENGTHS.unpack_from(packed)
        pieces.append(decompress(bytes(packed[_LENGTHS.size : _LENGTHS.size + size]), raw_size))
        packed = packed[_LENGTHS.size + size :]
    return b"".join(pieces)


def compress_delta(data: bytes, base: bytes, level: int) -> bytes:
    """One zstd frame of ``data`` that refers to ``base``, which must not be empty."""
    _check_raw(data)
    dictionary = _dictionary(base)
    return zstandard.ZstdCompressor(level=level, dict_data=dictionary).compress(data)


def decompress_delta(frame: bytes, base: bytes, raw_size: int) -> bytes:
    """The ``raw_size`` bytes that ``frame`` holds as a difference to ``base``.

    Another base than the one it was made with gives other bytes or Damage: the caller checks the base's id.

    Raises:
        Damage: as :func:`decompress`, or the base is empty.
    """
    if not base:
        raise Damage("cannot decode delta: its base is empty")
    decompressor = zstandard.ZstdDecompressor(dict_data=_dictionary(base), max_window_size=_MAX_WINDOW)
    return _decompress(decompressor, frame, raw_size)


def _decompress(decompressor: zstandard.ZstdDecompressor, frame: bytes, raw_size: int) -> bytes:
    if not 0 < raw_size <= MAX_RAW:
        raise Damage(f"cannot decompress: a raw size of {raw_size} bytes is not allowed")
    try:
        # Asked first, because zstandard takes memory for whatever length the frame states.
        if zstandard.frame_content_size(frame) != raw_size:
            raise Damage("cannot decompress: the frame states another length than its record")
        # By position, since names cost a quarter of what it takes to decompress 4 KB: one frame, and nothing behind it.
        data = decompressor.decompress(frame, 0, False, False)
    except zstandard.ZstdError as error:
        raise Damage(f"cannot decompress: {error}") from None
    if len(data) != raw_size:
        raise Damage("cannot decompress: the frame holds another length than it states")
    return data


def _dictionary(base: bytes) -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict(base, dict_type=zstandard.DICT_TYPE_RAWCONTENT)


def _check_raw(data: bytes) -> None:
    if len(data) > MAX_RAW:
        raise ValueError(f"{len(data)} bytes are more than a record may hold ({MAX_RAW})")
