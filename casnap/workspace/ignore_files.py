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
from casnap.workspace.signature import Signature, signature_of
from casnap.workspace.toml_excludes import excludes_in, remarks_on

_CACHE_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"
"""How a valid cache directory tag begins (bford.info/cachedir)."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class IgnoreFiles(Struct):
    """What the ignore files of one directory say, by their names (None where one cannot be read), and remarks.

    ``read`` tells of each file that was asked for how it looked then, empty ones too; None where there was none.
    """

    texts: dict[bytes, bytes | None] = {}
    remarks: tuple[str, ...] = ()
    read: dict[bytes, Signature | None] = {}


def read_ignore_files(fd: int, names: Collection[bytes], rules: Rules, *, at_root: bool) -> IgnoreFiles:
    """Read the ignore files in the open directory that holds ``names``."""
    files = rules.files(at_root=at_root)
    found = IgnoreFiles()
    texts = {name: _text(fd, name, found.read) for name in files if name in names}
    if GIT_FILE in files and b".git" in names:
        texts[GIT_EXCLUDE] = _repository_exclude(fd, found.read)
    for name in TOML_FILES:
        if data := texts.get(name):
            found.remarks += remarks_on(name, data)
            texts[name] = excludes_in(name, data)
    found.texts = {name: text for name, text in texts.items() if text != b""}
    return found


def is_cache(fd: int, read: dict[bytes, Signature | None]) -> bool | None:
    """Whether the open directory's cache tag is valid; None where that cannot be read. ``read`` gets how it looked."""
    text = _text(fd, CACHE_TAG, read, most=len(_CACHE_SIGNATURE), whole=False)
    return None if text is None else text == _CACHE_SIGNATURE


def _repository_exclude(fd: int, read: dict[bytes, Signature | None]) -> bytes | None:
    read[GIT_EXCLUDE] = None
    with contextlib.ExitStack() as opened:
        for name in os.path.dirname(GIT_EXCLUDE).split(b"/"):
            try:
                fd = os.open(name, _DIRECTORY, dir_fd=fd)
            except OSError as error:
                return b"" if error.errno in GONE else None
            opened.callback(os.close, fd)
        inside: dict[bytes, Signature | None] = {}
        name = os.path.basename(GIT_EXCLUDE)
        text = _text(fd, name, inside)
        read[GIT_EXCLUDE] = inside[name]
        return text


def _text(
    fd: int, name: bytes, read: dict[bytes, Signature | None], *, most: int = MAX_IGNORE_FILE, whole: bool = True
) -> bytes | None:
    """The first bytes of a file: b"" where there is no regular file, None where it cannot be read (as a whole)."""
    read[name] = None
    try:
        file = open_file(fd, name)
    except OSError as error:
        return b"" if error.errno in GONE else None
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            return b""
        read[name] = signature_of(status)
        if whole and status.st_size > most:
            return None
        return os.pread(file, most, 0)
    except OSError as error:
        return b"" if error.errno == errno.EISDIR else None
    finally:
        os.close(file)
