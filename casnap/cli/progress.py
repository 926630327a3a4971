"""How a long command says that it is alive."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from casnap.cli.output import Output

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE = 0.5
"""Seconds before a bar appears: most commands are done by then."""

SILENCE = 10.0
"""Seconds between two lines where no bar can be shown."""


class TerminalProgress:
    """A bar on a terminal, a line every ten seconds elsewhere, and nothing about what is soon done."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._doing, self._total, self._done = "", 0, 0
        self._next = 0.0
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def begin(self, doing: str, total: int) -> None:
        """Something begins; ``total`` is 0 when unknown."""
        self.end()
        self._doing, self._total, self._done = doing, total, 0
        self._next = time.monotonic() + (PATIENCE if self._output.live else SILENCE)

    def advance(self, amount: int) -> None:
        """More of it is done."""
        self._done += amount
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done)
        elif time.monotonic() >= self._next:
            self._speak()

    def end(self) -> None:
        """It is over."""
        if self._bar is not None:
            self._bar.stop()
        self._bar = self._task = None

    def _speak(self) -> None:
        if self._output.live:
            self._show_bar()
            return
        self._next = time.monotonic() + SILENCE
        how_far = f"{100 * self._done // self._total} %" if self._total else f"{self._done:,}"
        self._output.talk(f"{self._doing}: {how_far}")

    def _show_bar(self) -> None:
        from rich.console import Console  # here, since it takes longer to import than most commands to run
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(self._doing, total=self._total or None, completed=self._done)
        self._bar.start()
