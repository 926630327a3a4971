"""The one encoding of structured objects: msgpack arrays in their shortest form (docs/format/README.md)."""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from casnap.codec.compression import MAX_RAW
from casnap.errors import Damage

_encoder = msgspec.msgpack.Encoder()


def encode(value: msgspec.Struct) -> bytes:
    """The bytes of an array-like struct; an object has at most ``MAX_RAW``, which is the caller's to see to."""
    return _encoder.encode(value)


def decode(data: bytes, kind: Any) -> Any:
    """The value of type ``kind`` (a struct, or a union of tagged ones) whose encoding ``data`` is.

    msgpack knows several encodings of one value; only the one that :func:`encode` chooses is accepted, or
    one value would have several ids.

    Raises:
        Damage: ``data`` is the encoding of no such value.
    """
    if len(data) > MAX_RAW:
        raise Damage(f"cannot read object: it has {len(data)} bytes, {MAX_RAW} are allowed")
    try:
        value = _decoder(kind).decode(data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Damage(f"cannot read object: {error}") from None
    if _encoder.encode(value) != data:
        raise Damage("cannot read object: it is not in canonical form")
    return value


@functools.cache
def _decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(kind)
