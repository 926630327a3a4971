"""Objects on their way to the store: asked for in batches, so that one query answers for many.

Objects that are there are handed over too: the sink looks whether what it has is sound, and heals what is not.
"""

from __future__ import annotations

from collections.abc import Callable

from casnap.model.ids import ObjectKey
from casnap.model.objects import ObjectSink

BATCH = 128
"""Objects in a batch."""

BATCH_BYTES = 8 << 20
"""Bytes that a batch may hold in memory before it is sent off early."""

Base = Callable[[], "ObjectKey | None"]
"""What a new object replaces, or is like: what it may be written as a difference to. Asked for only where it is new."""


def no_base() -> None:
    """Of what is like nothing."""


class Outbox:
    """Collects objects and hands them to the sink in batches."""

    def __init__(self, sink: ObjectSink) -> None:
        self._sink = sink
        self._waiting: dict[ObjectKey, tuple[bytes, Base]] = {}
        self._bytes = 0

    def add(self, key: ObjectKey, data: bytes, base: Base = no_base) -> None:
        """Take an object; it reaches the sink with this call or a later one."""
        if key in self._waiting:
            return
        self._waiting[key] = data, base
        self._bytes += len(data)
        if len(self._waiting) >= BATCH or self._bytes >= BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Hand over everything that waits."""
        if not self._waiting:
            return
        waiting, self._waiting, self._bytes = self._waiting, {}, 0
        present = self._sink.present(waiting)  # one question for all of them: the sink remembers the answer
        for key, (data, base) in waiting.items():
            self._sink.put(key, data, None if key in present else base())
