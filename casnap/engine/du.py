"""``du``: what takes the space, by directory, by checkpoint or by workspace."""

from __future__ import annotations

import itertools
import os
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence

from casnap.engine.context import Context, workspace_row
from casnap.engine.directory_sizes import DirectorySizes
from casnap.engine.history import as_noun, load_object
from casnap.engine.holding import Holdings
from casnap.model.checkpoint import Checkpoint
from casnap.model.ids import ObjectKey, ObjectKind, short
from casnap.model.paths import ROOT
from casnap.model.report import Problem, WorkspaceInfo
from casnap.model.usage import (
    CheckpointsReport,
    CheckpointUsage,
    DirectoriesReport,
    Unfreed,
    WorkspacesReport,
    WorkspaceUsage,
)
from casnap.store.sizes import record_sizes
from casnap.store.state import CheckpointRow, State, WorkspaceRow

_SPECIAL = re.compile(r"[\\*?[]")
_ESCAPED = r"\\\g<0>"
"""What a pattern takes for more than itself, and how it is said that it is not."""


def largest_directories(context: Context, checkpoint: Checkpoint, limit: int) -> DirectoriesReport:
    """The ``limit`` largest directories of a checkpoint; damaged ones are problems.

    Raises:
        Damage: the checkpoint itself cannot be read.
    """
    root = load_object(context, bytes.fromhex(checkpoint.id)).root
    sizes = DirectorySizes(context.store, root.tree)
    size, files = sizes.total
    largest = tuple(itertools.islice(sizes.largest(), limit))
    return DirectoriesReport(checkpoint, size, files, largest, tuple(sizes.problems))


def by_checkpoint(context: Context, workspace: WorkspaceInfo) -> CheckpointsReport:
    """What each checkpoint of a workspace takes. Those of all other workspaces count as holders too."""
    state = context.store.state()
    here = workspace_row(state, workspace)
    mine, deleted = _rows(context, state, here)
    elsewhere = [one for row in state.workspaces() if row.id != here.id for one in _rows(context, state, row)[0]]
    stored = _Stored(context, (mine, elsewhere, deleted))
    # All others are one holder: what they share among themselves is no matter here.
    alone = stored.alone([*([row] for row in mine), elsewhere])
    held = stored.reached(mine)
    return CheckpointsReport(
        checkpoints=tuple(
            CheckpointUsage(as_noun(context, state, row), stored.sum_of(row), alone[place])
            for place, row in enumerate(mine)
        ),
        stored=stored.weigh(held),
        deleted=Unfreed(len(deleted), stored.weigh(stored.reached(deleted) - held - stored.reached(elsewhere))),
        problems=stored.problems(mine),
    )


def by_workspace(context: Context) -> WorkspacesReport:
    """What each workspace of the store takes, forgotten ones with checkpoints included."""
    state = context.store.state()
    found = [(row, *_rows(context, state, row)) for row in state.workspaces()]
    listed = [(row, rows) for row, rows, _ in found if rows or not row.forgotten]
    deleted = [one for _, _, gone in found for one in gone]
    live = [one for _, rows in listed for one in rows]
    stored = _Stored(context, (live, deleted))
    alone = stored.alone([rows for _, rows in listed])
    held = stored.reached(live)
    usages = [
        WorkspaceUsage(
            workspace=WorkspaceInfo(row.id, os.fsdecode(row.path)),
            forgotten=row.forgotten,
            checkpoints=len(rows),
            stored=stored.weigh(stored.reached(rows)),
            alone=alone[place],
        )
        for place, (row, rows) in enumerate(listed)
    ]
    return WorkspacesReport(
        workspaces=tuple(sorted(usages, key=lambda one: (-one.stored, one.workspace.path))),
        stored=stored.weigh(held),
        deleted=Unfreed(len(deleted), stored.weigh(stored.reached(deleted) - held)),
        problems=stored.problems(live),
    )


def excluding(path: bytes) -> str | None:
    """The pattern for ``exclude`` that leaves just this directory out.

    None where nobody could type one: the path is not printable UTF-8.
    """
    text = path.decode("utf-8", "surrogateescape")
    if not text.isprintable():
        return None
    return f"/{_SPECIAL.sub(_ESCAPED, text)}/"


def _rows(context: Context, state: State, workspace: WorkspaceRow) -> tuple[list[CheckpointRow], list[CheckpointRow]]:
    """The checkpoints that a workspace holds, newest first, and those that are deleted but still there."""
    rows = [row for row in state.history(workspace.id) if not row.freed]
    live = [row for row in rows if not row.deleted and not workspace.dropped]
    deleted = [row for row in rows if row.deleted or workspace.dropped]
    there = context.store.present(map(_key, deleted))
    return live, [row for row in deleted if _key(row) in there]


def _key(row: CheckpointRow) -> ObjectKey:
    return ObjectKey(ObjectKind.CHECKPOINT, row.id)


class _Stored:
    """The objects of checkpoints, and what their records take."""

    def __init__(self, context: Context, groups: Iterable[Sequence[CheckpointRow]]) -> None:
        self._holdings = Holdings(context.store)
        self._numbers = {row.id: self._holdings.add(_key(row)) for group in groups for row in group}
        keys = self._holdings.keys
        sizes = record_sizes(context.store, keys)
        self._sizes = array("q", (sizes.get(key, 0) for key in keys))
        for number, key in enumerate(keys):
            if key not in sizes:
                self._holdings.faults.setdefault(number, f"cannot read {key}: the store does not have it")

    def sum_of(self, row: CheckpointRow) -> int:
        """Bytes of all files of a checkpoint."""
        return self._holdings.sum(self._numbers[row.id]).size

    def reached(self, rows: Iterable[CheckpointRow]) -> set[int]:
        """All objects of some checkpoints."""
        return self._holdings.reached(self._numbers[row.id] for row in rows)

    def weigh(self, objects: Iterable[int]) -> int:
        """Stored bytes of objects."""
        return sum(self._sizes[number] for number in objects)

    def alone(self, groups: Iterable[Iterable[CheckpointRow]]) -> Counter[int]:
        """Stored bytes that only one of the groups holds, by its place."""
        found: Counter[int] = Counter()
        holders = self._holdings.holders([self._numbers[row.id] for row in rows] for rows in groups)
        for holder, size in zip(holders, self._sizes, strict=True):
            found[holder] += size
        return found

    def problems(self, rows: Iterable[CheckpointRow]) -> tuple[Problem, ...]:
        """The checkpoints that could not be counted in full."""
        faults = ((row, self._holdings.sum(self._numbers[row.id]).fault) for row in rows)
        return tuple(
            Problem(ROOT, f"checkpoint {row.name or short(row.id)} is not counted in full: {fault}")
            for row, fault in faults
            if fault
        )
