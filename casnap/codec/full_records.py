"""Records of one object that builds on no other, opened at once: nearly all that is read or looked through is of them.

Whatever else begins at a place, or is wrong with it, :func:`~casnap.codec.records.parse_header` and others tell.
"""

from __future__ import annotations

from casnap.codec.compression import MAX_RAW, Encoding, decompress
from casnap.codec.hashing import CHECKSUM_SIZE, checksum, object_id
from casnap.codec.records import FIXED, HEADER_SIZE, MAGIC, OBJECT_KINDS, PREFIX_SIZE, aligned
from casnap.errors import Damage
from casnap.model.ids import ObjectKey


def open_full(data: bytes, start: int) -> tuple[ObjectKey, bytes, int] | None:
    """The object in the whole, sound record that begins at ``start``, its bytes, and where the record ends.

    None of any other record, of one that is damaged, and where ``data`` ends before it does.
    """
    first = start + HEADER_SIZE
    if first > len(data):
        return None
    magic, number, encoding, depth, form, size, raw_size, prefix, *where = FIXED.unpack_from(data, start)
    kind = OBJECT_KINDS.get(number)
    last = first + size
    end = start + aligned(last + CHECKSUM_SIZE - start)
    if magic != MAGIC or kind is None or depth or form or any(where) or raw_size > MAX_RAW or end > len(data):
        return None
    payload = data[first:last]
    if checksum(data[start : start + FIXED.size]) != data[start + FIXED.size : first]:
        return None
    if checksum(payload) + bytes(end - last - CHECKSUM_SIZE) != data[last:end]:
        return None
    if encoding == Encoding.ZSTD and 0 < size < raw_size:
        try:
            raw = decompress(payload, raw_size)
        except Damage:
            return None
    elif encoding == Encoding.RAW and size == raw_size:
        raw = payload
    else:
        return None
    id = object_id(kind, raw)
    return (ObjectKey(kind, id), raw, end) if id[:PREFIX_SIZE] == prefix else None


def decode_full(data: bytes, start: int, key: ObjectKey) -> bytes | None:
    """The bytes of the object ``key``, where :func:`open_full` finds it."""
    opened = open_full(data, start)
    return opened[1] if opened is not None and opened[0] == key else None
