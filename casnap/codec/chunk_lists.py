"""Chunk lists: which chunks, in order, are a file (docs/format/chunk-list.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Union

from msgspec import Struct

from casnap.codec import canonical, paging
from casnap.codec.compression import MAX_RAW
from casnap.codec.hashing import object_id
from casnap.errors import Damage
from casnap.model.ids import ID_SIZE, ObjectKey, ObjectKind

if TYPE_CHECKING:
    from casnap.model.objects import ObjectSource

ChunkEntry = tuple[int, bytes]
"""Length in bytes, and id, of a chunk."""

MAX_SIZE = (1 << 63) - 1
"""Most bytes in a file."""


class ListPage(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a branch says of a page: the file's bytes in it, its object, and how many entries it holds."""

    length: int
    id: bytes
    count: int

    @property
    def mark(self) -> bytes:
        """What decides where pages of pages end."""
        return self.id


class ListLeaf(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=1):
    """Entries themselves: all of a file's, or one page."""

    level: ClassVar[int] = 0
    pages: ClassVar[tuple[ListPage, ...]] = ()
    entries: tuple[ChunkEntry, ...]

    def as_page(self, id: bytes) -> ListPage:
        """What the branch above says of this leaf."""
        return ListPage(sum(length for length, _ in self.entries), id, len(self.entries))


class ListBranch(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=2):
    """The pages of a long list; ``level`` is 1 right above leaves."""

    level: int
    pages: tuple[ListPage, ...]

    def as_page(self, id: bytes) -> ListPage:
        """What the branch above says of this branch."""
        length = sum(page.length for page in self.pages)
        return ListPage(length, id, sum(page.count for page in self.pages))


ListNode = Union[ListLeaf, ListBranch]


class BuiltList(NamedTuple):
    """A chunk list's id, and every object that it takes, pages before the branches over them."""

    id: bytes
    objects: tuple[tuple[ObjectKey, bytes], ...]


def build_chunk_list(entries: Iterable[ChunkEntry]) -> BuiltList:
    """The objects of the list of a file's chunks.

    Raises:
        ValueError: there are fewer than two chunks, or one breaks a rule that readers check.
    """
    listed = tuple(entries)
    if len(listed) < 2:
        raise ValueError("cannot write chunk list: a file of one chunk has none")
    if fault := _entries_fault(listed):
        raise ValueError(f"cannot write chunk list: {fault}")
    objects: list[tuple[ObjectKey, bytes]] = []
    unpaged = len(listed) <= paging.MAX_UNPAGED
    pieces = [slice(None)] if unpaged else paging.cut([id for _, id in listed])
    pages = [_put(ListLeaf(listed[piece]), objects) for piece in pieces]
    return BuiltList(_assemble(pages, objects).id, tuple(objects))


def decode_chunk_list(data: bytes) -> ListNode:
    """One node of a chunk list, validated by itself.

    Raises:
        Damage: the bytes are not the canonical encoding of a node that keeps all rules.
    """
    node: ListNode = canonical.decode(data, ListNode)
    fault = _leaf_fault(node) if isinstance(node, ListLeaf) else _branch_fault(node)
    if fault:
        raise Damage(f"cannot read chunk list: {fault}")
    return node


def walk_chunk_list(source: ObjectSource, list_id: bytes) -> Iterator[tuple[bytes, ListNode]]:
    """Every node of a chunk list with its id, from the top.

    Raises:
        Damage: an object is missing or bad, or not what the branch above it says.
    """
    return paging.walk(source, ObjectKind.CHUNK_LIST, list_id, decode_chunk_list)


def iterate_chunk_list(source: ObjectSource, list_id: bytes, size: int) -> Iterator[ChunkEntry]:
    """The chunks of a file of ``size`` bytes, one page in memory at a time.

    Raises:
        Damage: an object is missing or bad, the lengths do not add up to ``size`` (before the first entry),
            or the list is not one that :func:`build_chunk_list` makes (at the latest after the last).
    """
    pages: list[ListPage] = []
    before: ListLeaf | None = None
    as_cut = True
    for id, node in walk_chunk_list(source, list_id):
        if id == list_id and node.as_page(id).length != size:
            raise Damage(f"cannot read chunk list {list_id.hex()}: its lengths do not add up to {size}")
        if isinstance(node, ListLeaf):
            as_cut = as_cut and (before is None or _is_page(before, last=False))
            before = node
            pages.append(node.as_page(id))
            yield from node.entries
    count = sum(page.count for page in pages)
    if count > paging.MAX_UNPAGED:
        as_cut = as_cut and before is not None and _is_page(before, last=True)
    else:
        as_cut = len(pages) == 1 and count > 1
    if not as_cut or _assemble(pages, []).id != list_id:
        raise Damage(f"cannot read chunk list {list_id.hex()}: it is not cut into pages as it must be")


def load_chunk_list(source: ObjectSource, list_id: bytes, size: int) -> tuple[ChunkEntry, ...]:
    """All chunks of a file of ``size`` bytes.

    Raises:
        Damage: as :func:`iterate_chunk_list`.
    """
    return tuple(iterate_chunk_list(source, list_id, size))


def _is_page(leaf: ListLeaf, *, last: bool) -> bool:
    return paging.is_page([id for _, id in leaf.entries], last=last)


def _assemble(pages: list[ListPage], objects: list[tuple[ObjectKey, bytes]]) -> ListPage:
    return paging.assemble(pages, lambda level, below: _put(ListBranch(level, below), objects))


def _put(node: ListNode, objects: list[tuple[ObjectKey, bytes]]) -> ListPage:
    data = canonical.encode(node)
    key = ObjectKey(ObjectKind.CHUNK_LIST, object_id(ObjectKind.CHUNK_LIST, data))
    objects.append((key, data))
    return node.as_page(key.id)


def _entries_fault(entries: tuple[ChunkEntry, ...]) -> str | None:
    if not all(0 < length <= MAX_RAW and len(id) == ID_SIZE for length, id in entries):
        return "a chunk has a length that cannot be, or an id of the wrong length"
    return None


def _leaf_fault(leaf: ListLeaf) -> str | None:
    if not 0 < len(leaf.entries) <= paging.MAX_PAGE:
        return f"a page has {len(leaf.entries)} entries, 1 to {paging.MAX_PAGE} are allowed"
    return _entries_fault(leaf.entries)


def _branch_fault(branch: ListBranch) -> str | None:
    if not 0 < branch.level <= paging.MAX_LEVEL or not 0 < len(branch.pages) <= paging.MAX_PAGE:
        return "a branch has a level or a number of pages that is out of range"
    if any(len(page.id) != ID_SIZE or not 0 < page.count <= page.length for page in branch.pages):
        return "a page has an id of the wrong length, no entries, or less bytes than entries"
    if sum(page.length for page in branch.pages) > MAX_SIZE:
        return "pages claim more bytes than a file can have"
    return None
