"""Objects on their way into a pack: compressed in batches beside what goes on, and given back in their order.

The files of a first checkpoint take as long to compress as to find and read. One batch is one call into zstd, which
leaves Python to whoever reads the next files meanwhile: a call for each would have the two wait for each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from casnap.codec.compression import Encoding, compress, compress_all
from casnap.model.ids import ObjectKey

if TYPE_CHECKING:
    import queue
    import threading

BATCH = 128
"""Objects in a batch."""

BATCH_BYTES = 4 << 20
"""Bytes of objects with which a batch is full sooner."""

IN_FLIGHT = 16 << 20
"""Bytes of objects that may be under way: enough to keep zstd busy to the end, and a bound on memory."""

THREADS = 2
"""Threads of zstd for a batch of a large file's chunks; for what is read file by file one keeps up."""


Waiting = tuple[ObjectKey, bytes, ObjectKey | None]
"""An object, its bytes, and what it replaces."""

Compressed = tuple[Waiting, tuple[Encoding, bytes]]
"""An object, and what its record holds if it stands by itself."""


class Compressing:
    """Takes objects and gives them back compressed, in the same order; a thread is begun with the first full batch."""

    def __init__(self, level: int) -> None:
        self._level = level
        self._batch: list[Waiting] = []
        self._bytes = 0
        self._flying: deque[_Batch] = deque()
        self._flying_bytes = 0
        self._thread: threading.Thread | None = None
        self._tasks: queue.SimpleQueue[_Batch | None]

    def add(self, key: ObjectKey, data: bytes, base: ObjectKey | None) -> bool:
        """Take an object; whether so much is under way that :meth:`ready` should be asked before the next."""
        self._batch.append((key, data, base))
        self._bytes += len(data)
        if len(self._batch) >= BATCH or self._bytes >= BATCH_BYTES:
            self._send()
        return self._flying_bytes > IN_FLIGHT

    def ready(self) -> Iterator[Compressed]:
        """The oldest batch that is under way, waited for."""
        batch = self._flying.popleft()
        self._flying_bytes -= batch.size
        return batch.result()

    def rest(self) -> Iterator[Compressed]:
        """All that was taken, in order; what is no whole batch, or what nobody has begun, is compressed here."""
        for flying in reversed(self._flying):  # the last first: the thread goes on from the other end
            flying.run()
        while self._flying:
            yield from self.ready()
        batch, self._batch, self._bytes = self._batch, [], 0
        for waiting in batch:
            yield waiting, compress(waiting[1], self._level)

    def close(self) -> None:
        """Forget what is under way, and end the thread; its batch in hand is finished."""
        self._batch.clear()
        self._flying.clear()
        self._flying_bytes = 0
        if self._thread is not None:
            self._tasks.put(None)
            self._thread.join()
            self._thread = None

    def _send(self) -> None:
        if self._thread is None:
            import queue  # here and below, since few objects need no thread
            import threading

            self._tasks = queue.SimpleQueue()
            self._thread = threading.Thread(target=_work, args=(self._tasks,), name="casnap-compress", daemon=True)
            self._thread.start()
        threads = THREADS if self._bytes >= BATCH_BYTES else 1
        batch = _Batch(self._batch, self._bytes, self._level, threads)
        self._batch, self._bytes = [], 0
        self._flying.append(batch)
        self._flying_bytes += batch.size
        self._tasks.put(batch)


class _Batch:
    """Objects that are compressed together, and what came of it."""

    def __init__(self, objects: list[Waiting], size: int, level: int, threads: int) -> None:
        import threading

        self.size = size
        self._objects = objects
        self._level = level
        self._threads = threads
        self._begun = threading.Lock()
        self._done = threading.Event()
        self._compressed: list[tuple[Encoding, bytes]] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        """Compress them, unless that was begun before."""
        if not self._begun.acquire(blocking=False):
            return
        try:
            datas = [data for _, data, _ in self._objects]
            self._compressed = compress_all(datas, self._level, self._threads)
        except BaseException as error:  # it is raised where the result is asked for
            self._error = error
        self._done.set()

    def result(self) -> Iterator[Compressed]:
        self._done.wait()
        if self._error is not None:
            raise self._error
        return zip(self._objects, self._compressed, strict=True)


def _work(tasks: queue.SimpleQueue[_Batch | None]) -> None:
    while (batch := tasks.get()) is not None:
        batch.run()
