"""What hooks of agents remember, as ``casnap status`` tells it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from casnap.agents.notes import Notebook, Notes, notebook
from casnap.cli.output import printable
from casnap.cli.session import Session
from casnap.cli.text import moment
from casnap.model.checkpoint import format_instant
from casnap.model.report import WorkspaceInfo
from casnap.settings import SystemClock

RECENT = 7 * 86400 * 10**9
"""Nanoseconds for which a failure is worth telling."""


class HookNotes:
    """What is remembered of a workspace (None: of all), and of directories that never came to be in one."""

    def __init__(self, session: Session, workspace: WorkspaceInfo | None) -> None:
        settings = session.settings
        self._book: Notebook = notebook(settings.environ, settings.home, settings.store)
        self._since = SystemClock().now() - RECENT
        self.notes = [one for one in self._book.all() if workspace is None or one.workspace in ("", workspace.path)]

    def lines(self) -> Iterator[str]:
        """The newest event of each agent."""
        newest: dict[str, tuple[int, str]] = {}
        for notes in self.notes:
            for agent, fired in notes.agents.items():
                if notes.workspace and fired.time > newest.get(agent, (0, ""))[0]:
                    newest[agent] = (fired.time, fired.moment)
        for agent, (time, when) in newest.items():
            yield f"{printable(agent)}  {moment(time)}  {when}"

    def warnings(self) -> Iterator[str]:
        """Why there are no checkpoints where hooks were to take some."""
        for notes in self.notes:
            failure = notes.failure
            if failure is not None and failure.time >= self._since:
                who = f"the hook of {failure.agent}" if failure.agent else "a hook"
                hint = f" ({failure.hint})" if failure.hint else ""
                yield f"{who} took no checkpoint at {moment(failure.time)}: {failure.message}{hint}"
            if notes.begun and not self._book.is_busy(notes.directory):
                yield f"a hook that began at {moment(notes.begun)} in {notes.directory} was killed"

    def records(self) -> list[dict[str, Any]]:
        """All of it, for JSON."""
        return [self._record(notes) for notes in self.notes]

    def _record(self, notes: Notes) -> dict[str, Any]:
        failure = notes.failure
        return {
            "directory": notes.directory,
            "workspace": notes.workspace or None,
            "agents": [
                {"agent": agent, "time": format_instant(fired.time), "moment": fired.moment, "tool": fired.tool}
                for agent, fired in notes.agents.items()
            ],
            "at_work": bool(notes.begun) and self._book.is_busy(notes.directory),
            "failure": None
            if failure is None
            else {
                "time": format_instant(failure.time),
                "agent": failure.agent,
                "message": failure.message,
                "hint": failure.hint or None,
                "refused": failure.refused,
            },
        }
