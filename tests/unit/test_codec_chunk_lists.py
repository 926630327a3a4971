"""Chunk lists byte by byte, and lists that are not what they claim."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from casnap.codec import canonical
from casnap.codec.chunk_lists import (
    ListBranch,
    ListLeaf,
    ListNode,
    ListPage,
    build_chunk_list,
    decode_chunk_list,
    iterate_chunk_list,
    load_chunk_list,
    walk_chunk_list,
)
from casnap.codec.hashing import content_id, object_id
from casnap.errors import Damage
from casnap.model.ids import ObjectKey, ObjectKind
from support.codec_strategies import MAX_RAW, MemorySource

ID = bytes(range(32))
ABC, DE = content_id(b"abc"), content_id(b"de")
MANY = [(1, content_id(b"%d" % number)) for number in range(5_000)]


def put(source: MemorySource, node: ListNode) -> ListPage:
    """Store any node, also one that this library would not make."""
    data = canonical.encode(node)
    id = object_id(ObjectKind.CHUNK_LIST, data)
    source[ObjectKey(ObjectKind.CHUNK_LIST, id)] = data
    return node.as_page(id)


def test_the_bytes_and_the_id_of_a_list_never_change() -> None:
    built = build_chunk_list([(3, ABC), (2, DE)])
    ((key, data),) = built.objects
    assert data.hex() == f"9201929203c420{ABC.hex()}9202c420{DE.hex()}"
    assert key == (ObjectKind.CHUNK_LIST, built.id)
    assert built.id.hex() == "dd6cdb2c6b6d0b9cf2dec0d8078498291d9ebcbe343c5b1d9d1ea471db5c6046"


def test_the_cuts_of_a_long_list_never_change() -> None:
    built = build_chunk_list(iter(MANY))
    assert len(built.objects) == 22
    assert built.id.hex() == "a4e5c8a32e149705d34a591b157270c83b3d024b646a6f5b3e1506f106c059a7"
    assert load_chunk_list(MemorySource(built.objects), built.id, 5_000) == tuple(MANY)


def test_pages_of_pages_hold_a_very_long_list() -> None:
    entries = [(65_536, content_id(b"%d" % number)) for number in range(200_000)]
    built = build_chunk_list(entries)
    source = MemorySource(built.objects)
    levels = [node.level for _, node in walk_chunk_list(source, built.id)]
    assert levels[0] == 2
    assert set(levels) == {2, 1, 0}
    assert load_chunk_list(source, built.id, 200_000 * 65_536) == tuple(entries)


def test_a_file_of_one_long_run_of_zeros_is_listed_too() -> None:
    entries = [(262_144, ID)] * 5_000
    built = build_chunk_list(entries)
    assert load_chunk_list(MemorySource(built.objects), built.id, 5_000 * 262_144) == tuple(entries)
    assert len({key for key, _ in built.objects}) == 3  # full pages are one object


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [(3, ABC)],
        [(0, ABC), (2, DE)],
        [(-1, ABC), (2, DE)],
        [(MAX_RAW + 1, ABC), (2, DE)],
        [(3, ABC[1:]), (2, DE)],
    ],
)
def test_a_list_that_breaks_a_rule_is_neither_written_nor_read(entries: list[tuple[int, bytes]]) -> None:
    with pytest.raises(ValueError, match="cannot write chunk list"):
        build_chunk_list(entries)
    source = MemorySource()
    data = msgspec.msgpack.encode([1, entries])
    key = ObjectKey(ObjectKind.CHUNK_LIST, object_id(ObjectKind.CHUNK_LIST, data))
    source[key] = data
    with pytest.raises(Damage):
        load_chunk_list(source, key.id, sum(length for length, _ in entries))


def test_the_longest_chunk_may_be_listed() -> None:
    built = build_chunk_list([(MAX_RAW, ABC), (1, DE)])
    assert load_chunk_list(MemorySource(built.objects), built.id, MAX_RAW + 1) == ((MAX_RAW, ABC), (1, DE))


@pytest.mark.parametrize("size", [4, 6, 0, -5])
def test_lengths_that_do_not_add_up_to_the_size_are_damage(size: int) -> None:
    built = build_chunk_list([(3, ABC), (2, DE)])
    with pytest.raises(Damage, match="do not add up"):
        load_chunk_list(MemorySource(built.objects), built.id, size)


@pytest.mark.parametrize(
    "node",
    [
        ListLeaf(()),
        ListLeaf(tuple(MANY[:1_025])),
        ListBranch(0, (ListPage(5, ID, 5),)),
        ListBranch(9, (ListPage(5, ID, 5),)),
        ListBranch(1, ()),
        ListBranch(1, (ListPage(5, ID, 5),) * 1_025),
        ListBranch(1, (ListPage(5, ID[1:], 5),)),
        ListBranch(1, (ListPage(5, ID, 0),)),
        ListBranch(1, (ListPage(4, ID, 5),)),
        ListBranch(1, (ListPage(1 << 62, ID, 5), ListPage(1 << 62, ID, 5))),
    ],
)
def test_a_node_that_breaks_a_rule_is_damage(node: ListNode) -> None:
    with pytest.raises(Damage):
        decode_chunk_list(canonical.encode(node))


def test_a_list_cut_anywhere_else_is_damage() -> None:
    entries = tuple(MANY[:600])
    for at in (100, 300, 599):
        source = MemorySource()
        root = put(source, ListBranch(1, (put(source, ListLeaf(entries[:at])), put(source, ListLeaf(entries[at:])))))
        with pytest.raises(Damage, match="cut into pages"):
            load_chunk_list(source, root.id, 600)


def test_a_short_list_in_pages_or_under_a_branch_is_damage() -> None:
    source = MemorySource()
    halves = put(source, ListLeaf(tuple(MANY[:5]))), put(source, ListLeaf(tuple(MANY[5:10])))
    for pages in (halves, (put(source, ListLeaf(tuple(MANY[:10]))),)):
        root = put(source, ListBranch(1, pages))
        with pytest.raises(Damage, match="cut into pages"):
            load_chunk_list(source, root.id, 10)


@pytest.mark.parametrize("claim", [ListPage(6, ID, 5), ListPage(5, ID, 4)])
def test_a_page_that_is_not_what_its_branch_says_is_damage(claim: ListPage) -> None:
    source = MemorySource()
    page = put(source, ListLeaf(tuple(MANY[:5])))
    root = put(source, ListBranch(1, (msgspec.structs.replace(claim, id=page.id),)))
    with pytest.raises(Damage, match="not what the branch above it says"):
        load_chunk_list(source, root.id, claim.length)


def test_a_list_is_read_page_by_page() -> None:
    built = build_chunk_list(MANY)
    source = MemorySource(built.objects)
    leaves = [id for id, node in walk_chunk_list(source, built.id) if isinstance(node, ListLeaf)]
    for id in leaves[1:]:
        del source[ObjectKey(ObjectKind.CHUNK_LIST, id)]
    assert list(itertools.islice(iterate_chunk_list(source, built.id, 5_000), 64)) == MANY[:64]
