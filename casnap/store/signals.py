"""Signals wait while something is being committed, so that what happened is also reported."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

DEFERRED = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


class _Here(threading.local):
    """What this thread is in: a block that ends with a report, and whether signals wait for its end."""

    reporting = False
    waiting = False


_here = _Here()


@contextlib.contextmanager
def held(*, until_reported: bool = False) -> Iterator[None]:
    """Let signals that would end this thread wait until the end of the with block. May be nested.

    With ``until_reported`` they wait until the end of the :func:`reported` block around it, if there is one.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, DEFERRED)
    try:
        yield
        _here.waiting = _here.waiting or (until_reported and _here.reporting)
    finally:
        if not _here.waiting:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def reported() -> Iterator[None]:
    """A block that does something and then says so: once it is committed, signals wait for its end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    _here.reporting = True
    try:
        yield
    finally:
        _here.reporting = _here.waiting = False
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
