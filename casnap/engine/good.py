"""Mark what a checkpoint holds as found good: what ``@good`` means."""

from __future__ import annotations

from casnap.engine.context import Context, workspace_lock, workspace_row
from casnap.engine.delete import live_row
from casnap.engine.history import noun_of
from casnap.model.checkpoint import Checkpoint
from casnap.model.operation import AnyOperation, CheckpointsFoundGood
from casnap.model.report import WorkspaceInfo
from casnap.store.state import State
from casnap.store.store import Commit


def mark_good(context: Context, workspace: WorkspaceInfo, checkpoint: Checkpoint) -> Checkpoint:
    """Mark a checkpoint as good; where it is so already, nothing is written.

    Returns:
        The checkpoint as it is now.

    Raises:
        NotFound: it has been deleted meanwhile.
    """
    if checkpoint.good:
        return checkpoint

    def build(state: State, commit: Commit) -> AnyOperation:
        row = workspace_row(state, workspace)
        live_row(state, checkpoint)
        return CheckpointsFoundGood(
            seq=commit.seq, time=commit.time, prev=commit.prev, by=context.by, workspace=row.id, ids=(checkpoint.id,)
        )

    with workspace_lock(context, [workspace.id], "run"):
        state = context.store.commit(build, last=True)
    return noun_of(context, state, bytes.fromhex(checkpoint.id))
