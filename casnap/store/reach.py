"""What checkpoints lead to: every tree, chunk list and chunk that must be there to restore them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from casnap.codec.checkpoints import decode_checkpoint
from casnap.codec.chunk_lists import ListLeaf, decode_chunk_list
from casnap.codec.trees import Leaf, decode_tree
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.tree import AnyEntry, Directory, File

if TYPE_CHECKING:
    from casnap.model.objects import ObjectSource

ASKED_AT_ONCE = 500
"""Keys that are looked up together."""

Mark = Callable[[Collection[ObjectKey]], Iterable[ObjectKey]]
"""Takes keys that were reached, and gives those of them that were not reached before."""


def reach(source: ObjectSource, roots: Iterable[ObjectKey], mark: Mark) -> None:
    """Follow ``roots`` to everything that they lead to; what ``mark`` does not give back is not followed.

    Chunks are marked and not read. Of shared trees, and shared pages of long ones, each is read once.

    Raises:
        Damage: something on the way cannot be read; what lies behind it is not known.
    """
    waiting = list(dict.fromkeys(roots))
    while waiting:
        batch = dict.fromkeys(waiting[-ASKED_AT_ONCE:])
        del waiting[-ASKED_AT_ONCE:]
        for key in mark(batch):
            if key.kind is not ObjectKind.CHUNK:
                waiting.extend(children(key, source.read(key)))


def children(key: ObjectKey, data: bytes) -> Iterator[ObjectKey]:
    """The objects that one object names.

    Raises:
        Damage: the bytes are no object of that kind.
    """
    if key.kind is ObjectKind.CHECKPOINT:
        yield from _named([decode_checkpoint(data).root])
    elif key.kind is ObjectKind.TREE:
        node = decode_tree(data)
        if isinstance(node, Leaf):
            yield from _named(node.entries)
        else:
            yield from (ObjectKey(ObjectKind.TREE, page.id) for page in node.pages)
    elif key.kind is ObjectKind.CHUNK_LIST:
        listed = decode_chunk_list(data)
        if isinstance(listed, ListLeaf):
            yield from (ObjectKey(ObjectKind.CHUNK, id) for _, id in listed.entries)
        else:
            yield from (ObjectKey(ObjectKind.CHUNK_LIST, page.id) for page in listed.pages)


def _named(entries: Iterable[AnyEntry]) -> Iterator[ObjectKey]:
    for entry in entries:
        if isinstance(entry, Directory):
            yield ObjectKey(ObjectKind.TREE, entry.tree)
        elif isinstance(entry, File):
            kind, id = (
                (ObjectKind.CHUNK_LIST, entry.chunk_list) if entry.chunk_list else (ObjectKind.CHUNK, entry.content)
            )
            yield ObjectKey(kind, id)
