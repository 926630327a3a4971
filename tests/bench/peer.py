"""What every program under test can be asked to do; each answers with the command for it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from bench.places import Place
from bench.process import Command, Run, environment, run


@dataclass(frozen=True)
class Stored:
    """What a store takes: the lengths of its files added up, and the blocks that they have on the disk, in bytes."""

    length: int
    allocated: int


class Peer:
    """A program that keeps versions of a directory.

    ``room`` is a directory of its own in ``place``, with its store, its workspace and its home. A method that gives a
    command gives None where the program cannot do it.
    """

    name = ""
    program = ""
    note = ""
    """How it is run, for the page."""

    inside: tuple[str, ...] = ()
    """What it keeps within the workspace: such a program is left out where all look at one workspace."""

    whole = False
    """Whether each version takes as much as the first: it is left out where there are many."""

    def __init__(self, place: Place, room: str) -> None:
        self.place = place
        self.room = place.root / room
        self.store, self.workspace, self.home = self.room / "store", self.room / "workspace", self.room / "home"
        self.home.mkdir(parents=True)
        self.store.mkdir()

    @classmethod
    def installed(cls) -> bool:
        """Whether it can be run here."""
        return shutil.which(cls.program) is not None

    @classmethod
    def version(cls) -> str:
        """What it says of itself, in one line."""
        said = subprocess.run([cls.program, "--version"], capture_output=True, text=True, check=False).stdout
        return said.strip().split("\n")[0]

    def variables(self) -> dict[str, str]:
        """What its environment holds beside the usual."""
        return {}

    def run(self, command: Command) -> Run:
        """Run one of its commands."""
        return run(command, cwd=self.workspace, env=environment(self.home, self.variables()))

    def fill(self, tree: Path) -> None:
        """Make the workspace an exact copy of ``tree``, times included."""
        shutil.copytree(tree, self.workspace, symlinks=True)

    def empty(self) -> None:
        """Begin again with an empty store."""
        for path in (self.store, *(self.workspace / name for name in self.inside)):
            self.place.discard(path)
        self.store.mkdir()

    def close(self) -> None:
        """Take everything away."""
        self.place.discard(self.room)

    def stored(self) -> Stored:
        """What its store takes now."""
        found = {}
        for top in (self.store, *(self.workspace / name for name in self.inside)):
            for path in _below(top):
                status = path.lstat()
                found[status.st_dev, status.st_ino] = (status.st_size, 512 * status.st_blocks)
        return Stored(sum(one for one, _ in found.values()), sum(one for _, one in found.values()))

    def begin(self) -> Command | None:
        """Make the store ready: never timed."""
        return None

    def checkpoint(self, label: str) -> Command:
        """Record the workspace."""
        raise NotImplementedError

    def made(self, label: str, output: str) -> str:
        """By what the checkpoint is called that was just made."""
        return label

    def rollback(self, checkpoint: str) -> Command | None:
        """Put the workspace back, in place; what was added goes."""
        return None

    def restore(self, checkpoint: str, target: Path) -> Command | None:
        """Write a checkpoint into an empty directory."""
        return None

    def check(self) -> Command | None:
        """Read all that is stored, and compare it with its name."""
        return None

    def compact(self) -> Command | None:
        """Make the store as small as it can be made."""
        return None

    def record(self, workspace: Path, number: int) -> Command | None:
        """Record another workspace into the same store."""
        return None


def _below(top: Path) -> Iterator[Path]:
    for directory, inner, names in os.walk(top):
        yield from (Path(directory) / name for name in names)
        yield from (Path(directory) / name for name in inner)


def emptied(directory: Path) -> str:
    """The line that empties a directory, for a program that cannot take away what was added."""
    return f"find {quote(str(directory))} -mindepth 1 -delete"
