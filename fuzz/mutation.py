"""Damage to bytes, as Hypothesis strategies: the kinds that disks, crashes and people do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from fuzz.law import Target

EDGES = (b"\0", b"\x7f", b"\x80", b"\xff", b"\0" * 8, b"\xff" * 8, b"\xdd\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff")
"""Bytes at which something tends to break: ends of ranges, and MessagePack's longest lengths."""


class _Pieces(NamedTuple):
    """What bytes are drawn from; strategies are made once, because making them costs more than drawing."""

    known: st.SearchStrategy[bytes]
    token: st.SearchStrategy[bytes]
    inserted: st.SearchStrategy[bytes]


def inputs(target: Target[Any], known: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Damaged inputs of a target for the most part, any bytes else."""
    token = st.sampled_from((*EDGES, *target.tokens))
    damaged = _damaged(target, _Pieces(st.sampled_from(known), token, token | st.binary(min_size=1, max_size=9)))
    return st.one_of(damaged, damaged, damaged, st.binary(max_size=256))


@st.composite
def _damaged(draw: st.DrawFn, target: Target[Any], pieces: _Pieces) -> bytes:
    data = draw(pieces.known)
    for mutation in draw(_MUTATIONS):
        data = mutation(draw, data, pieces)
    data = data[: target.longest]
    return target.seal(data) if draw(_MOSTLY) else data


_MOSTLY = st.sampled_from((True, True, True, True, False))
_NUMBER = st.integers(0, (1 << 16) - 1)
_BIT = st.sampled_from([1 << bit for bit in range(8)])
_FEW = st.integers(1, 40)


def _place(draw: st.DrawFn, data: bytes) -> int:
    return draw(_NUMBER) % (len(data) + 1)


def _flip(draw: st.DrawFn, data: bytes, pieces: _Pieces) -> bytes:
    at, bit = _place(draw, data), draw(_BIT)
    return data[:at] + bytes(byte ^ bit for byte in data[at : at + 1]) + data[at + 1 :]


def _overwrite(draw: st.DrawFn, data: bytes, pieces: _Pieces) -> bytes:
    at, token = _place(draw, data), draw(pieces.token)
    return data[:at] + token + data[at + len(token) :]


def _insert(draw: st.DrawFn, data: bytes, pieces: _Pieces) -> bytes:
    at = _place(draw, data)
    return data[:at] + draw(pieces.inserted) + data[at:]


def _remove(draw: st.DrawFn, data: bytes, pieces: _Pieces) -> bytes:
    at = _place(draw, data)
    return data[:at] + data[at + draw(_FEW) :]


def _truncate(draw: st.DrawFn, data: bytes, pieces: _Pieces) -> bytes:
    return data[: _place(draw, data)]


def _repeat(draw: st.DrawFn, data: bytes, pieces: _Pieces) -> bytes:
    start, end = sorted((_place(draw, data), _place(draw, data)))
    return data[:end] + data[start:]


def _splice(draw: st.DrawFn, data: bytes, pieces: _Pieces) -> bytes:
    other = draw(pieces.known)
    return data[: _place(draw, data)] + other[_place(draw, other) :]


_MUTATIONS = st.lists(
    st.sampled_from([_flip, _flip, _overwrite, _insert, _remove, _truncate, _repeat, _splice]), max_size=4
)
