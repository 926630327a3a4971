"""Cut points never change, and how the cutter behaves where its compiled core is missing."""

from __future__ import annotations

import builtins
import hashlib
import io
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from casnap.codec import chunking
from casnap.codec.chunking import SINGLE_CHUNK_BOUND, Chunker, ChunkerParameters

KIB = 1024
PSEUDO_RANDOM = b"".join(hashlib.sha256(number.to_bytes(4)).digest() for number in range(1 << 16))

# Another cut of the same bytes would not be wrong, but would share nothing with what stores hold already.
GOLDEN = [
    82763, 134154, 70229, 61745, 89190, 145468, 80952, 49916, 80893, 94589, 43023, 32122, 87840, 69020,
    71306, 83209, 77404, 20188, 138176, 19514, 48769, 148374, 91024, 72394, 91490, 64384, 49016,
]  # fmt: skip


def sizes(data: bytes) -> list[int]:
    return [len(chunk) for chunk in Chunker(ChunkerParameters()).cut(io.BytesIO(data))]


@pytest.fixture
def no_compiled_core(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    real = builtins.__import__

    def without(name: str, *arguments: Any) -> Any:
        if name.startswith("pyfastcdc.cy"):
            raise ImportError(name)
        return real(name, *arguments)

    chunking._compiled_fastcdc.cache_clear()
    for name in [name for name in sys.modules if name.startswith("pyfastcdc")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    yield
    chunking._compiled_fastcdc.cache_clear()


def test_the_parameters_are_those_of_the_format() -> None:
    assert ChunkerParameters() == ChunkerParameters(min=16 * KIB, average=64 * KIB, max=256 * KIB)
    assert SINGLE_CHUNK_BOUND == 1024 * KIB


def test_the_cut_points_never_change() -> None:
    assert Chunker(ChunkerParameters()).content_defined
    assert sizes(PSEUDO_RANDOM) == GOLDEN


def test_bytes_that_never_cut_are_cut_at_the_most() -> None:
    assert sizes(bytes(1024 * KIB + 1)) == [256 * KIB] * 4 + [1]


@pytest.mark.parametrize("size", [0, 1, 16 * KIB, 16 * KIB + 1])
def test_a_short_stream_is_one_chunk_or_none(size: int) -> None:
    assert sizes(bytes(size)) == [size] * bool(size)


def test_a_chunker_cuts_one_stream_after_another_alike() -> None:
    chunker = Chunker(ChunkerParameters())
    first = list(chunker.cut(io.BytesIO(PSEUDO_RANDOM)))
    assert list(chunker.cut(io.BytesIO(PSEUDO_RANDOM))) == first


def test_chunks_stay_as_they_are_while_cutting_goes_on() -> None:
    chunks = Chunker(ChunkerParameters()).cut(io.BytesIO(PSEUDO_RANDOM))
    first = next(chunks)
    for _ in chunks:
        pass
    assert first == PSEUDO_RANDOM[: GOLDEN[0]]


def test_a_stream_that_fails_is_told() -> None:
    class Failing:
        def read(self, size: int, /) -> bytes:
            raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output error"):
        list(Chunker(ChunkerParameters()).cut(Failing()))


@pytest.mark.usefixtures("no_compiled_core")
def test_without_the_compiled_core_cuts_are_even_and_nothing_is_slow() -> None:
    chunker = Chunker(ChunkerParameters())
    assert not chunker.content_defined
    chunks = list(chunker.cut(io.BytesIO(PSEUDO_RANDOM[: 200 * KIB])))
    assert [len(chunk) for chunk in chunks] == [64 * KIB] * 3 + [8 * KIB]
    assert b"".join(chunks) == PSEUDO_RANDOM[: 200 * KIB]
