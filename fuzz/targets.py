"""What is fuzzed: every parser of bytes that may come from a damaged or hostile store, or from a person.

A target's law: ``parse`` returns or raises a CasnapError, and what it returns is the input again, encoded anew.
``seal`` repairs checksums and hashes, so that mutations reach what lies behind them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from casnap.codec import canonical, checkpoints, chunk_lists, lines, packs, records, trees
from casnap.codec.compression import Encoding, compress, compress_delta
from casnap.codec.hashing import checksum, content_id
from casnap.model.checkpoint import CheckpointObject, GitState, Origin
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.operation import CheckpointMade, PackRange, RollbackBegun, StoreCreated, WorkspaceRegistered
from casnap.model.revision import parse_revision
from casnap.model.tree import Device, Directory, Fifo, File, OmitReason, Omitted, Symlink

ID = content_id(b"an id")
HEX = ID.hex()
TEXT = b"a line of text that compresses\n" * 40


@dataclass(frozen=True)
class Target:
    """A parser, and valid inputs for it."""

    name: str
    parse: Callable[[bytes], bytes]
    seeds: tuple[bytes, ...]
    seal: Callable[[bytes], bytes] = lambda data: data


def parse_record(data: bytes) -> bytes:
    """A record of a pack; what follows it does not count."""
    header = records.parse_header(data)
    payload = records.check_payload(header, data)
    if header.encoding is not Encoding.DELTA:
        raw = records.decode_payload(header, payload, None)
        assert len(raw) == header.raw_size
        if header.kind is records.RecordKind.GROUP:
            records.split_group(raw)
    again = records.encode_record(
        header.kind,
        header.id_prefix + bytes(24) if header.kind.is_object else b"",
        header.encoding,
        payload,
        header.raw_size,
        base_distance=header.base_distance,
        base_id=header.base_id,
        depth=header.depth,
    )
    return again + data[header.size :]


def seal_record(data: bytes) -> bytes:
    """Put both checksums right, where there is room for them."""
    if len(data) < records.HEADER_SIZE:
        return data
    fixed = data[: records.HEADER_SIZE - 8]
    begin = records.HEADER_SIZE + 32 * bool(data[7] & 2)
    end = begin + int.from_bytes(data[8:12], "little")
    data = fixed + checksum(fixed, data[records.HEADER_SIZE : begin]) + data[records.HEADER_SIZE :]
    return data[:end] + checksum(data[begin:end]) + data[end + 8 :] if end + 8 <= len(data) else data


def parse_pack_header(data: bytes) -> bytes:
    """The beginning of a pack."""
    header = packs.parse_pack_header(data)
    return packs.encode_pack_header(header.pack_id, header.store_id) + data[packs.PACK_HEADER_SIZE :]


def seal_pack_header(data: bytes) -> bytes:
    """Put its checksum right."""
    fixed = data[: packs.PACK_HEADER_SIZE - 8]
    return fixed + checksum(fixed) + data[packs.PACK_HEADER_SIZE :]


def parse_tree(data: bytes) -> bytes:
    """A node of a tree; a leaf that is a whole directory must also be what is built from its entries."""
    node = trees.decode_tree(data)
    if isinstance(node, trees.Leaf) and len(node.entries) <= 512:
        return trees.build_tree(node.entries).objects[-1][1]
    return canonical.encode(node)


def parse_line(data: bytes) -> bytes:
    """A line of the operation log."""
    return lines.encode_line(lines.decode_line(data)[0])[0]


def seal_line(data: bytes) -> bytes:
    """Put its hash right."""
    body = data.rpartition(b',"hash":"')[0] or data
    return body + b',"hash":"' + hashlib.sha256(body).hexdigest().encode() + b'"}\n'


def parse_revision_text(data: bytes) -> bytes:
    """A revision that somebody types."""
    parse_revision(data.decode("utf-8", "surrogateescape"))
    return data


def _records() -> tuple[bytes, ...]:
    encoding, payload = compress(TEXT, 3)
    delta = compress_delta(TEXT + b"more", TEXT, 3)
    group = records.encode_group([(ObjectKey(ObjectKind.TREE, ID), TEXT), (ObjectKey(ObjectKind.CHUNK, ID), b"x")], 3)
    size = len(TEXT) + 4
    return (
        records.encode_record(ObjectKind.CHUNK, ID, Encoding.RAW, b"abc", 3),
        records.encode_record(ObjectKind.TREE, ID, encoding, payload, len(TEXT)),
        records.encode_record(ObjectKind.CHUNK, ID, Encoding.DELTA, delta, size, base_distance=64, depth=1),
        records.encode_record(ObjectKind.CHUNK, ID, Encoding.DELTA, delta, size, base_id=ID, depth=4),
        group,
        packs.encode_session(bytes(32)),
        packs.encode_trailer(4096),
        packs.encode_index_record(_ENTRIES, 3),
    )


def _trees() -> tuple[bytes, ...]:
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
    return (
        trees.build_tree(()).objects[-1][1],
        trees.build_tree(listing).objects[-1][1],
        trees.build_tree(long).objects[-1][1],
    )


def _chunk_lists() -> tuple[bytes, ...]:
    few = [(65_536, ID), (70_000, content_id(b"1")), (1, content_id(b"2"))]
    many = [(number + 1, content_id(b"%d" % number)) for number in range(1500)]
    return tuple(chunk_lists.build_chunk_list(entries).objects[-1][1] for entries in (few, many))


def _checkpoints() -> tuple[bytes, ...]:
    root = Directory(b"", 0o755, 0, 0, 1_700_000_000, 0, (), ID, ID)
    rich = CheckpointObject(
        workspace="0123456789abcdef0123456789abcdef",
        root=root,
        parent=ID,
        message="before the refactoring — 保存",
        metadata='{"ticket":7}',
        scan_started=1_700_000_000_000_000_000,
        scan_ended=1_700_000_000_100_000_000,
        origin=Origin(user="alice", host="box", agent="claude-code"),
        git=GitState("main", "0" * 40),
        rules=(),
        links=((b"a", b"b/c"), (b"d", b"e", b"f")),
    )
    plain = CheckpointObject(rich.workspace, root, b"", "", "{}", 1, 2, Origin(), None, (), ())
    return tuple(checkpoints.encode_checkpoint(value)[1] for value in (rich, plain))


def _lines() -> tuple[bytes, ...]:
    workspace, zero = "0123456789abcdef0123456789abcdef", lines.NO_PREVIOUS
    written = PackRange("0123456789abcdef0123456789abcdef", 64, 4096, 2048)
    operations = (
        StoreCreated(seq=1, time=1, prev=zero, format={"format": 1}),
        WorkspaceRegistered(seq=2, time=2, prev=HEX, workspace=workspace, path="/srv/caf\\xe9"),
        CheckpointMade(
            seq=3, time=3, prev=HEX, workspace=workspace, id=HEX, step=1, name="first", packs=(written,), new_bytes=9
        ),
        RollbackBegun(
            seq=4,
            time=4,
            prev=HEX,
            workspace=workspace,
            verb="rollback",
            safety=HEX,
            target=HEX,
            nonce="0123456789abcdef",
            undo_safety=HEX,
            undo_head=HEX,
            paths=("a/b",),
        ),
    )
    return tuple(lines.encode_line(operation)[0] for operation in operations)


_ENTRIES = [
    packs.IndexEntry(ObjectKind.CHUNK, ID, 104),
    packs.IndexEntry(ObjectKind.TREE, ID, 512, 0),
    packs.IndexEntry(ObjectKind.TREE, content_id(b"1"), 512, 1),
]
_REVISIONS = ("@", "HEAD~2", "latest", "@{2026-11-30 10:11}", "@{2026-11-30T10:11:12.5+02:00}", "name/é~~3", "3f9a")

TARGETS = (
    Target("record", parse_record, _records(), seal_record),
    Target("pack-header", parse_pack_header, (packs.encode_pack_header(bytes(16), b"s" * 16),), seal_pack_header),
    Target("index", lambda data: packs.encode_index(packs.decode_index(data)), (packs.encode_index(_ENTRIES),)),
    Target("trailer", lambda data: packs.encode_trailer(packs.parse_trailer(data)), (_records()[6],), seal_record),
    Target("tree", parse_tree, _trees()),
    Target("chunk-list", lambda data: canonical.encode(chunk_lists.decode_chunk_list(data)), _chunk_lists()),
    Target(
        "checkpoint", lambda data: checkpoints.encode_checkpoint(checkpoints.decode_checkpoint(data))[1], _checkpoints()
    ),
    Target("line", parse_line, _lines(), seal_line),
    Target("revision", parse_revision_text, tuple(text.encode() for text in _REVISIONS)),
)
