"""Ids, checksums and digests are those that docs/format/ids.md promises, for ever."""

from __future__ import annotations

import pytest
from blake3 import blake3

from casnap.codec.hashing import CONTEXTS, DIGEST_CONTEXT, ContentHasher, checksum, content_id, digest, object_id
from casnap.model.ids import ObjectKind
from casnap.model.tree import Fifo, File, Listing, Omitted, Symlink

EMPTY_BLAKE3 = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
HELLO = content_id(b"hello")

LISTING: Listing = (
    File(b"a", 0o644, 1000, 1000, 1_700_000_000, 5, (), 5, 0, HELLO, b""),
    Symlink(b"b", 0o777, 0, 0, -1, 0, (), b"a"),
    Omitted(b"c", 4),
)


def test_a_content_id_is_what_b3sum_prints() -> None:
    assert content_id(b"").hex() == EMPTY_BLAKE3
    assert HELLO.hex() == "ea8f163db38682925e4491c5e58d4bb3506ef8c14eb78a86e908c5624a67200f"


def test_a_content_id_does_not_depend_on_the_pieces() -> None:
    hasher = ContentHasher()
    assert hasher.id().hex() == EMPTY_BLAKE3
    hasher.update(b"hel")
    hasher.update(memoryview(b"lo"))
    assert hasher.id() == HELLO


@pytest.mark.parametrize(
    ("kind", "id"),
    [
        (ObjectKind.CHUNK, "a93c2e76a714b8d2c013dfa789f4a2a9c078782c450c68b4e5b1067c8e80c78e"),
        (ObjectKind.CHUNK_LIST, "a1403f43b3b23a99a11ee2c42442e0f15703d4833a980970e73b5f94b84c695a"),
        (ObjectKind.TREE, "ed754590ad8322139e429e1d13e140947ae40794a35a1a4d2a498dbb42d65cf3"),
        (ObjectKind.CHECKPOINT, "960f2645b4248036cb4feac23bc1b5d6503b6fd8461823b62cac465087bfbbe6"),
    ],
)
def test_the_same_bytes_have_another_id_for_each_kind(kind: ObjectKind, id: str) -> None:
    assert object_id(kind, b"casnap").hex() == id


def test_ids_of_kinds_are_blake3_in_derive_key_mode() -> None:
    for kind, context in CONTEXTS.items():
        assert object_id(kind, b"casnap") == blake3(b"casnap", derive_key_context=context).digest()
    assert len({*CONTEXTS.values(), DIGEST_CONTEXT}) == 4


def test_a_checksum_is_the_beginning_of_blake3_of_all_arguments() -> None:
    assert checksum(b"casnap").hex() == "a93c2e76a714b8d2"
    assert checksum(b"ca", b"", b"snap") == checksum(b"casnap")


def test_a_digest_never_changes() -> None:
    assert digest(()).hex() == "5ac24c7331e3361d64a16ecdbfed602834071dffcf1d6eb6b6bfd8baca1a8142"
    assert digest(LISTING).hex() == "6d360911d68b4e386cf32756b50f3498fde4e28233356a550c4291edb0cde63f"


def test_an_omitted_entry_does_not_count_in_a_digest() -> None:
    assert digest(LISTING) == digest(LISTING[:2])


def test_two_listings_never_share_the_bytes_that_a_digest_hashes() -> None:
    one = (Fifo(b"a", 0o1, 0, 0, 0, 0, ()), Symlink(b"b", 0, 0, 0, 0, 0, (), b"cd"))
    other = (Fifo(b"a", 0o1, 0, 0, 0, 0, ()), Symlink(b"bc", 0, 0, 0, 0, 0, (), b"d"))
    assert digest(one) != digest(other)
