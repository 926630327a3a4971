"""A command at a terminal, as a person has it."""

from __future__ import annotations

import os
import pty
import select
import sys
import time
from pathlib import Path

import pytest

from support.cli import CHECKOUT, environment


class Terminal:
    """A command at a terminal of its own."""

    def __init__(self, *args: str, cwd: Path, **env: str) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            variables = {name: value for name, value in environment(env).items() if name != "CASNAP_NO_INPUT"}
            os.chdir(cwd)
            os.execve(
                sys.executable, [sys.executable, "-m", "casnap", *args], variables | {"PYTHONPATH": str(CHECKOUT)}
            )
        self.said = ""

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + 60
        while text not in self.said and time.monotonic() < deadline and self._read():
            pass
        assert text in self.said, self.said

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def finish(self) -> int:
        while self._read():
            pass
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _read(self) -> bool:
        try:
            if select.select([self.fd], [], [], 60)[0]:
                data = os.read(self.fd, 65536)
                self.said += data.decode("utf-8", "replace")  # a read may end within a character
                return bool(data)
        except OSError:  # Linux says EIO when the other side has closed it
            pass
        return False


def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away what tells casnap that nobody can be asked."""
    for name in [
        name for name in os.environ if name == "CI" or name.startswith(("CLAUDE", "CODEX", "GEMINI", "OPENCODE"))
    ]:
        monkeypatch.delenv(name)
