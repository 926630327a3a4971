"""``pin`` and ``unpin``: a pinned checkpoint cannot be deleted, by hand or by a policy."""

from __future__ import annotations

from collections.abc import Sequence

from casnap.engine.context import Context, workspace_lock, workspace_row
from casnap.engine.delete import live_row
from casnap.engine.history import noun_of
from casnap.model.checkpoint import Checkpoint
from casnap.model.operation import AnyOperation, CheckpointsPinned
from casnap.model.report import WorkspaceInfo
from casnap.store.state import State
from casnap.store.store import Commit


def set_pinned(
    context: Context, workspace: WorkspaceInfo, checkpoints: Sequence[Checkpoint], *, pinned: bool
) -> tuple[Checkpoint, ...]:
    """Pin checkpoints, or let them go again; harmless where it is so already.

    Returns:
        The checkpoints as they are now.

    Raises:
        NotFound: one has been deleted meanwhile.
    """
    ids = tuple(dict.fromkeys(checkpoint.id for checkpoint in checkpoints))

    def build(state: State, commit: Commit) -> AnyOperation:
        row = workspace_row(state, workspace)
        for checkpoint in checkpoints:
            live_row(state, checkpoint)
        return CheckpointsPinned(
            seq=commit.seq, time=commit.time, prev=commit.prev, by=context.by, workspace=row.id, ids=ids, pinned=pinned
        )

    with workspace_lock(context, [workspace.id], "pin" if pinned else "unpin"):
        state = context.store.commit(build, last=True)
    return tuple(noun_of(context, state, bytes.fromhex(id)) for id in ids)
