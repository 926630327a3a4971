"""What was in an agent's files before casnap set it up, so that taking it back leaves each byte as it was."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from casnap.codec.hashing import checksum
from casnap.errors import Busy
from casnap.fs import durable
from casnap.fs.locks import try_flock


class KeptFile(Struct, frozen=True):
    """A file as it was (``before``; None: there was none), and the checksum of what casnap made of it.

    Also of a file that needed no change: it was there before casnap, and stays. ``path`` is as :func:`place` has it;
    ``modified`` is when it was changed last, in nanoseconds since the epoch.
    """

    path: str
    before: bytes | None
    after: bytes
    modified: int | None = None


class Record(Struct, frozen=True):
    """What setting up one agent in one place changed; ``directories`` were missing, and made for it."""

    files: tuple[KeptFile, ...] = ()
    directories: tuple[str, ...] = ()

    def known(self, path: Path) -> KeptFile | None:
        """What is noted of a file."""
        named = place(path)
        return next((kept for kept in self.files if kept.path == named), None)

    def original(self, path: Path, now: bytes | None) -> KeptFile | None:
        """What a file held, if it holds ``now`` just what casnap made of it."""
        known = self.known(path)
        return known if known is not None and now is not None and known.after == checksum(now) else None


def place(path: Path) -> str:
    """A name for a file that is the same by whichever links its directory is reached; a link in its place stays one."""
    return os.path.join(os.path.realpath(path.parent), path.name)


_decoder = msgspec.json.Decoder(Record)


class Records:
    """The records of a user, in a directory of casnap's own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @property
    def directory(self) -> Path:
        """Where they are."""
        return self._directory

    def others(self, key: str) -> dict[str, Record]:
        """Those of other agents and places."""
        keys = sorted(path.stem for path in self._directory.glob("*.json"))
        return {other: self.read(other) for other in keys if other != key}

    def read(self, key: str) -> Record:
        """The record of an agent in a place; an empty one where there is none that can be read."""
        try:
            return _decoder.decode(self._path(key).read_bytes())
        except (OSError, msgspec.MsgspecError):
            return Record()

    def write(self, key: str, record: Record) -> None:
        """Keep a record.

        Raises:
            StorageFailed: it cannot be written; then nothing may be changed either.
        """
        durable.make_directory(self._directory)
        durable.write_whole(self._path(key), msgspec.json.encode(record))

    def forget(self, key: str) -> None:
        """Let a record go."""
        durable.remove(self._path(key))
        for directory in (self._directory, self._directory.parent):
            durable.remove_empty(directory)

    def _path(self, key: str) -> Path:
        return self._directory / f"{key}.json"


@contextlib.contextmanager
def alone(home: Path, wait: float) -> Iterator[None]:
    """Keep other casnaps of this user from setting agents up meanwhile; where directories cannot be locked, nobody is.

    Raises:
        Busy: another one does, for longer than ``wait`` seconds.
    """
    fd = -1
    with contextlib.suppress(OSError):
        fd = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if fd >= 0 and not _locked(fd, wait):
            raise Busy("cannot set agents up: another casnap does", hint="wait for it to end, or say --wait SECONDS")
        yield
    finally:
        if fd >= 0:
            os.close(fd)


def _locked(fd: int, wait: float) -> bool:
    try:
        return try_flock(fd, wait)
    except OSError:
        return True
