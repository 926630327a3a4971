"""Reading what the ignore files of a live directory say.

As for git, only a regular file counts: a symbolic link is not followed and holds no rules.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Collection

from msgspec import Struct

from casnap.workspace.reader import GONE, open_file
from casnap.workspace.rules import CACHE_TAG, GIT_EXCLUDE, GIT_FILE, MAX_IGNORE_FILE, TOML_FILES, Rules
from casnap.workspace.toml_excludes import excludes_in, remarks_on

_CACHE_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"
"""How a valid cache directory tag begins (bford.info/cachedir)."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class IgnoreFiles(Struct, frozen=True):
    """What the ignore files of one directory say, by their names (None where one cannot be read), and remarks."""

    texts: dict[bytes, bytes | None]
    remarks: tuple[str, ...] = ()


def read_ignore_files(fd: int, names: Collection[bytes], rules: Rules, *, at_root: bool) -> IgnoreFiles:
    """Read the ignore files in the open directory that holds ``names``."""
    files = rules.files(at_root=at_root)
    found = {name: _text(fd, name) for name in files if name in names}
    if GIT_FILE in files and b".git" in names:
        found[GIT_EXCLUDE] = _repository_exclude(fd)
    remarks: tuple[str, ...] = ()
    for name in TOML_FILES:
        if data := found.get(name):
            remarks += remarks_on(name, data)
            found[name] = excludes_in(name, data)
    return IgnoreFiles({name: text for name, text in found.items() if text != b""}, remarks)


def is_cache(fd: int) -> bool | None:
    """Whether the open directory's cache tag is valid; None where that cannot be read."""
    text = _text(fd, CACHE_TAG, most=len(_CACHE_SIGNATURE), whole=False)
    return None if text is None else text == _CACHE_SIGNATURE


def _repository_exclude(fd: int) -> bytes | None:
    with contextlib.ExitStack() as opened:
        for name in os.path.dirname(GIT_EXCLUDE).split(b"/"):
            try:
                fd = os.open(name, _DIRECTORY, dir_fd=fd)
            except OSError as error:
                return b"" if error.errno in GONE else None
            opened.callback(os.close, fd)
        return _text(fd, os.path.basename(GIT_EXCLUDE))


def _text(fd: int, name: bytes, *, most: int = MAX_IGNORE_FILE, whole: bool = True) -> bytes | None:
    """The first bytes of a file: b"" where there is no regular file, None where it cannot be read (as a whole)."""
    try:
        file = open_file(fd, name)
    except OSError as error:
        return b"" if error.errno in GONE else None
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            return b""
        if whole and status.st_size > most:
            return None
        return os.pread(file, most, 0)
    except OSError as error:
        return b"" if error.errno == errno.EISDIR else None
    finally:
        os.close(file)
