"""Which objects resemble each other: versions of one path most, then what is alike in name in one directory.

Checkpoints say at which path an object stands. Each object gets a number by that, so that like numbers stand by like
objects; it takes eight bytes an object, and each directory's path once.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterable, Iterator

from casnap.codec.checkpoints import decode_checkpoint
from casnap.codec.trees import Leaf, decode_tree
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.objects import ObjectSource
from casnap.model.paths import join
from casnap.model.tree import Directory, File
from casnap.store.marks import Marks
from casnap.store.reach import children
from casnap.store.state import State

_DIRECTORY_BITS = 29
_NAME_BITS = 32
_SUFFIX_BITS = 8


class Neighbours:
    """The numbers of the objects that are marked. 0 is that of what no checkpoint leads to."""

    def __init__(self, marks: Marks, state: State, source: ObjectSource) -> None:
        self._marks = marks
        self._state = state
        self._source = source
        self._numbers = {pack: array("Q", bytes(8 * len(found))) for pack, found in marks.packs.items()}
        self._directories: dict[bytes, int] = {}

    def of(self, pack: str) -> array[int]:
        """The numbers of the objects of a pack, by their numbers in its marks."""
        return self._numbers[pack]

    def follow(self, checkpoints: Iterable[bytes]) -> None:
        """Number what these lead to; what two lead to gets its number by the first.

        Raises:
            Damage: something on the way cannot be read.
        """
        for id in checkpoints:
            for key in self._number({ObjectKey(ObjectKind.CHECKPOINT, id): self._place(ObjectKind.CHECKPOINT, b"")}):
                self._follow_tree(ObjectKey(ObjectKind.TREE, decode_checkpoint(self._source.read(key)).root.tree))

    def _follow_tree(self, root: ObjectKey) -> None:
        waiting = [(b"", root)]
        while waiting:
            path, key = waiting.pop()
            if self._number({key: self._place(ObjectKind.TREE, path)}):
                waiting += reversed(list(self._below(path, key)))

    def _below(self, path: bytes, key: ObjectKey) -> Iterator[tuple[bytes, ObjectKey]]:
        """Number the files of a tree or of a page of it; its pages and directories, by path."""
        node = decode_tree(self._source.read(key))
        if not isinstance(node, Leaf):
            yield from ((path, ObjectKey(ObjectKind.TREE, page.id)) for page in node.pages)
            return
        self._number_files(path, [entry for entry in node.entries if isinstance(entry, File)])
        for entry in node.entries:
            if isinstance(entry, Directory):
                yield join(path, entry.name), ObjectKey(ObjectKind.TREE, entry.tree)

    def _number_files(self, path: bytes, files: Iterable[File]) -> None:
        place = self._place(ObjectKind.CHUNK, path)
        wanted = {_content(file): place | _name_number(file.name) for file in files}
        while wanted:
            below: dict[ObjectKey, int] = {}
            for key in self._number(wanted):
                if key.kind is ObjectKind.CHUNK_LIST:
                    below |= dict.fromkeys(children(key, self._source.read(key)), wanted[key])
            wanted = below

    def _place(self, kind: ObjectKind, path: bytes) -> int:
        directory = self._directories.setdefault(path, len(self._directories) + 1)
        return (kind << _DIRECTORY_BITS | min(directory, (1 << _DIRECTORY_BITS) - 1)) << _NAME_BITS

    def _number(self, wanted: dict[ObjectKey, int]) -> list[ObjectKey]:
        """Give objects their numbers; those of them that had none."""
        new = []
        for key, places in self._state.places(wanted).items():
            for at in filter(None, map(self._marks.at, places)):
                numbers = self._numbers[at[0].id]
                if at[0].is_kept(at[1]) and not numbers[at[1]]:
                    numbers[at[1]] = wanted[key]
                    new.append(key)
        return new


def _content(file: File) -> ObjectKey:
    if file.chunk_list:
        return ObjectKey(ObjectKind.CHUNK_LIST, file.chunk_list)
    return ObjectKey(ObjectKind.CHUNK, file.content)


def _name_number(name: bytes) -> int:
    """Equal names have equal numbers, names that end alike numbers that are near to each other."""
    suffix = zlib.crc32(name.rpartition(b".")[2]) >> _NAME_BITS - _SUFFIX_BITS
    return suffix << _NAME_BITS - _SUFFIX_BITS | zlib.crc32(name) >> _SUFFIX_BITS
