"""Whether a store that was opened is still the one at its path: others may have removed or replaced it."""

from __future__ import annotations

import os
from pathlib import Path

from casnap.errors import CasnapError, StorageFailed
from casnap.store import creation
from casnap.store.layout import Layout


class Identity:
    """The store ``id`` at a place, known by its format file, which is read again only when that is another one."""

    def __init__(self, layout: Layout, id: str) -> None:
        self._layout = layout
        self.id = id
        self._seen = _look_of(layout.format)

    def holds(self) -> bool:
        """Whether it is still there."""
        seen = _look_of(self._layout.format)
        if seen != self._seen:
            try:
                if creation.read_format(self._layout).id != self.id:
                    return False
            except CasnapError:
                return False
            self._seen = seen
        return True

    def require(self) -> None:
        """See that it is still there.

        Raises:
            StorageFailed: it is not; nothing may be written to what is.
        """
        if not self.holds():
            raise StorageFailed(
                f"cannot write to store {self._layout.root}: it is not there any more, or another one is",
                code="store-replaced",
                hint="open it again",
            )


def _look_of(file: Path) -> tuple[int, int, int] | None:
    """What tells a file from another one at its path; None where there is none."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_ctime_ns
