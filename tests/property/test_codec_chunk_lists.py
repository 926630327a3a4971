"""Laws of chunk lists: one list has one encoding and one id, and its lengths add up."""

from __future__ import annotations

import itertools
from typing import Any
from unittest import mock

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from casnap.codec import paging
from casnap.codec.chunk_lists import (
    ListLeaf,
    build_chunk_list,
    decode_chunk_list,
    iterate_chunk_list,
    load_chunk_list,
    walk_chunk_list,
)
from casnap.codec.hashing import content_id, object_id
from casnap.errors import Damage
from casnap.model.ids import ObjectKind
from support.codec_strategies import IDS, MAX_RAW, MemorySource
from support.msgpack_oracle import longest, shortest

Entries = list[tuple[int, bytes]]
ENTRIES = st.lists(st.tuples(st.integers(1, MAX_RAW), IDS), min_size=2, max_size=5)
# A handful of ids only: chunks repeat, as the zeros of a disk image do.
MANY = st.lists(st.integers(0, 30), min_size=2, max_size=150).map(
    lambda numbers: [(number + 1, content_id(bytes([number]))) for number in numbers]
)


def size_of(entries: Entries) -> int:
    return sum(length for length, _ in entries)


def tiny_pages(**other: int) -> Any:
    """Pages of 2 to 8 entries instead of 64 to 1,024."""
    return mock.patch.multiple(
        paging, **({"MAX_UNPAGED": 4, "MIN_PAGE": 2, "MAX_PAGE": 8, "_ENDS_BELOW": (1 << 32) // 3} | other)
    )


@given(ENTRIES)
def test_a_list_comes_back_as_it_was(entries: Entries) -> None:
    built = build_chunk_list(entries)
    assert load_chunk_list(MemorySource(built.objects), built.id, size_of(entries)) == tuple(entries)


@given(ENTRIES)
def test_the_bytes_of_a_list_are_those_that_the_format_says(entries: Entries) -> None:
    ((key, data),) = build_chunk_list(entries).objects
    assert data == shortest([1, entries])
    assert key == (ObjectKind.CHUNK_LIST, object_id(ObjectKind.CHUNK_LIST, data))


@given(ENTRIES)
def test_any_other_encoding_of_the_same_list_is_refused(entries: Entries) -> None:
    with pytest.raises(Damage, match="canonical form"):
        decode_chunk_list(longest([1, entries]))


@given(st.binary(max_size=200) | st.binary(max_size=60).map(lambda tail: b"\x92\x01" + tail))
def test_arbitrary_bytes_are_a_list_with_these_bytes_or_damage(data: bytes) -> None:
    try:
        node = decode_chunk_list(data)
    except Damage:
        return
    assert msgspec.msgpack.encode(node) == data


@given(MANY)
def test_pages_in_several_levels_hold_exactly_the_list(entries: Entries) -> None:
    with tiny_pages():
        built = build_chunk_list(entries)
        source = MemorySource(built.objects)
        assert load_chunk_list(source, built.id, size_of(entries)) == tuple(entries)
        assert {id for id, _ in walk_chunk_list(source, built.id)} == {key.id for key in source}
        sizes = [len(node.entries) for _, node in walk_chunk_list(source, built.id) if isinstance(node, ListLeaf)]
    assert sizes == [len(entries)] if len(entries) <= 4 else all(2 <= size <= 8 for size in sizes[:-1])


@given(MANY, st.integers())
def test_lengths_that_do_not_add_up_are_refused_before_the_first_entry(entries: Entries, size: int) -> None:
    assume(size != size_of(entries))
    built = build_chunk_list(entries)
    with pytest.raises(Damage, match="do not add up"):
        next(iterate_chunk_list(MemorySource(built.objects), built.id, size))


@given(MANY, st.integers(2, 9))
def test_a_list_that_is_cut_in_another_way_is_refused(entries: Entries, max_page: int) -> None:
    with tiny_pages():
        right = build_chunk_list(entries)
        with tiny_pages(MAX_UNPAGED=1, MAX_PAGE=max_page):
            other = build_chunk_list(entries)
        assume(other.id != right.id)
        with pytest.raises(Damage):
            load_chunk_list(MemorySource(other.objects), other.id, size_of(entries))


@settings(max_examples=20)
@given(st.integers(1_300, 4_000), st.integers(0, 3_999), st.integers(0, 3))
def test_an_edit_of_a_long_list_costs_a_page_or_two(count: int, at: int, inserted: int) -> None:
    before = [(1, content_id(b"%d" % number)) for number in range(count)]
    at %= count
    after = [*before[:at], *((1, content_id(b"new %d" % number)) for number in range(inserted)), *before[at + 1 :]]
    new = set(build_chunk_list(after).objects) - set(build_chunk_list(before).objects)
    assert 0 < len(new) <= 6


@given(MANY, st.data())
def test_a_lost_node_is_damage(entries: Entries, data: st.DataObject) -> None:
    with tiny_pages():
        built = build_chunk_list(entries)
        source = MemorySource(built.objects)
        del source[data.draw(st.sampled_from(sorted(source)))]
        with pytest.raises(Damage):
            list(itertools.islice(iterate_chunk_list(source, built.id, size_of(entries)), len(entries) + 1))
