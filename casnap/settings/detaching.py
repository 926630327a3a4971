"""Work that is waited for only so long: a forked process, which goes on by itself after that."""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Callable

from casnap.fs.durable import write_all

MOST_TOLD = 4096
"""Bytes of what is told: as much as a pipe takes at once."""


class Vanished(Exception):
    """A process ended without a word: it was killed, or failed."""


def apart(act: Callable[[], str], *, seconds: float) -> str | None:
    """Let a forked process do something, and wait for it; what it gave, None if it did not end within ``seconds``.

    In that case it goes on. It has a session of its own, and neither input nor output: who waits for the end of our
    output does not wait for it. This process must have no other thread.

    Raises:
        Vanished: it ended, and gave nothing.
    """
    ours, theirs = os.pipe()  # closed by the kernel when the other process ends, however it does
    if (child := os.fork()) == 0:
        try:
            os.close(ours)
            _leave_everybody()
            write_all(theirs, b"." + act().encode("utf-8", "replace")[: MOST_TOLD - 1])
        finally:
            os._exit(0)
    os.close(theirs)
    poll = select.poll()
    poll.register(ours, select.POLLIN)
    try:
        if not poll.poll(max(0.0, seconds) * 1000):
            return None
        told = os.read(ours, MOST_TOLD)
        with contextlib.suppress(ChildProcessError):  # whoever ignores their children has none to wait for
            os.waitpid(child, 0)  # in a container nobody else may clear away what has ended
    finally:
        os.close(ours)
    if not told:
        raise Vanished
    return told[1:].decode("utf-8", "replace")


def _leave_everybody() -> None:
    import signal  # here, since hardly anything is done apart

    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(nowhere, fd)
    os.close(nowhere)
