"""Signatures in columns: compared as a whole, and read from a file without making an object of each."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from casnap.model.tree import NANOSECONDS
from casnap.workspace.signature import Signature

UNSETTLED = 0
"""Stands for the inode of what had not settled: no file has it, so no stat is equal."""

_UNSAFE_AFTER_BOOT = 120 * NANOSECONDS
"""A crash may undo what was written so long before the cache, and leave the stat as it was."""

_COLUMNS = {"mode": "I", "size": "q", "mtime": "q", "ctime": "q", "inode": "Q", "nlink": "Q"}
_UNKNOWN = Signature(0, 0, 0, 0, UNSETTLED, 0, 0)


class Stats:
    """Signatures in columns, one row each."""

    def __init__(self) -> None:
        self.columns = {name: array(code) for name, code in _COLUMNS.items()}

    def __len__(self) -> int:
        return len(self.columns["mode"])

    def add(self, signatures: Iterable[Signature | None]) -> None:
        """Append rows; None is of something that had not settled."""
        found = [signature or _UNKNOWN for signature in signatures]
        columns = self.columns
        columns["mode"].extend([row.mode for row in found])
        columns["size"].extend([row.size for row in found])
        columns["mtime"].extend([row.mtime_ns for row in found])
        columns["ctime"].extend([row.ctime_ns for row in found])
        columns["inode"].extend([row.inode for row in found])
        columns["nlink"].extend([row.nlink for row in found])

    def extend(self, other: Stats, start: int, end: int) -> None:
        """Append rows of others."""
        for name, column in self.columns.items():
            column.extend(other.columns[name][start:end])

    def get(self, row: int, device: int) -> Signature | None:
        """One row; ``device`` is that of the directory."""
        mode, size, mtime, ctime, inode, nlink = (column[row] for column in self.columns.values())
        return None if inode == UNSETTLED else Signature(mode, size, mtime, ctime, inode, device, nlink)

    def doubt(self, written: int) -> None:
        """After another boot what was changed shortly before ``written`` has not settled."""
        inodes = self.columns["inode"]
        for name in ("mtime", "ctime"):
            for row, stamp in enumerate(self.columns[name]):
                if abs(written - stamp) <= _UNSAFE_AFTER_BOOT:
                    inodes[row] = UNSETTLED

    @property
    def data(self) -> bytes:
        """All columns, one after the other."""
        return b"".join(column.tobytes() for column in self.columns.values())

    @classmethod
    def read(cls, data: memoryview, rows: int) -> tuple[Stats, memoryview]:
        """The columns that ``data`` begins with, and what follows."""
        stats = cls()
        for column in stats.columns.values():
            size = rows * column.itemsize
            column.frombytes(data[:size])
            data = data[size:]
        return stats, data
