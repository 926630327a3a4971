"""The room on a store's disk: how much is left, and the file that keeps some by for when none is."""

from __future__ import annotations

import contextlib
from pathlib import Path

from casnap.errors import CasnapError
from casnap.fs.appending import Owner, has_room, make_file, remove
from casnap.model.paths import escape
from casnap.store import media
from casnap.store.layout import Layout

RESERVE = 5 << 18
"""Bytes that a new store puts by, to be given back when a full disk leaves no room to free any: the longest record that
a file of one chunk makes, its index, and what a line takes.
"""

MOST_RESERVED = 4 << 20
"""What a large store puts by: its indexes are longer, and so is a change of its catalog."""

_PART_OF_STORE, _PART_OF_DISK = 32, 16
"""In between it is this part of the store; and never more than this part of the disk."""

NEEDED = 128 << 10
"""Bytes that must be there for lines, locks and the catalog; with less the reserve is given back."""

_PLENTY = 4
"""The reserve is made anew once so many times its size is free."""


class Space:
    """The disk that the store at ``layout`` lies on."""

    def __init__(self, layout: Layout, owner: Owner | None) -> None:
        self._layout = layout
        self._owner = owner

    @property
    def path(self) -> Path:
        """The store."""
        return self._layout.root

    @property
    def disk(self) -> str:
        """What to call it: nobody need know which of their disks that is."""
        return f"the disk of the store at {escape(bytes(self.path))}"

    def free(self) -> tuple[int, int]:
        """Bytes that an unprivileged user may still write to the disk, and the disk's size."""
        return media.free_space(self.path)

    def used(self) -> int:
        """Bytes of the disk that the store takes."""
        return media.disk_usage(self.path)

    def make_room(self) -> bool:
        """Give the reserve back if there is no room to write at all (the disk is full, or a quota); whether it was."""
        if has_room(self.path, NEEDED) or not self._layout.reserve.exists():
            return False
        remove(self._layout.reserve)
        return True

    def keep_reserve(self) -> None:
        """Put the reserve by where it is missing or has become small, and there is plenty; no matter if it fails."""
        with contextlib.suppress(CasnapError, OSError):
            free, size = self.free()
            wanted = reserve_size(size, self.used())
            there = self._layout.reserve.stat().st_size if self._layout.reserve.exists() else 0
            if there < wanted and free >= _PLENTY * wanted:
                if there:
                    remove(self._layout.reserve)
                make_file(self._layout.reserve, self._owner, wanted)


def reserve_size(disk: int, store: int = 0) -> int:
    """Bytes that a store that takes ``store`` bytes of a disk of ``disk`` bytes puts by."""
    return min(max(RESERVE, store // _PART_OF_STORE), MOST_RESERVED, disk // _PART_OF_DISK)
