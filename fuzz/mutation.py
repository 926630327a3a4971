"""Damage to bytes: the kinds that disks, crashes and people do."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

_EDGES = (b"\0", b"\x7f", b"\x80", b"\xff", b"\0" * 8, b"\xff" * 8, b"\xdd\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff")
"""Bytes at which something tends to break: ends of ranges, and MessagePack's longest lengths."""

LONGEST = 1 << 16
"""A mutated input is cut to this, so that a run does not slow down as pieces are repeated."""


def mutate(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """``data`` with one to four mutations; ``others`` are inputs that pieces may be taken from."""
    for _ in range(rng.randint(1, 4)):
        data = rng.choice(_WAYS)(rng, data, others)
    return data[:LONGEST]


def _flip(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    if not data:
        return data
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def _overwrite(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    at, edge = rng.randint(0, len(data)), rng.choice(_EDGES)
    return data[:at] + edge + data[at + len(edge) :]


def _insert(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + (rng.choice(_EDGES) if rng.random() < 0.5 else rng.randbytes(rng.randint(1, 9))) + data[at:]


def _remove(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    start, end = sorted((rng.randint(0, len(data)), rng.randint(0, len(data))))
    return data[:start] + data[min(end, start + rng.randint(1, 40)) :]


def _truncate(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    return data[: rng.randint(0, len(data))]


def _repeat(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    start, end = sorted((rng.randint(0, len(data)), rng.randint(0, len(data))))
    return data[:end] + data[start:]


def _splice(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    other = rng.choice(others)
    return data[: rng.randint(0, len(data))] + other[rng.randint(0, len(other)) :]


_WAYS: tuple[Callable[[random.Random, bytes, Sequence[bytes]], bytes], ...] = (
    _flip,
    _flip,
    _overwrite,
    _insert,
    _remove,
    _truncate,
    _repeat,
    _splice,
)
