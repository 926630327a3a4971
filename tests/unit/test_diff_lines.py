"""Comparing lines: exact on what fits, right on what does not, and as short as the longest common subsequence."""

from __future__ import annotations

import difflib
import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casnap.engine.diffing import lines
from casnap.engine.diffing.lines import Span, compare, split_lines

FEW = st.lists(st.sampled_from([b"a", b"b", b"c", b"d"]), max_size=30)


@given(data=st.binary(max_size=50).map(lambda data: data.replace(b"\x07", b"\n")))
def test_lines_end_with_lf_and_nothing_is_lost(data: bytes) -> None:
    found = split_lines(data)
    assert b"".join(found) == data
    assert all(line.count(b"\n") == 1 and line.endswith(b"\n") for line in found[:-1])
    assert all(found)


@given(old=FEW, new=FEW)
def test_as_much_as_possible_is_equal(old: list[bytes], new: list[bytes]) -> None:
    assert matched(check(old, new)) == longest_common(old, new)


@given(old=FEW, new=FEW, cells=st.integers(0, 60))
def test_what_is_too_much_to_compare_is_cut_at_unique_lines_or_replaced(
    old: list[bytes], new: list[bytes], cells: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "CELLS", cells)
        assert matched(check(old, new)) <= longest_common(old, new)


def test_unique_lines_are_found_again_where_all_is_too_much_to_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "CELLS", 100)
    rng = random.Random(7)
    old = [b"%d" % number for number in range(3000)]
    new = [line for line in old if rng.random() > 0.05]
    new[500:500] = rng.sample(old, 400)
    assert matched(check(old, new)) >= 0.9 * longest_common_by_difflib(old, new)


def test_many_lines_of_which_none_is_unique_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "CELLS", 100)
    old, new = [b"a", b"b"] * 50, [b"b", b"a", b"a"] * 40
    assert compare(old, new) == [Span(False, 0, 100, 0, 120)]


def test_an_added_block_stands_as_far_down_as_it_can() -> None:
    block = [b"{", b"x", b"}"]
    assert compare([*block, b"end"], [*block, *block, b"end"]) == [
        Span(True, 0, 3, 0, 3),
        Span(False, 3, 3, 3, 6),
        Span(True, 3, 4, 6, 7),
    ]


def check(old: list[bytes], new: list[bytes]) -> list[Span]:
    """The spans, after it was seen that they cover both sides, take turns, and are equal where they say so."""
    spans = compare(old, new)
    assert [line for span in spans for line in old[span.old : span.old_end]] == old
    assert [line for span in spans for line in new[span.new : span.new_end]] == new
    assert all(one.equal != other.equal for one, other in itertools.pairwise(spans))
    for span in spans:
        assert span.old < span.old_end or span.new < span.new_end
        assert not span.equal or old[span.old : span.old_end] == new[span.new : span.new_end]
    return spans


def matched(spans: list[Span]) -> int:
    return sum(span.old_end - span.old for span in spans if span.equal)


def longest_common(old: list[bytes], new: list[bytes]) -> int:
    row = [0] * (len(new) + 1)
    for line in old:
        above = row
        row = [0]
        for at, other in enumerate(new):
            row.append(above[at] + 1 if line == other else max(above[at + 1], row[at]))
    return row[-1]


def longest_common_by_difflib(old: list[bytes], new: list[bytes]) -> int:
    return sum(block.size for block in difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks())
