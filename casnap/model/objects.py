"""Where objects come from and where they go: what the rooms above and below agree on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from casnap.model.ids import ObjectKey


class ObjectSource(Protocol):
    """Gives the bytes of objects; some have ``read_many`` too, for those that can be had together."""

    def read(self, key: ObjectKey) -> bytes:
        """The object's bytes, checked against its name.

        Raises:
            Damage: it is missing, or no stored copy matches its name.
        """


class ObjectSink(Protocol):
    """Takes the bytes of objects."""

    def put(self, key: ObjectKey, data: bytes, base: ObjectKey | None = None) -> None:
        """Keep an object; one that is there already costs nothing. ``key`` is trusted to be its name.

        ``base`` is what it replaces, if that is known: the two are much alike.
        """

    def present(self, keys: Iterable[ObjectKey]) -> set[ObjectKey]:
        """Those of ``keys`` that are there already."""

    def standing(self, keys: Iterable[ObjectKey]) -> set[ObjectKey]:
        """Those of ``keys`` that are there with all that they build on."""
