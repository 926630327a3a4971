"""What kind of store it is: ``casnap-store.json`` (docs/format/store.md), repeated in the first line of the oplog."""

# Annotations are evaluated here, once: as texts they would be compiled when the decoders are made, which takes longer.

import os
from typing import Any

import msgspec
from msgspec import Struct

from casnap.codec.chunking import SINGLE_CHUNK_BOUND, ChunkerParameters
from casnap.codec.records import MAX_DEPTH
from casnap.errors import Damage, TooNew
from casnap.model.ids import STORE_ID_SIZE

FORMAT = 1
_HASH = "blake3"
_ID_MODE = "plain"
_CHUNKER = "fastcdc"


class Chunking(Struct, frozen=True, kw_only=True):
    """How files are cut: sizes in bytes; a file of at most ``whole`` bytes is one chunk."""

    name: str = _CHUNKER
    whole: int = SINGLE_CHUNK_BOUND
    min: int = ChunkerParameters().min
    average: int = ChunkerParameters().average
    max: int = ChunkerParameters().max


class Features(Struct, frozen=True, kw_only=True):
    """What a store uses beyond format 1, by what a program that does not know it must not do.

    ``compatible``: it may do everything; ``write``: it must not write; ``collect``: it must not delete or
    free anything; ``read``: it must not even read.
    """

    compatible: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    collect: tuple[str, ...] = ()
    read: tuple[str, ...] = ()


KNOWN = Features()
"""Features that this version knows: none so far."""


class Format(Struct, frozen=True, kw_only=True):
    """The fixed facts of a store; ``id`` is 32 random hexadecimal digits."""

    format: int = FORMAT
    id: str
    hash: str = _HASH
    ids: str = _ID_MODE
    chunker: Chunking = Chunking()
    delta_depth: int = MAX_DEPTH
    features: Features = Features()

    @property
    def parameters(self) -> ChunkerParameters:
        """What the chunker of this store is made with."""
        return ChunkerParameters(self.chunker.min, self.chunker.average, self.chunker.max)

    @property
    def obstacle(self) -> str | None:
        """Why this version must not write; None where it may."""
        unknown = _unknown(self.features.write, KNOWN.write)
        return f"it uses {', '.join(unknown)}, which this casnap does not know" if unknown else None

    @property
    def unknown_to_collect(self) -> tuple[str, ...]:
        """Features for which this version must not delete or free anything."""
        return _unknown(self.features.collect, KNOWN.collect)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for the first line of the operation log."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


class _Version(Struct):
    """As much of any format file as says which one it is."""

    format: int


def new_format() -> Format:
    """The format of a store that does not exist yet."""
    return Format(id=os.urandom(STORE_ID_SIZE).hex())


def encode_format(store_format: Format) -> bytes:
    """The bytes of ``casnap-store.json``: indented, for people read it too."""
    return msgspec.json.format(msgspec.json.encode(store_format), indent=2) + b"\n"


def decode_format(data: bytes, where: str) -> Format:
    """Read a format file, or the same from the first line; ``where`` is named in errors.

    Raises:
        TooNew: the format, or a feature that matters for reading, is not known to this version.
        Damage: it is no format file.
    """
    try:
        version = msgspec.json.decode(data, type=_Version).format
        if version > FORMAT:
            raise _too_new(where, f"it is of format {version}, this casnap knows format {FORMAT}")
        store_format = msgspec.json.decode(data, type=Format)
        if version != FORMAT or bytes.fromhex(store_format.id).hex() != store_format.id:
            raise ValueError("a field is out of range")
        if len(store_format.id) != 2 * STORE_ID_SIZE:
            raise ValueError("its id has the wrong length")
    except (msgspec.MsgspecError, ValueError) as error:
        raise Damage(f"cannot read {where}: {error}") from None
    _check_known(store_format, where)
    return store_format


def _check_known(store_format: Format, where: str) -> None:
    if unknown := _unknown(store_format.features.read, KNOWN.read):
        raise _too_new(where, f"it uses {', '.join(unknown)}, which this casnap does not know")
    for name, value, known in (
        ("hash", store_format.hash, _HASH),
        ("id mode", store_format.ids, _ID_MODE),
        ("chunker", store_format.chunker.name, _CHUNKER),
    ):
        if value != known:
            raise _too_new(where, f"its {name} is {value}, this casnap knows {known}")


def _too_new(where: str, cause: str) -> TooNew:
    return TooNew(f"cannot open store {where}: {cause}", hint="use a newer casnap")


def _unknown(used: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(feature for feature in used if feature not in known)
