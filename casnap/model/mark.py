"""How quick casnap is in somebody's own directory: what ``bench mark`` returns."""

from __future__ import annotations

import statistics

from msgspec import Struct

from casnap.model.report import Problem


class MarkStep(Struct, frozen=True):
    """A piece of work: the seconds of each run, and the bytes that a run went through (0: none were read)."""

    name: str
    runs: tuple[float, ...]
    bytes: int = 0

    @property
    def seconds(self) -> float:
        """The median of the runs."""
        return statistics.median(self.runs)


class MarkReport(Struct, frozen=True):
    """A directory was measured: how many ``entries`` and ``bytes`` it has, and how many bytes they take ``stored``.

    ``place`` is the directory in which the temporary store was. ``clean`` says that all that was stored was found
    whole. ``problems`` are paths that could not be read or restored, and so count for nothing.
    """

    directory: bytes
    place: bytes
    entries: int
    bytes: int
    stored: int
    steps: tuple[MarkStep, ...]
    clean: bool
    problems: tuple[Problem, ...] = ()
