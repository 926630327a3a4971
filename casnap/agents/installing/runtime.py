"""What every agent has in common that casnap can be set up for."""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from casnap.agents.installing.command import HookCommand
from casnap.agents.installing.files import read, real
from casnap.agents.installing.plan import FileChange, Plan, Standing
from casnap.agents.installing.records import Record, Records
from casnap.agents.installing.versions import version_of
from casnap.codec.hashing import checksum
from casnap.errors import Usage

_EMPTY = (b"", b"{}")
"""What a configuration holds, but for white space, that nobody has written anything into."""


class Surroundings(Struct, frozen=True):
    """Where to look: the home directory, variables, the project for that scope, and casnap's own place for plugins."""

    home: Path
    environ: Mapping[str, str]
    project: Path | None
    own: Path

    def directory(self, variable: str, default: str) -> Path:
        """What a variable names, else a directory below home."""
        return Path(named) if os.path.isabs(named := self.environ.get(variable, "")) else self.home / default

    @property
    def records(self) -> Records:
        """What was in files before casnap changed them."""
        return Records(real(self.own / "records"))

    def program(self, name: str) -> str | None:
        """Where a program is."""
        return shutil.which(name, path=self.environ.get("PATH"))


class Runtime(ABC):
    """One agent in one scope: ``user`` or ``project``."""

    name: str
    title: str
    program: str
    scopes: tuple[str, ...] = ("user",)
    distribution: str = ""

    def __init__(self, around: Surroundings, scope: str) -> None:
        if scope not in self.scopes:
            raise Usage(
                f"cannot set up {self.title} for a {scope}: it has hooks for the {' or the '.join(self.scopes)} only",
                hint=f"say --scope {self.scopes[0]}",
            )
        if scope == "project" and around.project is None:
            raise Usage("no project here: the current directory was removed", hint="name one with -w DIR")
        self.around = around
        self.scope = scope

    @property
    def key(self) -> str:
        """What the record of this agent is called."""
        place = "" if self.scope == "user" else f"-{checksum(os.fsencode(self.around.project or '')).hex()}"
        return f"{self.name}-{self.scope}{place}"

    @property
    def record(self) -> Record:
        """What setting it up has changed."""
        return self.around.records.read(self.key)

    def given_back(self, path: Path, without: Callable[[bytes], bytes]) -> list[FileChange]:
        """What makes a shared file again what it was, or what it is ``without`` casnap where others have changed it."""
        before = read(path)
        if before is None:
            return []
        if (known := self.record.original(path, before)) is not None:
            return [FileChange(path, before, known.before, shared=True, modified=known.modified)]
        after: bytes | None = without(before)
        made = self.record.known(path)
        if made is not None and made.before is None and after != before and b"".join((after or b"").split()) in _EMPTY:
            after = None
        return [FileChange(path, before, after, shared=True)]

    def first(self, path: Path) -> bytes | None:
        """What a file was before casnap changed it, whoever has changed it since; None where nobody knows."""
        known = self.record.known(path)
        return None if known is None else known.before or b""

    @property
    def in_use(self) -> set[str]:
        """Files that other agents, or the same one in another place, have from casnap as well."""
        return {kept.path for other in self.around.records.others(self.key).values() for kept in other.files}

    @property
    @abstractmethod
    def configuration(self) -> Path:
        """The directory that the agent has its configuration in."""

    @abstractmethod
    def install_plan(self, command: HookCommand) -> Plan:
        """What setting it up takes.

        Raises:
            Usage: a file of the agent is not what it should be.
        """

    @abstractmethod
    def uninstall_plan(self) -> Plan:
        """What taking it back takes; no steps where nothing is there.

        Raises:
            Usage: a file of the agent is not what it should be.
        """

    def standing(self, command: HookCommand) -> Standing:
        """How it stands. What cannot be read is said in ``differs``."""
        program = self.around.program(self.program)
        where = [path for path in (program, *self._configured()) if path]
        version = version_of(program, self.distribution) if program else None
        found = Standing(self.name, self.title, bool(where), tuple(where), scope=self.scope, version=version)
        try:
            installed = bool(self.uninstall_plan().needed)
            plan = self.install_plan(command)
        except Usage as error:
            return replace(found, differs=error.message)
        differs = "; ".join(_differences(plan)) if installed else ""
        return replace(found, installed=installed, differs=differs, todo=plan.todo)

    def _configured(self) -> Iterator[str]:
        if self.configuration.is_dir():
            yield str(self.configuration)


def _differences(plan: Plan) -> Iterator[str]:
    if files := [str(step.path) for step in plan.needed if isinstance(step, FileChange)]:
        yield f"{', '.join(files)} would be written anew"
    yield from (f"{' '.join(step.words)} would be run" for step in plan.needed if not isinstance(step, FileChange))
