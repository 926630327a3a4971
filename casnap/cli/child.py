"""A command of somebody else's: begun as a shell would, outlived whatever signal ends it."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from collections.abc import Iterable, Iterator, Sequence

from casnap.store.signals import DEFERRED

NOT_FOUND, NOT_EXECUTABLE, SIGNALLED = 127, 126, 128
"""Exit statuses of shells: no such command, one that cannot be run, and (plus the signal) one that was killed."""

GRACE = 0.5
"""Seconds after which a signal is passed on to a command that goes on: until then it may have had it, too."""

_REQUESTS = DEFERRED | {signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
"""What people and supervisors send to a command, and what would end this process without a word."""

_AWAITED = _REQUESTS | {signal.SIGCHLD}
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


class CannotRun(Exception):
    """The command was not begun; ``status`` is what a shell would end with."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error.strerror or str(error))
        self.status = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE


@contextlib.contextmanager
def outliving_signals() -> Iterator[Iterable[int]]:
    """A block that no request to end stops: what comes is a command's to heed, and forgotten at the end.

    Yields:
        The signals that were blocked before, for the command to begin with.
    """
    handler = signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # were it ignored, no status would be left to ask for
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    try:
        yield before
    finally:
        while signal.sigtimedwait(_AWAITED, 0) is not None:
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGCHLD, handler)


def run_child(command: Sequence[str], blocked: Iterable[int]) -> int:
    """Run a command with the standard streams and the environment of this process, and wait for its end.

    It has signals as this process found them, ``blocked`` ones too. To be called within :func:`outliving_signals`.

    Returns:
        Its exit status as a shell has it.

    Raises:
        CannotRun: it was not begun.
    """
    if not command[0]:
        raise CannotRun(FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))
    early = {int(number) for number in signal.sigpending() & _REQUESTS}  # it cannot have had these
    try:
        # Not by subprocess, which closes what was inherited: the job server of make, for one.
        child = os.posix_spawnp(command[0], list(command), os.environ, setsigmask=blocked, setsigdef=_IGNORED_BY_PYTHON)
    except OSError as error:
        raise CannotRun(error) from None
    return _wait(child, early)


def _wait(child: int, owed: set[int]) -> int:
    """Wait for the end of a child.

    What a terminal sends reaches the child by itself. What somebody sends may have been for this process alone: it is
    passed on, as what is ``owed`` already, unless it ends the child anyway.
    """
    while True:
        # Not for ever: a thread that somebody began in this process might take the news that the child has ended.
        got = signal.sigtimedwait(_AWAITED, GRACE)
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return SIGNALLED - code if code < 0 else code
        if got is None:
            for number in owed:
                os.kill(child, number)
            owed.clear()
        elif got.si_signo != signal.SIGCHLD and got.si_code <= 0 and got.si_pid != child:
            owed.add(got.si_signo)
