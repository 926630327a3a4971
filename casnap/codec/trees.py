"""Trees: a directory's listing as objects (docs/format/tree.md)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Union

from msgspec import Struct

from casnap.codec import canonical, paging
from casnap.codec.entries import MAX_XATTRS, find_fault, names_fault, xattrs_size
from casnap.codec.hashing import object_id
from casnap.errors import Damage, Refused
from casnap.model.ids import ID_SIZE, ObjectKey, ObjectKind
from casnap.model.paths import escape
from casnap.model.tree import Listing, Omitted

if TYPE_CHECKING:
    from casnap.model.objects import ObjectSource

MAX_LEAF = 1 << 20
"""Most bytes in a leaf of more than one entry; only extended attributes and long link targets get there."""

_UINT63 = 1 << 63


class TreePage(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a branch says of a page: its first name, its object, and how many entries it holds."""

    first: bytes
    id: bytes
    count: int

    @property
    def mark(self) -> bytes:
        """What decides where pages of pages end."""
        return self.first


class Leaf(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=1):
    """Entries themselves: all of a directory's, or one page."""

    level: ClassVar[int] = 0
    pages: ClassVar[tuple[TreePage, ...]] = ()
    entries: Listing

    def as_page(self, id: bytes) -> TreePage:
        """What the branch above says of this leaf."""
        return TreePage(self.entries[0].name if self.entries else b"", id, len(self.entries))


class Branch(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=2):
    """The pages of a long directory; ``level`` is 1 right above leaves."""

    level: int
    pages: tuple[TreePage, ...]

    def as_page(self, id: bytes) -> TreePage:
        """What the branch above says of this branch."""
        return TreePage(self.pages[0].first, id, sum(page.count for page in self.pages))


TreeNode = Union[Leaf, Branch]


class BuiltTree(NamedTuple):
    """A tree's id, and every object that it takes, pages before the branches over them."""

    id: bytes
    objects: tuple[tuple[ObjectKey, bytes], ...]


def build_tree(listing: Listing) -> BuiltTree:
    """The objects of a directory.

    Raises:
        Refused: an entry's extended attributes are longer than ``MAX_XATTRS``.
        ValueError: the listing breaks a rule that readers check.
    """
    if fault := find_fault(listing):
        _refuse_long_xattrs(listing)
        raise ValueError(f"cannot write tree: {fault}")
    objects: list[tuple[ObjectKey, bytes]] = []
    pages = [_put(leaf, data, objects) for leaf, data in _leaves(listing)]
    return BuiltTree(_assemble(pages, objects).id, tuple(objects))


def pages_of(source: ObjectSource, tree_id: bytes) -> list[TreePage]:
    """The pages right above the entries of a long directory, in order; none of a short one. No entry is read.

    Raises:
        Damage: an object is missing or bad.
    """
    node = decode_tree(source.read(ObjectKey(ObjectKind.TREE, tree_id)))
    if node.level < 2:
        return list(node.pages)
    return [page for branch in node.pages for page in pages_of(source, branch.id)]


def decode_tree(data: bytes) -> TreeNode:
    """One node of a tree, validated by itself.

    Raises:
        Damage: the bytes are not the canonical encoding of a node that keeps all rules.
    """
    node: TreeNode = canonical.decode(data, TreeNode)
    fault = _leaf_fault(node, len(data)) if isinstance(node, Leaf) else _branch_fault(node)
    if fault:
        raise Damage(f"cannot read tree: {fault}")
    return node


def walk_tree(source: ObjectSource, tree_id: bytes) -> Iterator[tuple[bytes, TreeNode]]:
    """Every node of one directory's tree with its id, from the top; subdirectories are not entered.

    Raises:
        Damage: an object is missing or bad, or not what the branch above it says.
    """
    return paging.walk(source, ObjectKind.TREE, tree_id, decode_tree)


