"""What takes the space: reports of ``du``. All sizes are bytes."""

from __future__ import annotations

from dataclasses import dataclass

from casnap.model.checkpoint import Checkpoint
from casnap.model.report import Problem, WorkspaceInfo


@dataclass(frozen=True, slots=True)
class DirectoryUsage:
    """A directory of a checkpoint: ``bytes`` and ``files`` in it and below it, as they are in the workspace."""

    path: bytes
    bytes: int
    files: int


@dataclass(frozen=True, slots=True)
class DirectoriesReport:
    """The largest directories of a checkpoint, largest first, and what all of it comes to."""

    checkpoint: Checkpoint
    bytes: int
    files: int
    directories: tuple[DirectoryUsage, ...]
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Unfreed:
    """Deleted checkpoints that are still there, and the stored bytes that no other checkpoint holds."""

    checkpoints: int
    bytes: int


@dataclass(frozen=True, slots=True)
class CheckpointUsage:
    """A checkpoint: ``size`` of its files, and the stored bytes that it alone holds."""

    checkpoint: Checkpoint
    size: int
    alone: int


@dataclass(frozen=True, slots=True)
class CheckpointsReport:
    """The checkpoints of a workspace, newest first, and the stored bytes that all of them together hold."""

    checkpoints: tuple[CheckpointUsage, ...]
    stored: int
    deleted: Unfreed
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkspaceUsage:
    """A workspace: how many checkpoints it has, safety ones included, and what they hold, together and alone.

    A ``forgotten`` one holds its checkpoints all the same.
    """

    workspace: WorkspaceInfo
    forgotten: bool
    checkpoints: int
    stored: int
    alone: int


@dataclass(frozen=True, slots=True)
class WorkspacesReport:
    """The workspaces of a store, the largest first, and the stored bytes that all of them together hold."""

    workspaces: tuple[WorkspaceUsage, ...]
    stored: int
    deleted: Unfreed
    problems: tuple[Problem, ...] = ()
