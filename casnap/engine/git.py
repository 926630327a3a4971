"""Where a git work tree stands, read from its files: git itself is never run."""

from __future__ import annotations

import os
import re

from casnap.model.checkpoint import GitState
from casnap.model.paths import escape

_COMMIT = re.compile(r"^[0-9a-f]{40}([0-9a-f]{24})?$")
_BRANCH = "refs/heads/"
_MOST = 1 << 20


def git_state(root: bytes) -> GitState | None:
    """Branch and commit of the work tree at ``root``; None where there is none, or it cannot be read."""
    directory = _git_directory(os.path.join(root, b".git"))
    if directory is None:
        return None
    head = _read(os.path.join(directory, b"HEAD"))
    if head is None:
        return None
    if not head.startswith("ref:"):
        return GitState(branch="", commit=head) if _COMMIT.match(head) else None
    ref = head.removeprefix("ref:").strip()
    common = _read(os.path.join(directory, b"commondir"))
    shared = os.path.join(directory, os.fsencode(common)) if common else directory
    return GitState(branch=escape(os.fsencode(ref.removeprefix(_BRANCH))), commit=_commit_of(shared, ref))


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


def _read(path: bytes) -> str | None:
    """A small regular file's text, or None."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(fd, _MOST).decode("utf-8", "surrogateescape").strip()
    except OSError:
        return None
    finally:
        os.close(fd)
