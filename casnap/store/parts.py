"""What a store is made of, for the modules of this room that work on its files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from casnap.fs.appending import Owner
from casnap.store.identity import Identity
from casnap.store.layout import Layout
from casnap.store.objects import ObjectReader
from casnap.store.state import State

if TYPE_CHECKING:
    from casnap.store.adoption import Look, PackTaker


class Parts(Struct, frozen=True):
    """``look`` gives the packs as committed by now, and whether bytes behind that may be cut off."""

    layout: Layout
    owner: Owner | None
    identity: Identity
    level: int
    state: State
    reader: ObjectReader
    look: Look

    @property
    def store_id(self) -> str:
        """The store's own id."""
        return self.identity.id

    @property
    def taker(self) -> PackTaker:
        """What takes hold of packs to append to."""
        from casnap.store.adoption import PackTaker  # here, since readers take none

        return PackTaker(self.layout, self.reader, self.identity, self.owner)
