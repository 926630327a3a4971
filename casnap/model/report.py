"""What verbs return: every field is what happened, not what was meant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from casnap.model.checkpoint import Checkpoint, Counts

if TYPE_CHECKING:
    from casnap.model.change import Change
    from casnap.model.upkeep import UpkeepStatus


class Problem(Struct, frozen=True):
    """Something that went wrong with one path."""

    path: bytes
    message: str


class WorkspaceInfo(Struct, frozen=True):
    """A workspace: its id and the path that it is registered under."""

    id: str
    path: str


class WorkspaceStanding(Struct, frozen=True):
    """A registered workspace, how many checkpoints it has, and whether its directory is ``gone``."""

    workspace: WorkspaceInfo
    checkpoints: int
    gone: bool


class FirstLook(Struct, frozen=True):
    """Told at a workspace's first checkpoint: its largest directories (path, bytes), and likely secrets."""

    largest: tuple[tuple[bytes, int], ...]
    secrets: int


class CheckpointReport(Struct, frozen=True):
    """A checkpoint was made, or (``created`` false) the tree was unchanged and head is returned.

    ``left_out`` counts entries that were not captured, by the reason.
    """

    checkpoint: Checkpoint
    created: bool
    seconds: float
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    first_look: FirstLook | None = None
    left_out: dict[str, int] = field(default_factory=dict)


class LineCount(Struct, frozen=True):
    """Lines that a change adds and removes; ``shown`` is false where they were not counted: binary and large files."""

    added: int = 0
    removed: int = 0
    shown: bool = True


class Diff(Struct, frozen=True):
    """Differences between two trees, sorted by path; ``str()`` is a git-style patch.

    Iterating yields :class:`~casnap.model.change.Change`; paths of which only times differ are left out.
    ``old`` and ``new`` are ids of checkpoints, ``new`` None for the live workspace. ``lines`` runs along
    ``changes`` when contents were compared. Bytes of the patch that are no UTF-8 are surrogate escapes. ``cut`` are
    the paths whose contents are not in the patch for their size; ``notes`` say what else it lacks, for a person.
    """

    old: str
    new: str | None
    changes: tuple[Change, ...]
    patch: str = ""
    lines: tuple[LineCount, ...] = ()
    problems: tuple[Problem, ...] = ()
    cut: tuple[bytes, ...] = ()
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)

    def __bool__(self) -> bool:
        return bool(self.changes)

    def __str__(self) -> str:
        return self.patch

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={getattr(self, name)!r}" for name in _TOLD_OF_A_DIFF)
        return f"Diff({told})"


_TOLD_OF_A_DIFF = ("old", "new", "changes", "problems", "cut", "notes")
"""The patch and its counts may be long."""


class GitMove(Struct, frozen=True):
    """What becomes of a git directory: commits that are not in it any more, that are in it again, refs that change."""

    path: bytes
    commits: int
    returning: int
    refs: int


class RollbackReport(Struct, frozen=True):
    """What a rollback, undo or recover did, or (``preview``) would do.

    ``changes`` are the paths that were (would be) changed, old being before. ``left_alone`` are paths that
    should have changed and did not, with the reason: then ``complete`` is false. ``kept`` are paths that no
    checkpoint holds and that were protected. ``git`` has the git directories that change. ``target`` is what was
    asked for, ``safety`` where undo leads.
    """

    verb: str
    target: Checkpoint
    preview: bool
    changes: tuple[Change, ...]
    safety: Checkpoint | None
    head: str | None
    left_alone: tuple[Problem, ...] = ()
    kept: tuple[bytes, ...] = ()
    git: tuple[GitMove, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    seconds: float = 0.0

    @property
    def complete(self) -> bool:
        """Whether every planned path is as the target has it."""
        return not self.left_alone

    @property
    def counts(self) -> Counts:
        """Paths added, changed and removed in the workspace."""
        return count_changes(self.changes)


class VerifyReport(Struct, frozen=True):
    """A workspace compared with a checkpoint; true when equal."""

    checkpoint: Checkpoint
    digest: str
    changes: tuple[Change, ...]
    omitted: tuple[Problem, ...] = ()
    problems: tuple[Problem, ...] = ()

    def __bool__(self) -> bool:
        return not self.changes


class RestoreReport(Struct, frozen=True):
    """A checkpoint, or some paths of it, was written into another directory."""

    checkpoint: Checkpoint
    directory: str
    entries: int
    bytes: int
    problems: tuple[Problem, ...] = ()


class ImportReport(Struct, frozen=True):
    """The history of another system was read; ``system`` is its name.

    ``imported`` are the checkpoints that are new with this import, ``skipped`` those that an earlier one made,
    both in the order of the history. Paths of ``problems`` are relative to the directory that holds the history.
    """

    system: str
    imported: tuple[Checkpoint, ...]
    skipped: tuple[Checkpoint, ...]
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


class DeleteReport(Struct, frozen=True):
    """Checkpoints that were deleted, and head after it."""

    deleted: tuple[Checkpoint, ...]
    head: str | None


class CleanupReport(Struct, frozen=True):
    """Checkpoints that a rule let go, or (``dry_run``) would, newest first; how many with a step are kept.

    ``notes`` are for a person: what was spared, and that a named one went.
    """

    deleted: tuple[Checkpoint, ...]
    kept: int
    dry_run: bool
    rule: str
    notes: tuple[str, ...] = ()


class LogEntry(Struct, frozen=True):
    """One operation: when, what, in which workspace, who asked, and which checkpoints it is about.

    ``summary`` is for a person, ``facts`` are the fields of its line.
    """

    seq: int
    time_ns: int
    operation: str
    workspace: WorkspaceInfo | None
    by: tuple[str, ...]
    checkpoints: tuple[str, ...]
    summary: str
    facts: dict[str, Any]


class UndeleteReport(Struct, frozen=True):
    """A checkpoint that is back; ``name_lost`` where its name had been taken meanwhile."""

    checkpoint: Checkpoint
    name_lost: str | None = None


class Interrupted(Struct, frozen=True):
    """A rollback that began and has no outcome: its verb, target and safety point, and when it began."""

    verb: str
    target: str
    safety: str
    began_ns: int


class RecoverReport(Struct, frozen=True):
    """What recover finished in one workspace; ``rollback`` is None when there was nothing to do."""

    workspace: WorkspaceInfo
    rollback: RollbackReport | None


class Status(Struct, frozen=True):
    """How a workspace stands. ``changes`` (against head) is None where it could not be compared.

    ``left_out`` counts entries that a checkpoint would not capture now, by the reason.
    """

    workspace: WorkspaceInfo
    protected: bool
    reason: str
    head: Checkpoint | None
    checkpoints: int
    safety_points: int
    last_safety: Checkpoint | None
    changes: tuple[Change, ...] | None
    interrupted: Interrupted | None
    store_bytes: int
    store_free: int
    upkeep: UpkeepStatus
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    left_out: dict[str, int] = field(default_factory=dict)


def count_changes(changes: tuple[Change, ...] | list[Change]) -> Counts:
    """How many paths were added, changed and removed; a change of times alone is none."""
    letters = [change.kind.value for change in changes if not change.only_times]
    return Counts(letters.count("A"), letters.count("M") + letters.count("T"), letters.count("D"))
