"""A workspace for the command line to work in, and the command line without the cost of a process."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from casnap.cli.running import run as run_here
from support.cli import Result


class Call(Protocol):
    """Runs ``casnap ARGS`` in this process; ``check`` is the exit status that is expected, None any."""

    def __call__(self, *args: str | bytes | Path, cwd: str | Path = ".", check: int | None = None) -> Result: ...


@pytest.fixture
def call(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Iterator[Call]:
    """For tables of many cases; what depends on a process of its own is tested with one."""
    handler = signal.getsignal(signal.SIGTERM)

    def call(*args: str | bytes | Path, cwd: str | Path = ".", check: int | None = None) -> Result:
        words = tuple(os.fsdecode(word) for word in args)
        capfdbinary.readouterr()
        with monkeypatch.context() as patch:
            patch.chdir(cwd)
            status = run_here(list(words))
        captured = capfdbinary.readouterr()
        result = Result(words, status, captured.out.decode(), captured.err.decode())
        assert check in (None, status), f"{words}: exit {status}\n{result.stdout}\n{result.stderr}"
        return result

    yield call
    signal.signal(signal.SIGTERM, handler)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A directory with a few files, not registered yet."""
    directory = tmp_path / "project"
    (directory / "src").mkdir(parents=True)
    (directory / "README").write_text("read me\n")
    (directory / "src" / "main.py").write_text("print('one')\n")
    return directory


@pytest.fixture
def protected(workspace: Path, call: Call) -> Path:
    """The same with one checkpoint, c1."""
    call("checkpoint", "c1", cwd=workspace, check=0)
    return workspace


@pytest.fixture
def history(protected: Path, call: Call) -> Path:
    """The same with c1, c2 and c3, and an edit of main.py before each."""
    for number in (2, 3):
        (protected / "src" / "main.py").write_text(f"print({number})\n")
        call("checkpoint", f"c{number}", cwd=protected, check=0)
    return protected
