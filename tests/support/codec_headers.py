"""Record headers written from docs/format/record.md, so that a test can also write bad ones."""

from __future__ import annotations

import struct

from blake3 import blake3


def header_bytes(
    *,
    magic: bytes = b"\xc5rec",
    kind: int = 1,
    encoding: int = 1,
    depth: int = 0,
    form: int = 0,
    payload_size: int = 5,
    raw_size: int = 5,
    prefix: bytes = bytes(8),
    distance: int = 0,
    slot: int = -1,
    reserved: int = 0,
    base_id: bytes | None = None,
) -> bytes:
    """A header with these fields and a right checksum; forms with bit 2 get an id behind it."""
    if base_id is None:
        base_id = bytes(range(32)) if form & 2 else b""
    fields = magic + bytes([kind, encoding, depth, form]) + struct.pack("<II", payload_size, raw_size) + prefix
    fields += struct.pack("<IHH", distance, slot + 1, reserved)
    return fields + blake3(fields + base_id).digest()[:8] + base_id
