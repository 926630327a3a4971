"""Which of the failures that hooks have noted count still, and which workspace each concerns."""

from __future__ import annotations

import os
from collections.abc import Iterable

from casnap.agents.notes import Failure, Notes

RECENT = 7 * 86400 * 10**9
"""Nanoseconds for which a failure is news."""


class News:
    """What counts of all that is ``remembered``; ``registered`` are the workspaces that there are, ``now`` is the time.

    A failure is noted for the directory of its event. What goes well in another directory of the same workspace says
    as much of what was wrong; of what was wrong before any directory was known, what goes well anywhere.
    """

    def __init__(self, remembered: Iterable[Notes], registered: Iterable[str], now: int) -> None:
        notes = list(remembered)
        self._registered = frozenset(registered)
        self._known = self._registered | {one.workspace for one in notes if one.workspace}
        self._since = now - RECENT
        self._went_well: dict[str, int] = {}
        for one in notes:
            for concerned in (one.workspace, ""):
                self._went_well[concerned] = max(one.succeeded, self._went_well.get(concerned, 0))

    def workspace_of(self, notes: Notes) -> str:
        """The nearest workspace around the directory; empty where there is none."""
        directory = notes.directory
        while directory and directory not in self._known:
            above = os.path.dirname(directory)
            directory = "" if above == directory else above
        return directory

    def failure(self, notes: Notes) -> Failure | None:
        """What went wrong, if nothing has gone well since and it is not long ago."""
        failure = notes.failure
        if failure is None or not self.is_news(notes, failure.time):
            return None
        if failure.refused and self.workspace_of(notes) in self._registered:
            return None  # it has been registered since, and hooks ask for nothing else
        return failure

    def is_news(self, notes: Notes, time: int) -> bool:
        """Whether what happened then in a directory counts still."""
        workspace = self.workspace_of(notes)
        if notes.directory and not workspace:
            return time >= self._since
        return time >= self._since and time > self._went_well.get(workspace, 0)
