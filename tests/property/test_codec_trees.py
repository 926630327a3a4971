"""Laws of trees: one listing has one encoding and one id, and an edit costs little of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from unittest import mock

import msgspec
import pytest
from blake3 import blake3
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from casnap.codec import paging
from casnap.codec.hashing import digest, object_id
from casnap.codec.trees import Leaf, build_tree, decode_tree, load_listing, walk_tree
from casnap.errors import Damage
from casnap.model.ids import ObjectKind
from casnap.model.tree import AnyEntry, Device, Directory, Fifo, File, Listing, Omitted, Symlink
from support.codec_strategies import LISTINGS, NAMES, NODES, MemorySource, file, files
from support.msgpack_oracle import longest, shortest

TAGS = {File: 1, Directory: 2, Symlink: 3, Fifo: 4, Device: 5, Omitted: 6}


def plain(entry: AnyEntry) -> list[Any]:
    """An entry as docs/format/tree.md lists its fields."""
    return [TAGS[type(entry)], *msgspec.structs.astuple(entry)]


def tiny_pages() -> Any:
    """Pages of 2 to 8 entries instead of 64 to 1,024: branches of branches over few names."""
    return mock.patch.multiple(paging, MAX_UNPAGED=4, MIN_PAGE=2, MAX_PAGE=8, _ENDS_BELOW=(1 << 32) // 3)


@given(LISTINGS)
def test_a_listing_comes_back_as_it_was(listing: Listing) -> None:
    built = build_tree(listing)
    assert load_listing(MemorySource(built.objects), built.id) == listing


@given(LISTINGS)
def test_the_bytes_of_a_tree_are_those_that_the_format_says(listing: Listing) -> None:
    ((key, data),) = build_tree(listing).objects
    assert data == shortest([1, [plain(entry) for entry in listing]])
    assert key == (ObjectKind.TREE, object_id(ObjectKind.TREE, data))


@given(LISTINGS)
def test_any_other_encoding_of_the_same_listing_is_refused(listing: Listing) -> None:
    other = longest([1, [plain(entry) for entry in listing]])
    with pytest.raises(Damage, match="canonical form"):
        decode_tree(other)


@given(st.binary(max_size=200) | st.binary(max_size=60).map(lambda tail: b"\x92\x01" + tail))
def test_arbitrary_bytes_are_a_tree_with_these_bytes_or_damage(data: bytes) -> None:
    try:
        node = decode_tree(data)
    except Damage:
        return
    assert msgspec.msgpack.encode(node) == data


@given(LISTINGS, st.data())
def test_a_changed_byte_is_damage_or_another_listing(listing: Listing, data: st.DataObject) -> None:
    tree = build_tree(listing).objects[0][1]
    position = data.draw(st.integers(0, len(tree) - 1))
    changed = tree[:position] + bytes([data.draw(st.integers(0, 255))]) + tree[position + 1 :]
    try:
        node = decode_tree(changed)
    except Damage:
        return
    assert isinstance(node, Leaf)
    assert build_tree(node.entries).objects == ((build_tree(node.entries).objects[0][0], changed),)


@given(st.sets(NAMES, max_size=120))
def test_pages_in_several_levels_hold_exactly_the_listing(found: set[bytes]) -> None:
    listing = files(found)
    with tiny_pages():
        built = build_tree(listing)
        source = MemorySource(built.objects)
        assert load_listing(source, built.id) == listing
        assert {id for id, _ in walk_tree(source, built.id)} == {key.id for key in source}
        sizes = [len(node.entries) for _, node in walk_tree(source, built.id) if isinstance(node, Leaf)]
    if len(listing) > 4:
        assert all(2 <= size <= 8 for size in sizes[:-1])
    else:
        assert sizes == [len(listing)]


@given(st.sets(NAMES, min_size=2, max_size=60), st.data())
def test_a_listing_that_is_cut_in_another_way_is_refused(found: set[bytes], data: st.DataObject) -> None:
    listing = files(found)
    middle = data.draw(st.integers(2, max(2, len(listing) - 1)))
    with tiny_pages():
        right = build_tree(listing)
        # The listing's own pages of other cut parameters: valid nodes, another tree.
        with mock.patch.multiple(paging, MAX_UNPAGED=1, MIN_PAGE=2, MAX_PAGE=middle):
            other = build_tree(listing)
        assume(other.id != right.id)
        with pytest.raises(Damage):
            load_listing(MemorySource(other.objects), other.id)


@settings(max_examples=25)
@given(st.integers(600, 4_000), st.integers(0, 3_999), st.sampled_from(["add", "remove", "change"]))
def test_an_edit_of_a_long_directory_costs_a_page_or_two(count: int, at: int, edit: str) -> None:
    before = files(b"%05d" % (2 * number) for number in range(count))
    at %= count
    after = {
        "add": (*before[: at + 1], file(b"%05d" % (2 * at + 1)), *before[at + 1 :]),
        "remove": before[:at] + before[at + 1 :],
        "change": (*before[:at], file(before[at].name, seed=1), *before[at + 1 :]),
    }[edit]
    new = set(build_tree(after).objects) - set(build_tree(before).objects)
    # An added or removed name moves a cut with a chance of 1 in 192, and cuts meet again within a page or two.
    assert 0 < len(new) <= (2 if edit == "change" else 6)


@given(LISTINGS, st.data())
def test_the_digest_counts_what_is_promised_and_nothing_else(listing: Listing, data: st.DataObject) -> None:
    changed = tuple(
        entry
        if isinstance(entry, Omitted)
        else msgspec.structs.replace(
            entry,
            uid=data.draw(st.integers(0, 9)),
            gid=data.draw(st.integers(0, 9)),
            mtime_s=data.draw(st.integers(0, 9)),
            mtime_frac=data.draw(st.integers(0, 9)),
            xattrs=((b"user.x", b"y"),),
            **_uncounted(entry),
        )
        for entry in listing
    )
    captured = tuple(entry for entry in changed if not isinstance(entry, Omitted))
    assert digest(listing) == digest(changed) == digest(captured)


def _uncounted(entry: AnyEntry) -> dict[str, Any]:
    if isinstance(entry, File):
        return {"flags": 2, "chunk_list": bytes(32), "size": 7}
    if isinstance(entry, Directory):
        return {"tree": bytes(32)}
    return {"mode": 0o777} if isinstance(entry, Symlink) else {}


def counted(entry: AnyEntry) -> Any:
    """What of an entry the digest speaks of, in the order of docs/format/ids.md."""
    match entry:
        case File():
            return [1, entry.name, entry.mode, entry.content]
        case Directory():
            return [2, entry.name, entry.mode, entry.digest]
        case Symlink():
            return [3, entry.name, entry.target]
        case Fifo():
            return [4, entry.name, entry.mode]
        case Device():
            return [5, entry.name, entry.mode, entry.block, entry.major, entry.minor]
    return None


@given(LISTINGS)
def test_the_digest_hashes_the_bytes_that_the_format_says(listing: Listing) -> None:
    parts = [counted(entry) for entry in listing if counted(entry)]
    expected = blake3(shortest(parts), derive_key_context="casnap 2026 directory digest 1").digest()
    assert digest(listing) == expected


@given(st.data())
def test_each_thing_that_counts_changes_the_digest(data: st.DataObject) -> None:
    entry = msgspec.structs.replace(data.draw(NODES), name=b"name")
    field = data.draw(st.sampled_from(_COUNTED[type(entry)]))
    value = getattr(entry, field)
    changed = msgspec.structs.replace(entry, **{field: _OTHER[type(value)](value)})
    assert digest((entry,)) != digest((changed,))


_COUNTED: dict[type, tuple[str, ...]] = {
    File: ("name", "mode", "content"),
    Directory: ("name", "mode", "digest"),
    Symlink: ("name", "target"),
    Fifo: ("name", "mode"),
    Device: ("name", "mode", "block", "major", "minor"),
}
_OTHER: dict[type, Callable[[Any], Any]] = {
    int: lambda value: value ^ 1,
    bool: lambda value: not value,
    bytes: lambda value: value[:-1] + bytes([value[-1] ^ 1]),
}


@settings(max_examples=20)
@given(st.integers(0, 1 << 30), st.sampled_from([b"%06d", b"file%d.txt", b"IMG_%04d.JPG", b"%x"]))
def test_names_that_count_upwards_make_pages_of_the_usual_size(start: int, form: bytes) -> None:
    marks = sorted(form % number for number in range(start, start + 6_000))
    sizes = [piece.stop - piece.start for piece in paging.cut(marks)]
    assert sum(sizes) == 6_000
    assert 130 < 6_000 / len(sizes) < 520
    assert max(sizes) <= 1_024
    assert min(sizes[:-1], default=math.inf) >= 64
