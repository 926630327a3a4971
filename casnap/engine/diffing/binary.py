"""Binary patches as git writes them (git-diff(1), ``--binary``): exact, and readable by ``git apply``.

Each holds the way forward and the way back: the bytes themselves or, where that is smaller, what to copy from
the other side and what to insert; compressed, and in base 85.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from itertools import accumulate

from casnap.engine.diffing.lines import compare, split_lines

COMPARED_LINES = 1_000_000
"""Above this many lines on a side only what both sides begin and end with is copied."""

_LINE = 52
_MOST_COPIED = 0xFFFFFF
_MOST_INSERTED = 0x7F
_BLOCK = 1 << 16


def binary_patch(old: bytes, new: bytes) -> bytes:
    """What turns ``old`` into ``new`` and back."""
    return b"GIT binary patch\n" + _way(old, new) + _way(new, old)


def _way(old: bytes, new: bytes) -> bytes:
    kind, length, packed = b"literal", len(new), zlib.compress(new)
    if old and new:
        delta = make_delta(old, new)
        shorter = zlib.compress(delta)
        if len(shorter) < len(packed):
            kind, length, packed = b"delta", len(delta), shorter
    return b"%s %d\n%s\n" % (kind, length, b"".join(_encoded(packed)))


def _encoded(data: bytes) -> Iterator[bytes]:
    """Lines of 52 bytes: a letter for how many, and five characters for each four, the last padded with zeros."""
    digits = base64.b85encode(data + bytes(-len(data) % 4))
    for at in range(0, len(data), _LINE):
        length = min(_LINE, len(data) - at)
        letter = length + (ord("A") - 1 if length <= 26 else ord("a") - 27)
        start = at // 4 * 5
        yield b"%c%s\n" % (letter, digits[start : start + _LINE // 4 * 5])


def make_delta(old: bytes, new: bytes) -> bytes:
    """``new`` as git's pack format writes it against ``old``: lengths, then pieces to copy and to insert."""
    parts = [_varint(len(old)), _varint(len(new))]
    for start, end, new_start, new_end in _runs(old, new):
        head = _common_start(old[start:end], new[new_start:new_end])
        tail = _common_end(old[start + head : end], new[new_start + head : new_end])
        parts += _copies(start, start + head)
        parts += _inserts(new[new_start + head : new_end - tail])
        parts += _copies(end - tail, end)
    return b"".join(parts)


def _runs(old: bytes, new: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Ranges of bytes of both sides that stand for each other, equal lines apart from others."""
    if max(old.count(b"\n"), new.count(b"\n")) > COMPARED_LINES:
        yield 0, len(old), 0, len(new)
        return
    before, after = split_lines(old), split_lines(new)
    places, new_places = _places(before), _places(after)
    for span in compare(before, after):
        yield places[span.old], places[span.old_end], new_places[span.new], new_places[span.new_end]


def _places(lines: list[bytes]) -> list[int]:
    return list(accumulate(map(len, lines), initial=0))


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _copies(start: int, end: int) -> Iterator[bytes]:
    """Take ``start`` to ``end`` of the old bytes."""
    for at in range(start, end, _MOST_COPIED):
        fields = at.to_bytes(4, "little") + min(_MOST_COPIED, end - at).to_bytes(3, "little")
        present = [(bit, byte) for bit, byte in enumerate(fields) if byte]
        yield bytes([0x80 | sum(1 << bit for bit, _ in present), *(byte for _, byte in present)])


def _inserts(data: bytes) -> Iterator[bytes]:
    for at in range(0, len(data), _MOST_INSERTED):
        piece = data[at : at + _MOST_INSERTED]
        yield bytes([len(piece)]) + piece


def _common_start(old: bytes, new: bytes) -> int:
    """How many bytes both begin with: equal blocks first, then halves of the block that differs."""
    most = min(len(old), len(new))
    start = next((at for at in range(0, most, _BLOCK) if old[at : at + _BLOCK] != new[at : at + _BLOCK]), most)
    end = min(start + _BLOCK, most)
    while start < end:
        middle = (start + end + 1) // 2
        if old[start:middle] == new[start:middle]:
            start = middle
        else:
            end = middle - 1
    return start


def _common_end(old: bytes, new: bytes) -> int:
    """How many bytes both end with."""
    most = min(len(old), len(new))
    return _common_start(old[len(old) - most :][::-1], new[len(new) - most :][::-1])
