"""What hooks of agents remember, as ``casnap status`` tells it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from casnap.agents.failures import News
from casnap.agents.notes import Failure, Notebook, Notes, notebook, shortened
from casnap.cli.output import printable
from casnap.cli.session import Session
from casnap.cli.text import moment
from casnap.engine.workspaces import all_workspaces
from casnap.errors import NoStore
from casnap.model.checkpoint import format_instant
from casnap.model.paths import escape
from casnap.model.report import WorkspaceInfo
from casnap.settings import SystemClock


class HookNotes:
    """What is remembered of a workspace (None: of all), and of what went wrong before any directory was known."""

    def __init__(self, session: Session, workspace: WorkspaceInfo | None) -> None:
        settings = session.settings
        self._book: Notebook = notebook(settings.environ, settings.home, settings.store)
        self._root = None if workspace is None else _noted(workspace)
        remembered = self._book.all()
        self._news = News(remembered, _registered(session), SystemClock().now())
        self.notes = [one for one in remembered if self._concerns(one)]

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
            failure = self._news.failure(notes)
            if failure is not None and not failure.refused:
                yield self._told(notes, failure, "took no checkpoint")
            if self._was_killed(notes):
                yield f"a hook that began at {moment(notes.begun)} in {shortened(notes.directory)} was killed"

    def refusals(self) -> Iterator[str]:
        """Where hooks take no checkpoints because a rule is against it."""
        for notes in self.notes:
            failure = self._news.failure(notes)
            if failure is not None and failure.refused:
                yield self._told(notes, failure, "was refused")

    def records(self) -> list[dict[str, Any]]:
        """All of it, for JSON."""
        return [self._record(notes) for notes in self.notes]

    def _concerns(self, notes: Notes) -> bool:
        if not notes.directory:
            return self._news.failure(notes) is not None
        return self._root is None or self._news.workspace_of(notes) == self._root

    def _was_killed(self, notes: Notes) -> bool:
        return bool(notes.begun) and self._news.is_news(notes, notes.begun) and not self._book.is_busy(notes.directory)

    def _told(self, notes: Notes, failure: Failure, what: str) -> str:
        who = f"the hook of {failure.agent}" if failure.agent else "a hook"
        is_said = notes.directory in (self._root, "") or notes.directory in failure.message
        where = "" if is_said else f" in {shortened(notes.directory)}"
        hint = f" ({shortened(failure.hint)})" if failure.hint else ""
        return f"{who} {what} at {moment(failure.time)}{where}: {shortened(failure.message)}{hint}"

    def _record(self, notes: Notes) -> dict[str, Any]:
        failure = self._news.failure(notes)
        return {
            "directory": notes.directory or None,
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


def _registered(session: Session) -> list[str]:
    try:
        return [_noted(one) for one in all_workspaces(session.context())]
    except NoStore:
        return []


def _noted(workspace: WorkspaceInfo) -> str:
    """A workspace's path as notes name it."""
    return escape(os.fsencode(workspace.path))
