"""Cutting a long file into chunks where its content says so (docs/format/chunk-list.md).

Cut points decide only what is shared between versions: a file is put together again from its chunk list,
whatever made the cuts.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from typing import Protocol

    class ByteStream(Protocol):
        """What is cut."""

        def read(self, size: int, /) -> bytes:
            """The next bytes, at most ``size``, and none only at the end."""


KIB = 1 << 10

SINGLE_CHUNK_BOUND = 1 << 20
"""A file of at most so many bytes is one chunk and is not cut."""


class ChunkerParameters(Struct, frozen=True):
    """Sizes of chunks in bytes: the least (but for a file's last chunk), about the usual, and the most."""

    min: int = 16 * KIB
    average: int = 64 * KIB
    max: int = 256 * KIB


class Chunker:
    """Cuts streams by FastCDC; not to be shared between threads.

    Without the compiled core of pyfastcdc, whose substitute is 500 times slower, cuts are made every
    ``average`` bytes.
    """

    def __init__(self, parameters: ChunkerParameters) -> None:
        self._parameters = parameters

    @property
    def content_defined(self) -> bool:
        """Whether cuts follow the content."""
        return self._fastcdc is not None

    def cut(self, stream: ByteStream) -> Iterator[bytes]:
        """The stream's bytes, chunk by chunk; never an empty one."""
        if self._fastcdc is None:
            return _cut_evenly(stream, self._parameters.average)
        return (bytes(chunk.data) for chunk in self._fastcdc.cut_stream(_OnlyRead(stream)))

    @functools.cached_property
    def _fastcdc(self) -> Any:
        """What cuts, or None; imported only when a file has to be cut."""
        sizes = self._parameters
        fastcdc = _compiled_fastcdc()
        return fastcdc and fastcdc(sizes.average, min_size=sizes.min, max_size=sizes.max)


class _OnlyRead:
    """Hides all but ``read``: pyfastcdc would rather call a ``readinto``, which not every stream means alike."""

    def __init__(self, stream: ByteStream) -> None:
        self.read = stream.read


@functools.cache
def _compiled_fastcdc() -> Any:
    """The class with the compiled core, or None where that is missing."""
    with warnings.catch_warnings(action="ignore"):  # it warns of its substitute, which is not used here
        try:
            from pyfastcdc.cy import FastCDC
        except ImportError:
            return None
    return FastCDC


def _cut_evenly(stream: ByteStream, size: int) -> Iterator[bytes]:
    pieces: list[bytes] = []
    missing = size
    while piece := stream.read(missing):
        pieces.append(piece)
        missing -= len(piece)
        if not missing:
            yield b"".join(pieces)
            pieces, missing = [], size
    if pieces:
        yield b"".join(pieces)
