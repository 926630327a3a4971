"""A line of the operation log of which one byte is wrong: its hash says what that byte was."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator

from casnap.codec.lines import decode_line
from casnap.errors import Damage

ANY_BYTE = 1 << 10
"""Lines of at most so many bytes are tried with every value of every byte (0.2 s)."""

ANY_BIT = 1 << 14
"""Lines of at most so many bytes are tried with every bit turned over (1 s)."""

_HEAD, _END = b',"hash":"', b'"}\n'
_TAIL = len(_HEAD) + 64 + len(_END)


def mended_line(line: bytes) -> bytes | None:
    """The line as it was before one of its bytes went wrong; None where that cannot be told.

    That another line has the same hash is out of the question, so this is a proof and no guess.

    Raises:
        TooNew: it was a line of a newer format.
    """
    if not _TAIL < len(line) <= ANY_BIT:
        return None
    for candidate in _candidates(line):
        with contextlib.suppress(Damage):
            decode_line(candidate)
            return candidate
    return None


def _candidates(line: bytes) -> Iterator[bytes]:
    body, tail = line[:-_TAIL], line[-_TAIL:]
    right = _HEAD + hashlib.sha256(body).hexdigest().encode() + _END
    if sum(one != other for one, other in zip(tail, right, strict=True)) == 1:
        yield body + right
    wanted = tail[len(_HEAD) : -len(_END)]
    if not (tail.startswith(_HEAD) and tail.endswith(_END) and set(wanted) <= set(b"0123456789abcdef")):
        return  # more is wrong than one byte
    digest = bytes.fromhex(wanted.decode())
    values = range(1, 256) if len(line) <= ANY_BYTE else [1 << bit for bit in range(8)]
    before = hashlib.sha256()
    for at, byte in enumerate(body):
        rest = body[at + 1 :]
        for change in values:
            hasher = before.copy()
            hasher.update(bytes((byte ^ change,)) + rest)
            if hasher.digest() == digest:
                yield body[:at] + bytes((byte ^ change,)) + rest + tail
        before.update(body[at : at + 1])
