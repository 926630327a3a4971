"""Work that is waited for only so long: a forked process, which goes on by itself after that."""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Callable


def apart(act: Callable[[], None], *, seconds: float) -> bool:
    """Let a forked process do something, and wait for it; whether it ended within ``seconds``. If not, it goes on.

    It has a session of its own, and neither input nor output: who waits for the end of our output does not wait for it.
    This process must have no other thread. What ``act`` raises is nobody's to see.
    """
    ours, theirs = os.pipe()  # closed by the kernel when the other process ends, however it does
    if (child := os.fork()) == 0:
        try:
            os.close(ours)
            _leave_everybody()
            act()
        finally:
            os._exit(0)
    os.close(theirs)
    poll = select.poll()
    poll.register(ours, select.POLLIN)
    try:
        ended = bool(poll.poll(max(0.0, seconds) * 1000))
        if ended:
            with contextlib.suppress(ChildProcessError):  # whoever ignores their children has none to wait for
                os.waitpid(child, 0)  # in a container nobody else may clear away what has ended
        return ended
    finally:
        os.close(ours)


def _leave_everybody() -> None:
    import signal  # here, since hardly anything is done apart

    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(nowhere, fd)
    os.close(nowhere)
