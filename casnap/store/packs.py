"""Reading packs: by pread, record by record, never mapped."""

from __future__ import annotations

import contextlib
import os
from collections import OrderedDict
from collections.abc import Iterator

from msgspec import Struct

from casnap.codec.records import (
    ALIGNMENT,
    MAGIC,
    MAX_HEADER_SIZE,
    RecordHeader,
    check_payload,
    parse_header,
)
from casnap.errors import Damage, TooNew
from casnap.store.layout import Layout

PACK_SIZE = 64 << 20
"""A pack is sealed once it is at least so long."""

OPEN_PACKS = 16
"""Descriptors that are kept; few, for the user's limit may be low."""

_FIRST_READ = 16 << 10
_SEARCH_READ = 1 << 20


class Record(Struct, frozen=True):
    """A record whose checksums are right: where it begins, its header, and its payload as stored."""

    offset: int
    header: RecordHeader
    payload: bytes

    @property
    def end(self) -> int:
        """Where the next record begins."""
        return self.offset + self.header.size


class PackFiles:
    """The packs of a store, open for reading; the least recently used are closed again.

    ``forgotten`` counts how often packs were let go of because they may have changed.
    """

    def __init__(self, layout: Layout) -> None:
        self.forgotten = 0
        self._layout = layout
        self._fds: OrderedDict[str, int] = OrderedDict()

    def read(self, pack: str, offset: int, size: int) -> bytes:
        """Up to ``size`` bytes; fewer at the end of the pack.

        Raises:
            Damage: there is no such pack (any more), or the disk cannot read it.
        """
        try:
            return os.pread(self._fd(pack), size, offset)
        except FileNotFoundError:
            raise Damage(f"cannot read pack {pack}: it is gone") from None
        except OSError as error:
            raise Damage(f"cannot read pack {pack}: {error.strerror}") from error

    def record(self, pack: str, offset: int) -> Record:
        """The record that begins at ``offset``.

        Raises:
            Damage: no record begins there, or its checksums are wrong.
            TooNew: its kind or encoding is not known.
        """
        data = self.read(pack, offset, _FIRST_READ)
        header = parse_header(data[:MAX_HEADER_SIZE])
        size = header.size
        if size > len(data):
            data += self.read(pack, offset + len(data), size - len(data))
        return Record(offset, header, check_payload(header, data))

    def header(self, pack: str, offset: int) -> RecordHeader:
        """The header alone of the record that begins at ``offset``.

        Raises:
            Damage: no record begins there.
            TooNew: its kind or encoding is not known.
        """
        return parse_header(self.read(pack, offset, MAX_HEADER_SIZE))

    def records(self, pack: str, start: int, end: int) -> Iterator[Record]:
        """The records between two offsets, up to the first damage.

        Raises:
            TooNew: the kind or encoding of a record is not known.
        """
        from casnap.codec.packs import PACK_HEADER_SIZE  # here and below, since most records are read by their places

        offset = max(start, PACK_HEADER_SIZE)
        while offset < end:
            try:
                record = self.record(pack, offset)
            except Damage:
                return
            if record.end > end:
                return
            yield record
            offset = record.end

    def surviving(self, pack: str, start: int, end: int) -> Iterator[Record]:
        """Every whole record between two offsets: after damage, the next header that is valid is gone on with."""
        from casnap.codec.packs import PACK_HEADER_SIZE

        offset: int | None = max(start, PACK_HEADER_SIZE)
        while offset is not None and offset < end:
            position = offset
            for record in self.records(pack, offset, end):
                yield record
                position = record.end
            offset = self._next_magic(pack, position + ALIGNMENT, end) if position < end else None

    def _next_magic(self, pack: str, offset: int, end: int) -> int | None:
        """The next aligned offset at which a header may begin."""
        while offset < end:
            data = self.read(pack, offset, min(_SEARCH_READ, end - offset))
            found = data.find(MAGIC)
            while found >= 0 and found % ALIGNMENT:
                found = data.find(MAGIC, found + 1)
            if found >= 0:
                return offset + found
            if len(data) < _SEARCH_READ:
                return None
            offset += len(data)
        return None

    def is_sealed(self, pack: str, length: int) -> bool:
        """Whether a pack of ``length`` bytes ends with a trailer, so that nothing may follow."""
        from casnap.codec.packs import PACK_HEADER_SIZE, TRAILER_SIZE, parse_trailer

        if length < PACK_HEADER_SIZE + TRAILER_SIZE:
            return False
        try:
            parse_trailer(self.read(pack, length - TRAILER_SIZE, TRAILER_SIZE))
        except TooNew:
            return True
        except Damage:
            return False
        return True

    def forget(self, pack: str) -> None:
        """Close a pack."""
        self.forgotten += 1
        if (fd := self._fds.pop(pack, -1)) >= 0:
            os.close(fd)

    def close(self) -> None:
        """Close all packs; they open again when they are needed."""
        self.forgotten += 1
        for pack in list(self._fds):
            self.forget(pack)

    def _fd(self, pack: str) -> int:
        fd = self._fds.get(pack, -1)
        if fd < 0:
            while len(self._fds) >= OPEN_PACKS:
                with contextlib.suppress(OSError):
                    os.close(self._fds.popitem(last=False)[1])
            fd = self._fds[pack] = os.open(self._layout.pack(pack), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        self._fds.move_to_end(pack)
        return fd
