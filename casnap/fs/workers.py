"""Workers: forked copies of this process that each do a part of its work; two threads would hold each other up.

A worker has all that is open, locks too: who waits for such a lock waits for the worker as well. It writes nothing that
this process could miss: what it is to tell goes through a pipe.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import signal
from collections.abc import Callable, Iterator
from typing import BinaryIO

from casnap.errors import CasnapError
from casnap.fs.directories import locks_kept
from casnap.fs.durable import write_all

Tell = Callable[[bytes], None]

_TOLD, _FAILED, _DONE = b"t", b"f", b"d"
_LENGTH = 8
_THREADS = "/proc/self/task"
_REQUESTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Lost(Exception):
    """A worker has ended without having done its work: it was killed."""


class Worker:
    """One of them."""

    def __init__(self, pipe: BinaryIO) -> None:
        """Use :func:`at_work`."""
        self._pipe = pipe

    def told(self) -> Iterator[bytes]:
        """What it tells, as it comes, to the end of its work.

        Raises:
            CasnapError: its work failed with that.
            Lost: it ended before.
        """
        while True:
            kind, length = self._pipe.read(1), int.from_bytes(self._pipe.read(_LENGTH))
            data = self._pipe.read(length)
            if kind == _DONE:
                return
            if not kind or len(data) < length:
                raise Lost
            if kind == _FAILED:
                raise _error(data)
            yield data


@contextlib.contextmanager
def at_work(act: Callable[[Tell], None]) -> Iterator[Worker | None]:
    """A block in which a worker does something, and tells what it has to; None where none can be had.

    With the block it ends, also if it is at work still. A process with several threads has none: what another thread
    holds would never be let go of.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _REQUESTS)  # nothing comes between its beginning and the block
    try:
        process, pipe = _fork(act) if _is_alone() else (0, None)
    except BaseException:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        raise
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        yield None if pipe is None else Worker(pipe)
    finally:
        if pipe is not None:
            _stop(process, pipe)


def _fork(act: Callable[[Tell], None]) -> tuple[int, BinaryIO | None]:
    """Begin a worker: its process, and where it is heard; None where there are too many, or too few resources."""
    try:
        ours, theirs = os.pipe()
    except OSError:
        return 0, None
    try:
        with locks_kept():
            process = os.fork()
    except OSError:
        os.close(ours)
        os.close(theirs)
        return 0, None
    if not process:
        os.close(ours)  # what nobody is left to hear fails then, instead of waiting for room
        _work(act, theirs)
    os.close(theirs)
    return process, open(ours, "rb")


def _stop(process: int, pipe: BinaryIO) -> None:
    pipe.close()
    with contextlib.suppress(ChildProcessError):  # where children are ignored one that has ended is known no more
        if os.waitpid(process, os.WNOHANG) == (0, 0):
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)


def _is_alone() -> bool:
    """Whether this process is known to have one thread, those of libraries counted."""
    try:
        return len(os.listdir(_THREADS)) == 1
    except OSError:
        return False


def _work(act: Callable[[Tell], None], pipe: int) -> None:
    """Do a worker's work, and end. Requests to end stay blocked: who began it is asked, too, and stops it."""
    try:
        try:
            act(lambda data: _send(pipe, _TOLD, data))
        except CasnapError as error:
            known = (type(error).__name__, error.message, error.hint, error.code, error.details)
            _send(pipe, _FAILED, marshal.dumps(known))
        else:
            _send(pipe, _DONE, b"")
    finally:
        os._exit(0)


def _send(pipe: int, kind: bytes, data: bytes) -> None:
    write_all(pipe, kind + len(data).to_bytes(_LENGTH) + data)


def _error(data: bytes) -> CasnapError:
    name, message, hint, code, details = marshal.loads(data)
    kinds = {kind.__name__: kind for kind in CasnapError.__subclasses__()}
    return kinds.get(name, CasnapError)(message, hint=hint, code=code, details=details)
