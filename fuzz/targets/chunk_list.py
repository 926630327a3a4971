"""A node of a chunk list."""

from __future__ import annotations

from casnap.codec import canonical
from casnap.codec.chunk_lists import build_chunk_list, decode_chunk_list
from casnap.codec.hashing import content_id
from casnap.errors import Damage
from fuzz.law import Target, encodes_to_itself
from fuzz.targets.samples import ID, OTHER_ID

_FEW = [(65_536, ID), (70_000, OTHER_ID), (1, ID)]
_MANY = [(number + 1, content_id(b"%d" % number)) for number in range(1500)]

TARGET = Target(
    name="chunk-list",
    parse=decode_chunk_list,
    errors=(Damage,),
    fault=encodes_to_itself(canonical.encode),
    seeds=tuple(build_chunk_list(entries).objects[-1][1] for entries in (_FEW, _MANY)),
    tokens=(b"\x92\1", b"\x93\2", b"\xc4\x20", b"\xce\0\x40\0\0", b"\xcf\x7f\xff\xff\xff\xff\xff\xff\xff"),
)
