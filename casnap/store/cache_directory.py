"""The files of a store that may vanish at any time."""

from __future__ import annotations

import contextlib
from pathlib import Path

from msgspec import Struct

from casnap.errors import CasnapError
from casnap.fs.appending import Owner, keep, remove


class CacheDirectory(Struct, frozen=True):
    """``cache/`` in a store, for rooms above that know what is in its files."""

    path: Path
    owner: Owner | None

    def keep(self, name: str, data: bytes) -> bool:
        """Put a file, whole or not at all; whether that worked, which is seldom a matter."""
        with contextlib.suppress(CasnapError):
            keep(self.path / name, data, self.owner)
            return True
        return False

    def drop(self, name: str) -> None:
        """Take a file away, if there is one; whether that worked is no matter."""
        with contextlib.suppress(CasnapError):
            remove(self.path / name)

    def file(self, name: str) -> Path:
        """Where :meth:`keep` puts a file of that name."""
        return self.path / name
