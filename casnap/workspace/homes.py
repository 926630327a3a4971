"""Homes: the temporary directories in which what is new stands until it gets its name."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Container, Mapping

from casnap.errors import CasnapError
from casnap.fs import making, placing
from casnap.fs.directories import Directories
from casnap.fs.making import Given
from casnap.model.paths import ROOT, join, split
from casnap.workspace.signature import Signature
from casnap.workspace.temporaries import temporary_name

OWNER_MAY_CHANGE = 0o700
"""Permission bits that a directory needs for its owner to change what is in it."""


class Homes:
    """Made as they are asked for. ``loosened`` are directories whose modes kept their owner from changing names.

    ``given`` tells what a new inode has in a home by itself, where that is known. Nothing can be moved across
    ``borders``, which are mount points: bind mounts of one device have them too.
    """

    def __init__(
        self,
        directories: Directories,
        signatures: Mapping[bytes, Signature],
        new: Container[bytes],
        *,
        nonce: str,
        borders: frozenset[bytes],
        learns: bool,
    ) -> None:
        """``new`` are directories that are not there yet; ``learns``: see what is given in each home."""
        self.loosened: dict[bytes, Signature] = {}
        self.given: dict[bytes, Given | None] = {}
        self._directories = directories
        self._signatures = signatures
        self._new = new
        self._nonce = nonce
        self._borders = borders
        self._learns = learns
        self._homes: dict[bytes, bytes] = {}
        self._home_of: dict[bytes, bytes] = {}

    def of(self, path: bytes) -> bytes:
        """The home for ``path``: as high as one device and our rights reach."""
        parent, _ = split(path)
        if parent not in self._home_of:
            self._home_of[parent] = self._find(parent)
        return self._home_of[parent]

    def _find(self, top: bytes) -> bytes:
        while top in self._new:
            top, _ = split(top)
        device = self._signatures[top].device
        while top != ROOT and top not in self._borders and self._signatures[split(top)[0]].device == device:
            if not self._may_use(split(top)[0]):
                break
            top, _ = split(top)
        if top not in self._homes:
            self.loosen(top)
            name = temporary_name(self._nonce, len(self._homes))
            placing.make_directory(self._directories.fd(top), name)
            self._homes[top] = home = join(top, name)
            self.given[home] = making.learn(self._directories.fd(home)) if self._learns else None
        return self._homes[top]

    def _may_use(self, path: bytes) -> bool:
        """Whether names in a directory can be changed: now, or once its owner, who we are, has loosened it."""
        fd = self._directories.fd(path)
        return _is_writable(fd) or os.fstat(fd).st_uid == os.geteuid()

    def loosen(self, path: bytes) -> None:
        """Let the owner change what is in a directory; its mode comes back at the end."""
        if path in self.loosened:
            return
        fd = self._directories.fd(path)
        if _is_writable(fd):
            return
        with contextlib.suppress(PermissionError):  # not ours: what cannot be done there will be reported
            placing.change_mode_of(fd, stat.S_IMODE(self._signatures[path].mode) | OWNER_MAY_CHANGE)
            self.loosened[path] = self._signatures[path]

    @property
    def tops(self) -> frozenset[bytes]:
        """The directories that hold, or held, one."""
        return frozenset(self._homes)

    @property
    def touched(self) -> frozenset[bytes]:
        """What came and went, and directories that were loosened."""
        return frozenset((*self._homes.values(), *self.loosened))

    def remove(self) -> None:
        """Take them away, and what is left in them."""
        for home in self._homes.values():
            parent, name = split(home)
            self._directories.forget(home)
            with contextlib.suppress(OSError, CasnapError):
                placing.remove_staging(self._directories.fd(parent), name)

    def abandon(self) -> None:
        """Take them away; put back the modes and times of directories."""
        touched = self._homes.keys() | self.loosened.keys()
        self.remove()
        for path in sorted(touched, reverse=True):
            signature = self._signatures[path]
            with contextlib.suppress(OSError, CasnapError):
                fd = self._directories.fd(path)
                placing.change_mode_of(fd, stat.S_IMODE(signature.mode))
                placing.set_times(fd, b".", signature.mtime_ns)


def _is_writable(fd: int) -> bool:
    return os.access(b".", os.W_OK | os.X_OK, dir_fd=fd, effective_ids=True)
