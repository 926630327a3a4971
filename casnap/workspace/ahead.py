"""What a scan is about to read: told before the first byte goes into the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from casnap.model.paths import ROOT, ancestors, is_within, split
from casnap.workspace.found import FoundDirectory, ReadJob

_ALMOST_ALL = 0.9


class ReadingAhead(Struct, frozen=True):
    """How many files must be read, and their bytes in all; of a file with several names one is counted.

    ``directory_bytes`` holds, for each directory of the workspace, the bytes of the files right in it.
    """

    files: int
    total_bytes: int
    directory_bytes: Mapping[bytes, int]

    def largest_directories(self, count: int) -> list[tuple[bytes, int]]:
        """The ``count`` directories below the root that hold most, with all below them; largest first.

        None is within another, and where almost all of a directory is in one below it, that one is named.
        """
        totals = self._totals()
        heirs: dict[bytes, int] = {}
        for path, size in totals.items():
            parent, _ = split(path)
            if path != ROOT:
                heirs[parent] = max(heirs.get(parent, 0), size)
        largest: list[tuple[bytes, int]] = []
        for path, size in sorted(totals.items(), key=lambda item: (-item[1], item[0])):
            if len(largest) == count or size == 0:
                break
            if path == ROOT or heirs.get(path, 0) >= _ALMOST_ALL * size:
                continue
            if not any(is_within(path, named) or is_within(named, path) for named, _ in largest):
                largest.append((path, size))
        return largest

    def _totals(self) -> dict[bytes, int]:
        totals: dict[bytes, int] = {}
        for path, size in self.directory_bytes.items():
            if size:
                for directory in (path, *ancestors(path)):
                    totals[directory] = totals.get(directory, 0) + size
        return totals


def reading_ahead(jobs: Sequence[ReadJob], found: Mapping[bytes, FoundDirectory]) -> ReadingAhead:
    """Add up what is to be read."""
    sizes: list[int] = []
    counted: set[tuple[int, int]] = set()
    for job in jobs:
        signature = job.signature
        if signature.nlink > 1:
            inode = (signature.device, signature.inode)
            if inode in counted:
                continue
            counted.add(inode)
        sizes.append(signature.size)
    return ReadingAhead(len(sizes), sum(sizes), {path: directory.file_bytes for path, directory in found.items()})
