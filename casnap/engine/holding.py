"""Which checkpoints hold which objects: every object is read once, however many checkpoints share it."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from casnap.codec.checkpoints import decode_checkpoint
from casnap.codec.chunk_lists import ListLeaf, decode_chunk_list
from casnap.codec.trees import Leaf, decode_tree
from casnap.errors import Damage, TooNew
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.objects import ObjectSource
from casnap.model.tree import AnyEntry, Directory, File

NOBODY, SHARED = -1, -2
"""Instead of the number of a holder: there is none, or more than one."""


class Sum(NamedTuple):
    """Bytes of all files that an object leads to, each as often as it is named, and the first fault on the way."""

    size: int
    fault: str


class Holdings:
    """Objects by number, and what each names. Objects that cannot be read name nothing, and have a fault."""

    def __init__(self, source: ObjectSource) -> None:
        self._source = source
        self._numbers: dict[ObjectKey, int] = {}
        self._below: list[array[int]] = []
        self._size: list[int] = []
        self._sums: dict[int, Sum] = {}
        self._unread: list[tuple[int, ObjectKey]] = []
        self.faults: dict[int, str] = {}

    @property
    def keys(self) -> Sequence[ObjectKey]:
        """All objects that were met, in the order of their numbers."""
        return list(self._numbers)

    def add(self, key: ObjectKey) -> int:
        """Look at an object and at all that it leads to; its number."""
        top = self._number(key)
        while self._unread:
            number, unread = self._unread.pop()
            try:
                size, below = contents(unread, self._source.read(unread))
            except (Damage, TooNew) as error:
                self.faults[number] = error.message
                continue
            self._size[number] = size
            self._below[number] = array("q", map(self._number, below))
        return top

    def holders(self, groups: Iterable[Iterable[int]]) -> array[int]:
        """For each object the place of the only group that leads to it, or SHARED, or NOBODY."""
        holder = array("q", [NOBODY]) * len(self._below)
        for place, tops in enumerate(groups):
            waiting = list(tops)
            while waiting:
                number = waiting.pop()
                if holder[number] not in (place, SHARED):
                    holder[number] = place if holder[number] == NOBODY else SHARED
                    waiting.extend(self._below[number])  # once more when it turns out to be shared: so is all below
        return holder

    def reached(self, tops: Iterable[int]) -> set[int]:
        """All that these objects lead to, themselves included."""
        found: set[int] = set()
        waiting = list(tops)
        while waiting:
            if (number := waiting.pop()) not in found:
                found.add(number)
                waiting.extend(self._below[number])
        return found

    def sum(self, top: int) -> Sum:
        """What an object leads to; what is shared is added up once and remembered."""
        waiting = [top]
        while waiting:
            number = waiting[-1]
            missing = [below for below in self._below[number] if below not in self._sums]
            if missing:
                waiting.extend(missing)
                continue
            waiting.pop()
            below = [self._sums[child] for child in self._below[number]]
            size = self._size[number] + sum(child.size for child in below)
            fault = self.faults.get(number) or next((child.fault for child in below if child.fault), "")
            self._sums[number] = Sum(size, fault)
        return self._sums[top]

    def _number(self, key: ObjectKey) -> int:
        if (number := self._numbers.get(key)) is None:
            number = self._numbers[key] = len(self._numbers)
            self._below.append(_NOTHING)
            self._size.append(0)
            if key.kind is not ObjectKind.CHUNK:
                self._unread.append((number, key))
        return number


_NOTHING: array[int] = array("q")


def contents(key: ObjectKey, data: bytes) -> tuple[int, list[ObjectKey]]:
    """Bytes of the files that an object names itself, and the objects that it names.

    Raises:
        Damage: the bytes are no object of its kind.
    """
    match key.kind:
        case ObjectKind.CHECKPOINT:
            return _named([decode_checkpoint(data).root])
        case ObjectKind.TREE:
            tree = decode_tree(data)
            if isinstance(tree, Leaf):
                return _named(tree.entries)
            return 0, [ObjectKey(ObjectKind.TREE, page.id) for page in tree.pages]
        case ObjectKind.CHUNK_LIST:
            listed = decode_chunk_list(data)
            if isinstance(listed, ListLeaf):
                return 0, [ObjectKey(ObjectKind.CHUNK, id) for _, id in listed.entries]
            return 0, [ObjectKey(ObjectKind.CHUNK_LIST, page.id) for page in listed.pages]
        case _:
            return 0, []


def _named(entries: Iterable[AnyEntry]) -> tuple[int, list[ObjectKey]]:
    size, below = 0, []
    for entry in entries:
        if isinstance(entry, Directory):
            below.append(ObjectKey(ObjectKind.TREE, entry.tree))
        elif isinstance(entry, File):
            size += entry.size
            if entry.chunk_list:
                below.append(ObjectKey(ObjectKind.CHUNK_LIST, entry.chunk_list))
            else:
                below.append(ObjectKey(ObjectKind.CHUNK, entry.content))
    return size, below
