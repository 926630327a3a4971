"""Where things lie in a store."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from casnap.fs.durable import failed

_PACK = r"([0-9a-f]{32})\.pack"
_CATALOG = ("catalog-", ".db")
_ASIDE = ".aside"
_DIGITS = 10
"""Digits in the name of a segment."""


class Layout(Struct, frozen=True):
    """The paths of the store at ``root``."""

    root: Path

    @property
    def format(self) -> Path:
        """What kind of store it is; a directory without it, and without an oplog, is no store."""
        return self.root / "casnap-store.json"

    @property
    def readme(self) -> Path:
        """For a person who comes across the directory."""
        return self.root / "README.txt"

    @property
    def reserve(self) -> Path:
        """Space that can be given back when the disk is full."""
        return self.root / "reserve"

    @property
    def packs(self) -> Path:
        """The directory of packs."""
        return self.root / "packs"

    @property
    def oplog(self) -> Path:
        """The directory of the operation log's segments."""
        return self.root / "oplog"

    @property
    def locks(self) -> Path:
        """The directory of lock files."""
        return self.root / "locks"

    @property
    def cache(self) -> Path:
        """What may vanish at any time."""
        return self.root / "cache"

    @property
    def synced(self) -> Path:
        """Up to where the operation log is known to be on the disk."""
        return self.cache / "oplog-synced"

    @property
    def directories(self) -> tuple[Path, ...]:
        """All that a store consists of, the store itself first."""
        return (self.root, self.packs, self.oplog, self.locks, self.cache)

    def pack(self, pack_id: str) -> Path:
        """The pack with this id (32 hexadecimal digits)."""
        return self.packs / f"{pack_id}.pack"

    def segment(self, number: int) -> Path:
        """A segment of the operation log; they count from 1."""
        return self.oplog / f"{number:0{_DIGITS}}.jsonl"

    def lock(self, name: str) -> Path:
        """The file that a lock is taken on."""
        return self.locks / f"{name}.lock"

    def catalog(self, number: int) -> Path:
        """A catalog; a rebuilt one has a higher number."""
        return self.root / f"catalog-{number}.db"

    def pack_ids(self) -> list[str]:
        """The packs that are there, in no order."""
        return [match[1] for name in _names(self.packs) if (match := re.fullmatch(_PACK, name))]

    def segments(self) -> list[int]:
        """The numbers of the segments that are there, ascending."""
        return sorted(number for number, length in _numbers(_names(self.oplog), "", ".jsonl") if length == _DIGITS)

    def catalogs(self) -> list[int]:
        """The numbers of the catalogs that are there, newest first; not those that were set aside."""
        return sorted((number for number, _ in _numbers(_names(self.root), *_CATALOG)), reverse=True)

    def next_catalog(self) -> int:
        """A number that no catalog has had, as far as can be seen."""
        names = [name.removesuffix(_ASIDE) for name in _names(self.root)]
        return max((number for number, _ in _numbers(names, *_CATALOG)), default=0) + 1


def _numbers(names: Iterable[str], before: str, after: str) -> Iterator[tuple[int, int]]:
    """The numbers, and how many digits they have, in the names that consist of one between ``before`` and ``after``."""
    for name in names:
        digits = name.removeprefix(before).removesuffix(after)
        if digits.isdecimal() and name == f"{before}{digits}{after}":
            yield int(digits), len(digits)


def _names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise failed("read", directory, error) from error
