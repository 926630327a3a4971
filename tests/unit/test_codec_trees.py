"""Trees byte by byte, every rule of their entries, and pages that are not what they claim."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from casnap.codec import canonical, paging
from casnap.codec.entries import MAX_TARGET, MAX_XATTRS
from casnap.codec.hashing import content_id, object_id
from casnap.codec.trees import (
    MAX_LEAF,
    Branch,
    Leaf,
    TreeNode,
    TreePage,
    build_tree,
    decode_tree,
    load_listing,
    walk_tree,
)
from casnap.errors import Damage, Refused
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.tree import AnyEntry, Device, Directory, Fifo, File, Listing, Omitted, Symlink
from support.codec_strategies import MAX_RAW, MemorySource, file, files

ID = bytes(range(32))
HELLO = content_id(b"hello")
META: tuple[Any, ...] = (0o644, 1000, 1000, 1_700_000_000, 5, ())

FILE = File(b"a", *META, 5, 0, HELLO, b"")
DIRECTORY = Directory(b"a", *META, ID, ID)
LINK = Symlink(b"a", *META, b"target")
FIFO = Fifo(b"a", *META)
DEVICE = Device(b"a", *META, True, 8, 1)
OMITTED = Omitted(b"a", 1)


def put(source: MemorySource, node: TreeNode) -> TreePage:
    """Store any node, also one that this library would not make."""
    data = canonical.encode(node)
    id = object_id(ObjectKind.TREE, data)
    source[ObjectKey(ObjectKind.TREE, id)] = data
    return node.as_page(id)


def fifos(count: int) -> Listing:
    return tuple(Fifo(b"%05d" % number, 0o644, 0, 0, 0, 0, ()) for number in range(count))


def test_the_bytes_and_the_id_of_a_tree_never_change() -> None:
    built = build_tree((FILE, Symlink(b"b", 0o777, 0, 0, -1, 0, (), b"a"), Omitted(b"c", 4)))
    ((key, data),) = built.objects
    assert data.hex() == (
        "920193"  # a leaf of three entries
        "9c01c40161cd01a4cd03e8cd03e8ce6553f100059005"
        f"00c420{HELLO.hex()}c400"
        "9903c40162cd01ff0000ff0090c40161"
        "9306c4016304"
    )
    assert key.id == built.id
    assert built.id.hex() == "32f407d4e9b7f283f28abdd1438ffc545d1bd06f9888a86ac0d15862e34fc4a6"


def test_the_cuts_of_a_long_directory_never_change() -> None:
    built = build_tree(fifos(5_000))
    assert len(built.objects) == 18
    assert built.id.hex() == "a8f29180de26b966c72a8ec1b675c4a0693b9839f39244e5613bc241e345d375"


def test_an_empty_directory_is_a_leaf_without_entries() -> None:
    built = build_tree(())
    assert [data for _, data in built.objects] == [b"\x92\x01\x90"]
    assert load_listing(MemorySource(built.objects), built.id) == ()


@pytest.mark.parametrize(("count", "objects"), [(1, 1), (512, 1), (513, 4)])
def test_more_than_512_entries_are_paged(count: int, objects: int) -> None:
    listing = fifos(count)
    built = build_tree(listing)
    assert len(built.objects) == objects
    assert load_listing(MemorySource(built.objects), built.id) == listing


def test_a_long_page_of_names_that_never_cut_is_one_leaf() -> None:
    # Names that end no page: they stay together until a page is full.
    quiet = [entry for entry in fifos(3_000) if not paging._ends_page(entry.name)]
    listing = tuple(quiet[:1_025])
    whole, paged = build_tree(listing[:1_024]), build_tree(listing)
    assert len(whole.objects) == 1
    assert load_listing(MemorySource(whole.objects), whole.id) == listing[:1_024]
    leaves = [node for _, node in walk_tree(MemorySource(paged.objects), paged.id) if isinstance(node, Leaf)]
    assert [len(leaf.entries) for leaf in leaves] == [1_024, 1]


def test_a_walk_goes_through_every_page_from_the_top() -> None:
    built = build_tree(fifos(5_000))
    walked = list(walk_tree(MemorySource(built.objects), built.id))
    assert walked[0][0] == built.id
    assert {id for id, _ in walked} == {key.id for key, _ in built.objects}
    root = walked[0][1]
    assert isinstance(root, Branch)
    assert (root.level, sum(page.count for page in root.pages)) == (1, 5_000)
    assert [page.id for page in root.pages] == [id for id, _ in walked[1:]]


def test_attributes_that_make_a_page_too_long_cut_it_in_halves() -> None:
    long = ((b"user.a", bytes(300_000)),)
    listing = tuple(replace(entry, xattrs=long) for entry in files([b"a", b"b", b"c", b"d", b"e"]))
    built = build_tree(listing)
    source = MemorySource(built.objects)
    sizes = [len(node.entries) for _, node in walk_tree(source, built.id) if isinstance(node, Leaf)]
    assert sizes == [2, 3]
    assert load_listing(source, built.id) == listing


def test_an_entry_whose_attributes_are_too_long_is_refused_by_name() -> None:
    fits = ((b"user.a", bytes(MAX_XATTRS - 6)),)
    built = build_tree((replace(FILE, xattrs=fits),))
    assert load_listing(MemorySource(built.objects), built.id)[0].name == b"a"
    with pytest.raises(Refused, match="cannot record a: its extended attributes take 1048577 bytes"):
        build_tree((replace(FILE, xattrs=((b"user.a", bytes(MAX_XATTRS - 5)),)),))


def with_changes(entry: AnyEntry, **changes: Any) -> Listing:
    return (replace(entry, **changes),)


XATTR = (b"user.a", b"1")
BAD_LISTINGS: dict[str, Listing] = {
    "empty name": with_changes(FILE, name=b""),
    "dot": with_changes(FILE, name=b"."),
    "dots": with_changes(OMITTED, name=b".."),
    "slash": with_changes(FILE, name=b"a/b"),
    "only a slash": with_changes(FILE, name=b"/"),
    "NUL": with_changes(FILE, name=b"a\0"),
    "long name": with_changes(FILE, name=b"n" * 256),
    "twice": (FILE, FIFO),
    "not sorted": (replace(FILE, name=b"b"), FILE),
    "sorted as text": (replace(FILE, name=b"\xc3\xa9"), replace(FILE, name=b"z")),
    "mode": with_changes(FILE, mode=0o10000),
    "negative mode": with_changes(DIRECTORY, mode=-1),
    "uid": with_changes(FIFO, uid=1 << 32),
    "gid": with_changes(LINK, gid=-1),
    "seconds": with_changes(FILE, mtime_s=1 << 63),
    "nanoseconds": with_changes(FILE, mtime_frac=1_000_000_000),
    "negative nanoseconds": with_changes(FILE, mtime_frac=-1),
    "attribute twice": with_changes(FILE, xattrs=(XATTR, XATTR)),
    "attributes not sorted": with_changes(FILE, xattrs=((b"user.b", b""), XATTR)),
    "attribute without a name": with_changes(FILE, xattrs=((b"", b""),)),
    "attribute with NUL": with_changes(DEVICE, xattrs=((b"user.\0", b""),)),
    "attribute with a long name": with_changes(FILE, xattrs=((b"n" * 256, b""),)),
    "negative size": with_changes(FILE, size=-1),
    "huge size": with_changes(FILE, size=1 << 63, chunk_list=ID),
    "long but one chunk": with_changes(FILE, size=MAX_RAW + 1),
    "short but a list": with_changes(FILE, size=1, chunk_list=ID),
    "flag": with_changes(FILE, flags=8),
    "negative flag": with_changes(FILE, flags=-1),
    "content": with_changes(FILE, content=ID[1:]),
    "no content": with_changes(FILE, content=b""),
    "chunk list": with_changes(FILE, chunk_list=ID[1:]),
    "tree": with_changes(DIRECTORY, tree=b""),
    "digest": with_changes(DIRECTORY, digest=ID + b"x"),
    "no target": with_changes(LINK, target=b""),
    "target with NUL": with_changes(LINK, target=b"a\0b"),
    "long target": with_changes(LINK, target=b"t" * (MAX_TARGET + 1)),
    "major": with_changes(DEVICE, major=1 << 32),
    "minor": with_changes(DEVICE, minor=-1),
    "reason": with_changes(OMITTED, reason=0),
    "later reason": with_changes(OMITTED, reason=9),
}


@pytest.mark.parametrize("rule", BAD_LISTINGS)
def test_a_listing_that_breaks_a_rule_is_neither_written_nor_read(rule: str) -> None:
    with pytest.raises(ValueError, match="cannot write tree"):
        build_tree(BAD_LISTINGS[rule])
    with pytest.raises(Damage):
        decode_tree(canonical.encode(Leaf(BAD_LISTINGS[rule])))


@pytest.mark.parametrize("entry", [FILE, DIRECTORY, LINK, FIFO, DEVICE, OMITTED], ids=lambda entry: entry.letter)
def test_an_entry_of_each_kind_keeps_its_extremes(entry: AnyEntry) -> None:
    extremes: dict[str, Any] = {"name": b"\xff" * 255}
    if not isinstance(entry, Omitted):
        extremes |= {"mode": 0o7777, "uid": (1 << 32) - 1, "gid": (1 << 32) - 1}
        extremes |= {"mtime_s": -(1 << 63), "mtime_frac": 999_999_999, "xattrs": ((b"n" * 255, b""), (b"o", b"\0"))}
    listing = with_changes(entry, **extremes)
    built = build_tree(listing)
    assert load_listing(MemorySource(built.objects), built.id) == listing


def page(first: bytes, id: bytes = ID, count: int = 1) -> TreePage:
    return TreePage(first, id, count)


@pytest.mark.parametrize(
    "node",
    [
        Branch(0, (page(b"a"),)),
        Branch(9, (page(b"a"),)),
        Branch(1, ()),
        Branch(1, tuple(page(b"%04d" % number) for number in range(1_025))),
        Branch(1, (page(b"b"), page(b"a"))),
        Branch(1, (page(b"a"), page(b"a"))),
        Branch(1, (page(b""),)),
        Branch(1, (page(b"a/b"),)),
        Branch(1, (page(b"a", id=ID[1:]),)),
        Branch(1, (page(b"a", count=0),)),
        Branch(1, (page(b"a", count=-1),)),
        Branch(1, (page(b"a", count=1 << 62), page(b"b", count=1 << 62))),
        Leaf(fifos(1_025)),
        Leaf(tuple(replace(entry, xattrs=((b"u", bytes(MAX_LEAF // 2)),)) for entry in files([b"a", b"b"]))),
    ],
)
def test_a_node_that_breaks_a_rule_is_damage(node: TreeNode) -> None:
    with pytest.raises(Damage):
        decode_tree(canonical.encode(node))


def test_a_directory_cut_anywhere_else_is_damage() -> None:
    listing = fifos(600)
    right = build_tree(listing)
    for at in (100, 300, 599):
        source = MemorySource()
        root = put(source, Branch(1, (put(source, Leaf(listing[:at])), put(source, Leaf(listing[at:])))))
        if root.id != right.id:
            with pytest.raises(Damage, match="cut into pages"):
                load_listing(source, root.id)


def test_a_short_directory_in_pages_is_damage() -> None:
    source = MemorySource()
    root = put(source, Branch(1, (put(source, Leaf(fifos(10)[:5])), put(source, Leaf(fifos(10)[5:])))))
    with pytest.raises(Damage, match="cut into pages"):
        load_listing(source, root.id)


def test_a_branch_over_one_page_is_damage() -> None:
    source = MemorySource()
    root = put(source, Branch(1, (put(source, Leaf(fifos(600))),)))
    with pytest.raises(Damage, match="cut into pages"):
        load_listing(source, root.id)


def test_a_leaf_that_should_have_been_cut_is_damage() -> None:
    source = MemorySource()
    root = put(source, Leaf(fifos(1_000)))
    with pytest.raises(Damage, match="cut into pages"):
        load_listing(source, root.id)


@pytest.mark.parametrize("claim", [{"first": b"00000x"}, {"count": 301}])
def test_a_page_that_is_not_what_its_branch_says_is_damage(claim: dict[str, Any]) -> None:
    source = MemorySource()
    first, second = put(source, Leaf(fifos(600)[:300])), put(source, Leaf(fifos(600)[300:]))
    root = put(source, Branch(1, (replace(first, **claim), second)))
    with pytest.raises(Damage, match="not what the branch above it says"):
        load_listing(source, root.id)


def test_a_branch_below_a_branch_of_the_same_level_is_damage() -> None:
    source = MemorySource()
    inner = put(source, Branch(1, (put(source, Leaf(fifos(5))),)))
    root = put(source, Branch(1, (inner,)))
    with pytest.raises(Damage, match="not what the branch above it says"):
        load_listing(source, root.id)


def test_an_empty_page_is_damage() -> None:
    source = MemorySource()
    root = put(source, Branch(1, (replace(put(source, Leaf(())), first=b"a", count=1),)))
    with pytest.raises(Damage, match="not what the branch above it says"):
        load_listing(source, root.id)


def test_pages_that_overlap_are_damage_before_they_are_all_read() -> None:
    source = MemorySource()
    low, high = put(source, Leaf(fifos(10))), put(source, Leaf((file(b"00005"), file(b"00011"))))
    root = put(source, Branch(1, (low, high)))
    with pytest.raises(Damage, match="not in order"):
        load_listing(source, root.id)


def test_a_few_objects_cannot_claim_a_listing_without_end() -> None:
    source = MemorySource()
    below = put(source, Leaf(fifos(1_000)))
    for level in range(1, 9):
        below = put(source, Branch(level, (below, TreePage(b"9%d" % level, below.id, below.count))))
    with pytest.raises(Damage):
        load_listing(source, below.id)


def test_a_lost_page_is_damage() -> None:
    built = build_tree(fifos(600))
    source = MemorySource(built.objects[1:])
    with pytest.raises(Damage, match="missing"):
        load_listing(source, built.id)
