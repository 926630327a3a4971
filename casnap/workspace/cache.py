"""The stat cache: what a scan found, so that the next one reads only what has changed. It may vanish at any time.

It is never trusted blindly: a checksum guards it against damage, it names the store, workspace and boot that it
belongs to, and an entry without a signature had not settled when it was seen.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from casnap.codec.hashing import CHECKSUM_SIZE, checksum
from casnap.model.tree import NANOSECONDS, AnyEntry, Directory, Listing
from casnap.workspace.signature import Signature

_MAGIC = b"casnap stat cache 1\n"

_UNSAFE_AFTER_BOOT = 120 * NANOSECONDS
"""A crash may undo what was written so long before the cache, and leave the stat as it was."""


class CachedDirectory(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One directory as a scan found it.

    ``entry`` is the directory's own, its tree and digest included. ``signatures`` run along ``listing``; None
    stands where an equal stat proves nothing: not settled, omitted, or a directory, which carries its own.
    """

    entry: Directory
    signature: Signature | None
    listing: Listing
    signatures: tuple[Signature | None, ...]


class _File(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    store: str
    workspace: str
    boot: str
    checkpoint: bytes
    written: int
    directories: dict[bytes, CachedDirectory]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_File)


class StatCache:
    """Directories by path, as they were at ``written`` (nanoseconds since the epoch).

    ``checkpoint`` is the id of the checkpoint that holds all of it; empty until that has been committed.
    ``differs`` says whether anything is new since the cache that the scan began with.
    """

    def __init__(
        self,
        directories: dict[bytes, CachedDirectory],
        *,
        written: int,
        checkpoint: bytes = b"",
        differs: bool = True,
    ) -> None:
        self.directories = directories
        self.written = written
        self.checkpoint = checkpoint
        self.differs = differs

    def encode(self, *, store: str, workspace: str, boot: str, checkpoint: bytes) -> bytes:
        """The file that :func:`load_cache` reads. ``checkpoint`` must be committed, and hold what was scanned."""
        payload = _encoder.encode(_File(store, workspace, boot, checkpoint, self.written, self.directories))
        return _MAGIC + checksum(payload) + payload


def load_cache(path: Path, *, store: str, workspace: str, boot: str) -> StatCache | None:
    """The cache at ``path``; None where there is none that is whole and belongs to this store and workspace."""
    try:
        data = memoryview(path.read_bytes())
    except OSError:
        return None
    start = len(_MAGIC) + CHECKSUM_SIZE
    payload = data[start:]
    if data[: len(_MAGIC)] != _MAGIC or data[len(_MAGIC) : start] != checksum(payload):
        return None
    try:
        file = _decoder.decode(payload)
    except msgspec.MsgspecError:
        return None
    if (file.store, file.workspace) != (store, workspace) or not all(map(_is_whole, file.directories.values())):
        return None
    directories = file.directories
    if file.boot != boot:
        directories = {path: _after_boot(found, file.written) for path, found in directories.items()}
    return StatCache(directories, written=file.written, checkpoint=file.checkpoint, differs=False)


def known_entries(directory: CachedDirectory) -> dict[bytes, tuple[Signature, AnyEntry]]:
    """The entries, by name, that an equal stat proves unchanged."""
    pairs = zip(directory.listing, directory.signatures, strict=True)
    return {entry.name: (signature, entry) for entry, signature in pairs if signature is not None}


def _is_whole(directory: CachedDirectory) -> bool:
    return len(directory.listing) == len(directory.signatures)


def _after_boot(directory: CachedDirectory, written: int) -> CachedDirectory:
    def proven(signature: Signature | None) -> Signature | None:
        if signature is None:
            return None
        stamps = (signature.mtime_ns, signature.ctime_ns)
        return None if any(abs(written - stamp) <= _UNSAFE_AFTER_BOOT for stamp in stamps) else signature

    return replace(
        directory,
        signature=proven(directory.signature),
        signatures=tuple(map(proven, directory.signatures)),
    )
