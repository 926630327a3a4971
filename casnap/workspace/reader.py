"""Reading regular files into objects: never mapped, never waiting for a pipe, never more than a few MiB in memory."""

from __future__ import annotations

import contextlib
import errno
import functools
import os

from msgspec import Struct

from casnap.codec.chunk_lists import build_chunk_list
from casnap.codec.chunking import SINGLE_CHUNK_BOUND, Chunker, ChunkerParameters
from casnap.codec.hashing import ContentHasher, content_id
from casnap.model.clock import Progress, Silent
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.objects import ObjectSink
from casnap.workspace.entries import is_sparse, read_failed
from casnap.workspace.naming import named, named_beside
from casnap.workspace.outbox import Base, Outbox, no_base
from casnap.workspace.redaction import MAX_REDACTED, redacted

# A pipe that was swapped in for a file is opened without waiting for its writer, and found out by fstat.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.ENODEV, errno.ESTALE})
"""What opening an entry fails with when it is not what it was a moment ago."""

NAMED_BESIDE = 8 << 20
"""Bytes of a file of which the chunks are named by a thread while the next are cut."""

CUT_EVENLY = (
    "large files were cut every {kib} KiB: the compiled part of pyfastcdc is missing, so that what moves within them "
    "is stored again; reinstalling pyfastcdc mends that"
)
"""What a person should hear where cuts do not follow the content; restored files are right all the same."""


class Content(Struct, frozen=True):
    """What was read of a file: how many bytes, their content id, and the id of their chunk list.

    ``chunk_list`` is empty where the content is one chunk. ``whole`` is false where the file turned out to be
    shorter or longer than its stat had said; what was read is then a prefix of it.
    """

    size: int
    id: bytes
    chunk_list: bytes
    whole: bool


def open_file(directory_fd: int, name: bytes) -> int:
    """Open what should be a regular file for reading; the caller finds out by fstat whether it is one.

    Raises:
        OSError: ENOENT, ELOOP (a symbolic link), ENXIO (a socket), EACCES …
    """
    try:
        return os.open(name, _FLAGS | os.O_NOATIME, dir_fd=directory_fd)
    except PermissionError as error:
        if error.errno != errno.EPERM:
            raise
        return os.open(name, _FLAGS, dir_fd=directory_fd)  # only its owner may leave the access time alone


def store_file(fd: int, sink: ObjectSink, parameters: ChunkerParameters) -> tuple[int, bytes, bytes]:
    """Put the bytes of an open file, as it is now, into ``sink``.

    Returns:
        How many bytes they are, their content id, and the id of their chunk list (empty where it is one chunk).

    Raises:
        ReadFailed: the system cannot read it.
    """
    outbox = Outbox(sink)
    content = Reader(outbox, parameters, Silent()).read(fd, os.fstat(fd))
    outbox.flush()
    return content.size, content.id, content.chunk_list


