"""Scanning without writing: what a scan would put into the store stays in memory, file contents aside."""

from __future__ import annotations

from collections.abc import Iterable

from casnap.model.ids import ObjectKey, ObjectKind
from casnap.store.store import Store


class MemorySink:
    """Takes a scan's objects over a store. Trees and chunk lists are kept, chunks are only counted.

    ``missing_bytes`` is how many bytes of chunks the store does not hold yet.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.missing_bytes = 0
        self._objects: dict[ObjectKey, bytes] = {}
        self._counted: set[ObjectKey] = set()
        self._stored: set[ObjectKey] = set()

    def put(self, key: ObjectKey, data: bytes, base: ObjectKey | None = None) -> None:
        """Keep an object, or count a chunk that the store does not hold."""
        if key.kind is not ObjectKind.CHUNK:
            self._objects[key] = data
        elif key not in self._counted and not self.present([key]):
            self._counted.add(key)
            self.missing_bytes += len(data)

    def present(self, keys: Iterable[ObjectKey]) -> set[ObjectKey]:
        """Those that the store holds, or that were put."""
        wanted = set(keys)
        known = {key for key in wanted if key in self._objects or key in self._counted or key in self._stored}
        stored = self.store.present(wanted - known)
        self._stored |= stored
        return known | stored

    def standing(self, keys: Iterable[ObjectKey]) -> set[ObjectKey]:
        """Those that the store holds with all that they build on, or that were put."""
        wanted = set(keys)
        known = {key for key in wanted if key in self._objects or key in self._counted}
        parts = self.store.parts
        places = parts.state.places(wanted - known)
        return known | {key for key, found in places.items() if parts.reader.stands(key, found)}

    def read(self, key: ObjectKey) -> bytes:
        """An object that was put, else the store's."""
        data = self._objects.get(key)
        return self.store.read(key) if data is None else data

    def read_many(self, keys: Iterable[ObjectKey]) -> dict[ObjectKey, bytes]:
        """Those that were put, and what the store gives of the others."""
        wanted = set(keys)
        put = {key: self._objects[key] for key in wanted & self._objects.keys()}
        return put | self.store.read_many(wanted - put.keys())
