"""What has changed since a stat cache was written whole, beside it: one changed file does not rewrite 100,000 rows.

A patch has the directories that are not as the whole file, its base, has them, and says which of the base's go between
them. It is always to the base, never to an earlier patch, and names it by its checksum. So either file may be replaced,
lost or damaged without the other: beside another base a patch counts for nothing, and the base alone is what an earlier
scan found.

What a patch keeps of its base was looked at, and found as it was, by the scan that the patch is of, in the same boot as
the base: so one time, that of the patch, says how far all that the two have together is believed after another boot.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from casnap.workspace.cache import CachedDirectory, StatCache, Whole
from casnap.workspace.cache_file import UNREADABLE, CacheFile, Header, Origin, Run, unsealed

MAGIC = b"casnap stat cache patch 1\n"

LARGEST = 8
"""How many times a patch must fit into its base: it is written with every change, and most of them make it longer."""

Kept = tuple[int, int, int]
"""After how many directories of the patch some of the base come, and the numbers of the first and the last of these."""


class PatchHeader(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """``base`` is the checksum of the base, ``kept`` what of that is as it was, ``cache`` the header of all together.

    The lengths in that are those of the patch. ``entries`` is there where all that the base says of the workspace as a
    whole holds still, but for this number of entries: that may be many paths.
    """

    cache: Header
    base: bytes
    kept: tuple[Kept, ...]
    entries: int | None


_header_decoder = msgspec.msgpack.Decoder(PatchHeader)


class MergedFile(CacheFile):
    """A base and a patch, as one file with all of it would be read; ``runs`` say what is taken from which."""

    def __init__(self, base: CacheFile, runs: Sequence[Run]) -> None:
        super().__init__()
        self.origin = base.origin
        self.runs = runs
        self._base = base
        self._starts = list(accumulate((run.last + 1 - run.first for run in runs), initial=0))
        for run in runs:
            self.copy(*run)

    @property
    def base(self) -> CacheFile:
        """All that the file of ``origin`` has."""
        return self._base

    def parted(self, run: Run) -> Iterator[Run]:
        """What a run of these directories was taken from."""
        starts = self._starts
        for number in range(bisect_right(starts, run.first) - 1, len(self.runs)):
            file, first, _ = self.runs[number]
            if starts[number] > run.last:
                return
            shift = first - starts[number]
            yield Run(file, max(run.first, starts[number]) + shift, min(run.last, starts[number + 1] - 1) + shift)

    def _joined(self) -> list[bytes]:
        """The path of each row; who keeps the base joins those of the base once."""
        paths: list[bytes] = []
        for file, first, last in self.runs:
            paths += file.row_paths[file.starts[first] : file.starts[last + 1]]
        return paths


def patch_to(base: CacheFile, origin: Origin, cache: StatCache, header: Header) -> bytes | None:
    """The patch that makes ``cache`` of a base, which was read from ``origin``; None where it would be too large."""
    from casnap.workspace.cache_saving import sealed, with_columns  # here, since who only reads writes none

    own, kept = _changed(cache.directories, base)
    if (entries := _entries_alone(origin.header.whole, header.whole)) is not None:
        header = replace(header, whole=None)
    header, data = with_columns(header, own)
    patch = sealed(MAGIC, PatchHeader(header, origin.checksum, kept, entries), data)
    return patch if len(patch) * LARGEST <= origin.size else None


def _changed(directories: Mapping[bytes, CachedDirectory], base: CacheFile) -> tuple[CacheFile, tuple[Kept, ...]]:
    """The directories that a base has not got as they are, and what it has got between them."""
    from casnap.workspace.cache_saving import append, pieces

    own = CacheFile()
    kept: list[Kept] = []
    for piece in pieces(directories):
        if not isinstance(piece, Run):
            append(own, piece)
            continue
        for run in piece.file.parted(piece) if isinstance(piece.file, MergedFile) else [piece]:
            if run.file is not base:
                append(own, run)
            elif kept and kept[-1][0] == len(own) and kept[-1][2] == run.first - 1:
                kept[-1] = (len(own), kept[-1][1], run.last)
            else:
                kept.append((len(own), run.first, run.last))
    return own, tuple(kept)


def _entries_alone(before: Whole | None, now: Whole | None) -> int | None:
    """The number of entries, if nothing else is said of the whole than before."""
    if before is None or now is None or replace(before, entries=now.entries) != now:
        return None
    return now.entries


def load_patch(path: Path, *, store: str, workspace: str) -> tuple[PatchHeader, CacheFile] | None:
    """The header of a patch, and its directories; None where there is none that is whole and belongs to these."""
    try:
        head, _, columns = unsealed(memoryview(path.read_bytes()), MAGIC)
        header = _header_decoder.decode(head)
        own = CacheFile.read(columns, header.cache)
    except UNREADABLE:
        return None
    return (header, own) if (header.cache.store, header.cache.workspace) == (store, workspace) else None


def patched(base: CacheFile, path: Path) -> tuple[CacheFile, Header] | None:
    """All that a base and the patch at ``path`` have together; None where there is no patch to this base."""
    if base.origin is None:
        return None
    before = base.origin.header
    found = load_patch(path, store=before.store, workspace=before.workspace)
    if found is None or (found[0].base, found[0].cache.boot) != (base.origin.checksum, before.boot):
        return None
    patch, own = found
    runs = _runs(patch.kept, own, base)
    if runs is None:
        return None
    header = patch.cache
    if patch.entries is not None and before.whole is not None:
        header = replace(header, whole=replace(before.whole, entries=patch.entries))
    return MergedFile(base, runs), header


def _runs(kept: Sequence[Kept], own: CacheFile, base: CacheFile) -> list[Run] | None:
    """What to take in order from a patch and from its base; None where they do not fit."""
    runs: list[Run] = []
    taken = 0
    for after, first, last in (*kept, (len(own), 0, -1)):
        if not (taken <= after and 0 <= first <= last + 1 <= len(base)):
            return None
        runs += [Run(own, taken, after - 1), Run(base, first, last)]
        taken = after
    return [run for run in runs if run.first <= run.last]
