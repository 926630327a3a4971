"""A group, decompressed: a table of kinds and sizes, and the objects."""

from __future__ import annotations

from casnap.codec.records import split_group
from casnap.errors import Damage
from casnap.model.ids import ObjectKey
from fuzz.law import Target, encodes_to_itself


def _join(objects: tuple[tuple[ObjectKey, bytes], ...]) -> bytes:
    """The bytes that docs/format/record.md gives for these objects."""
    rows = (bytes([key.kind]) + len(data).to_bytes(4, "little") for key, data in objects)
    return b"".join((len(objects).to_bytes(4, "little"), *rows, *(data for _, data in objects)))


TARGET = Target(
    name="group",
    parse=split_group,
    errors=(Damage,),
    fault=encodes_to_itself(_join),
    seeds=(
        bytes.fromhex("01000000 01 03000000 616263"),
        bytes.fromhex("03000000 03 03000000 01 00000000 04 01000000 920190 ff"),
    ),
    tokens=(b"\xff\xff\0\0", b"\0\0\1\0", b"\xff\xff\xff\xff", b"\1\0\0\0\0"),
)
