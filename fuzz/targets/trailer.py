"""The last record of a sealed pack."""

from __future__ import annotations

from casnap.codec.packs import MAX_PACK_SIZE, encode_trailer, parse_trailer
from casnap.errors import Damage, TooNew
from fuzz.law import Target, encodes_to_itself
from fuzz.targets import record

TARGET = Target(
    name="trailer",
    parse=parse_trailer,
    errors=(Damage, TooNew),
    fault=encodes_to_itself(encode_trailer),
    seeds=(encode_trailer(64), encode_trailer(MAX_PACK_SIZE - 8)),
    seal=record.seal,
    tokens=(b"\xc5rec", b"\x08\0\0\0", b"\x3f\0\0\0\0\0\0\0", MAX_PACK_SIZE.to_bytes(8, "little")),
)
