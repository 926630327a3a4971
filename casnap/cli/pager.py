"""Long output page by page: on a terminal where somebody reads, through the program that the environment names."""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import sys
from types import TracebackType

from casnap.cli.output import printable
from casnap.cli.session import Session

_KEPT = 1 << 20
"""Bytes that are shown after all when the pager turns out not to work."""


class Pager:
    """Takes data, and shows it through a pager where one is wanted, else as it stands.

    The pager is started by the first data, so that nothing is paged when there is nothing to show. One that cannot
    be started, or fails before it has taken more than a little, is done without.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._command = _command(session)
        self._process: subprocess.Popen[bytes] | None = None
        self._kept: list[bytes] = []
        self._length = 0

    def write(self, data: bytes) -> None:
        """Show ``data``; when the reader has left the pager, nobody."""
        if self._command is not None and self._process is None:
            self._start(self._command)
        if self._process is None or self._process.stdin is None:
            self._session.output.bytes(data)
            return
        self._length += len(data)
        if self._length <= _KEPT:
            self._kept.append(data)
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(data)

    def text(self, text: str) -> None:
        """Show ``text``, what the terminal cannot write being escaped."""
        self.write(text.encode(sys.stdout.encoding, "backslashreplace"))

    def _start(self, command: str) -> None:
        from casnap.settings import DEFAULT_PAGER

        self._session.progress.end()
        self._session.finish()
        try:
            self._process = subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE)
        except (OSError, ValueError, IndexError) as error:
            self._give_up("" if command == DEFAULT_PAGER else str(error))

    def _give_up(self, why: str) -> None:
        if why:
            self._session.output.talk(f"note: shown without {printable(str(self._command))}: {printable(why)}")
        self._command = self._process = None

    def __enter__(self) -> Pager:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait until the reader has left it; an interrupt is theirs, not casnap's."""
        process = self._process
        if process is None or process.stdin is None:
            return
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        while process.returncode is None:
            with contextlib.suppress(KeyboardInterrupt):
                process.wait()
        if process.returncode > 0 and self._length <= _KEPT:
            self._give_up(f"it ended with status {process.returncode}")
            self._session.output.bytes(b"".join(self._kept))


def _command(session: Session) -> str | None:
    from casnap.settings import pager_command

    wanted = session.output.on_terminal and not session.as_json and session.may_ask
    return pager_command(session.settings.environ) if wanted else None
