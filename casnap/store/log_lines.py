"""The operation log line by line, whatever is wrong with it: what :mod:`casnap.store.oplog` refuses is told here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from casnap.codec.line_repair import mended_line
from casnap.codec.lines import NO_PREVIOUS, decode_line
from casnap.errors import Damage
from casnap.fs.durable import failed
from casnap.model.operation import AnyOperation, StoreCreated
from casnap.store.layout import Layout
from casnap.store.oplog import noted_end

MOST_TRIES = 100
"""How many damaged lines are tried to be put right: each may take a second."""


class LogLine(NamedTuple):
    """A line that is whole, and where it lies; ``follows`` says that it continues the line before it."""

    operation: AnyOperation
    hash: str
    segment: int
    end: int
    follows: bool


class LogFault(NamedTuple):
    """Where a log is not as it must be: ``segment`` 0 where it has none. ``lines`` is how many cannot be read there,
    not even with one byte of each put right."""

    segment: int
    offset: int
    cause: str
    lines: int


class LogAccount:
    """What a log holds: whole lines in order, its faults, and bytes behind the last line that are none.

    ``torn`` is the place of such bytes (segment, offset, how many): they are what a killed process leaves, and no
    fault. ``seq`` and ``hash`` are those of the last whole line.
    """

    def __init__(self, layout: Layout) -> None:
        """Read all of it.

        Raises:
            TooNew: a line is of a newer format.
            StorageFailed: a segment cannot be read.
        """
        self.lines: list[LogLine] = []
        self.faults: list[LogFault] = []
        self.torn: tuple[int, int, int] | None = None
        self._layout = layout
        self._tries = 0
        noted = noted_end(layout)  # first, since a line is written before it is noted
        segments = layout.segments()
        for number in segments:
            self._read(number, last=number == segments[-1])
        for number in sorted(set(range(1, max(segments, default=0))) - set(segments)):
            self.faults.append(LogFault(number, 0, "the segment is missing", 0))
        self._look_for_noted(noted)
        if not self.lines:
            self.faults.append(LogFault(0, 0, "the operation log is gone: no line of it can be read", 0))
        elif not isinstance(self.lines[0].operation, StoreCreated) and not self.faults:
            self.faults.append(LogFault(self.lines[0].segment, 0, "its first line is not that of a new store", 0))

    @property
    def seq(self) -> int:
        """The number of the last whole line, 0 where there is none."""
        return self.lines[-1].operation.seq if self.lines else 0

    @property
    def hash(self) -> str:
        """The hash of the last whole line."""
        return self.lines[-1].hash if self.lines else NO_PREVIOUS

    @property
    def whole(self) -> bool:
        """Whether nothing is missing or damaged."""
        return not self.faults

    @property
    def first_operation(self) -> StoreCreated | None:
        """The line that made the store."""
        first = self.lines[0].operation if self.lines else None
        return first if isinstance(first, StoreCreated) else None

    @property
    def hash_before_fault(self) -> str:
        """The hash of the last line that follows from the first one without a break; empty where there is none."""
        found = ""
        for line in self.lines:
            if not line.follows:
                break
            found = line.hash
        return found

    @property
    def lost(self) -> int:
        """How many lines are missing before the last whole one, as their numbers tell."""
        return self.seq - len(self.lines)

    def _look_for_noted(self, noted: tuple[int, int]) -> None:
        """Where the log ends before a place up to which it was committed, the rest is lost, and not merely torn."""
        segment, end = (self.lines[-1].segment, self.lines[-1].end) if self.lines else (0, 0)
        if self.lines and not self.faults and noted > (segment, end):
            lines = 1 if self.torn is not None else 0
            self.faults.append(LogFault(segment, end, "committed lines are missing behind it", lines))
            self.torn = None

    def _read(self, number: int, *, last: bool) -> None:
        path = self._layout.segment(number)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise failed("read", path, error) from error
        bad = None
        for start, end in _split(data):
            try:
                operation, line_hash = decode_line(data[start:end])
            except Damage as error:
                found = LogFault(number, start, error.message.partition(": ")[2], 0)
                if (right := self._mended(data[start:end])) is None:
                    bad = bad or found
                    continue
                self.faults.append(found)
                operation, line_hash = decode_line(right)
            if bad is not None:
                self._note(bad, start)
                bad = None
            self._take(operation, line_hash, number, start, end)
        if bad is not None and last and _is_torn(data[bad.offset :]):
            self.torn = (number, bad.offset, len(data) - bad.offset)
        elif bad is not None:
            self._note(bad, len(data))

    def _mended(self, line: bytes) -> bytes | None:
        """The line with one byte put right; after so many tries it is clear that the harm is of another kind."""
        self._tries += 1
        return mended_line(line) if self._tries <= MOST_TRIES else None

    def _note(self, bad: LogFault, end: int) -> None:
        """Count the damaged lines that begin at ``bad``; ``end`` is where whole ones go on."""
        path = self._layout.segment(bad.segment)
        lines = path.read_bytes()[bad.offset : end].count(b"\n") or 1
        self.faults.append(bad._replace(lines=lines))

    def _take(self, operation: AnyOperation, line_hash: str, segment: int, start: int, end: int) -> None:
        if self.lines and operation.seq <= self.seq:
            self.faults.append(LogFault(segment, start, f"operation {operation.seq} is there a second time", 0))
            return
        follows = (operation.seq, operation.prev) == (self.seq + 1, self.hash)
        if not follows and not (self.faults and self.faults[-1].segment == segment):
            self.faults.append(LogFault(segment, start, _gap(operation.seq, self.seq), 0))
        self.lines.append(LogLine(operation, line_hash, segment, end, follows))


def _is_torn(tail: bytes) -> bool:
    """Whether this may be a line that was never written to its end; one that has its end was damaged later."""
    return b"\n" not in tail[:-1] and not tail.endswith(b'"}\n')


def _gap(seq: int, before: int) -> str:
    missing = seq - before - 1
    if not missing:
        return f"operation {seq} does not continue the one before it"
    return f"operation {seq} follows operation {before}: {missing} between them are missing"


def _split(data: bytes) -> Iterator[tuple[int, int]]:
    position = 0
    while position < len(data):
        end = data.find(b"\n", position) + 1 or len(data)
        yield position, end
        position = end
