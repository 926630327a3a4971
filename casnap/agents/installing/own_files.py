"""Files of casnap's own in the directories of agents: the skill and plugins."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from casnap.agents.installing.command import HookCommand
from casnap.agents.installing.files import read
from casnap.agents.installing.plan import FileChange
from casnap.agents.installing.records import Record, place

PACKAGE = Path(__file__).parent.parent
"""Where what is shipped to agents lies: plugins and the skill."""

SKILL = PACKAGE / "skill" / "casnap"

COMMAND = "casnap.json"
"""The file beside a plugin that says how casnap is run."""


def skill_in(directory: Path) -> list[FileChange]:
    """What puts the skill into an agent's directory of skills."""
    return _placed(_shipped(SKILL), directory / "casnap")


def without_skill_in(
    directory: Path, record: Record, *, alike: bool = True, in_use: Collection[str] = ()
) -> list[FileChange]:
    """What takes the skill out again; also an ``alike`` one of which nobody knows where it comes from.

    Files ``in_use`` by another agent stay.
    """
    found = _cleared(_shipped(SKILL) if alike else {}, directory / "casnap", record)
    return [change for change in found if place(change.path) not in in_use]


def plugin_in(directory: Path, name: str, command: HookCommand) -> list[FileChange]:
    """What makes a directory the plugin of an agent, which runs this casnap."""
    said = json.dumps({"command": list(command.words)}, indent=2, ensure_ascii=False) + "\n"
    files = _shipped(PACKAGE / "plugins" / name)
    return _placed({**files, COMMAND: said.encode("utf-8", "surrogateescape")}, directory)


def without_plugin_in(directory: Path, name: str, record: Record) -> list[FileChange]:
    """What takes a plugin out again, and what Python has compiled of it."""
    made = [directory / COMMAND, *directory.glob("__pycache__/*.pyc")]
    return _cleared(_shipped(PACKAGE / "plugins" / name), directory, record, made)


def without_own(directory: Path, name: str, record: Record) -> list[FileChange]:
    """What takes away a plugin from a place that nobody but casnap has to do with, whatever is in it.

    Where there are links somebody else has to do with it, and just the plugin goes.
    """
    paths = sorted(directory.rglob("*"))
    if any(path.is_symlink() for path in (directory, *paths)):
        return without_plugin_in(directory, name, record)
    return [FileChange(path, read(path), None) for path in paths if path.is_file()]


def _shipped(source: Path) -> dict[str, bytes]:
    return {path.relative_to(source).as_posix(): path.read_bytes() for path in _files(source)}


def _files(directory: Path) -> Iterator[Path]:
    return (path for path in sorted(directory.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)


def _placed(files: Mapping[str, bytes], target: Path) -> list[FileChange]:
    return [FileChange(target / name, read(target / name), data) for name, data in files.items()]


def _cleared(
    files: Mapping[str, bytes], target: Path, record: Record, made: list[Path] | None = None
) -> list[FileChange]:
    """Take away what is as casnap left it, or as it is shipped; what somebody else has put there, or changed, stays.

    So does what links lead to, such as the package itself, where it is not in the record.
    """
    shipped = {target / name: data for name, data in files.items()}
    real = Path(os.path.realpath(target))
    recorded = [target / Path(kept.path).relative_to(real) for kept in record.files if real in Path(kept.path).parents]
    found = []
    for path in sorted({*shipped, *recorded, *(made or ())}):
        if (now := read(path)) is None:
            continue
        if (known := record.original(path, now)) is not None:
            found.append(FileChange(path, now, known.before, modified=known.modified))
        elif _is_linked(target, path):
            continue
        elif path in (made or ()) or shipped.get(path) == now:
            found.append(FileChange(path, now, None))
    return found


def _is_linked(target: Path, path: Path) -> bool:
    inner = [path, *path.parents]
    return any(one.is_symlink() for one in inner[: inner.index(target) + 1])
