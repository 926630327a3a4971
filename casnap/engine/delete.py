"""``delete`` and ``undelete``: checkpoints leave the lists and come back; bytes go only with gc."""

from __future__ import annotations

from collections.abc import Sequence

from casnap.engine.context import Context, workspace_lock, workspace_row
from casnap.engine.history import noun_of
from casnap.errors import NotFound, Refused
from casnap.model.checkpoint import Checkpoint
from casnap.model.operation import AnyOperation, CheckpointsDeleted, CheckpointUndeleted
from casnap.model.report import DeleteReport, UndeleteReport, WorkspaceInfo
from casnap.store.state import CheckpointRow, State
from casnap.store.store import Commit


def delete(context: Context, workspace: WorkspaceInfo, checkpoints: Sequence[Checkpoint]) -> DeleteReport:
    """Delete checkpoints; all of them or, when one cannot be, none.

    When head goes, its nearest surviving ancestor becomes head; the files stay as they are.

    Raises:
        NotFound: one has been deleted meanwhile.
        Refused: one is pinned.
    """
    ids = list(dict.fromkeys(checkpoint.id for checkpoint in checkpoints))

    def build(state: State, commit: Commit) -> AnyOperation:
        workspace_row(state, workspace)
        for checkpoint in checkpoints:
            _require_deletable(state, checkpoint)
        return CheckpointsDeleted(
            seq=commit.seq, time=commit.time, prev=commit.prev, by=context.by, workspace=workspace.id, ids=tuple(ids)
        )

    context.store.space.make_room()  # it is how space comes back: on a full disk too
    with workspace_lock(context, [workspace.id], "delete"):
        state = context.store.commit(build, last=True)
    head = workspace_row(state, workspace).head
    return DeleteReport(tuple(noun_of(context, state, bytes.fromhex(id)) for id in ids), head.hex() or None)


def _require_deletable(state: State, checkpoint: Checkpoint) -> None:
    if live_row(state, checkpoint).pinned:
        raise Refused(
            f"cannot delete {checkpoint.label}: it is pinned",
            code="pinned",
            hint=f"let it go first with: casnap unpin {checkpoint.label}",
        )


def live_row(state: State, checkpoint: Checkpoint) -> CheckpointRow:
    """The row of a checkpoint that was there when it was asked for.

    Raises:
        NotFound: it has been deleted meanwhile.
    """
    row = state.checkpoint(bytes.fromhex(checkpoint.id))
    if row is None or row.deleted:
        raise NotFound(f"no checkpoint {checkpoint.label}: it is deleted already", code="no-such-checkpoint")
    return row


def undelete(context: Context, workspace: WorkspaceInfo, checkpoint: Checkpoint) -> UndeleteReport:
    """Bring a deleted checkpoint back, without its name where another has taken that.

    Raises:
        Refused: it is not deleted.
        NotFound: its bytes were freed.
    """
    id = bytes.fromhex(checkpoint.id)

    def build(state: State, commit: Commit) -> AnyOperation:
        workspace_row(state, workspace)
        row = state.checkpoint(id)
        if row is None or not row.deleted:
            raise Refused(f"cannot undelete {checkpoint.label}: it is not deleted", code="not-deleted")
        if row.freed:
            raise NotFound(f"cannot undelete {checkpoint.label}: a gc has freed its bytes", code="freed")
        free = bool(row.name) and state.named(workspace.id, row.name) is None
        return CheckpointUndeleted(
            seq=commit.seq,
            time=commit.time,
            prev=commit.prev,
            by=context.by,
            workspace=workspace.id,
            id=checkpoint.id,
            name=row.name if free else "",
        )

    with workspace_lock(context, [workspace.id], "undelete"):
        back = noun_of(context, context.store.commit(build, last=True), id)
    return UndeleteReport(back, name_lost=checkpoint.name if back.name != checkpoint.name else None)
