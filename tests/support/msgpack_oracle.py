"""msgpack written from its specification: an oracle for the canonical encoding, and a source of others.

:func:`shortest` gives the one encoding that casnap accepts. :func:`longest` gives another encoding of the same
value, in which each length and number takes its widest form.
"""

from __future__ import annotations

import struct
from typing import Any


def shortest(value: Any) -> bytes:
    """The encoding with the shortest form of everything."""
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, bytes):
        return _sized(len(value), ((8, b"\xc4"), (16, b"\xc5"), (32, b"\xc6"))) + value
    if isinstance(value, str):
        data = value.encode()
        head = (
            bytes([0xA0 | len(data)])
            if len(data) < 32
            else _sized(len(data), ((8, b"\xd9"), (16, b"\xda"), (32, b"\xdb")))
        )
        return head + data
    head = bytes([0x90 | len(value)]) if len(value) < 16 else _sized(len(value), ((16, b"\xdc"), (32, b"\xdd")))
    return head + b"".join(map(shortest, value))


def longest(value: Any) -> bytes:
    """The encoding with the widest form of everything."""
    if value is None or isinstance(value, bool):
        return shortest(value)
    if isinstance(value, int):
        return b"\xcf" + struct.pack(">Q", value) if value >= 0 else b"\xd3" + struct.pack(">q", value)
    if isinstance(value, bytes):
        return b"\xc6" + struct.pack(">I", len(value)) + value
    if isinstance(value, str):
        return b"\xdb" + struct.pack(">I", len(value.encode())) + value.encode()
    return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(longest, value))


def _integer(value: int) -> bytes:
    if 0 <= value < 128:
        return bytes([value])
    if -32 <= value < 0:
        return struct.pack(">b", value)
    if value > 0:
        return _sized(value, ((8, b"\xcc"), (16, b"\xcd"), (32, b"\xce"), (64, b"\xcf")))
    bits, code = next((bits, code) for bits, code in _SIGNED if value >= -(1 << bits - 1))
    return code + value.to_bytes(bits // 8, signed=True)


_SIGNED = ((8, b"\xd0"), (16, b"\xd1"), (32, b"\xd2"), (64, b"\xd3"))


def _sized(number: int, forms: tuple[tuple[int, bytes], ...]) -> bytes:
    bits, code = next((bits, code) for bits, code in forms if number < 1 << bits)
    return code + number.to_bytes(bits // 8)
