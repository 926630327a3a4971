"""Names and checksums: BLAKE3 everywhere (docs/format/ids.md)."""

from __future__ import annotations

from typing import Any

import msgspec
from blake3 import blake3

from casnap.model.ids import ObjectKind
from casnap.model.tree import AnyEntry, Device, Directory, Fifo, File, Listing, Omitted, Symlink

CHECKSUM_SIZE = 8

NO_PREVIOUS = "0" * 64
"""What stands for the hash of the line before the first of the operation log."""

CONTEXTS = {
    ObjectKind.CHUNK_LIST: "casnap 2026 store format 1 chunk list",
    ObjectKind.TREE: "casnap 2026 store format 1 tree",
    ObjectKind.CHECKPOINT: "casnap 2026 store format 1 checkpoint",
}
"""Derive-key contexts: bytes that are valid as two kinds still get two ids."""

DIGEST_CONTEXT = "casnap 2026 directory digest 1"

# A context is itself hashed before the data; copying a hasher that is past it saves that.
_BEGUN = {kind: blake3(derive_key_context=context) for kind, context in CONTEXTS.items()}
_DIGEST_BEGUN = blake3(derive_key_context=DIGEST_CONTEXT)

_encoder = msgspec.msgpack.Encoder()


def content_id(data: bytes | memoryview) -> bytes:
    """The content id of a whole file's bytes, which is also the id of a chunk: plain BLAKE3-256."""
    return blake3(data).digest()


class ContentHasher:
    """The content id of bytes that come in pieces."""

    def __init__(self) -> None:
        self._hasher = blake3()

    def update(self, data: bytes | memoryview) -> None:
        """Take the next bytes."""
        self._hasher.update(data)

    def id(self) -> bytes:
        """The content id of all bytes so far."""
        return self._hasher.digest()


def object_id(kind: ObjectKind, data: bytes | memoryview) -> bytes:
    """The id of an object of this kind with these bytes."""
    if kind is ObjectKind.CHUNK:
        return blake3(data).digest()
    return _BEGUN[kind].copy().update(data).digest()


def checksum(data: bytes | memoryview, *more: bytes | memoryview) -> bytes:
    """The first 8 bytes of BLAKE3 of the arguments one after the other: finds damage, names nothing."""
    hasher = blake3(data)
    for piece in more:
        hasher.update(piece)
    return hasher.digest(CHECKSUM_SIZE)


def digest(listing: Listing) -> bytes:
    """The digest of one directory: equal where names, kinds, modes and content are, on any machine.

    Times, owners, extended attributes, flags and how a file is cut do not count, and neither do entries that
    were not captured. What counts is hashed as one msgpack array of arrays, so that no two listings share it.
    """
    parts = [_PARTS[type(entry)](entry) for entry in listing if type(entry) is not Omitted]
    return _DIGEST_BEGUN.copy().update(_encoder.encode(parts)).digest()


def _file(entry: File) -> tuple[Any, ...]:
    return (1, entry.name, entry.mode, entry.content)


def _directory(entry: Directory) -> tuple[Any, ...]:
    return (2, entry.name, entry.mode, entry.digest)


def _symlink(entry: Symlink) -> tuple[Any, ...]:
    return (3, entry.name, entry.target)


def _fifo(entry: Fifo) -> tuple[Any, ...]:
    return (4, entry.name, entry.mode)


def _device(entry: Device) -> tuple[Any, ...]:
    return (5, entry.name, entry.mode, entry.block, entry.major, entry.minor)


_PARTS: dict[type[AnyEntry], Any] = {
    File: _file,
    Directory: _directory,
    Symlink: _symlink,
    Fifo: _fifo,
    Device: _device,
}
