"""What taking paths out of checkpoints did: every field is what happened, not what was meant."""

from __future__ import annotations

from dataclasses import dataclass

from casnap.model.ids import ObjectKey
from casnap.model.report import WorkspaceInfo


@dataclass(frozen=True, slots=True)
class ReplacedCheckpoint:
    """A checkpoint that has another id now; ``step`` is None for a safety checkpoint.

    ``held`` says that it had paths that were taken out; else only one that it descends from had.
    """

    workspace: WorkspaceInfo
    old: str
    new: str
    name: str | None
    step: int | None
    held: bool


@dataclass(frozen=True, slots=True)
class Holder:
    """Where bytes that were taken out are held still: a path in a checkpoint of a workspace."""

    workspace: WorkspaceInfo
    path: bytes
    checkpoint: str


@dataclass(frozen=True, slots=True)
class ExpungeReport:
    """What was taken out, or (``dry_run``) would be. ``paths`` are sorted, and each is there once for a workspace.

    ``holders`` are the first places at which the very same content stays, ``more_held`` says that there are more.
    ``gone`` names the contents that no checkpoint holds any more: a gc takes their bytes away.
    """

    replaced: tuple[ReplacedCheckpoint, ...]
    paths: tuple[tuple[WorkspaceInfo, bytes], ...]
    holders: tuple[Holder, ...]
    more_held: bool
    gone: tuple[ObjectKey, ...]
    dry_run: bool
    notes: tuple[str, ...] = ()

    @property
    def hit(self) -> int:
        """How many checkpoints had paths that were taken out."""
        return sum(one.held for one in self.replaced)
