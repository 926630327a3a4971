"""Reaching a directory by descriptors, one component at a time, so that no swapped-in link leads elsewhere."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import weakref
from collections import OrderedDict
from collections.abc import Iterator
from types import TracebackType

from casnap.errors import CasnapError, NotFound, Refused, Usage
from casnap.fs.locks import try_flock
from casnap.model.paths import ROOT, is_within, split

OPEN_LIMIT = 32
"""Descriptors kept open beside the root's: few enough for ``ulimit -n 64``."""

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


_locked: weakref.WeakSet[Directories] = weakref.WeakSet()


class Directories:
    """The directories of one workspace, by their paths below its root.

    A descriptor stays valid until ``OPEN_LIMIT - 1`` other directories have been asked for, or its path is
    forgotten. It stands for the directory that was there when it was opened, wherever that may be moved.

    Raises:
        NotFound: there is nothing at ``root_path``.
        Refused: a symbolic link is.
        Usage: something else that is no directory is.
        CasnapError: it cannot be opened.
    """

    def __init__(self, root_path: bytes) -> None:
        self.root_path = root_path
        self._open: OrderedDict[bytes, int] = OrderedDict()
        try:
            self.root_fd = _open_directory(root_path)
        except OSError as error:
            raise _root_failed(root_path, error) from error

    def fd(self, path: bytes) -> int:
        """A descriptor of the directory at ``path``; it belongs to this object.

        Raises:
            OSError: some component is absent, no directory (a symbolic link is none), or may not be entered.
        """
        if path == ROOT:
            return self.root_fd
        if path in self._open:
            self._open.move_to_end(path)
            return self._open[path]
        ahead: list[bytes] = []
        above = path
        while above != ROOT and above not in self._open:
            ahead.append(above)
            above, _ = split(above)
        fd = self.fd(above)
        for below in reversed(ahead):
            fd = self._enter(fd, below)
        return fd

    def lock(self, wait: float) -> bool:
        """Lock the root until this object is closed, within ``wait`` seconds; whether it worked."""
        _locked.add(self)
        return try_flock(self.root_fd, wait)

    @contextlib.contextmanager
    def held(self, path: bytes) -> Iterator[int]:
        """A descriptor that stays valid to the end of the with block, whatever else is asked for meanwhile."""
        fd = os.dup(self.fd(path))
        try:
            yield fd
        finally:
            os.close(fd)

    def _enter(self, parent_fd: int, path: bytes) -> int:
        fd = _open_directory(split(path)[1], parent_fd)
        self._open[path] = fd
        if len(self._open) > OPEN_LIMIT:
            os.close(self._open.popitem(last=False)[1])
        return fd

    def forget(self, path: bytes) -> None:
        """Close what is open at and below ``path``: the next look goes by the names that are there then."""
        for known in [known for known in self._open if is_within(known, path)]:
            os.close(self._open.pop(known))

    def close(self) -> None:
        """Close every descriptor; harmless when done before."""
        self.forget(ROOT)
        if self.root_fd >= 0:
            os.close(self.root_fd)
            self.root_fd = -1

    def __enter__(self) -> Directories:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _open_directory(name: bytes, parent_fd: int | None = None) -> int:
    """Open a directory, and where that is allowed leave its access time alone: only its owner may."""
    try:
        return os.open(name, _FLAGS | os.O_NOATIME, dir_fd=parent_fd)
    except PermissionError as error:
        if error.errno != errno.EPERM:
            raise
        return os.open(name, _FLAGS, dir_fd=parent_fd)


def _root_failed(path: bytes, error: OSError) -> CasnapError:
    name = os.fsdecode(path)
    if error.errno == errno.ENOENT:
        return NotFound(
            f"cannot open workspace {name}: it does not exist",
            code="workspace-gone",
            hint=f"bring it back with: casnap rollback -w {name}",
        )
    if error.errno in (errno.ENOTDIR, errno.ELOOP):
        with contextlib.suppress(OSError):
            if stat.S_ISLNK(os.lstat(path).st_mode):
                return Refused(
                    f"cannot open workspace {name}: it has become a symbolic link",
                    hint="put the directory back in its place, or name the directory that the link leads to",
                )
        return Usage(f"cannot open workspace {name}: it is not a directory")
    return CasnapError(f"cannot open workspace {name}: {error.strerror}")


@contextlib.contextmanager
def locks_kept() -> Iterator[None]:
    """A block in which a process is forked that does our own work: it has the roots that are locked, locks included."""
    held = set(_locked)
    _locked.clear()
    try:
        yield
    finally:
        _locked.update(held)


def _close_after_fork() -> None:
    """The lock on a root ends with its last descriptor: a forked child that goes its own way must not keep one."""
    for directories in list(_locked):
        directories.close()


os.register_at_fork(after_in_child=_close_after_fork)
