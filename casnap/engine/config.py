"""``config``: what is set for one workspace, kept in the store."""

from __future__ import annotations

from collections.abc import Mapping

from casnap.engine.context import Context, workspace_lock, workspace_row
from casnap.model.operation import AnyOperation, WorkspaceConfigured
from casnap.model.report import WorkspaceInfo
from casnap.store.state import State
from casnap.store.store import Commit


def configured(context: Context, workspace: WorkspaceInfo) -> tuple[tuple[str, str], ...]:
    """Keys that are set for a workspace, with their values in JSON."""
    return workspace_row(context.store.state(), workspace).settings


def configure(context: Context, workspace: WorkspaceInfo, values: Mapping[str, str]) -> bool:
    """Set keys to values in JSON; an empty text takes a key away. Whether that changed anything.

    Only these keys are recorded, so that of two commands at once each keeps what the other does not touch.
    """

    def build(state: State, commit: Commit) -> AnyOperation:
        row = workspace_row(state, workspace)
        return WorkspaceConfigured(
            seq=commit.seq, time=commit.time, prev=commit.prev, by=context.by, workspace=row.id, values=dict(values)
        )

    with workspace_lock(context, [workspace.id], "config"):
        known = dict(configured(context, workspace))
        if all(known.get(key, "") == value for key, value in values.items()):
            return False
        context.store.commit(build, last=True)
    return True
