"""Which entries a rule leaves out of a checkpoint, and under which reason."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import force_setattr

from casnap.model.paths import components, join, names_by_directory
from casnap.model.policy import Sensitive
from casnap.model.tree import OmitReason, Omitted
from casnap.workspace.found import FoundDirectory
from casnap.workspace.rules import GIT_DIRECTORY, Rules
from casnap.workspace.side_files import database_of, is_database_size

GIT_OBJECTS = b"objects"
_GIT_LOCK = b".lock"
_REF_DIRECTORIES = frozenset({b"refs", b"logs"})
_OBJECT_DIRECTORIES = frozenset({(b"objects", b"info"), (b"objects", b"pack")})


class Exclusions(Struct, frozen=True):
    """Directories that are never captured: the store, wherever it is seen from.

    ``paths`` are absolute real paths, ``identities`` pairs of device and inode, so that a bind mount makes
    no difference.
    """

    paths: frozenset[bytes] = frozenset()
    identities: frozenset[tuple[int, int]] = frozenset()

    @classmethod
    def of(cls, store: Path) -> Exclusions:
        """The exclusion of the directory ``store``; one that does not exist yet is known by its path alone."""
        real = os.path.realpath(os.fsencode(store))
        try:
            status = os.stat(real)
        except OSError:
            return cls(frozenset({real}))
        return cls(frozenset({real}), frozenset({(status.st_dev, status.st_ino)}))


class Omissions(Struct, frozen=True):
    """The rules in force in one workspace.

    ``mount_points`` are paths below its root, which is ``root_path``, that are not looked at, and ``borders`` those
    of mounts that are looked into; ``rules`` are those above the root. Paths ``aside`` are not looked at: a rollback
    that is under way leaves them alone.
    """

    root_path: bytes
    exclusions: Exclusions
    mount_points: frozenset[bytes]
    rules: Rules
    aside: frozenset[bytes] = frozenset()
    borders: frozenset[bytes] = frozenset()
    _mounts_in: dict[bytes, frozenset[bytes]] = {}

    def __post_init__(self) -> None:
        force_setattr(self, "_mounts_in", names_by_directory(self.mount_points))

    def mounts_in(self, directory: bytes) -> frozenset[bytes]:
        """The names in a directory that are mount points. They must not even be looked at: a dead server hangs."""
        return self._mounts_in.get(directory, frozenset())

    def keeps_aside(self, directory: bytes, names: Iterable[bytes]) -> bool:
        """Whether one of the names in a directory is not looked at for this time."""
        return bool(self.aside) and not self.aside.isdisjoint([join(directory, name) for name in names])

    def reason(self, found: FoundDirectory, name: bytes, status: os.stat_result) -> OmitReason | None:
        """Why an entry of ``found`` is left out; None when it is captured.

        A git directory is captured whole or not at all: no pattern or size takes a part of it.
        """
        mode = status.st_mode
        is_directory = stat.S_ISDIR(mode)
        path = join(found.path, name)
        if is_directory and self._is_store(path, status):
            return OmitReason.STORE
        if path in self.aside:
            return OmitReason.IGNORED
        database = database_of(name)
        if database != name and stat.S_ISREG(mode) and _may_be_database(found, database):
            omitted = found.entries.get(database)  # a log goes the way of its database, whatever patterns say of it
            return OmitReason(omitted.reason) if isinstance(omitted, Omitted) else None
        if not found.in_git and found.rules.ignores(path, is_directory=is_directory):
            return OmitReason.IGNORED
        if path in self.borders and not is_directory:  # nothing could take the place of such a file
            return OmitReason.MOUNT_POINT
        if stat.S_ISSOCK(mode):
            return OmitReason.SOCKET
        if found.in_git and name.endswith(_GIT_LOCK) and stat.S_ISREG(mode) and _is_gits_own(found):
            return OmitReason.GIT_LOCK
        if self.rules.selection.sensitive is Sensitive.SKIP and self._is_sensitive(found, name, mode):
            return OmitReason.SENSITIVE
        limit = self.rules.selection.max_file_size
        if limit is not None and stat.S_ISREG(mode) and status.st_size > limit and not found.in_git:
            return OmitReason.TOO_LARGE
        return None

    def redacts(self, found: FoundDirectory, name: bytes, mode: int) -> bool:
        """Whether an entry that is captured goes into the store without its values."""
        return self.rules.selection.sensitive is Sensitive.REDACT and self._is_sensitive(found, name, mode)

    def _is_sensitive(self, found: FoundDirectory, name: bytes, mode: int) -> bool:
        is_sensitive = self.rules.selection.is_sensitive
        return stat.S_ISREG(mode) and not found.in_git and (is_sensitive(name) or is_sensitive(database_of(name)))

    def _is_store(self, path: bytes, status: os.stat_result) -> bool:
        return (status.st_dev, status.st_ino) in self.exclusions.identities or (
            join(self.root_path, path) in self.exclusions.paths
        )


def _may_be_database(found: FoundDirectory, name: bytes) -> bool:
    """Whether a file of a database's size was found there; it comes before its side files in order of name."""
    seen = found.signatures.get(name)
    return seen is not None and stat.S_ISREG(seen.mode) and is_database_size(seen.size)


def _is_gits_own(found: FoundDirectory) -> bool:
    """Whether git itself makes lock files in a directory: others keep theirs below ``.git`` too."""
    parts = components(found.path)
    below = parts[parts.index(GIT_DIRECTORY) + 1 :]
    return (
        not below
        or found.is_git_root
        or not _REF_DIRECTORIES.isdisjoint(below)
        or tuple(below[-2:]) in _OBJECT_DIRECTORIES
    )


def is_in_git(directory: bytes) -> bool:
    """Whether the directory at this path is, or is within, one that is named ``.git``."""
    return GIT_DIRECTORY in components(directory)
