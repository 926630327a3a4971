"""Checkpoint objects: every rule of their fields, and metadata in one form."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from casnap.codec.checkpoints import decode_checkpoint, encode_checkpoint
from casnap.codec.metadata import decode_metadata, encode_metadata
from casnap.errors import Damage, Refused, Usage
from casnap.model.checkpoint import CheckpointObject, GitState, Origin
from casnap.model.tree import Directory

ID = bytes(range(32))
ROOT = Directory(b"", 0o755, 0, 0, 0, 0, (), ID, ID)
GOOD = CheckpointObject("w", ROOT, b"", "hello", "{}", 5, 9, Origin(user="me"), GitState("main", "a1"), ("*.o",), ())


def test_the_bytes_of_a_checkpoint_never_change() -> None:
    key, data = encode_checkpoint(GOOD)
    assert data.hex() == (
        "9c01a177"
        f"9a02c400cd01ed000000"
        f"0090c420{ID.hex()}c420{ID.hex()}"
        "c400a568656c6c6fa27b7d0509"
        "97a26d65a0a0a0a0a0a0"
        "93a46d61696ea26131c0"
        "91a32a2e6f90"
    )
    assert key.id.hex() == "79768721aefc8cf87276758f07e8f3ab9abce82b1e3f7e2caf768237d4ccce79"


@pytest.mark.parametrize(
    "links",
    [
        (),
        ((b"a", b"b"),),
        ((b"a", b"c"), (b"b", b"d")),
        ((b"a", b"a/b/c"),),
    ],
)
def test_groups_of_hard_links_come_back(links: tuple[tuple[bytes, ...], ...]) -> None:
    checkpoint = replace(GOOD, links=links)
    assert decode_checkpoint(encode_checkpoint(checkpoint)[1]) == checkpoint


FAULTS: dict[str, dict[str, Any]] = {
    "no workspace": {"workspace": ""},
    "root with a name": {"root": replace(ROOT, name=b"x")},
    "root with a bad mode": {"root": replace(ROOT, mode=0o10000)},
    "root without a tree": {"root": replace(ROOT, tree=b"")},
    "short parent": {"parent": ID[1:]},
    "late start": {"scan_started": 1 << 63},
    "late end": {"scan_ended": 1 << 63},
    "metadata that is none": {"metadata": "x"},
    "metadata that is a list": {"metadata": "[]"},
    "metadata with a blank": {"metadata": '{"a": 1}'},
    "metadata not sorted": {"metadata": '{"b":1,"a":1}'},
    "metadata twice": {"metadata": '{"a":1,"a":1}'},
    "metadata of no number": {"metadata": '{"a":NaN}'},
    "metadata too deep": {"metadata": '{"a":' + "[" * 50_000 + "]" * 50_000 + "}"},
    "group of one": {"links": ((b"a",),)},
    "group not sorted": {"links": ((b"b", b"a"),)},
    "path twice in a group": {"links": ((b"a", b"a"),)},
    "groups not sorted": {"links": ((b"b", b"c"), (b"a", b"d"))},
    "path in two groups": {"links": ((b"a", b"c"), (b"b", b"c"))},
    "root as a link": {"links": ((b"", b"a"),)},
    "absolute path": {"links": ((b"/a", b"b"),)},
    "path out of the workspace": {"links": ((b"../a", b"b"),)},
}


@pytest.mark.parametrize("rule", FAULTS)
def test_a_checkpoint_that_breaks_a_rule_is_neither_written_nor_read(rule: str) -> None:
    bad = replace(GOOD, **FAULTS[rule])
    with pytest.raises(ValueError, match="cannot write checkpoint"):
        encode_checkpoint(bad)
    with pytest.raises(Damage, match="cannot read checkpoint"):
        decode_checkpoint(msgspec.msgpack.encode(bad))


def test_a_checkpoint_that_is_too_long_is_refused() -> None:
    with pytest.raises(Refused, match="cannot record checkpoint: it would take"):
        encode_checkpoint(replace(GOOD, message="m" * (4 << 20)))
    many = tuple((b"%0255d" % number, b"%0255d" % (number + 1)) for number in range(0, 18_000, 2))
    with pytest.raises(Refused, match="18000 hard links"):
        encode_checkpoint(replace(GOOD, links=many))


def test_metadata_has_one_text() -> None:
    assert encode_metadata({"b": [1, 2.5, None], "a": "é\n"}) == '{"a":"é\\n","b":[1,2.5,null]}'
    assert decode_metadata('{"a":"é\\n","b":[1,2.5,null]}') == {"a": "é\n", "b": [1, 2.5, None]}


def test_keys_that_are_numbers_become_text_and_are_sorted_as_text() -> None:
    assert encode_metadata({10: 1, 9: {2: "a", 11: "b"}}) == '{"10":1,"9":{"11":"b","2":"a"}}'  # type: ignore[dict-item]


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


UNSPEAKABLE: dict[str, dict[Any, Any]] = {
    "no number": {"a": float("nan")},
    "infinity": {"a": float("inf")},
    "object": {"a": object()},
    "bytes": {"a": b"bytes"},
    "half a character": {"a": "\ud800"},
    "too deep": {"a": deep(100_000)},
    "keys of two kinds": {1: 1, "1": 2},
    "tuple as a key": {(1, 2): 3},
}


@pytest.mark.parametrize("what", UNSPEAKABLE)
def test_metadata_that_json_has_no_word_for_is_bad_usage(what: str) -> None:
    with pytest.raises(Usage, match="bad metadata"):
        encode_metadata(UNSPEAKABLE[what])
