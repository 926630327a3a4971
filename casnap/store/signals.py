"""Signals wait while something is being committed, so that what happened is also reported."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator

DEFERRED = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Let signals that would end this thread wait until the end of the with block.

    May be nested: a caller that has a report to hand on holds them around the commit *and* the report, for a
    signal that waited during the commit is delivered the moment that the outermost block ends.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, DEFERRED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