class Reader:
    """Turns open files into objects. ``bytes_read`` counts what came from the disk."""

    def __init__(self, outbox: Outbox, parameters: ChunkerParameters, progress: Progress) -> None:
        self._outbox = outbox
        self._parameters = parameters
        self._progress = progress
        self._cuts_evenly = False
        self.bytes_read = 0

    def read(self, fd: int, status: os.stat_result, base: Base = no_base) -> Content:
        """Read an open file from its beginning, no further than the size in ``status``.

        ``base`` is a chunk that it may be like, if it is one.

        Raises:
            ReadFailed: the system cannot read it.
        """
        if status.st_size > SINGLE_CHUNK_BOUND:
            content = self._read_in_pieces(fd, status)
        else:
            content = self._read_at_once(fd, status.st_size, base)
            self._progress.advance(content.size)
        self.bytes_read += content.size
        return content

    def read_redacted(self, fd: int, status: os.stat_result) -> Content | None:
        """Read an open file without its values; None where it is not of a kind that could be taken without.

        Raises:
            ReadFailed: the system cannot read it.
        """
        data = _pread(fd, min(status.st_size, MAX_REDACTED) + 1, 0)
        self.bytes_read += len(data)
        self._progress.advance(status.st_size)
        keys = redacted(data[: status.st_size])
        if keys is None:
            return None
        found = content_id(keys)
        self._outbox.add(ObjectKey(ObjectKind.CHUNK, found), keys)
        return Content(len(keys), found, b"", whole=len(data) == status.st_size)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a person should hear of how files were read; the same once for all of them."""
        return (CUT_EVENLY.format(kib=self._parameters.average >> 10),) if self._cuts_evenly else ()

    @functools.cached_property
    def _chunker(self) -> Chunker:
        return Chunker(self._parameters)  # made when a file is cut: most scans cut none

    def _read_at_once(self, fd: int, size: int, base: Base) -> Content:
        data = _pread(fd, size + 1, 0)  # one byte more: a file that has grown gives it
        whole = len(data) == size
        data = data[:size]
        found = content_id(data)
        self._outbox.add(ObjectKey(ObjectKind.CHUNK, found), data, base)
        return Content(len(data), found, b"", whole)

    def _read_in_pieces(self, fd: int, status: os.stat_result) -> Content:
        stream = _Stream(fd, status.st_size, sparse=is_sparse(fd, status), progress=self._progress)
        self._cuts_evenly = not self._chunker.content_defined
        whole_file = ContentHasher()
        chunks: list[tuple[int, bytes]] = []
        name = named_beside if status.st_size >= NAMED_BESIDE else named
        with contextlib.closing(name(self._chunker.cut(stream), whole_file)) as pairs:
            for id, data in pairs:
                self._outbox.add(ObjectKey(ObjectKind.CHUNK, id), data)
                chunks.append((len(data), id))
        if not chunks:  # cut to nothing since it was opened
            self._outbox.add(ObjectKey(ObjectKind.CHUNK, whole_file.id()), b"")
        whole = stream.position == status.st_size and not _pread(fd, 1, status.st_size)
        if len(chunks) < 2:
            return Content(stream.position, whole_file.id(), b"", whole)
        built = build_chunk_list(chunks)
        for list_key, data in built.objects:
            self._outbox.add(list_key, data)
        return Content(stream.position, whole_file.id(), built.id, whole)


class _Stream:
    """The first ``size`` bytes of an open file, without reading holes: those would fill the page cache with zeros."""

    def __init__(self, fd: int, size: int, *, sparse: bool, progress: Progress) -> None:
        self.position = 0
        self._fd = fd
        self._size = size
        self._sparse = sparse
        self._progress = progress
        self._run_end = 0
        self._in_hole = False

    def read(self, size: int) -> bytes:
        """The next ``size`` bytes, fewer only at the end."""
        pieces: list[bytes] = []
        missing = min(size, self._size - self.position)
        while missing > 0 and (piece := self._next(missing)):
            pieces.append(piece)
            self.position += len(piece)
            missing -= len(piece)
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._progress.advance(len(data))
        return data

    def _next(self, size: int) -> bytes:
        if not self._sparse:
            return _pread(self._fd, size, self.position)
        if self.position >= self._run_end:
            self._find_run()
        size = min(size, self._run_end - self.position)
        return bytes(size) if self._in_hole else _pread(self._fd, size, self.position)

    def _find_run(self) -> None:
        try:
            data = os.lseek(self._fd, self.position, os.SEEK_DATA)
            self._in_hole = data > self.position
            self._run_end = data if self._in_hole else os.lseek(self._fd, self.position, os.SEEK_HOLE)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise read_failed(error) from error
            # no data up to the end: of the file as it is now, which may have been cut meanwhile
            self._in_hole = True
            self._run_end = max(self.position, min(self._size, os.fstat(self._fd).st_size))


def _pread(fd: int, size: int, offset: int) -> bytes:
    """``size`` bytes at ``offset``, fewer only at the end of the file.

    One byte fewer is taken for the end without a further look: so a whole small file takes one call.
    """
    try:
        data = os.pread(fd, size, offset)
        if len(data) >= size - 1 or not data:
            return data
        pieces = [data]
        got = len(data)
        while got < size and (data := os.pread(fd, size - got, offset + got)):
            pieces.append(data)
            got += len(data)
    except OSError as error:
        raise read_failed(error) from error
    return b"".join(pieces)
