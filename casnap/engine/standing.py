"""``workspace``: which directories are protected, which of them are gone, and where a moved one is now."""

from __future__ import annotations

import os

from casnap.engine.context import Context, workspace_lock, workspace_row
from casnap.engine.workspaces import all_workspaces, find, require_place
from casnap.errors import Refused
from casnap.fs.paths import canonical
from casnap.model.operation import AnyOperation, WorkspaceRegistered
from casnap.model.paths import escape
from casnap.model.report import WorkspaceInfo, WorkspaceStanding
from casnap.store.state import State
from casnap.store.store import Commit


def standings(context: Context) -> list[WorkspaceStanding]:
    """Every registered workspace, sorted by path."""
    state = context.store.state()
    return [
        WorkspaceStanding(
            workspace=workspace,
            checkpoints=sum(not row.deleted and not row.safety for row in state.history(workspace.id)),
            gone=not _is_there(workspace),
        )
        for workspace in all_workspaces(context)
    ]


def _is_there(workspace: WorkspaceInfo) -> bool:
    """A link to where it was moved is not the directory itself: nothing is captured through it."""
    return os.path.isdir(workspace.path) and not os.path.islink(workspace.path)


def move(context: Context, old: bytes, new: bytes, *, home: bytes | None) -> WorkspaceInfo:
    """Follow a workspace's directory that was moved from ``old`` to ``new``.

    Raises:
        NotFound: no workspace is registered at ``old``.
        Usage: ``new`` is no directory.
        Refused: the directory is still at ``old``, ``new`` is protected already, or it must not be.
    """
    workspace = find(context, old)
    place = canonical(new)
    if _is_there(workspace):
        raise Refused(
            f"cannot move {workspace.path}: the directory is still there",
            code="not-moved",
            hint=f"a copy is a workspace of its own: casnap init -w {escape(place)}",
        )
    require_place(place, store=bytes(context.store.path), home=home, allow_home=False)

    def build(state: State, commit: Commit) -> AnyOperation:
        row = workspace_row(state, workspace)
        there = state.workspace_at(place)
        if there is not None and not there.forgotten:
            raise Refused(
                f"cannot move to {escape(place)}: it is a workspace already",
                code="taken",
                hint=f"if its history is not needed: casnap forget -w {escape(place)}",
            )
        return WorkspaceRegistered(
            seq=commit.seq,
            time=commit.time,
            prev=commit.prev,
            by=context.by,
            workspace=row.id,
            path=escape(place),
        )

    with (
        workspace_lock(context, [workspace.id], "workspace move"),
        context.store.lock("register", context.holder("workspace move")),
    ):
        context.store.commit(build, last=True)
    return WorkspaceInfo(workspace.id, os.fsdecode(place))
