"""Checkpoints that lie in packs and that nobody knows of any more, as operations that list them again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from casnap.codec.checkpoints import decode_checkpoint
from casnap.codec.trees import load_listing
from casnap.errors import Damage
from casnap.model.checkpoint import CheckpointObject
from casnap.model.ids import ObjectKind
from casnap.model.operation import (
    AnyOperation,
    CheckpointMade,
    CheckpointsDeleted,
    CheckpointUndeleted,
    PathsExpunged,
    SpaceFreed,
    WorkspaceRegistered,
)
from casnap.model.paths import escape
from casnap.store.inspection import Inspection
from casnap.store.new_lines import Planned, fold

_ANY: dict[str, Any] = {"seq": 0, "prev": "0" * 64}

RECOVERED = b"/recovered/"
"""Where a workspace is said to be of which only the id is known."""


def find_checkpoints(found: Inspection, planned: list[Planned], now: int) -> list[Planned]:
    """New lines for checkpoints of which ``planned`` knows nothing, oldest first; ``found`` has looked at all packs.

    Those that a line says were deleted or freed stay so, and so do those whose root directory cannot be read.
    """
    tables = fold(planned)
    gone = _gone(one.operation for one in planned)
    new: list[tuple[bytes, CheckpointObject]] = []
    for key, _ in found.places.rows():
        if key.kind is ObjectKind.CHECKPOINT and key.id not in gone and tables.checkpoints.get(key.id) is None:
            gone.add(key.id)
            with contextlib.suppress(Damage):
                made = decode_checkpoint(found.read(key))
                load_listing(found, made.root.tree)
                new.append((key.id, made))
    new.sort(key=lambda pair: (pair[1].scan_ended, pair[0]))
    lines: list[AnyOperation] = []
    steps = {row.id: row.last_step for row in tables.workspaces.changed.values()}
    heads = {row.id for row in tables.workspaces.changed.values() if row.head}
    for workspace in dict.fromkeys(made.workspace for _, made in new):
        if workspace not in steps:
            lines += _registration(found, workspace, now)
            steps[workspace] = 0
    for id, made in new:
        steps[made.workspace] += 1
        lines.append(_line(id, made, steps[made.workspace], aside=made.workspace in heads))
    return [Planned(line) for line in lines]


def with_workspaces(found: Inspection, planned: list[Planned], now: int) -> list[Planned]:
    """The same, and in the beginning a line for each workspace that later ones speak of and none registers."""
    known: set[str | None] = set()
    missing: dict[str, None] = {}
    for one in planned:
        workspace = getattr(one.operation, "workspace", None)
        if isinstance(one.operation, WorkspaceRegistered):
            known.add(workspace)
        elif workspace is not None and workspace not in known:
            missing[workspace] = None
    lines = [Planned(line) for workspace in missing for line in _registration(found, workspace, now)]
    return [*planned[:1], *lines, *planned[1:]]


def _gone(operations: Iterable[AnyOperation]) -> set[bytes]:
    gone: set[bytes] = set()
    for operation in operations:
        match operation:
            case CheckpointsDeleted(ids=ids) | SpaceFreed(freed=ids):
                gone |= set(map(bytes.fromhex, ids))
            case PathsExpunged(replaced=replaced):
                gone |= {bytes.fromhex(old) for old, _ in replaced}
            case CheckpointUndeleted(id=id):
                gone.discard(bytes.fromhex(id))
    return gone


def _registration(found: Inspection, workspace: str, now: int) -> Iterator[AnyOperation]:
    path = b""
    with contextlib.suppress(OSError):
        path = (found.layout.cache / f"{workspace}.path").read_bytes()
    known = path.startswith(b"/") and b"\0" not in path
    place = path if known else RECOVERED + workspace.encode()
    yield WorkspaceRegistered(**_ANY, time=now, workspace=workspace, path=escape(place))


def _line(id: bytes, made: CheckpointObject, step: int, *, aside: bool) -> CheckpointMade:
    return CheckpointMade(
        **_ANY,
        time=made.scan_ended,
        workspace=made.workspace,
        id=id.hex(),
        step=step,
        name=f"recovered-{step}",
        automatic=True,
        aside=aside,
        parent=made.parent.hex(),
    )


def recovered_workspaces(planned: Iterable[Planned]) -> list[str]:
    """The paths under which workspaces stand whose real ones nobody knows."""
    tables = fold(planned)
    return sorted(escape(row.path) for row in tables.workspaces.changed.values() if row.path.startswith(RECOVERED))
