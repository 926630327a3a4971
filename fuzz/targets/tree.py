"""A node of a tree; a leaf that is a whole directory is also what is built from its entries."""

from __future__ import annotations

from casnap.codec import canonical
from casnap.codec.paging import MAX_UNPAGED
from casnap.codec.trees import Leaf, TreeNode, build_tree, decode_tree
from casnap.errors import Damage
from casnap.model.tree import Device, Directory, Fifo, File, OmitReason, Omitted, Symlink
from fuzz.law import Target, encodes_to_itself
from fuzz.targets.samples import ID


def _encode(node: TreeNode) -> bytes:
    if isinstance(node, Leaf) and len(node.entries) <= MAX_UNPAGED:
        return build_tree(node.entries).objects[-1][1]
    return canonical.encode(node)


def _seeds() -> tuple[bytes, ...]:
    common = (0o644, 0, 0, 1_700_000_000, 5, ())
    listing = (
        Device(b"block", *common, True, 8, 1),
        Directory(b"directory", 0o755, 1000, 1000, -1, 999_999_999, ((b"user.note", b"x"),), ID, ID),
        Fifo(b"fifo", *common),
        File(b"file", *common, 3, 0, ID, b""),
        File(b"large", *common, 5 << 20, 1, ID, ID),
        Symlink(b"link", *common, b"no/such/place"),
        Omitted(b"omitted", int(OmitReason.SOCKET)),
        File("名前".encode(), *common, 0, 2, ID, b""),
        File(b"\xff\xfe", *common, 1, 0, ID, b""),
    )
    long = tuple(File(b"%05d" % number, *common, 1, 0, ID, b"") for number in range(700))
    return tuple(build_tree(entries).objects[-1][1] for entries in ((), listing, long))


TARGET = Target(
    name="tree",
    parse=decode_tree,
    errors=(Damage,),
    fault=encodes_to_itself(_encode),
    seeds=_seeds(),
    tokens=(b"\x92\1", b"\x93\2", b"\x93\6", b"\xc4\x20", b"\xc4\0", b"\xc4\1.", b"\xc4\2..", b"\xce\xff\xff\xff\xff"),
)
