"""Writing the stat cache: whole, or as a patch to the file that the scan began with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from casnap.codec.compression import compress_long
from casnap.codec.hashing import checksum
from casnap.model.paths import ROOT
from casnap.workspace.cache import CachedDirectory, StatCache
from casnap.workspace.cache_file import MAGIC, CacheFile, Header, Part, Patched, Run, StoredDirectory

SMALL = 64 << 10
"""A file of fewer bytes is written whole: that takes no longer than what comes of having two."""

_LEVEL = 3
"""Of zstd: a third of the bytes is left, and a megabyte takes two milliseconds to read."""

_encoder = msgspec.msgpack.Encoder()

Piece = Run | tuple[bytes, CachedDirectory]
"""A run of directories that are as they are in a file, or one that is new, with its path."""


def encode_cache(cache: StatCache, *, store: str, workspace: str, boot: str, checkpoint: bytes) -> bytes:
    """The file that :func:`casnap.workspace.cache_file.load_cache` reads.

    ``checkpoint`` must be committed, and hold what was scanned.
    """
    file = CacheFile()
    for piece in pieces(cache.directories):
        append(file, piece)
    header, data = with_columns(Header(store, workspace, boot, checkpoint, cache.written, cache.whole), file)
    return sealed(MAGIC, header, data)


def encode_patch(cache: StatCache, *, store: str, workspace: str, boot: str, checkpoint: bytes) -> bytes | None:
    """What says the same beside the file that the scan began with; None where that is to be written anew.

    So it is where there was none, or one of another boot or few bytes, or where much has changed since.
    """
    file = _file_of(cache.directories)
    if file is None or file.origin is None or file.origin.size < SMALL:
        return None
    from casnap.workspace.cache_patch import patch_to  # here, since few workspaces are so large

    header = Header(store, workspace, boot, checkpoint, cache.written, cache.whole)
    return patch_to(file.base, file.origin, cache, header)


def _file_of(directories: Mapping[bytes, CachedDirectory]) -> CacheFile | None:
    """The file that directories come from, as far as they are as they were."""
    if isinstance(directories, CacheFile | Patched):
        return directories.file if isinstance(directories, Patched) else directories
    return next((known.file for known in directories.values() if isinstance(known, StoredDirectory)), None)


def pieces(directories: Mapping[bytes, CachedDirectory]) -> Iterator[Piece]:
    """What directories are made of, in their order, the runs as long as can be."""
    run: Run | None = None
    for path, part, file in _parts(directories):
        following = Run(file, *part) if file is not None and isinstance(part, tuple) else None
        if run is not None and following is not None and run.file is file and run.last == following.first - 1:
            run = Run(run.file, run.first, following.last)
            continue
        if run is not None:
            yield run
        run = following
        if isinstance(part, CachedDirectory):
            yield path, part
    if run is not None:
        yield run


def _parts(directories: Mapping[bytes, CachedDirectory]) -> Iterator[tuple[bytes, Part, CacheFile | None]]:
    """Each part with the path that it begins with, and the file that it is copied from."""
    if isinstance(directories, CacheFile):
        yield ROOT, (0, len(directories) - 1), directories
        return
    file = directories.file if isinstance(directories, Patched) else None
    parts: Mapping[bytes, Part] = directories.parts if isinstance(directories, Patched) else directories
    for path, part in parts.items():
        if isinstance(part, StoredDirectory):
            yield path, (part.number, part.number), part.file
        else:
            yield path, part, file if isinstance(part, tuple) else None


def append(file: CacheFile, piece: Piece) -> None:
    """Let directories follow in a file."""
    if isinstance(piece, Run):
        file.copy(*piece)
    else:
        file.add(*piece)


def with_columns(header: Header, file: CacheFile) -> tuple[Header, bytes]:
    """The header of a file with what it must say of the file's columns, and those."""
    data, paths, entries = file.data
    lengths = {"directories": len(file), "rows": len(file.names), "paths": paths, "entries": entries}
    return replace(header, **lengths), data


def sealed(magic: bytes, header: Struct, data: bytes) -> bytes:
    """A file of a cache: what it is, the checksum of the rest, its header, and its columns."""
    head = _encoder.encode(header)
    payload = len(head).to_bytes(8, "little") + head + compress_long(data, _LEVEL)
    return magic + checksum(payload) + payload
