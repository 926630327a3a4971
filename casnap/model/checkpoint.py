"""Checkpoints: the immutable object, and the noun that people and programs see."""

# Annotations are evaluated here, once: as texts they would be compiled when the decoders are made, which takes longer.

import datetime as dt
from typing import Any

from msgspec import Struct

from casnap.model.ids import SHORT_ID
from casnap.model.tree import NANOSECONDS, Directory


class Origin(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Who asked for an operation; what is unknown is empty."""

    user: str = ""
    host: str = ""
    process: str = ""
    agent: str = ""
    session: str = ""
    turn: str = ""
    tool: str = ""


class GitState(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Where a git work tree at the workspace's root stood; ``branch`` is empty when detached.

    ``changed`` counts the tracked paths whose content, kind or executable bit is not what is staged; None where
    that was not looked at.
    """

    branch: str
    commit: str
    changed: int | None = None

    @property
    def detached(self) -> bool:
        """Whether no branch was checked out."""
        return not self.branch


class CheckpointObject(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=1):
    """What never changes about a checkpoint; its id is its hash (docs/format/checkpoint.md).

    ``root`` describes the workspace directory itself under the empty name. ``metadata`` is a canonical
    JSON object as text. Times are nanoseconds since the epoch (UTC). ``rules`` are the ignore rules in
    force. ``links`` are the hard-link groups: sorted paths, two or more in a group, groups sorted.
    """

    workspace: str
    root: Directory
    parent: bytes
    message: str
    metadata: str
    scan_started: int
    scan_ended: int
    origin: Origin
    git: GitState | None
    rules: tuple[str, ...]
    links: tuple[tuple[bytes, ...], ...]


class Counts(Struct, frozen=True):
    """Paths that differ from the parent checkpoint, times alone not counted."""

    added: int = 0
    changed: int = 0
    removed: int = 0


class Checkpoint(Struct, frozen=True):
    """A checkpoint as it stands in its workspace's history.

    ``created`` is the instant at which its scan ended, in nanoseconds since the epoch; ``step`` is None for
    a safety checkpoint; ``parent`` is the present parent: the nearest ancestor that is not deleted.
    ``skipped`` counts entries that a rule or an error left out; ``new_bytes`` is what the store grew by.
    ``damaged`` says that its object cannot be read: what only that knows is empty, and the time is its line's.
    ``good`` says that a command which ended well left it, or found it so.
    """

    id: str
    name: str | None
    step: int | None
    parent: str | None
    created_ns: int
    message: str
    metadata: dict[str, Any]
    pinned: bool
    head: bool
    safety: bool
    automatic: bool
    deleted: bool
    digest: str
    origin: Origin
    git: GitState | None
    counts: Counts
    skipped: int
    new_bytes: int
    damaged: bool = False
    good: bool = False

    @property
    def created(self) -> str:
        """RFC 3339 with nanoseconds, in UTC."""
        return format_instant(self.created_ns)

    @property
    def timestamp(self) -> dt.datetime:
        """``created`` as an aware datetime in UTC (microseconds)."""
        return dt.datetime.fromtimestamp(self.created_ns // NANOSECONDS, dt.UTC).replace(
            microsecond=self.created_ns % NANOSECONDS // 1000
        )

    @property
    def description(self) -> str:
        """Another word for ``message``."""
        return self.message

    @property
    def label(self) -> str:
        """What a person calls it: its name, or the first digits of its id."""
        return self.name or self.id[:SHORT_ID]


def format_instant(ns: int) -> str:
    """Nanoseconds since the epoch as RFC 3339 in UTC, nanoseconds kept."""
    seconds, fraction = divmod(ns, NANOSECONDS)
    return f"{dt.datetime.fromtimestamp(seconds, dt.UTC):%Y-%m-%dT%H:%M:%S}.{fraction:09d}Z"
