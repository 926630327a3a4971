"""What setting an agent up would do, before anything is done: files to be written, commands of the agent to be run."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct


class FileChange(Struct, frozen=True):
    """A file that is to hold ``after``; None: it is to be gone. ``before`` is what it held when the plan was made.

    ``shared`` files belong to the agent or to the person: ``without``, what they would hold without casnap, is put back
    when casnap goes. The others are casnap's own. ``modified`` is the time that one has which becomes what it was.
    """

    path: Path
    before: bytes | None
    after: bytes | None
    shared: bool = False
    without: bytes | None = None
    modified: int | None = None

    @property
    def needed(self) -> bool:
        """Whether there is anything to do."""
        return self.before != self.after


class CommandRun(Struct, frozen=True):
    """A command of the agent, and the configuration files that it may change; ``hint`` is for when it fails."""

    words: tuple[str, ...]
    changes: tuple[Path, ...] = ()
    hint: str | None = None


class Plan(Struct, frozen=True):
    """The steps in order, and what the person has to do besides, in sentences."""

    runtime: str
    steps: tuple[FileChange | CommandRun, ...] = ()
    todo: tuple[str, ...] = ()

    @property
    def needed(self) -> tuple[FileChange | CommandRun, ...]:
        """The steps that are not done already."""
        return tuple(step for step in self.steps if not isinstance(step, FileChange) or step.needed)


class Standing(Struct, frozen=True):
    """How an agent stands in a scope: whether it is ``found`` here, and whether its hooks are ``installed``.

    ``differs`` says in what an installation is not what it would be today. ``todo`` is what the person has to do.
    """

    runtime: str
    title: str
    found: bool
    where: tuple[str, ...] = ()
    installed: bool = False
    differs: str = ""
    scope: str = "user"
    version: str | None = None
    todo: tuple[str, ...] = ()
