"""What an agent tells of, whichever agent it is."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace


class Moment(Enum):
    """When, in the run of an agent, something is told."""

    PROMPT = "prompt"
    """A person has asked for something, and the agent has not begun with it."""

    BEFORE_TOOL = "before-tool"
    """A tool is about to run."""

    AFTER_TOOL = "after-tool"
    """A tool has run, of an agent that does not tell of the end of a turn."""

    TURN_END = "turn-end"
    """The agent has done what it was asked for."""

    SESSION_END = "session-end"
    """The agent ends, and waits for nobody for long."""

    OTHER = "other"
    """Anything else: nothing is done about it."""


class Event(Struct, frozen=True):
    """One thing that an agent tells of; what it does not tell is empty.

    ``places`` are the directories that it works in, as it names them. ``changes`` says whether the tool may change
    files: False only of tools that are known not to.
    """

    agent: str
    moment: Moment
    session: str = ""
    turn: str = ""
    tool: str = ""
    places: tuple[str, ...] = ()
    prompt: str = ""
    changes: bool = True

    def at(self, places: Iterable[str]) -> Event:
        """The same of other directories, which somebody has named."""
        return replace(self, places=tuple(places))
