"""Bytes that nobody names: what killed commands left behind in packs, and temporary files without a writer."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from casnap.errors import StorageFailed
from casnap.fs.appending import AppendFile, remove, remove_abandoned
from casnap.store.parts import Parts

_TEMPORARY = re.compile(r".+\.[0-9a-f]{8}\.tmp|scratch-[0-9a-f]{16}(-wal|-shm|-journal)?")
_CACHE = re.compile(r"([0-9a-f]+)\.stat(-patch)?")


class Orphan(NamedTuple):
    """A file, how many of its first bytes are somebody's, and its size."""

    path: Path
    length: int
    size: int


def find_orphans(parts: Parts) -> list[Orphan]:
    """The files that :func:`sweep_orphans` would cut or remove if nobody uses them."""
    known, may_cut = parts.look()
    if not may_cut:  # the last line is bad: it may be what committed them
        return []
    tails = []
    for pack in parts.layout.pack_ids():
        path, row = parts.layout.pack(pack), known.get(pack)
        length = 0 if row is None else row.length
        with contextlib.suppress(OSError):
            if (size := os.stat(path).st_size) > length or not length:
                tails.append(Orphan(path, length, size))
    return [*tails, *(Orphan(path, 0, _size(path)) for path in (*_temporaries(parts), *_stale_caches(parts)))]


def sweep_orphans(parts: Parts) -> int:
    """Take them away; the bytes that came free. Only under the commit lock, caught up.

    A session that is alive holds its pack locked, and a writer its temporary file.
    """
    freed = 0
    for orphan in find_orphans(parts):
        if orphan.path.parent == parts.layout.packs:
            freed += _cut(parts, orphan)
        elif _CACHE.fullmatch(orphan.path.name):
            with contextlib.suppress(StorageFailed):
                remove(orphan.path)
                freed += orphan.size
        else:
            freed += remove_abandoned(orphan.path)
    return freed


def _cut(parts: Parts, orphan: Orphan) -> int:
    with contextlib.suppress(StorageFailed), contextlib.closing(AppendFile.open(orphan.path)) as file:
        if file.lock():
            size = file.size
            parts.reader.files.forget(orphan.path.stem)
            file.cut(orphan.length) if orphan.length else file.discard()
            return size - orphan.length
    return 0


def _temporaries(parts: Parts) -> Iterator[Path]:
    for directory in (parts.layout.root, parts.layout.oplog, parts.layout.cache):
        yield from (path for path in _files(directory) if _TEMPORARY.fullmatch(path.name))


def _stale_caches(parts: Parts) -> Iterator[Path]:
    """Stat caches of workspaces that are gone with their checkpoints."""
    for path in _files(parts.layout.cache):
        if match := _CACHE.fullmatch(path.name):
            row = parts.state.workspace(match[1])
            if row is None or row.dropped:
                yield path


def _files(directory: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return sorted(Path(entry) for entry in os.scandir(directory) if entry.is_file(follow_symlinks=False))
    return []


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
