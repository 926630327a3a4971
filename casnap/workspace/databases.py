"""SQLite databases: a database and the files beside it are worth something only as one set (sqlite.org/walformat.html).

They are taken together: where one has moved on while another was read, all are read again, and flagged when that
goes on. A database in use may be taken through SQLite instead, which sees one commit; then the files beside it,
whose commits are in the copy, are left out.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections import Counter
from collections.abc import Callable

from msgspec.structs import replace

from casnap.fs.directories import Directories
from casnap.model.paths import join, split
from casnap.model.tree import File, FileFlag, Omitted
from casnap.workspace.cache import Trait
from casnap.workspace.found import FoundDirectory, ReadJob
from casnap.workspace.lister import TRIES
from casnap.workspace.reader import open_file
from casnap.workspace.side_files import INDEX, JOURNAL, LOGS, SIDE_FILES, database_of
from casnap.workspace.signature import Signature
from casnap.workspace.walk import Walk

MOVED_ON = "captured, but this SQLite database was written to meanwhile: a restored copy may be damaged"

_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_MAGIC = b"SQLite format 3\0"
_WRITE_VERSION = 18
_WAL_MODE = 2
_SHM_IN_USE = (128, 1)
_DATABASE_LOCKS = (0x40000000, 512)
"""Bytes (start, length) that SQLite locks in the index, and in a database, while somebody has it open or uses it."""

Copier = Callable[[int, bytes], int | None]
"""Copies the database of a name in an open directory; the descriptor of the copy, None when that is not possible."""

KeepCopy = Callable[[FoundDirectory, bytes, int, int], None]
"""Records a copy (second descriptor) as the content of a file (first descriptor, under a name in a directory)."""


class Databases:
    """The sets of one scan. Without a ``copier`` their bytes are taken as they stand."""

    def __init__(self, directories: Directories, walk: Walk, copier: Copier | None) -> None:
        self._directories = directories
        self._walk = walk
        self._copier = copier
        self._noticed: set[bytes] = set()
        self._done: set[bytes] = set()
        self._tries: Counter[bytes] = Counter()
        self._waiting: set[bytes] = set()

    def notice(self, path: bytes, fd: int) -> None:
        """Remember a file that was read if it is a database: files may come to be beside it."""
        if os.pread(fd, len(_MAGIC), 0) == _MAGIC:
            self._noticed.add(path)

    def without_live(self, jobs: list[ReadJob]) -> list[ReadJob]:
        """The jobs but for those of databases in use that will be copied instead."""
        if self._copier is None:
            return jobs
        redacted = {job.path for job in jobs if job.redacted}
        candidates = [path for path in self._sets() if path not in redacted and not self._is_left_out(path)]
        self._waiting = set(filter(self._is_open, candidates))
        return [job for job in jobs if database_of(job.path) not in self._waiting]

    def settle(self, keep_copy: KeepCopy) -> list[ReadJob]:
        """What must be read (again) since a set has moved on; nothing once all are whole, copied or flagged."""
        for path in sorted((self._sets() | self._noticed) - self._done):
            found, name = self._place(path)
            if found is None or (not isinstance(found.entries.get(name), File) and path not in self._waiting):
                self._done.add(path)
                continue
            flagged = self._is_flagged(found, name)
            if (flagged or path in self._waiting) and self._copy(found, name, keep_copy):
                self._done.add(path)
            elif path in self._waiting:
                self._waiting.discard(path)
                self._read_anew(found, name)
            elif flagged or (self._has_moved(found, name) and self._tries[path] >= TRIES):
                self._flag(found, name)
                self._done.add(path)
            elif self._has_moved(found, name):
                self._tries[path] += 1
                self._read_anew(found, name)
            else:
                self._done.add(path)
        return self._walk.take_jobs()

    def _sets(self) -> set[bytes]:
        """The databases that have a file beside them."""
        return {
            join(directory, database_of(name))
            for directory, found in self._walk.found.items()
            if not found.is_whole or found.traits & Trait.SIDE_FILES
            for name in found.signatures
            if name.endswith(SIDE_FILES) and database_of(name) in found.signatures
        }

    def _place(self, path: bytes) -> tuple[FoundDirectory | None, bytes]:
        directory, name = split(path)
        return self._walk.found.get(directory), name

    def _is_flagged(self, found: FoundDirectory, name: bytes) -> bool:
        entries = [found.entries.get(name + suffix) for suffix in (b"", *LOGS)]
        return any(isinstance(entry, File) and entry.flags & FileFlag.CHANGED_WHILE_READ for entry in entries)

    def _has_moved(self, found: FoundDirectory, name: bytes) -> bool:
        """Whether the database or a log is not as it was when it was recorded; an empty log is none."""
        for suffix in (b"", *LOGS):
            seen = found.signatures.get(name + suffix)
            try:
                now = os.lstat(name + suffix, dir_fd=self._directories.fd(found.path))
            except OSError:
                now = None
            if now is None or now.st_size == 0:
                if not _is_empty(seen):
                    return True
            elif seen is None or not seen.matches(now):
                return True
        return False

    def _read_anew(self, found: FoundDirectory, name: bytes) -> None:
        for suffix in (b"", *SIDE_FILES):
            self._walk.look_anew(found, name + suffix)

    def _flag(self, found: FoundDirectory, name: bytes) -> None:
        for suffix in (b"", *SIDE_FILES):
            entry = found.entries.get(name + suffix)
            if isinstance(entry, File):
                flags = entry.flags | FileFlag.CHANGED_WHILE_READ
                found.keep(replace(entry, flags=int(flags)), settled=False)
        found.findings.problems[join(found.path, name)] = MOVED_ON

    def _is_left_out(self, path: bytes) -> bool:
        found, name = self._place(path)
        return found is not None and isinstance(found.entries.get(name), Omitted)

    def _is_open(self, path: bytes) -> bool:
        """Whether another process has a database in WAL mode open, so that SQLite need write nothing to read it."""
        found, name = self._place(path)
        if found is None or name not in found.signatures:
            return False
        try:
            return _is_locked(self._directories.fd(found.path), name + INDEX, *_SHM_IN_USE)
        except OSError:
            return False

    def _copy(self, found: FoundDirectory, name: bytes, keep_copy: KeepCopy) -> bool:
        """Take a database through SQLite, if it can be read without being written to."""
        if self._copier is None or not self._may_copy(found, name):
            return False
        with self._directories.held(found.path) as directory:
            copy = self._copier(directory, name)
            if copy is None:
                return False
            try:
                fd = open_file(directory, name)
                try:
                    keep_copy(found, name, fd, copy)
                finally:
                    os.close(fd)
            except OSError:
                return False
            finally:
                os.close(copy)
        for suffix in SIDE_FILES:
            found.drop(name + suffix)
        found.findings.problems.pop(join(found.path, name), None)
        return True

    def _may_copy(self, found: FoundDirectory, name: bytes) -> bool:
        try:
            directory = self._directories.fd(found.path)
            fd = open_file(directory, name)
        except OSError:
            return False
        try:
            head = os.pread(fd, _WRITE_VERSION + 1, 0)
        finally:
            os.close(fd)
        if not head.startswith(_MAGIC) or len(head) <= _WRITE_VERSION:
            return False
        if head[_WRITE_VERSION] == _WAL_MODE:
            return self._is_open(join(found.path, name))
        # a journal that nobody is using would be rolled back by opening the database
        return any(
            _is_locked(directory, name, *_DATABASE_LOCKS) or not _is_hot(directory, name + JOURNAL)
            for _ in range(TRIES)
        )


def _is_hot(directory_fd: int, name: bytes) -> bool:
    """Whether a journal holds the way back from a transaction: its beginning is zeros or gone once that is done."""
    try:
        fd = open_file(directory_fd, name)
    except OSError:
        return False
    try:
        return os.pread(fd, len(_JOURNAL_MAGIC), 0) == _JOURNAL_MAGIC
    finally:
        os.close(fd)


def _is_empty(seen: Signature | None) -> bool:
    return seen is None or seen.size == 0


def _is_locked(directory_fd: int, name: bytes, start: int, length: int) -> bool:
    """Whether another process holds a lock on these bytes of a file (fcntl(2), F_GETLK)."""
    fd = open_file(directory_fd, name)
    try:
        asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
        answer = struct.unpack("hhqqi4x", fcntl.fcntl(fd, fcntl.F_GETLK, asked))
    except OSError:
        return False
    finally:
        os.close(fd)
    return bool(answer[0] != fcntl.F_UNLCK)
