"""Where a git work tree stands, read from its files: git itself is never run."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from casnap.engine.content import pieces
from casnap.errors import Damage
from casnap.model.checkpoint import GitState
from casnap.model.paths import escape
from casnap.model.tree import AnyEntry, File, Omitted, Symlink

if TYPE_CHECKING:
    from casnap.engine.git_index import IndexEntry
    from casnap.model.objects import ObjectSource

_COMMIT = re.compile(r"^[0-9a-f]{40}([0-9a-f]{24})?$")
_BRANCH = "refs/heads/"
_MOST = 1 << 20
_GITLINK = 0o160000

INDEX_MOST = 256 << 10
"""Bytes of the longest index that is compared: some 2,500 files, a few milliseconds."""

CONTENT_MOST = 16 << 20
"""Bytes of files that are read for that at most."""

Look = Callable[[bytes], AnyEntry | None]


def git_state(root: bytes, entry: Look, source: ObjectSource) -> GitState | None:
    """Branch and commit of the work tree at ``root``, and how many tracked files are otherwise than staged.

    ``entry`` gives what was found at a path, its content being in ``source``.

    None where there is none, or it cannot be read.
    """
    directory = _git_directory(os.path.join(root, b".git"))
    if directory is None:
        return None
    head = _read(os.path.join(directory, b"HEAD"))
    if head is None:
        return None
    changed = _changed(directory, entry, source)
    if not head.startswith("ref:"):
        return GitState(branch="", commit=head, changed=changed) if _COMMIT.match(head) else None
    ref = head.removeprefix("ref:").strip()
    common = _read(os.path.join(directory, b"commondir"))
    shared = os.path.join(directory, os.fsencode(common)) if common else directory
    branch = escape(os.fsencode(ref.removeprefix(_BRANCH)))
    return GitState(branch=branch, commit=_commit_of(shared, ref), changed=changed)


def _changed(directory: bytes, found: Look, source: ObjectSource) -> int | None:
    """How many tracked files differ from the index, where telling takes little time."""
    index = os.path.join(directory, b"index")
    data, written = _read_bytes(index, INDEX_MOST + 1), _mtime_ns(index)
    if data is None or len(data) > INDEX_MOST or "sha256" in (_read(os.path.join(directory, b"config")) or ""):
        return None
    differing, looked = set(), 0
    try:
        from casnap.engine.git_index import parse_index  # here, since not every workspace is a repository

        for entry in parse_index(data):
            file = found(entry.path)
            if _stat_is_staged(entry, file, written):
                continue
            looked += file.size if isinstance(file, File) else 0
            if looked > CONTENT_MOST:
                return None
            if entry.merging or not _is_staged(entry, file, source):
                differing.add(entry.path)
    except (ValueError, Damage):
        return None
    return len(differing)


def _stat_is_staged(entry: IndexEntry, file: AnyEntry | None, written: int) -> bool:
    """Whether size and time are what git noted, and not so young that an edit may have followed unseen."""
    return (
        isinstance(file, File)
        and file.mtime_ns < written
        and (file.mtime_s, file.mtime_frac, file.size) == (entry.mtime_s, entry.mtime_frac, entry.size)
        and entry.size > 0
        and bool(file.mode & stat.S_IXUSR) == bool(entry.mode & stat.S_IXUSR)
        and not entry.merging
    )


def _is_staged(entry: IndexEntry, file: AnyEntry | None, source: ObjectSource) -> bool:
    if stat.S_IFMT(entry.mode) == _GITLINK or isinstance(file, Omitted):
        return True  # a submodule, or not looked at
    if isinstance(file, Symlink):
        return stat.S_ISLNK(entry.mode) and _blob((file.target,), len(file.target)) == entry.blob
    if not isinstance(file, File) or not stat.S_ISREG(entry.mode):
        return False
    executable = bool(file.mode & stat.S_IXUSR) == bool(entry.mode & stat.S_IXUSR)
    return executable and _blob(pieces(source, file), file.size) == entry.blob


def _blob(data: Iterable[bytes], size: int) -> bytes:
    """The name that git gives to a file's content."""
    import hashlib  # here: it loads OpenSSL, and few checkpoints come just after git wrote its index

    hasher = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    for piece in data:
        hasher.update(piece)
    return hasher.digest()


def _git_directory(path: bytes) -> bytes | None:
    """The git directory that ``.git`` is, or that the file ``.git`` of a linked work tree names."""
    if os.path.isdir(path):
        return path
    pointer = _read(path)
    if pointer is None or not pointer.startswith("gitdir:"):
        return None
    return os.path.join(os.path.dirname(path), os.fsencode(pointer.removeprefix("gitdir:").strip()))


def _commit_of(directory: bytes, ref: str) -> str:
    """The commit that a ref names; empty before the first one."""
    loose = _read(os.path.join(directory, os.fsencode(ref)))
    if loose is not None:
        return loose if _COMMIT.match(loose) else ""
    for line in (_read(os.path.join(directory, b"packed-refs")) or "").splitlines():
        commit, _, name = line.partition(" ")
        if name == ref and _COMMIT.match(commit):
            return commit
    return ""


def _mtime_ns(path: bytes) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except (OSError, ValueError):
        return 0


def _read(path: bytes) -> str | None:
    """A small regular file's text, or None."""
    data = _read_bytes(path, _MOST)
    return None if data is None else data.decode("utf-8", "surrogateescape").strip()


def _read_bytes(path: bytes, most: int) -> bytes | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):  # a crash leaves zeros in the place of a name
        return None
    try:
        return os.read(fd, most)
    except OSError:
        return None
    finally:
        os.close(fd)
