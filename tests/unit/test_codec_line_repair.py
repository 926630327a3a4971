"""One wrong byte in a line of the operation log is put right, and nothing else is taken for that."""

from __future__ import annotations

import random

import pytest

from casnap.codec.line_repair import mended_line
from casnap.codec.lines import encode_line
from casnap.model.operation import CheckpointMade, WorkspaceRegistered

SHORT = encode_line(WorkspaceRegistered(seq=2, time=1, prev="a" * 64, workspace="w", path="/home/alice"))[0]
LONG = encode_line(
    CheckpointMade(seq=2, time=1, prev="a" * 64, workspace="w", id="b" * 64, step=1, by=("x" * 1500,), name="name")
)[0]


def wrong(line: bytes, at: int, value: int) -> bytes:
    return line[:at] + bytes((value,)) + line[at + 1 :]


def test_any_byte_but_the_line_feed_may_be_wrong_in_any_way() -> None:
    rng = random.Random(1)
    for at in range(len(SHORT) - 1):
        value = rng.choice([value for value in range(256) if value not in (SHORT[at], ord("\n"))])
        assert mended_line(wrong(SHORT, at, value)) == SHORT, at


@pytest.mark.parametrize("at", [0, 3, 100, 1000, len(LONG) - 100, len(LONG) - 40, len(LONG) - 2])
def test_in_a_long_line_a_bit_may_be_wrong(at: int) -> None:
    assert mended_line(wrong(LONG, at, LONG[at] ^ 0x08)) == LONG


def test_what_is_wrong_in_two_places_is_left_alone() -> None:
    for first, second in ((5, 50), (20, len(SHORT) - 20), (len(SHORT) - 30, len(SHORT) - 10)):
        assert mended_line(wrong(wrong(SHORT, first, 0xFF), second, 0xFF)) is None


@pytest.mark.parametrize("line", [b"", b"\n", bytes(300), random.Random(1).randbytes(2000), SHORT[:-1], b"x" * 100_000])
def test_what_is_no_line_is_none(line: bytes) -> None:
    assert mended_line(line) is None
