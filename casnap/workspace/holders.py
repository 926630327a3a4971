"""Which processes hold files of a workspace open for writing, from ``/proc`` (proc(5))."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

from msgspec import Struct

Inode = tuple[int, int]
"""Device and inode of a file."""


class Holder(Struct, frozen=True):
    """A process that may write to the file at ``path``."""

    process: int
    program: str
    path: bytes


def writers(root: bytes, files: Mapping[Inode, bytes]) -> list[Holder]:
    """Who has one of ``files`` (paths by inode), below the directory ``root``, open for writing.

    Only what this user may see of other processes counts; this process does not.
    """
    if not files:
        return []
    found = {
        (process, path): Holder(process, _program(process), path)
        for process in _processes()
        for path in _open_for_writing(process, root.rstrip(b"/") + b"/", files)
    }
    return [found[key] for key in sorted(found)]


def _processes() -> Iterator[int]:
    with contextlib.suppress(OSError):
        ourselves = os.readlink("/proc/self")
        for name in os.listdir("/proc"):
            if name.isdecimal() and name != ourselves:
                yield int(name)


def _open_for_writing(process: int, prefix: bytes, files: Mapping[Inode, bytes]) -> Iterator[bytes]:
    directory = b"/proc/%d/fd" % process
    try:
        names = os.listdir(directory)
    except OSError:  # ended, or not ours to see
        return
    for name in names:
        link = os.path.join(directory, name)
        with contextlib.suppress(OSError):
            if not os.readlink(link).startswith(prefix):  # looking at what lies elsewhere could hang
                continue
            status = os.stat(link)
            path = files.get((status.st_dev, status.st_ino))
            if path is not None and _is_writable(process, name):
                yield path


def _is_writable(process: int, name: bytes) -> bool:
    with open(b"/proc/%d/fdinfo/%s" % (process, name), "rb") as file:
        for line in file:
            if line.startswith(b"flags:"):
                return int(line.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
    return False


def _program(process: int) -> str:
    try:
        with open(f"/proc/{process}/comm", "rb") as file:
            return file.read().strip().decode("utf-8", "backslashreplace")
    except OSError:
        return "ended by now"
