"""Compression: only where it helps, and never more memory than a record may have."""

from __future__ import annotations

import random
import threading
import tracemalloc

import pytest
import zstandard

from casnap.codec.compression import MAX_RAW, Encoding, compress, compress_delta, decompress, decompress_delta
from casnap.errors import Damage

NOISE = random.Random(1).randbytes(5000)
TEXT = b"the same words again and again, " * 200


def test_what_does_not_shrink_is_kept_as_it_is() -> None:
    assert compress(NOISE, 3) == (Encoding.RAW, NOISE)
    assert compress(b"", 3) == (Encoding.RAW, b"")


def test_what_shrinks_is_one_frame_that_states_its_length() -> None:
    encoding, frame = compress(TEXT, 3)
    assert encoding is Encoding.ZSTD
    assert zstandard.frame_content_size(frame) == len(TEXT)
    assert zstandard.ZstdDecompressor().decompress(frame) == TEXT
    assert decompress(frame, len(TEXT)) == TEXT


def test_a_frame_of_another_length_than_its_record_says_is_damage() -> None:
    _, frame = compress(TEXT, 3)
    for size in (len(TEXT) - 1, len(TEXT) + 1, 0, -1):
        with pytest.raises(Damage):
            decompress(frame, size)


def test_a_frame_that_does_not_state_its_length_is_damage() -> None:
    frame = zstandard.ZstdCompressor(write_content_size=False).compress(TEXT)
    with pytest.raises(Damage):
        decompress(frame, len(TEXT))


def test_a_frame_that_states_less_than_it_holds_is_damage() -> None:
    frame = bytearray(zstandard.ZstdCompressor().compress(bytes(5000)))
    position = frame.index((5000 - 256).to_bytes(2, "little"))  # the field is 256 less
    frame[position : position + 2] = (4000 - 256).to_bytes(2, "little")
    assert zstandard.frame_content_size(bytes(frame)) == 4000
    with pytest.raises(Damage):
        decompress(bytes(frame), 4000)


def test_bytes_behind_a_frame_are_damage() -> None:
    _, frame = compress(TEXT, 3)
    empty = zstandard.ZstdCompressor().compress(b"")
    skippable = b"\x50\x2a\x4d\x18\x01\x00\x00\x00x"
    for behind in (b"\0", frame, empty, skippable):
        with pytest.raises(Damage):
            decompress(frame + behind, len(TEXT))
    with pytest.raises(Damage):
        decompress(skippable + frame, len(TEXT))


@pytest.mark.parametrize("claimed", [MAX_RAW, 64 * MAX_RAW])
def test_a_frame_that_would_grow_without_bound_takes_no_memory(claimed: int) -> None:
    bomb = zstandard.ZstdCompressor().compress(bytes(64 * MAX_RAW))
    tracemalloc.start()
    try:
        with pytest.raises(Damage):
            decompress(bomb, claimed)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_the_longest_object_goes_both_ways_and_one_byte_more_is_refused() -> None:
    encoding, frame = compress(bytes(MAX_RAW), 3)
    assert encoding is Encoding.ZSTD
    assert decompress(frame, MAX_RAW) == bytes(MAX_RAW)
    with pytest.raises(ValueError, match="more than a record may hold"):
        compress(bytes(MAX_RAW + 1), 3)
    with pytest.raises(ValueError, match="more than a record may hold"):
        compress_delta(bytes(MAX_RAW + 1), b"base", 3)


def test_a_delta_of_the_longest_objects_can_be_undone() -> None:
    base = random.Random(2).randbytes(MAX_RAW)
    data = base[1:] + b"!"
    frame = compress_delta(data, base, 19)
    assert len(frame) < 1000
    assert decompress_delta(frame, base, MAX_RAW) == data


def test_a_delta_costs_the_difference() -> None:
    after = NOISE[:2000] + b"edited" + NOISE[2000:]
    frame = compress_delta(after, NOISE, 3)
    assert len(frame) < 100
    assert decompress_delta(frame, NOISE, len(after)) == after


def test_a_base_may_begin_like_a_trained_dictionary() -> None:
    base = b"\x37\xa4\x30\xec" + NOISE
    assert decompress_delta(compress_delta(NOISE, base, 3), base, len(NOISE)) == NOISE


def test_an_empty_base_is_damage() -> None:
    with pytest.raises(Damage, match="base is empty"):
        decompress_delta(compress_delta(TEXT, b"base", 3), b"", len(TEXT))


def test_threads_compress_side_by_side() -> None:
    results: list[bool] = []

    def work(seed: int) -> None:
        data = random.Random(seed).randbytes(500) * 20
        results.append(all(decompress(compress(data, 3)[1], len(data)) == data for _ in range(50)))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 4
