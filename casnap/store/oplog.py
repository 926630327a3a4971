"""The operation log: hash-chained lines in segments; what is in it has happened (docs/format/oplog.md)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from casnap.errors import CasnapError, Damage, StorageFailed
from casnap.fs.appending import AppendFile, Owner, make_file, note
from casnap.fs.durable import failed, sync_directory, write_whole
from casnap.store.layout import Layout
from casnap.store.rows import Mark

if TYPE_CHECKING:
    from casnap.model.operation import AnyOperation

SEGMENT_SIZE = 1 << 20
"""A segment that is at least so long is not continued."""


class Tail(Struct, frozen=True):
    """Where the next line goes, and how many bytes lie there that are no line."""

    segment: int
    offset: int
    bad: int


class Oplog:
    """The lines of one store. ``tail`` is as of the last time that :meth:`lines` was gone through."""

    def __init__(self, layout: Layout, owner: Owner | None) -> None:
        self.tail = Tail(1, 0, 0)
        self._noted = (0, 0)
        self.notes: list[str] = []
        self._layout = layout
        self._owner = owner

    def lines(self, after: Mark) -> Iterator[tuple[AnyOperation, Mark]]:
        """The operations behind ``after``, each with the place behind its line. Needs no lock.

        A last line that is torn or invalid is left out (it may be being written just now) and shows in ``tail``.

        Raises:
            Damage: a line that is not the last is invalid, the chain is broken, or a segment is missing.
            TooNew: a line is of a newer format.
        """
        self._noted = noted_end(self._layout)  # first, since a line is written before it is noted
        segments = [number for number in self._layout.segments() if number >= after.segment]
        if segments != list(range(after.segment, after.segment + len(segments))) or (after.seq and not segments):
            raise Damage(f"cannot read operation log: a segment from {after.segment} on is missing")
        mark = after
        self.tail = Tail(after.segment, after.offset, 0)
        for number in segments:
            start = mark.offset if number == mark.segment else 0
            data = self._read(number, start)
            if data and self.tail.bad:
                raise self._damage(self.tail.segment, self.tail.offset, "it is not whole, and lines follow")
            if not data:
                if number > self.tail.segment and not self.tail.bad:
                    self.tail = Tail(number, 0, 0)
                continue
            for operation, reached in self._decode(data, mark, number, start):
                mark = reached
                yield operation, mark

    def _decode(self, data: bytes, mark: Mark, segment: int, start: int) -> Iterator[tuple[AnyOperation, Mark]]:
        """The lines in ``data``, which lies in ``segment`` from ``start`` on."""
        from casnap.codec.lines import decode_line  # here, since the catalog has most lines, and often all

        position = 0
        self.tail = Tail(segment, start, 0)
        while position < len(data):
            end = data.find(b"\n", position) + 1 or len(data)
            try:
                operation, line_hash = decode_line(data[position:end])
                if (operation.seq, operation.prev) != (mark.seq + 1, mark.hash):
                    raise Damage("it does not continue the line before it")
            except Damage as error:
                if end < len(data):
                    raise self._damage(segment, start + position, str(error)) from None
                self.tail = Tail(segment, start + position, len(data) - position)
                return
            mark = Mark(operation.seq, line_hash, segment, start + end)
            self.tail = Tail(segment, start + end, 0)
            position = end
            yield operation, mark

    @property
    def is_short(self) -> bool:
        """Whether lines are missing at its end that were committed, as the note tells that each commit leaves.

        They are not merely torn: whoever went on would take what they name for abandoned bytes.
        """
        return self._noted > (self.tail.segment, self.tail.offset)

    def proves(self, mark: Mark) -> bool:
        """Whether the line that ``mark`` lies behind is there, judged by its hash."""
        if not mark.seq:
            return True
        end = f'"hash":"{mark.hash}"}}\n'.encode()
        try:
            return mark.offset >= len(end) and self._read(mark.segment, mark.offset - len(end), len(end)) == end
        except (Damage, StorageFailed):
            return False

    def settle(self) -> None:
        """Force out what others may have left unsynced; only under the commit lock, after :meth:`lines`."""
        segment, offset = self.tail.segment, self.tail.offset
        if offset and noted_end(self._layout) != (segment, offset):
            file = AppendFile.open(self._layout.segment(segment))
            with contextlib.closing(file):
                file.sync()
            sync_directory(self._layout.oplog)
            self._write_note()

    def repair(self) -> None:
        """Move a bad last line into a file of its own and cut it off; only under the commit lock."""
        segment, offset, bad = self.tail.segment, self.tail.offset, self.tail.bad
        if not bad:
            return
        path = self._layout.segment(segment)
        with contextlib.closing(AppendFile.open(path)) as file:
            aside = path.with_name(f"{path.name}.torn-{offset}-{os.urandom(4).hex()}")
            write_whole(aside, file.read(offset, bad))
            self.notes.append(f"the last line of the operation log was not whole: it was moved to {aside.name}")
            file.cut(offset)
            file.sync()
        self.tail = Tail(segment, offset, 0)

    def append(self, line: bytes) -> tuple[int, int]:
        """Add a line and force it out; the segment that it is in and where it ends. Only under the commit lock.

        Raises:
            StorageFailed: it could not be written or forced out. It is then cut off again where that is
                possible, because the kernel may claim that bytes are on the disk after they failed to get there.
        """
        segment, offset = self.tail.segment, self.tail.offset
        if offset >= SEGMENT_SIZE:
            segment, offset = segment + 1, 0
        path = self._layout.segment(segment)
        if not offset:
            make_file(path, self._owner)
        with contextlib.closing(AppendFile.open(path)) as file:
            if file.size != offset:
                raise StorageFailed(f"cannot write {path}: it is {file.size} bytes long instead of {offset}")
            try:
                file.append(line)
                file.sync()
                if not offset:
                    sync_directory(self._layout.oplog)
            except CasnapError:
                with contextlib.suppress(CasnapError):
                    file.cut(offset)
                raise
        self.tail = Tail(segment, offset + len(line), 0)
        self._write_note()
        return segment, offset + len(line)

    def _read(self, segment: int, offset: int, size: int = -1) -> bytes:
        """Bytes of a segment from ``offset`` on: ``size``, or all; none when it does not exist."""
        path = self._layout.segment(segment)
        try:
            with open(path, "rb", buffering=0) as file:
                length = os.fstat(file.fileno()).st_size
                if length < offset:
                    raise Damage(f"cannot read operation log: {path.name} is {length} bytes long and was {offset}")
                return os.pread(file.fileno(), length - offset if size < 0 else size, offset)
        except FileNotFoundError:
            if offset:
                raise Damage(f"cannot read operation log: {path.name} is gone") from None
            return b""
        except OSError as error:
            raise failed("read", path, error) from error

    def _damage(self, segment: int, offset: int, cause: str) -> Damage:
        name = self._layout.segment(segment).name
        return Damage(
            f"cannot read operation log: the line at byte {offset} of {name} is damaged: {cause}",
            details={"segment": name, "offset": offset},
        )

    def _write_note(self) -> None:
        note(self._layout.synced, b"%010d %010d\n" % (self.tail.segment, self.tail.offset), self._owner)


def noted_end(layout: Layout) -> tuple[int, int]:
    """The segment and the offset up to which the log was last forced out; zeros where that is not known."""
    try:
        note = layout.synced.read_bytes()
    except OSError:
        note = b""
    segment, offset = note[:10], note[11:21]
    if not (segment + offset).isdigit() or note != b"%b %b\n" % (segment, offset) or len(note) != 22:
        return 0, 0
    return int(segment), int(offset)
