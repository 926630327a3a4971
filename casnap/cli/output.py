"""Where words go: data to stdout, talk to stderr, and nothing that a reader's locale or absence could break."""

from __future__ import annotations

import codecs
import contextlib
import io
import sys
from typing import IO

from casnap.model.paths import escape

_ESCAPE = "casnap.escape"


def _escape_unencodable(error: UnicodeError) -> tuple[str, int]:
    """What the stream's encoding lacks becomes the same ``\\xNN`` that :func:`casnap.model.paths.escape` writes."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return "".join(f"\\x{byte:02x}" for byte in lost.encode("utf-8", "surrogateescape")), error.end


codecs.register_error(_ESCAPE, _escape_unencodable)


def printable(text: str) -> str:
    """``text`` on one line and without control codes; paths that it mentions are escaped already."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escape_character(character) for character in text)


def _escape_character(character: str) -> str:
    return escape(character.encode("utf-8", "surrogateescape"))


class _Stream:
    """A standard stream that may be closed, or whose reader may have gone: neither is an error."""

    def __init__(self, stream: IO[str] | None) -> None:
        self._stream = None if stream is None or stream.closed else stream
        self.error: OSError | None = None
        if isinstance(self._stream, io.TextIOWrapper):
            self._stream.reconfigure(errors=_ESCAPE)

    @property
    def is_closed(self) -> bool:
        return self._stream is None

    @property
    def is_terminal(self) -> bool:
        return self._stream is not None and self._stream.isatty()

    def write(self, text: str) -> None:
        if self._stream is not None:
            try:
                self._stream.write(text)
            except OSError as error:
                self._give_up(error)

    def write_bytes(self, data: bytes) -> None:
        if self._stream is not None:
            try:
                self._stream.flush()
                self._stream.buffer.write(data)  # type: ignore[attr-defined]
            except OSError as error:
                self._give_up(error)

    def flush(self) -> None:
        if self._stream is not None:
            try:
                self._stream.flush()
            except OSError as error:
                self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        """Close it now, so that the interpreter does not complain about it when it ends."""
        if not isinstance(error, BrokenPipeError):
            self.error = error
        stream, self._stream = self._stream, None
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


class Output:
    """What a command says. ``plain`` forbids colour and control codes, ``quiet`` talk."""

    def __init__(self, *, quiet: bool = False, plain: bool = True) -> None:
        self._out, self._err = _Stream(sys.stdout), _Stream(sys.stderr)
        self._quiet = quiet
        self.colour = not plain and self._out.is_terminal
        self.live = not plain and not quiet and self._err.is_terminal
        self.on_terminal = self._out.is_terminal

    def data(self, line: str) -> None:
        """A line of what was asked for."""
        self._out.write(line + "\n")

    def bytes(self, data: bytes) -> None:
        """What was asked for, as it stands."""
        self._out.write_bytes(data)

    @property
    def is_closed(self) -> bool:
        """Whether nobody reads any more what is asked for."""
        return self._out.is_closed

    def talk(self, line: str) -> None:
        """A line about what goes on; not said when quiet."""
        if not self._quiet:
            self.warn(line)

    def warn(self, line: str) -> None:
        """A line that is said even when quiet."""
        self._out.flush()
        self._err.write(line + "\n")

    def ask(self, question: str) -> str:
        """Put a question to the person at the terminal; the answer, empty at the end of input."""
        self._out.flush()
        self._err.write(question)
        self._err.flush()
        return sys.stdin.readline().strip()

    def flush(self) -> None:
        """Let out what was said so far: another program is about to speak."""
        self._out.flush()
        self._err.flush()

    def finish(self) -> int:
        """Let everything out; the exit status for that: 1 when the data did not get out, a closed pipe aside."""
        self._out.flush()
        if self._out.error is not None:
            self.warn(f"error: cannot write the output: {self._out.error.strerror}")
        self._err.flush()
        return 0 if self._out.error is None else 1
