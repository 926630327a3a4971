"""Reading what another system left on a disk: nothing is changed there, and no link is followed."""

from __future__ import annotations

import errno
import json
import os
import stat
from typing import Any

from casnap.errors import CasnapError, Refused
from casnap.fs.directories import Directories
from casnap.model.paths import ROOT, components, escape, join, split
from casnap.model.report import Problem
from casnap.workspace.reader import open_file

MAX_FILE = 256 << 20
"""Bytes of a manifest, index or log above which it is not read: far beyond what those systems write."""

_PIECE = 1 << 20
_LINK = "it is a symbolic link, which is not followed"


class Fault(Exception):
    """Something of a history cannot be read. ``missing`` says that nothing is there."""

    def __init__(self, path: bytes, message: str, *, missing: bool = False) -> None:
        super().__init__(message)
        self.problem = Problem(path, message)
        self.missing = missing


class Source:
    """The directory that a history lies in. Paths are below it, and what they lead to is never outside."""

    def __init__(self, root: bytes) -> None:
        """``root`` is an absolute path without links."""
        self.root = root
        self._directories = Directories(root)

    def names(self, path: bytes) -> list[bytes]:
        """What is in a directory, sorted.

        Raises:
            Fault: it is absent, no directory, or cannot be read.
        """
        try:
            return sorted(map(os.fsencode, os.listdir(self._fd(path))))
        except OSError as error:
            raise self._fault(path, error) from error

    def required(self, path: bytes) -> list[bytes]:
        """What is in a directory that belongs to the layout; one that is not there yet is empty.

        Raises:
            Refused: something else stands there, or it cannot be read.
        """
        try:
            return self.names(path)
        except Fault as fault:
            if fault.missing:
                return []
            raise Refused(
                f"cannot import from {escape(self.root)}: {escape(path) or 'it'}: {fault}",
                code="unreadable-history",
                hint="name the directory that really holds the history",
            ) from fault

    def text(self, path: bytes) -> bytes:
        """The bytes of a regular file.

        Raises:
            Fault: it is absent, something else, too long, or cannot be read.
        """
        parent, name = split(path)
        try:
            fd = open_file(self._fd(parent), name)
        except OSError as error:
            raise self._fault(path, error) from error
        try:
            return _read(fd, path)
        except OSError as error:
            raise Fault(path, error.strerror or str(error)) from error
        finally:
            os.close(fd)

    def document(self, path: bytes) -> dict[str, Any]:
        """The JSON object that a file holds.

        Raises:
            Fault: the file cannot be read, or holds something else.
        """
        return as_object(path, self.text(path))

    def check_directory(self, path: bytes) -> int:
        """See that a directory can be opened; its modification time in nanoseconds.

        Raises:
            Fault: it is absent, no directory, or cannot be entered.
        """
        try:
            return os.fstat(self._fd(path)).st_mtime_ns
        except OSError as error:
            raise self._fault(path, error) from error

    def opened(self, path: bytes) -> Directories:
        """A directory as the root of a scan; the caller closes it.

        Raises:
            Fault: it cannot be opened, or was exchanged meanwhile.
        """
        self.check_directory(path)
        try:
            found = Directories(os.path.join(self.root, path) if path else self.root)
        except CasnapError as error:
            raise Fault(path, error.message) from error
        # It was reached by its path, of which others may have made a link since: the walk along descriptors counts.
        if not os.path.sameopenfile(found.root_fd, self._fd(path)):
            found.close()
            raise Fault(path, "it was exchanged while it was opened")
        return found

    def close(self) -> None:
        """Let go of the directory."""
        self._directories.close()

    def _fd(self, path: bytes) -> int:
        return self._directories.fd(path)

    def _fault(self, path: bytes, error: OSError) -> Fault:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            return Fault(path, self._obstacle(path))
        return Fault(path, error.strerror or str(error), missing=error.errno == errno.ENOENT)

    def _obstacle(self, path: bytes) -> str:
        """What stands where a directory should be, at ``path`` or above."""
        above = ROOT
        for name in components(path):
            try:
                mode = os.lstat(name, dir_fd=self._fd(above)).st_mode
            except OSError as error:
                return error.strerror or str(error)
            above = join(above, name)
            if not stat.S_ISDIR(mode):
                what = _LINK if stat.S_ISLNK(mode) else "it is not a directory"
                return what if above == path else f"{escape(above)}: {what}"
        return "it is not what it was"


def as_object(path: bytes, data: bytes) -> dict[str, Any]:
    """The JSON object that ``data`` is; ``path`` is for the message.

    Raises:
        Fault: it is something else.
    """
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Fault(path, f"it is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise Fault(path, "it is not a JSON object")
    return value


def text_of(facts: dict[str, Any], key: str) -> str:
    """A member that should be text; anything else counts as empty, and half characters become ``?``."""
    value = facts.get(key)
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def object_of(facts: dict[str, Any], key: str) -> dict[str, Any]:
    """A member that should be an object; anything else counts as empty."""
    value = facts.get(key)
    return value if isinstance(value, dict) else {}


def _read(fd: int, path: bytes) -> bytes:
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        raise Fault(path, "it is not a regular file")
    pieces: list[bytes] = []
    length = 0
    while piece := os.read(fd, _PIECE):
        pieces.append(piece)
        length += len(piece)
        if length > MAX_FILE:
            raise Fault(path, f"it is longer than {MAX_FILE} bytes")
    return b"".join(pieces)
