"""Laws of the operation log: a line that verifies is the one line of its operation."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casnap.codec.lines import decode_line, encode_line
from casnap.errors import Damage, TooNew
from casnap.model.operation import (
    AnyOperation,
    CheckpointMade,
    CheckpointsDeleted,
    CheckpointsFoundGood,
    CheckpointUndeleted,
    PackCut,
    PackRange,
    PathsExpunged,
    RollbackBegun,
    RollbackEnded,
    SpaceFreed,
    StoreChecked,
    StoreCreated,
    StoreRepaired,
    Verified,
    WorkspaceForgotten,
    WorkspaceRegistered,
)
from casnap.model.paths import escape
from support.codec_strategies import INT64, NAMES

HASHES = st.binary(min_size=32, max_size=32).filter(any).map(bytes.hex)
MAYBE = st.just("") | HASHES
WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
COUNTS = st.integers(0, (1 << 63) - 1)
PACKS = st.builds(
    lambda pack, start, index, end: PackRange(pack.hex(), 8 * start, 8 * (start + index + end), 8 * (start + index)),
    st.binary(min_size=16, max_size=16),
    st.integers(8, 1000),
    st.integers(0, 1000),
    st.integers(1, 1000),
)
WRITTEN = st.lists(PACKS, max_size=2).map(tuple)
CUTS = st.builds(
    lambda pack, length: PackCut(pack.hex(), 8 * length), st.binary(min_size=16, max_size=16), st.integers(0, 1 << 29)
)
CHAIN: dict[str, Any] = {
    "seq": st.integers(2, (1 << 63) - 1),
    "time": INT64,
    "prev": HASHES,
    "by": st.lists(WORDS, max_size=3).map(tuple),
    "version": st.just("") | WORDS,
}
MADE: dict[str, Any] = {
    "counts": st.tuples(COUNTS, COUNTS, COUNTS),
    "skipped": COUNTS,
    "new_bytes": COUNTS,
    "packs": WRITTEN,
}
HERE = CHAIN | {"workspace": WORDS}
PATHS = st.lists(NAMES, max_size=3).map(lambda names: escape(b"/".join(names)))
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(st.none() | st.booleans() | INT64 | FLOATS | WORDS, st.lists, max_leaves=4)
PAIRS = st.lists(HASHES, unique=True, max_size=6).map(lambda ids: tuple(zip(ids[::2], ids[1::2], strict=False)))
RESULTS = st.sampled_from(["done", "partial", "failed"])

OPERATIONS: st.SearchStrategy[AnyOperation] = st.one_of(
    st.builds(StoreCreated, **CHAIN, format=st.dictionaries(WORDS, JSON, max_size=3)),
    st.builds(WorkspaceRegistered, **HERE, path=PATHS.map(lambda path: "/" + path)),
    st.builds(WorkspaceForgotten, **HERE, drop=st.booleans()),
    st.builds(
        CheckpointMade,
        **HERE,
        **MADE,
        id=HASHES,
        step=st.integers(1, 9),
        name=st.just("") | WORDS,
        automatic=st.booleans(),
        parent=MAYBE,
    ),
    st.builds(
        RollbackBegun,
        **HERE,
        **MADE,
        verb=WORDS,
        safety=HASHES,
        target=HASHES,
        nonce=st.just("a1b2"),
        made=st.booleans(),
        head=MAYBE,
        head_after=MAYBE,
        undo_safety=HASHES,
        undo_head=MAYBE,
        paths=st.lists(PATHS, max_size=2).map(tuple),
    ),
    st.builds(RollbackEnded, **HERE, **MADE, begin=st.just(1), result=RESULTS, late=MAYBE),
    st.builds(CheckpointsDeleted, **HERE, ids=st.lists(HASHES, min_size=1, max_size=3).map(tuple)),
    st.builds(CheckpointsFoundGood, **HERE, ids=st.lists(HASHES, max_size=3).map(tuple), good=st.booleans()),
    st.builds(CheckpointUndeleted, **HERE, id=HASHES, name=st.just("") | WORDS),
    st.builds(Verified, **HERE, id=HASHES, result=st.sampled_from(["equal", "differs"])),
    st.builds(
        SpaceFreed,
        **CHAIN,
        freed=st.lists(HASHES, max_size=3).map(tuple),
        cuts=st.lists(CUTS, max_size=3, unique_by=lambda cut: cut.pack).map(tuple),
        automatic=st.booleans(),
        packs=WRITTEN,
    ),
    st.builds(
        StoreChecked,
        **CHAIN,
        result=st.sampled_from(["clean", "damaged"]),
        read_data=st.booleans(),
        found=COUNTS,
    ),
    st.builds(StoreRepaired, **CHAIN, healed=COUNTS, lost=COUNTS, before=MAYBE, packs=WRITTEN),
    st.builds(PathsExpunged, **HERE, pattern=WORDS, replaced=PAIRS, packs=WRITTEN),
)


def sealed(body: bytes) -> bytes:
    """A line with a right hash around any body that lacks its closing brace."""
    return body + b',"hash":"' + hashlib.sha256(body).hexdigest().encode() + b'"}\n'


@given(OPERATIONS)
def test_an_operation_comes_back_with_the_hash_of_its_line(operation: AnyOperation) -> None:
    line, line_hash = encode_line(operation)
    assert decode_line(line) == (operation, line_hash)


@given(OPERATIONS)
def test_a_standard_library_can_verify_a_line(operation: AnyOperation) -> None:
    line, line_hash = encode_line(operation)
    body, mark, rest = line.rpartition(b',"hash":"')
    assert mark
    assert rest == hashlib.sha256(body).hexdigest().encode() + b'"}\n'
    parsed = json.loads(line)
    assert [*parsed][:: len(parsed) - 1] == ["op", "hash"]
    assert (parsed["seq"], parsed["prev"], parsed["hash"]) == (operation.seq, operation.prev, line_hash)
    assert line.count(b"\n") == 1


@given(OPERATIONS, st.data())
def test_a_changed_byte_anywhere_in_a_line_is_noticed(operation: AnyOperation, data: st.DataObject) -> None:
    line = bytearray(encode_line(operation)[0])
    line[data.draw(st.integers(0, len(line) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(Damage):
        decode_line(bytes(line))


@given(OPERATIONS, st.data())
def test_a_line_that_is_cut_short_is_noticed(operation: AnyOperation, data: st.DataObject) -> None:
    line = encode_line(operation)[0]
    with pytest.raises(Damage):
        decode_line(line[: data.draw(st.integers(0, len(line) - 1))])


@given(OPERATIONS, st.sampled_from(["spaces", "order", "escapes", "twice"]))
def test_another_text_of_the_same_operation_is_refused(operation: AnyOperation, how: str) -> None:
    parsed = msgspec.to_builtins(operation)
    text = {
        "spaces": json.dumps(parsed, ensure_ascii=False),
        "order": json.dumps(dict(reversed(parsed.items())), ensure_ascii=False, separators=(",", ":")),
        "escapes": json.dumps(parsed, ensure_ascii=False, separators=(",", ":")).replace("op", "\\u006fp", 1),
        "twice": '{"seq":7,' + json.dumps(parsed, ensure_ascii=False, separators=(",", ":"))[1:],
    }[how]
    with pytest.raises(Damage):
        decode_line(sealed(text[:-1].encode()))


KEYS = st.sampled_from(["op", "seq", "format"])
DOCUMENTS = st.recursive(
    st.none() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
).map(lambda value: json.dumps(value).encode()[:-1])


@given(st.binary(max_size=80) | st.text(max_size=40).map(str.encode) | DOCUMENTS)
def test_an_arbitrary_body_with_a_right_hash_is_damage_or_too_new(body: bytes) -> None:
    with pytest.raises((Damage, TooNew)):
        decode_line(sealed(body))
    with pytest.raises(Damage):
        decode_line(body)
