"""Kernel locks (flock): they end with their process, and are never broken by force."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

from casnap.errors import Busy, StorageFailed

POLL = 0.01
"""Seconds between two tries for a lock that is held."""

LONG_POLLS = (0.05, 0.4)
"""The same where many may wait at once: at first, and at most, each pause twice the one before."""

_held: weakref.WeakSet[Lock] = weakref.WeakSet()


class Lock:
    """An exclusive lock on a file. The text in the file names the holder, for messages only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = -1

    def acquire(self, wait: float, holder: str) -> None:
        """Take the lock within ``wait`` seconds.

        Raises:
            Busy: somebody else holds it; the message names them.
            StorageFailed: the lock file cannot be opened, or the file system has no locks.
        """
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise StorageFailed(f"cannot open lock {self.path}: {error.strerror}") from error
        try:
            if not try_flock(fd, wait):
                raise self._busy(fd)
            os.ftruncate(fd, 0)
            os.pwrite(fd, holder.encode(), 0)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):  # the name of the holder is a courtesy
                os.close(fd)
                raise StorageFailed(f"cannot lock {self.path}: {error.strerror}") from error
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd
        _held.add(self)

    def release(self) -> None:
        """Let go; harmless when not held."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _busy(self, fd: int) -> Busy:
        holder = os.pread(fd, 200, 0).decode("utf-8", "replace").strip() or "another process"
        return Busy(
            f"cannot lock {self.path.stem}: {holder} holds it",
            hint="wait for it to end, or give it longer with --wait SECONDS",
            details={"lock": self.path.stem, "holder": holder},
        )


@contextlib.contextmanager
def locked(path: Path, *, wait: float, holder: str) -> Iterator[None]:
    """Hold the lock on ``path`` for the length of a with block."""
    lock = Lock(path)
    lock.acquire(wait, holder)
    try:
        yield
    finally:
        lock.release()


def hold(path: Path, wait: float, unless: Callable[[], bool] = lambda: False) -> int | None:
    """Take the lock on ``path`` within ``wait`` seconds, without a name in it.

    ``unless`` is asked now and then while somebody else holds it, and makes an end of waiting.

    Returns:
        A descriptor, which the caller closes. The lock is let go when no process has a copy of it any more: a forked
        child goes on holding it. None: somebody else holds the lock.

    Raises:
        OSError: the file cannot be made, or the file system has no locks.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        deadline = time.monotonic() + wait
        pause, longest = LONG_POLLS
        while not try_flock(fd, 0):
            left = deadline - time.monotonic()
            if left <= 0 or unless():
                os.close(fd)
                return None
            time.sleep(min(left, pause))
            pause = min(2 * pause, longest)
    except BaseException:
        os.close(fd)
        raise
    return fd


def try_flock(fd: int, wait: float) -> bool:
    """Lock an open file exclusively within ``wait`` seconds; whether it worked."""
    deadline = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
        time.sleep(POLL)


def _forget_after_fork() -> None:
    """A forked child must not keep its parent's locks alive."""
    for lock in list(_held):
        lock.release()


os.register_at_fork(after_in_child=_forget_after_fork)
