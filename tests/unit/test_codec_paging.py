"""Where a page ends, by the letter of docs/format/tree.md."""

from __future__ import annotations

import itertools
import zlib

import pytest

from casnap.codec.paging import cut, is_page


def says_so(mark: bytes) -> bool:
    return (zlib.crc32(mark) * 0x9E3779B1) % 2**32 < 2**32 // 192


MARKS = [b"%d" % number for number in range(60_000)]
ENDING = [mark for mark in MARKS if says_so(mark)]
QUIET = [mark for mark in MARKS if not says_so(mark)]


def sizes(marks: list[bytes]) -> list[int]:
    return [piece.stop - piece.start for piece in cut(marks)]


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ([], []),
        (QUIET[:1], [1]),
        ([*QUIET[:63], ENDING[0], QUIET[63]], [64, 1]),
        ([*QUIET[:62], ENDING[0], *QUIET[62:70]], [71]),
        ([*QUIET[:62], *ENDING[:2], QUIET[62]], [64, 1]),
        ([*QUIET[:64], ENDING[0]], [65]),
        (ENDING[:200], [64, 64, 64, 8]),
        (QUIET[:1_024], [1_024]),
        (QUIET[:1_025], [1_024, 1]),
        ([*QUIET[:1_022], ENDING[0], *QUIET[1_022:1_100]], [1_023, 78]),
    ],
)
def test_a_page_ends_behind_its_64th_entry_or_a_later_one_that_says_so(marks: list[bytes], expected: list[int]) -> None:
    assert sizes(marks) == expected


def test_pages_follow_each_other_without_a_gap() -> None:
    pieces = list(cut(MARKS))
    assert [mark for piece in pieces for mark in MARKS[piece]] == MARKS
    for piece, after in itertools.pairwise(pieces):
        assert is_page(MARKS[piece], last=False)
        assert is_page(MARKS[after], last=True)


@pytest.mark.parametrize(
    ("marks", "whole", "last"),
    [
        ([], False, False),
        (QUIET[:10], False, True),
        (QUIET[:100], False, True),
        ([*QUIET[:62], ENDING[0]], False, True),
        ([*QUIET[:63], ENDING[0]], True, True),
        ([*QUIET[:63], ENDING[0], QUIET[63]], False, False),
        (QUIET[:1_023], False, True),
        (QUIET[:1_024], True, True),
        (QUIET[:1_025], False, False),
    ],
)
def test_what_is_a_page_can_be_told_from_the_page_alone(marks: list[bytes], whole: bool, last: bool) -> None:
    assert (is_page(marks, last=False), is_page(marks, last=True)) == (whole, last)
