"""``rename``: give a checkpoint another name, or none."""

from __future__ import annotations

from casnap.engine.checkpoint import require_free_name
from casnap.engine.context import Context, workspace_lock, workspace_row
from casnap.engine.delete import live_row
from casnap.engine.history import noun_of
from casnap.errors import Refused
from casnap.model.checkpoint import Checkpoint
from casnap.model.operation import AnyOperation, CheckpointRenamed
from casnap.model.report import WorkspaceInfo
from casnap.model.revision import normalise_name
from casnap.store.state import State
from casnap.store.store import Commit


def rename(context: Context, workspace: WorkspaceInfo, checkpoint: Checkpoint, name: str | None) -> Checkpoint:
    """Name a checkpoint; None takes its name away.

    Raises:
        Usage: the name is a bad one.
        NotFound: the checkpoint has been deleted meanwhile.
        Refused: the name is taken in this workspace, or it is a safety checkpoint, which has none.
    """
    wanted = "" if name is None else normalise_name(name)
    if checkpoint.safety:
        raise Refused(
            f"cannot rename {checkpoint.label}: a safety checkpoint has no name",
            code="is-safety",
            hint="pin it to keep it: casnap pin " + checkpoint.label,
        )

    def build(state: State, commit: Commit) -> AnyOperation:
        row = workspace_row(state, workspace)
        if live_row(state, checkpoint).name != wanted:
            require_free_name(state, row, wanted)
        return CheckpointRenamed(
            seq=commit.seq,
            time=commit.time,
            prev=commit.prev,
            by=context.by,
            workspace=row.id,
            id=checkpoint.id,
            name=wanted,
        )

    with workspace_lock(context, [workspace.id], "rename"):
        return noun_of(context, context.store.commit(build, last=True), bytes.fromhex(checkpoint.id))
