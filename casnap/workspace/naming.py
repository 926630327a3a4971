"""Naming the chunks of a large file while the next are read and cut: hashing leaves Python to whoever does that."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import TYPE_CHECKING

from casnap.codec.hashing import ContentHasher, content_id

if TYPE_CHECKING:
    import queue

BATCH_BYTES = 2 << 20
"""Bytes of chunks that are named together."""

_AHEAD = 2
"""Batches that may be under way."""

_Batch = list[bytes]
_Names = list[bytes] | BaseException
"""The content ids of a batch, or what kept it from getting them."""


def named(chunks: Iterable[bytes], whole: ContentHasher) -> Generator[tuple[bytes, bytes], None, None]:
    """Each chunk with its content id, in their order; ``whole`` takes them all in."""
    for data in chunks:
        whole.update(data)
        yield content_id(data), data


def named_beside(chunks: Iterable[bytes], whole: ContentHasher) -> Generator[tuple[bytes, bytes], None, None]:
    """The same by a thread of its own, which ends with the iterator: that is to be closed."""
    import queue  # here and below, since large files are rare
    import threading

    tasks: queue.SimpleQueue[_Batch | None] = queue.SimpleQueue()
    answers: queue.SimpleQueue[_Names] = queue.SimpleQueue()
    thread = threading.Thread(target=_work, args=(tasks, answers, whole), name="casnap-name", daemon=True)
    thread.start()
    flying: list[_Batch] = []
    try:
        for batch in _batches(chunks):
            tasks.put(batch)
            flying.append(batch)
            if len(flying) > _AHEAD:
                yield from _answer(answers, flying.pop(0))
        while flying:
            yield from _answer(answers, flying.pop(0))
    finally:
        tasks.put(None)
        thread.join()


def _batches(chunks: Iterable[bytes]) -> Iterator[_Batch]:
    batch: _Batch = []
    size = 0
    for data in chunks:
        batch.append(data)
        size += len(data)
        if size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _answer(answers: queue.SimpleQueue[_Names], batch: _Batch) -> Iterator[tuple[bytes, bytes]]:
    names = answers.get()
    if isinstance(names, BaseException):
        raise names
    return zip(names, batch, strict=True)


def _work(tasks: queue.SimpleQueue[_Batch | None], answers: queue.SimpleQueue[_Names], whole: ContentHasher) -> None:
    while (batch := tasks.get()) is not None:
        try:
            answers.put([name for name, _ in named(batch, whole)])
        except BaseException as error:  # it is raised where the names are asked for
            answers.put(error)
