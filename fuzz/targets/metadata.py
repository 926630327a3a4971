"""A checkpoint's metadata: JSON in one form, as text."""

from __future__ import annotations

from typing import Any

from casnap.codec.metadata import decode_metadata, encode_metadata
from casnap.errors import Damage
from fuzz.law import Target


def _parse(data: bytes) -> dict[str, Any]:
    return decode_metadata(_text(data))


def _text(data: bytes) -> str:
    """Any text, but only text: that it is UTF-8 is checked where the checkpoint object is decoded."""
    return data.decode("utf-8", "replace")


def _fault(metadata: dict[str, Any], data: bytes) -> str | None:
    return None if encode_metadata(metadata) == _text(data) else "it was accepted, but is encoded differently"


TARGET = Target(
    name="metadata",
    parse=_parse,
    errors=(Damage,),
    fault=_fault,
    seeds=(b"{}", '{"a":{"b":[1,-2.5,1e+300,true,false,null]},"é":"\\"\\\\\\n"}'.encode()),
    tokens=(b"[", b"{", b'":', b"NaN", b"Infinity", b"1e999", b"-0", b"\\ud800", b"\\u0000", b"1.0", b" "),
)
