"""What of a stat cache a scan believes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Mapping

from casnap.errors import Damage
from casnap.model.paths import ROOT, ancestors, names_by_directory
from casnap.model.tree import AnyEntry
from casnap.workspace.cache import CachedDirectory, StatCache, known_entries
from casnap.workspace.signature import Signature


class Known:
    """What is known of one directory's entries from an earlier scan."""

    def __init__(self, cached: CachedDirectory | None, *, doubted: bool, doubted_names: frozenset[bytes]) -> None:
        self.cached = cached
        self._entries = known_entries(cached) if cached is not None else {}
        self._before: dict[bytes, AnyEntry] | None = None
        self._doubted = doubted
        self._doubted_names = doubted_names

    def find(self, name: bytes, status: os.stat_result) -> tuple[Signature, AnyEntry] | None:
        """What stood there in this very state before, which had settled by then; None if unknown."""
        known = self._entries.get(name)
        return known if known is not None and known[0].matches(status) else None

    def before(self, name: bytes) -> AnyEntry | None:
        """What stood there, whatever it is now."""
        if self._before is None:
            self._before = {entry.name: entry for entry in self.cached.listing} if self.cached is not None else {}
        return self._before.get(name)

    def believes(self, name: bytes) -> bool:
        """Whether what is known of this name need not be looked at again."""
        return not self._doubted and name not in self._doubted_names

    def own(self, status: os.stat_result) -> CachedDirectory | None:
        """The directory itself as it was in this very state, unless that is doubted."""
        cached = self.cached
        if self._doubted or cached is None or cached.signature is None or not cached.signature.matches(status):
            return None
        return cached


class Belief:
    """A cache, and how far it is believed: not at all unless ``trusted``, and never at or below paths in ``only``."""

    def __init__(self, cache: StatCache | None, *, trusted: bool, only: Collection[bytes] | None) -> None:
        self._directories: Mapping[bytes, CachedDirectory] = cache.directories if cache is not None else {}
        self._doubted = frozenset({ROOT} if not trusted else only or ())
        self._doubted_names = names_by_directory(self._doubted - {ROOT})

    def of(self, directory: bytes) -> Known:
        """What is known of the entries of a directory."""
        return Known(
            _readable(self._directories.get(directory)),
            doubted=bool(self._doubted) and not self._doubted.isdisjoint((directory, *ancestors(directory))),
            doubted_names=self._doubted_names.get(directory, frozenset()),
        )


def _readable(cached: CachedDirectory | None) -> CachedDirectory | None:
    """A cached directory whose entries are known; None where the store has not got its tree any more."""
    with contextlib.suppress(Damage):
        return cached if cached is not None and cached.listing is not None else None
    return None
