"""Laws of checkpoint objects and of metadata."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casnap.codec.checkpoints import decode_checkpoint, encode_checkpoint
from casnap.codec.hashing import object_id
from casnap.codec.metadata import decode_metadata, encode_metadata
from casnap.errors import Damage
from casnap.model.checkpoint import CheckpointObject
from casnap.model.ids import ObjectKind
from support.codec_strategies import CHECKPOINTS
from support.msgpack_oracle import longest, shortest

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def plain(checkpoint: CheckpointObject) -> list[Any]:
    """A checkpoint as docs/format/checkpoint.md lists its fields."""
    astuple = msgspec.structs.astuple
    workspace, root, *between, origin, git, rules, links = astuple(checkpoint)
    return [1, workspace, [2, *astuple(root)], *between, astuple(origin), git and astuple(git), rules, links]


@given(CHECKPOINTS)
def test_a_checkpoint_comes_back_as_it_was(checkpoint: CheckpointObject) -> None:
    key, data = encode_checkpoint(checkpoint)
    assert decode_checkpoint(data) == checkpoint
    assert key == (ObjectKind.CHECKPOINT, object_id(ObjectKind.CHECKPOINT, data))


@given(CHECKPOINTS)
def test_the_bytes_of_a_checkpoint_are_those_that_the_format_says(checkpoint: CheckpointObject) -> None:
    assert encode_checkpoint(checkpoint)[1] == shortest(plain(checkpoint))


@given(CHECKPOINTS)
def test_any_other_encoding_of_the_same_checkpoint_is_refused(checkpoint: CheckpointObject) -> None:
    with pytest.raises(Damage, match="canonical form"):
        decode_checkpoint(longest(plain(checkpoint)))


@given(CHECKPOINTS, st.data())
def test_a_changed_checkpoint_is_damage_or_another_checkpoint(
    checkpoint: CheckpointObject, data: st.DataObject
) -> None:
    encoded = encode_checkpoint(checkpoint)[1]
    position = data.draw(st.integers(0, len(encoded) - 1))
    changed = encoded[:position] + bytes([data.draw(st.integers(0, 255))]) + encoded[position + 1 :]
    try:
        assert encode_checkpoint(decode_checkpoint(changed))[1] == changed
    except Damage:
        assert changed != encoded


@given(st.binary(max_size=100) | st.binary(max_size=60).map(lambda tail: b"\x9c\x01" + tail))
def test_arbitrary_bytes_are_no_checkpoint(data: bytes) -> None:
    with pytest.raises(Damage):
        decode_checkpoint(data)


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4))
def test_metadata_comes_back_as_it_was(metadata: dict[str, Any]) -> None:
    assert decode_metadata(encode_metadata(metadata)) == metadata


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_change_the_text(metadata: dict[str, Any], random: Any) -> None:
    items = list(metadata.items())
    random.shuffle(items)
    assert encode_metadata(dict(items)) == encode_metadata(metadata)


@given(st.text(max_size=30) | VALUES.map(repr))
def test_arbitrary_text_is_metadata_in_its_form_or_damage(text: str) -> None:
    try:
        assert encode_metadata(decode_metadata(text)) == text
    except Damage:
        assert text != "{}"