def load_listing(source: ObjectSource, tree_id: bytes) -> Listing:
    """All entries of a directory.

    Raises:
        Damage: an object is missing or bad, or they are not what :func:`build_tree` makes of any listing.
    """
    nodes = walk_tree(source, tree_id)
    top = next(nodes)
    if isinstance(top[1], Leaf) and len(top[1].entries) <= paging.MAX_UNPAGED:  # as nearly all are
        return top[1].entries
    leaves: list[Leaf] = []
    pages: list[TreePage] = []
    for id, node in itertools.chain((top,), nodes):
        if not isinstance(node, Leaf):
            continue
        # Asked leaf by leaf: branches that repeat one page cannot make a few objects into a long listing.
        if leaves and leaves[-1].entries[-1].name >= node.entries[0].name:
            raise Damage(f"cannot read tree {tree_id.hex()}: its pages are not in order")
        leaves.append(node)
        pages.append(node.as_page(id))
    listing = tuple(entry for leaf in leaves for entry in leaf.entries) if len(leaves) > 1 else leaves[0].entries
    if len(leaves) > 1 or len(listing) > paging.MAX_UNPAGED:
        _check_paging(tree_id, leaves, pages)
    return listing


def _check_paging(tree_id: bytes, leaves: list[Leaf], pages: list[TreePage]) -> None:
    """Refuse a listing that was cut in another way than ours: one listing has one id."""
    as_cut = all(paging.is_page([entry.name for entry in leaf.entries], last=leaf is leaves[-1]) for leaf in leaves)
    if as_cut and sum(page.count for page in pages) > paging.MAX_UNPAGED:
        expected = _assemble(pages, []).id
    else:  # long attributes cut pages further: only building it anew can tell
        expected = build_tree(tuple(entry for leaf in leaves for entry in leaf.entries)).id
    if expected != tree_id:
        raise Damage(f"cannot read tree {tree_id.hex()}: it is not cut into pages as it must be")


def _leaves(listing: Listing) -> Iterator[tuple[Leaf, bytes]]:
    if len(listing) <= paging.MAX_UNPAGED:
        yield from _fitting(listing)
        return
    for piece in paging.cut([entry.name for entry in listing]):
        yield from _fitting(listing[piece])


def _fitting(entries: Listing) -> Iterator[tuple[Leaf, bytes]]:
    """One leaf, or halves of it and halves of these until none is too long."""
    leaf = Leaf(entries)
    data = canonical.encode(leaf)
    if len(data) <= MAX_LEAF or len(entries) == 1:
        yield leaf, data
        return
    middle = len(entries) // 2
    yield from _fitting(entries[:middle])
    yield from _fitting(entries[middle:])


def _assemble(pages: list[TreePage], objects: list[tuple[ObjectKey, bytes]]) -> TreePage:
    def put_branch(level: int, below: tuple[TreePage, ...]) -> TreePage:
        branch = Branch(level, below)
        return _put(branch, canonical.encode(branch), objects)

    return paging.assemble(pages, put_branch)


def _put(node: TreeNode, data: bytes, objects: list[tuple[ObjectKey, bytes]]) -> TreePage:
    key = ObjectKey(ObjectKind.TREE, object_id(ObjectKind.TREE, data))
    objects.append((key, data))
    return node.as_page(key.id)


def _refuse_long_xattrs(listing: Listing) -> None:
    for entry in listing:
        if not isinstance(entry, Omitted) and entry.xattrs and xattrs_size(entry) > MAX_XATTRS:
            raise Refused(
                f"cannot record {escape(entry.name)}: its extended attributes take {xattrs_size(entry)} bytes, "
                f"{MAX_XATTRS} are allowed",
                hint="exclude it, or remove the attributes",
            )


def _leaf_fault(leaf: Leaf, size: int) -> str | None:
    if len(leaf.entries) > paging.MAX_PAGE:
        return f"a page has {len(leaf.entries)} entries, {paging.MAX_PAGE} are allowed"
    if size > MAX_LEAF and len(leaf.entries) > 1:
        return f"a page has {size} bytes, {MAX_LEAF} are allowed"
    return find_fault(leaf.entries)


def _branch_fault(branch: Branch) -> str | None:
    if not 0 < branch.level <= paging.MAX_LEVEL or not 0 < len(branch.pages) <= paging.MAX_PAGE:
        return "a branch has a level or a number of pages that is out of range"
    if any(len(page.id) != ID_SIZE or page.count < 1 for page in branch.pages):
        return "a page has an id of the wrong length, or no entries"
    if sum(page.count for page in branch.pages) >= _UINT63:
        return "pages claim more entries than can be counted"
    return names_fault([page.first for page in branch.pages])
