"""An index, decompressed: the columns of what a pack holds and where."""

from __future__ import annotations

from casnap.codec.packs import MAX_ENTRIES, IndexEntry, decode_index, encode_index
from casnap.errors import Damage
from casnap.model.ids import ObjectKind
from fuzz.law import Target, encodes_to_itself
from fuzz.targets.samples import ID, OTHER_ID

_ENTRIES = [
    IndexEntry(ObjectKind.CHUNK, ID, 104),
    IndexEntry(ObjectKind.TREE, ID, 512, 0),
    IndexEntry(ObjectKind.TREE, OTHER_ID, 512, 1),
]

TARGET = Target(
    name="index",
    parse=decode_index,
    errors=(Damage,),
    fault=encodes_to_itself(encode_index),
    seeds=(encode_index(()), encode_index(_ENTRIES)),
    tokens=(MAX_ENTRIES.to_bytes(4, "little"), (MAX_ENTRIES + 1).to_bytes(4, "little"), b"\xff\xff"),
)
