"""Time as an argument: nothing below the settings reads a clock by itself."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Wall time, and a way to let some pass."""

    def now(self) -> int:
        """Nanoseconds since the epoch."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class Progress(Protocol):
    """Told how long work is coming along; shows it or does not."""

    def begin(self, doing: str, total: int) -> None:
        """``doing`` begins, ``total`` bytes (or entries) are ahead; 0 when unknown."""

    def advance(self, amount: int) -> None:
        """``amount`` more is done."""

    def end(self) -> None:
        """The work that began last is over."""


class Silent:
    """Progress that is not shown."""

    def begin(self, doing: str, total: int) -> None:
        """Nothing."""

    def advance(self, amount: int) -> None:
        """Nothing."""

    def end(self) -> None:
        """Nothing."""
