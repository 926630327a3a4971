"""What a long command says while it works."""

from __future__ import annotations

import pytest

from casnap.cli import progress
from casnap.cli.output import Output
from casnap.cli.progress import TerminalProgress


class Terminal(Output):
    """Output at a terminal."""

    def __init__(self) -> None:
        super().__init__()
        self.live = True


def test_a_command_that_is_soon_done_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    for output in (Output(), Terminal()):
        shown = TerminalProgress(output)
        shown.begin("reading", 100)
        shown.advance(50)
        shown.end()
    assert capsys.readouterr() == ("", "")


def test_without_a_terminal_a_long_one_says_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SILENCE", 0.0)
    shown = TerminalProgress(Output())
    shown.begin("reading", 200)
    shown.advance(50)
    shown.advance(100)
    shown.begin("counting", 0)
    shown.advance(1_234_567)
    shown.end()
    assert capsys.readouterr() == ("", "reading: 25 %\nreading: 75 %\ncounting: 1,234,567\n")


def test_quiet_says_no_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SILENCE", 0.0)
    shown = TerminalProgress(Output(quiet=True))
    shown.begin("reading", 200)
    shown.advance(50)
    assert capsys.readouterr() == ("", "")


def test_at_a_terminal_a_long_one_shows_a_bar_and_takes_it_away(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown = TerminalProgress(Terminal())
    shown.begin("reading", 200)
    shown.advance(50)
    shown.advance(50)
    shown.end()
    shown.end()
    stdout, stderr = capsys.readouterr()
    assert stdout == ""
    assert "reading" in stderr
    assert "\x1b[?25h" in stderr  # the cursor is back
