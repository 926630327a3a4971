"""From checkpoints to everything that they lead to, and back from what is lost to the paths that it takes along.

Every tree and chunk list is read once, however many checkpoints share it. Only where something is lost are the trees
gone through again, by paths, and then only those that lead there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from casnap.codec.chunk_lists import ListLeaf, decode_chunk_list, load_chunk_list
from casnap.codec.trees import Leaf, decode_tree, load_listing
from casnap.errors import Damage
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.tree import Directory, File, Listing
from casnap.store.inspection import Inspection
from casnap.store.pack_survey import Soundness

_UNKNOWN, _WHOLE, _HURT = range(3)
"""What is known of an object: nothing, that all below it is there, or that something is not."""

Child = tuple[bytes, ObjectKey, int]
"""The name under which an object is found (empty for its parent's own), its key, and a file's size in bytes."""


class Reach:
    """What is lost of what checkpoints lead to: ``lost`` has each object, with the cause."""

    def __init__(self, found: Inspection, soundness: Soundness) -> None:
        self.lost: dict[ObjectKey, str] = {}
        self._found = found
        self._soundness = soundness
        self._seen = bytearray(len(found.places))
        self._hurt: set[ObjectKey] = set()

    def follow(self, tree: bytes) -> bool:
        """Look at everything below a root directory; whether all of it is there."""
        return self._follow(ObjectKey(ObjectKind.TREE, tree))

    def paths(self, tree: bytes) -> Iterator[tuple[ObjectKey, bytes]]:
        """Each object that is lost below a root directory that was followed, with the paths that need it."""
        waiting = [(b"", ObjectKey(ObjectKind.TREE, tree), 0)]
        while waiting:
            path, key, size = waiting.pop()
            children, broken = self._children(key, size)
            yield from ((lost, path) for lost in broken)
            below = []
            for name, child, length in children:
                if child in self._hurt or child in self.lost:
                    below.append((path + b"/" + name if path and name else path or name, child, length))
            for at, child, length in reversed(below):
                if child in self._hurt:
                    waiting.append((at, child, length))
                else:
                    yield child, at

    def _follow(self, top: ObjectKey) -> bool:
        if (known := self._known(top)) != _UNKNOWN:
            return known == _WHOLE
        stack = [self._open(top, 0)]
        while True:
            key, children, whole = stack[-1]
            for child, size in children:
                known = self._known(child)
                if known == _UNKNOWN:
                    stack.append(self._open(child, size))
                    break
                whole = whole and known == _WHOLE
                stack[-1] = (key, children, whole)
            else:
                self._settle(key, whole=whole)
                stack.pop()
                if not stack:
                    return whole
                above, rest, so_far = stack[-1]
                stack[-1] = (above, rest, so_far and whole)

    def _open(self, key: ObjectKey, size: int) -> tuple[ObjectKey, Iterator[tuple[ObjectKey, int]], bool]:
        """Chunks are looked at here; what has children of its own is left for later."""
        if key.kind is ObjectKind.TREE and (whole_one := self._whole_directory(key.id)) is not None:
            return key, iter(whole_one), True
        children, broken = self._children(key, size)
        whole = not broken
        inner = []
        for _, child, length in children:
            if child.kind is not ObjectKind.CHUNK:
                inner.append((child, length))
            elif self._known(child) != _WHOLE:
                whole = False
        return key, iter(inner), whole

    def _whole_directory(self, tree: bytes) -> list[tuple[ObjectKey, int]] | None:
        """What has children of its own in a directory that has nothing wrong; None: it must be looked at closely."""
        if not self._soundness.all_good:
            return None
        try:
            listing = load_listing(self._found, tree)
        except Damage:
            return None
        chunks: list[bytes] = []
        inner: list[tuple[ObjectKey, int]] = []
        for entry in listing:
            if isinstance(entry, Directory):
                inner.append((ObjectKey(ObjectKind.TREE, entry.tree), 0))
            elif isinstance(entry, File):
                if entry.chunk_list:
                    inner.append((ObjectKey(ObjectKind.CHUNK_LIST, entry.chunk_list), entry.size))
                else:
                    chunks.append(entry.content)
        return inner if self._soundness.has_all(ObjectKind.CHUNK, chunks) else None

    def _known(self, key: ObjectKey) -> int:
        row = self._found.places.row_of(key)
        if row < 0:
            self.lost.setdefault(key, "the store does not have it")
            return _HURT
        known = self._seen[row]
        if known == _UNKNOWN and key.kind is ObjectKind.CHUNK:
            whole = self._soundness.has(key)
            known = self._seen[row] = _WHOLE if whole else _HURT
            if not whole:
                self.lost.setdefault(key, "no record of it is good")
        return known

    def _settle(self, key: ObjectKey, *, whole: bool) -> None:
        row = self._found.places.row_of(key)
        self._seen[row] = _WHOLE if whole else _HURT
        if not whole:
            self._hurt.add(key)

    def _children(self, key: ObjectKey, size: int) -> tuple[list[Child], list[ObjectKey]]:
        """What a directory or a chunk list names, and those nodes of its own that are lost."""
        try:
            if key.kind is ObjectKind.TREE:
                return list(_named(load_listing(self._found, key.id))), []
            chunks = load_chunk_list(self._found, key.id, size)
            return [(b"", ObjectKey(ObjectKind.CHUNK, id), 0) for _, id in chunks], []
        except Damage as damage:
            return self._what_is_left(key, damage)

    def _what_is_left(self, top: ObjectKey, cause: Damage) -> tuple[list[Child], list[ObjectKey]]:
        """The same of a directory or list of which some node cannot be read."""
        children: list[Child] = []
        broken: list[ObjectKey] = []
        waiting = [top]
        while waiting:
            key = waiting.pop()
            try:
                data = self._found.read(key)
                node: Any = decode_tree(data) if key.kind is ObjectKind.TREE else decode_chunk_list(data)
            except Damage as damage:
                self.lost.setdefault(key, damage.message)
                broken.append(key)
                continue
            waiting += [ObjectKey(key.kind, page.id) for page in reversed(node.pages)]
            if isinstance(node, Leaf):
                children += _named(node.entries)
            elif isinstance(node, ListLeaf):
                children += [(b"", ObjectKey(ObjectKind.CHUNK, id), 0) for _, id in node.entries]
        if not broken:  # each node is good by itself, and they do not fit together
            self.lost.setdefault(top, cause.message)
            broken.append(top)
        return children, broken


def _named(listing: Listing) -> Iterator[Child]:
    for entry in listing:
        if isinstance(entry, Directory):
            yield entry.name, ObjectKey(ObjectKind.TREE, entry.tree), 0
        elif isinstance(entry, File):
            if entry.chunk_list:
                yield entry.name, ObjectKey(ObjectKind.CHUNK_LIST, entry.chunk_list), entry.size
            else:
                yield entry.name, ObjectKey(ObjectKind.CHUNK, entry.content), 0
