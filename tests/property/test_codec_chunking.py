"""Laws of cutting: nothing is lost, sizes are kept, and an edit moves only the cuts around it."""

from __future__ import annotations

import io
import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casnap.codec import chunking
from casnap.codec.chunking import Chunker, ChunkerParameters

SMALL = ChunkerParameters(min=256, average=1024, max=4096)
SEEDS = st.integers(0, 1 << 32)


class Trickle:
    """A stream that gives fewer bytes than it is asked for."""

    def __init__(self, data: bytes, most: int) -> None:
        self._stream, self._most = io.BytesIO(data), most

    def read(self, size: int, /) -> bytes:
        return self._stream.read(min(size, self._most))


def cut(data: bytes, parameters: ChunkerParameters = SMALL) -> list[bytes]:
    return list(Chunker(parameters).cut(io.BytesIO(data)))


CONTENTS = st.binary(max_size=300) | st.builds(
    lambda seed, size: random.Random(seed).randbytes(size), SEEDS, st.integers(0, 40_000)
)


@given(CONTENTS, st.booleans())
def test_chunks_joined_are_the_input_and_keep_their_sizes(data: bytes, constant: bool) -> None:
    data = bytes(len(data)) if constant else data
    chunks = cut(data)
    assert b"".join(chunks) == data
    assert all(256 <= len(chunk) <= 4096 for chunk in chunks[:-1])
    assert all(0 < len(chunk) <= 4096 for chunk in chunks)


@given(CONTENTS, st.integers(1, 5_000))
def test_cuts_do_not_depend_on_how_a_stream_delivers(data: bytes, most: int) -> None:
    assert list(Chunker(SMALL).cut(Trickle(data, most))) == cut(data)


@settings(max_examples=60)
@given(SEEDS, st.integers(0, 60_000), st.integers(0, 300), st.binary(max_size=300))
def test_an_edit_moves_only_the_cuts_around_it(seed: int, at: int, removed: int, inserted: bytes) -> None:
    before = random.Random(seed).randbytes(120_000)
    after = before[:at] + inserted + before[at + removed :]
    old, new = cut(before), cut(after)
    ends = set(itertools.accumulate(map(len, old)))
    # No cut before the edit is touched, for a cut depends on nothing behind it but one byte ...
    assert {end for end in itertools.accumulate(map(len, new)) if end < at} == {end for end in ends if end < at}
    # ... and behind it both agree again within a few chunks: the rest is shared.
    same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(old[::-1], new[::-1], strict=False)))
    assert sum(map(len, old[len(old) - same :])) >= len(before) - at - removed - 40_000
    assert same > 0


@given(CONTENTS)
def test_the_compiled_core_cuts_like_the_reference(data: bytes) -> None:
    reference = pytest.importorskip("pyfastcdc.py").FastCDC(1024, min_size=256, max_size=4096)
    assert cut(data) == [bytes(chunk.data) for chunk in reference.cut_buf(data)]


@given(CONTENTS, st.integers(1, 5_000))
def test_without_the_compiled_core_chunks_are_even(data: bytes, most: int) -> None:
    chunks = list(chunking._cut_evenly(Trickle(data, most), 1024))
    assert b"".join(chunks) == data
    assert [len(chunk) for chunk in chunks[:-1]] == [1024] * (len(chunks) - 1)
    assert all(chunks)
