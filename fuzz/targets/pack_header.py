"""The beginning of a pack; what follows it does not count."""

from __future__ import annotations

from casnap.codec.hashing import checksum
from casnap.codec.packs import PACK_HEADER_SIZE, PackHeader, encode_pack_header, parse_pack_header
from casnap.errors import Damage, TooNew
from fuzz.law import Target


def _fault(header: PackHeader, data: bytes) -> str | None:
    again = encode_pack_header(header.pack_id, header.store_id)
    return None if again == data[:PACK_HEADER_SIZE] else "it was accepted, but is encoded differently"


def _seal(data: bytes) -> bytes:
    """Put its checksum right."""
    fixed = data[: PACK_HEADER_SIZE - 8]
    return fixed + checksum(fixed) + data[PACK_HEADER_SIZE:]


TARGET = Target(
    name="pack-header",
    parse=parse_pack_header,
    errors=(Damage, TooNew),
    fault=_fault,
    seeds=(encode_pack_header(bytes(16), b"s" * 16),),
    seal=_seal,
    tokens=(b"\xc5casnap\n", b"\xc5casnap\r\n", b"\1\0\0\0", b"\2\0\0\0"),
)
