"""What all readers give: a history of another system, entry by entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from casnap.engine.importing.source import Source
from casnap.model.report import Problem


@dataclass(frozen=True, slots=True)
class Entry:
    """One snapshot of another system.

    ``id`` is how that system calls it, ``place`` the directory that holds its files, below the source. ``said``
    is its time as it is written there, ``created`` the same in nanoseconds since the epoch. ``name`` is what its
    checkpoint is to be called, where that can be. ``parent`` is an id, None for a first one. ``facts`` are kept
    in the metadata beside the system's own ``metadata``. ``sums`` has the SHA-256 of each file where the system
    wrote it down; ``sound`` says that what it wrote down could be read.
    """

    id: str
    place: bytes
    created: int
    said: str
    name: str = ""
    message: str = ""
    step: int | None = None
    user: str = ""
    host: str = ""
    parent: str | None = None
    metadata: Any = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    pinned: bool = False
    sums: Mapping[bytes, str] | None = None
    sound: bool = True


@dataclass(frozen=True, slots=True)
class Findings:
    """What a reader has to tell. Paths of problems are below the source."""

    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class History:
    """A history that can be imported.

    ``workspace`` is the directory that it is about, None where that cannot be told. ``entries`` yields parents
    before children; a ``linear`` history has no other parents than the entry before. ``head`` is the entry that
    the workspace descends from. ``uncaptured`` are names at the top of the workspace that the system leaves out.
    ``findings`` is complete when all entries have been taken.
    """

    system: str
    source: Source
    workspace: bytes | None
    head: str | None
    entries: Callable[[], Iterator[Entry]]
    linear: bool = True
    uncaptured: tuple[bytes, ...] = ()
    findings: Findings = field(default_factory=Findings)

    @property
    def tool(self) -> str:
        """What the origin of its checkpoints says."""
        return f"import from {self.system}"
