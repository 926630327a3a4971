"""The test vectors on the pages of docs/format: read from there, decoded, and encoded again."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
import zstandard
from blake3 import blake3

from casnap.codec import checkpoints, chunk_lists, hashing, lines, packs, records, trees
from casnap.codec.compression import Encoding
from casnap.model.checkpoint import CheckpointObject
from casnap.model.ids import ObjectKind
from casnap.model.operation import AnyOperation
from casnap.model.tree import AnyEntry, Fifo
from support.codec_headers import header_bytes
from support.msgpack_oracle import shortest

PAGES = Path(__file__).parents[2] / "docs" / "format"

Vector = dict[str, str]


def read(page: Path) -> list[Vector]:
    """Every vector of a page: the texts of its keys."""
    found = []
    for block in re.findall(r"^```vector\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        joined = re.sub(r"\n +", "", block)
        found.append({key: value.lstrip() for key, _, value in (line.partition(":") for line in joined.splitlines())})
    return found


VECTORS = {vector["vector"]: vector for page in sorted(PAGES.glob("*.md")) for vector in read(page)}


def named(beginning: str) -> pytest.MarkDecorator:
    """A parametrisation by the vectors whose names begin so."""
    found = [vector for name, vector in VECTORS.items() if name.split()[0] in beginning.split()]
    return pytest.mark.parametrize("vector", found, ids=lambda vector: vector["vector"])


def number(vector: Vector, key: str) -> int:
    return int(vector[key])


def octets(vector: Vector, key: str = "bytes") -> bytes:
    return bytes.fromhex(vector[key])


def value(vector: Vector, key: str = "value") -> Any:
    """JSON, but that byte strings are written h'00ff'."""
    text = re.sub(r"h'([0-9a-f]*)'", r'{"hex":"\1"}', vector[key])
    return json.loads(text, object_hook=lambda found: bytes.fromhex(found["hex"]))


def plain(decoded: Any) -> Any:
    """A decoded value as JSON and MessagePack have it: lists, and no structures."""
    if isinstance(decoded, msgspec.Struct):
        decoded = msgspec.to_builtins(decoded, builtin_types=(bytes,))
    return [plain(element) for element in decoded] if isinstance(decoded, list | tuple) else decoded


def object_id(kind: int, raw: bytes) -> bytes:
    """As docs/format/ids.md has it, from the contexts in its table."""
    contexts = dict(re.findall(r"\(kind (\d)\) \|.*\| `(casnap .*)` \|$", (PAGES / "ids.md").read_text(), re.MULTILINE))
    context = contexts.get(str(kind))
    return (blake3(raw, derive_key_context=context) if context else blake3(raw)).digest()


@named("id")
def test_an_id_is_the_one_that_the_page_says(vector: Vector) -> None:
    kind = ObjectKind(number(vector, "kind"))
    assert octets(vector, "id") == object_id(kind, octets(vector, "raw"))
    assert octets(vector, "id") == hashing.object_id(kind, octets(vector, "raw"))


KINDS: dict[str, tuple[ObjectKind, Any]] = {
    "tree": (ObjectKind.TREE, trees.decode_tree),
    "chunk-list": (ObjectKind.CHUNK_LIST, chunk_lists.decode_chunk_list),
    "checkpoint": (ObjectKind.CHECKPOINT, checkpoints.decode_checkpoint),
}


@named("tree chunk-list checkpoint")
def test_an_object_has_the_bytes_and_the_id_that_the_page_says(vector: Vector) -> None:
    kind, decode = KINDS[vector["vector"].split()[0]]
    assert shortest(value(vector)) == octets(vector)
    assert plain(decode(octets(vector))) == value(vector)
    assert object_id(kind, octets(vector)) == octets(vector, "id")


@named("tree")
def test_a_listing_builds_the_tree_and_the_digest_that_the_page_says(vector: Vector) -> None:
    node = trees.decode_tree(octets(vector))
    listing = node.entries if isinstance(node, trees.Leaf) else PIPES
    built = trees.build_tree(listing)
    assert built.id == octets(vector, "id")
    assert built.objects[-1][1] == octets(vector)
    assert hashing.digest(listing) == octets(vector, "digest")


PIPES = tuple(Fifo(b"%05d" % name, 0o644, 0, 0, 0, 0, ()) for name in range(700))


@named("chunk-list")
def test_chunks_build_the_list_that_the_page_says(vector: Vector) -> None:
    node = chunk_lists.decode_chunk_list(octets(vector))
    chunks = [(place + 1, blake3(b"%d" % place).digest()) for place in range(600)]
    entries = node.entries if isinstance(node, chunk_lists.ListLeaf) else chunks
    built = chunk_lists.build_chunk_list(entries)
    assert built.id == octets(vector, "id")
    assert built.objects[-1][1] == octets(vector)


def test_the_chunks_of_the_list_are_those_that_the_page_says() -> None:
    assert value(VECTORS["chunk-list leaf"])[1] == [[3, blake3(b"abc").digest()], [2, blake3(b"de").digest()]]


@named("checkpoint")
def test_a_checkpoint_is_written_as_the_page_says(vector: Vector) -> None:
    checkpoint = checkpoints.decode_checkpoint(octets(vector))
    key, data = checkpoints.encode_checkpoint(checkpoint)
    assert (key.id, data) == (octets(vector, "id"), octets(vector))


@named("record")
def test_a_record_has_the_fields_that_the_page_says(vector: Vector) -> None:
    data, raw = octets(vector), octets(vector, "raw")
    base_id = bytes.fromhex(vector.get("base id", ""))
    header = header_bytes(
        kind=number(vector, "kind"),
        encoding=number(vector, "encoding"),
        depth=number(vector, "depth"),
        form=number(vector, "base form"),
        payload_size=number(vector, "payload size"),
        raw_size=number(vector, "raw size"),
        prefix=bytes.fromhex(vector.get("id", "00" * 8))[:8],
        distance=number(vector, "base distance"),
        slot=int(vector.get("base slot", "-1")),
        base_id=base_id,
    )
    end = len(header) + number(vector, "payload size")
    payload = data[len(header) : end]
    assert data == header + payload + blake3(payload).digest()[:8] + bytes(-end % 8)
    assert unpacked(vector, payload) == raw
    assert len(raw) == number(vector, "raw size")
    if "id" in vector:
        assert object_id(number(vector, "kind"), raw) == octets(vector, "id")


def unpacked(vector: Vector, payload: bytes) -> bytes:
    """What a payload decodes to, without casnap."""
    if number(vector, "encoding") == 1:
        return payload
    base = octets(vector, "base") if "base" in vector else None
    dictionary = zstandard.ZstdCompressionDict(base, dict_type=zstandard.DICT_TYPE_RAWCONTENT) if base else None
    return zstandard.ZstdDecompressor(dict_data=dictionary).decompress(payload)


@named("record")
def test_a_record_is_read_as_the_page_says(vector: Vector) -> None:
    data, raw = octets(vector), octets(vector, "raw")
    header = records.parse_header(data)
    payload = records.check_payload(header, data)
    assert header.size == len(data)
    assert records.decode_payload(header, payload, octets(vector, "base") if "base" in vector else None) == raw
    if header.kind.is_object:
        assert records.identify(header, raw).id == octets(vector, "id")


@named("record")
def test_a_record_is_written_as_the_page_says(vector: Vector) -> None:
    data = octets(vector)
    header = records.parse_header(data)
    written = records.encode_record(
        header.kind,
        octets(vector, "id") if "id" in vector else b"",
        Encoding(number(vector, "encoding")),
        records.check_payload(header, data),
        number(vector, "raw size"),
        base_distance=number(vector, "base distance"),
        base_slot=int(vector.get("base slot", "-1")),
        base_id=octets(vector, "base id") if "base id" in vector else b"",
        depth=number(vector, "depth"),
    )
    assert written == data


def test_a_group_holds_the_objects_that_the_page_says() -> None:
    vector = VECTORS["record group"]
    objects = value(vector, "objects")
    table = b"".join(struct.pack("<BI", kind, len(data)) for kind, _, data in objects)
    raw = struct.pack("<I", len(objects)) + table + b"".join(data for *_, data in objects)
    assert raw == octets(vector, "raw")
    assert [object_id(kind, data) for kind, _, data in objects] == [id for _, id, _ in objects]
    split = records.split_group(raw)
    assert [[key.kind, key.id, data] for key, data in split] == objects


def test_a_pack_header_is_the_one_that_the_page_says() -> None:
    vector = VECTORS["pack-header"]
    pack_id, store_id = octets(vector, "pack id"), octets(vector, "store id")
    numbers = struct.pack("<II", number(vector, "version"), number(vector, "flags"))
    fields = b"\xc5casnap\n" + numbers + pack_id + store_id + bytes(8)
    assert octets(vector) == fields + blake3(fields).digest()[:8]
    assert packs.parse_pack_header(octets(vector)) == packs.PackHeader(pack_id, store_id)
    assert packs.encode_pack_header(pack_id, store_id) == octets(vector)


def test_an_index_is_the_one_that_the_page_says() -> None:
    vector = VECTORS["index"]
    entries = value(vector, "entries")
    kinds, ids, offsets, slots = zip(*entries, strict=True)
    steps = [offset - before for before, offset in zip((0, *offsets), offsets, strict=False)]
    columns = struct.pack(f"<I{len(entries)}B", len(entries), *kinds)
    columns += struct.pack(f"<{len(entries)}H", *(slot + 1 for slot in slots))
    columns += struct.pack(f"<{len(entries)}I", *(step // 8 for step in steps))
    assert columns + b"".join(ids) == octets(vector)
    assert [list(entry) for entry in packs.decode_index(octets(vector))] == entries
    assert packs.encode_index(packs.decode_index(octets(vector))) == octets(vector)


@pytest.mark.parametrize("name", ["record index", "record seal"])
def test_index_and_seal_hold_the_first_entry_of_the_index(name: str) -> None:
    whole = packs.decode_index(octets(VECTORS["index"]))
    assert packs.decode_index(octets(VECTORS[name], "raw")) == whole[:1]


def test_a_trailer_leads_where_the_page_says() -> None:
    vector = VECTORS["record trailer"]
    assert packs.parse_trailer(octets(vector)) == number(vector, "seal offset")
    assert packs.encode_trailer(number(vector, "seal offset")) == octets(vector)


LINES = [vector["line"].encode() for vector in read(PAGES / "oplog.md")]


def test_the_lines_on_the_page_are_a_log() -> None:
    before = "0" * 64
    for seq, line in enumerate(LINES, 1):
        said = json.loads(line)
        assert (said["seq"], said["prev"]) == (seq, before)
        before = hashlib.sha256(line[: line.rindex(b',"hash":"')]).hexdigest()
        assert said["hash"] == before


@pytest.mark.parametrize("line", LINES, ids=lambda line: json.loads(line)["op"])
def test_a_line_is_read_and_written_as_the_page_says(line: bytes) -> None:
    said = json.loads(line)
    operation, line_hash = lines.decode_line(line + b"\n")
    assert line_hash == said.pop("hash")
    assert type(operation).__struct_config__.tag == said.pop("op")
    assert {key: plain(getattr(operation, key)) for key in said} == said
    assert lines.encode_line(operation) == (line + b"\n", line_hash)


def tags(union: Any) -> set[Any]:
    return {kind.__struct_config__.tag for kind in get_args(union)}


def test_everything_that_the_format_knows_has_a_vector() -> None:
    in_records = {
        (number(vector, "kind"), number(vector, "encoding")) for vector in VECTORS.values() if is_record(vector)
    }
    assert {kind for kind, _ in in_records} == set(records.RecordKind)
    assert {encoding for _, encoding in in_records} == set(Encoding)
    assert {number(vector, "base form") for vector in VECTORS.values() if is_record(vector)} == {0, 1, 2}
    assert {number(vector, "kind") for vector in VECTORS.values() if is_id(vector)} == set(ObjectKind)
    assert {entry[0] for entry in value(VECTORS["tree kinds"])[1]} == tags(AnyEntry)
    assert {value(VECTORS[f"tree {name}"])[0] for name in ("kinds", "branch")} == tags(trees.TreeNode)
    assert {value(VECTORS[f"chunk-list {name}"])[0] for name in ("leaf", "branch")} == tags(chunk_lists.ListNode)
    assert {json.loads(line)["op"] for line in LINES} == tags(AnyOperation)
    full = value(VECTORS["checkpoint full"])
    assert len(full) == 1 + len(CheckpointObject.__struct_fields__)
    assert all(full)


def is_record(vector: Vector) -> bool:
    return vector["vector"].startswith("record ")


def is_id(vector: Vector) -> bool:
    return vector["vector"].startswith("id ")


def test_names_of_vectors_are_unique() -> None:
    names = [vector["vector"] for page in PAGES.glob("*.md") for vector in read(page)]
    assert len(names) == len(set(names)) == len(VECTORS)
    assert len(names) > 30
