"""The bytes of a captured file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from casnap.codec.chunk_lists import load_chunk_list
from casnap.errors import Damage
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.paths import escape
from casnap.model.tree import AnyNode, File
from casnap.store.store import Store

if TYPE_CHECKING:
    from casnap.model.objects import ObjectSource

AHEAD = 250
"""Files that are read together: one query tells where they lie."""

AHEAD_BYTES = 4 << 20
"""Bytes of files with which that is enough sooner; the last may be as long as a chunk can be."""


def chunk_keys(source: ObjectSource, file: File) -> list[ObjectKey]:
    """The chunks that a file's bytes are made of, in order."""
    if not file.chunk_list:
        return [ObjectKey(ObjectKind.CHUNK, file.content)]
    return [ObjectKey(ObjectKind.CHUNK, id) for _, id in load_chunk_list(source, file.chunk_list, file.size)]


def pieces(source: ObjectSource, file: File) -> Iterator[bytes]:
    """A file's bytes in order, each piece checked against its name."""
    for key in chunk_keys(source, file):
        yield source.read(key)


class Contents:
    """The bytes of ``files``, which are asked for in their order: short ones are read many at a time."""

    def __init__(self, store: Store, files: Iterable[AnyNode]) -> None:
        self._store = store
        self._batches = _batches(files)
        self._ahead: dict[bytes, bytes] = {}

    def of(self, file: File) -> Iterator[bytes]:
        """A file's bytes in order, each piece checked against its name."""
        return pieces(self._store, file) if file.chunk_list else iter((self.whole(file),))

    def whole(self, file: File) -> bytes:
        """All bytes of a file that is one chunk, checked against its name."""
        data = self._ahead.get(file.content)
        if data is None:
            self._ahead = {}  # before the next are read
            read = self._store.read_many(next(self._batches, set()))
            self._ahead = {key.id: found for key, found in read.items()}
            data = self._ahead.get(file.content)
        return self._store.read(ObjectKey(ObjectKind.CHUNK, file.content)) if data is None else data


def _batches(files: Iterable[AnyNode]) -> Iterator[set[ObjectKey]]:
    keys, size = set(), 0
    for file in files:
        if isinstance(file, File) and not file.chunk_list:
            keys.add(ObjectKey(ObjectKind.CHUNK, file.content))
            size += file.size
            if len(keys) >= AHEAD or size >= AHEAD_BYTES:
                yield keys
                keys, size = set(), 0
    if keys:
        yield keys


def require_contents(store: Store, nodes: Iterable[tuple[bytes, AnyNode]]) -> None:
    """See that the store knows every object that these entries need, before anything is changed.

    Raises:
        Damage: an object is missing; the message names the first, ``details`` all of them with their paths.
    """
    wanted: dict[ObjectKey, bytes] = {}
    lost: list[dict[str, str]] = []
    for path, node in nodes:
        if isinstance(node, File):
            try:
                wanted.update(dict.fromkeys(chunk_keys(store, node), path))
            except Damage as damage:
                lost.append({"path": escape(path), "object": f"chunk list {node.chunk_list.hex()}: {damage.message}"})
    missing = wanted.keys() - store.present(wanted)
    lost += [{"path": escape(wanted[key]), "object": str(key)} for key in sorted(missing)]
    if lost:
        raise Damage(
            f"cannot restore {lost[0]['path']}: {lost[0]['object']} is missing; nothing was changed",
            hint="choose another checkpoint, or leave the path out with -- PATH",
            details={"missing": lost},
        )
