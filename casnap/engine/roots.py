"""Opening a workspace's directory: to look at it, or locked for a change."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence

from msgspec import Struct

from casnap.engine.context import Context, workspace_lock, workspace_row
from casnap.engine.workspaces import around_and_inside
from casnap.errors import Busy, CasnapError
from casnap.fs import placing
from casnap.fs.directories import Directories
from casnap.model.paths import escape
from casnap.model.report import WorkspaceInfo
from casnap.store.state import WorkspaceRow


def peek_root(row: WorkspaceRow) -> Directories:
    """The workspace's directory, to be looked at only.

    Raises:
        NotFound: it is gone.
        Refused: a symbolic link stands there.
    """
    return Directories(row.path)


class LockedRoot(Struct, frozen=True):
    """A workspace's row and directory under every lock that a change of its files needs, and notes."""

    row: WorkspaceRow
    directories: Directories
    notes: tuple[str, ...]


@contextlib.contextmanager
def locked_roots(
    context: Context, workspaces: Sequence[WorkspaceInfo], verb: str, *, required: bool = True
) -> Iterator[list[LockedRoot]]:
    """Lock workspaces, those registered inside and around them, and their directories.

    A directory that is gone is made anew: its content is in the checkpoints. Unless ``required``, the store's
    locks may be missing; the directories' own always hold. They are taken in the order of their paths, so that
    users of several stores do not wait for each other.
    """
    state = context.store.state()
    ids = [id for workspace in workspaces for id in around_and_inside(state, workspace_row(state, workspace))]
    with workspace_lock(context, ids, verb, required=required), contextlib.ExitStack() as opened:
        roots = {
            workspace.id: opened.enter_context(_locked_root(context, workspace, verb))
            for workspace in sorted(workspaces, key=lambda workspace: workspace.path)
        }
        yield [roots[workspace.id] for workspace in workspaces]


@contextlib.contextmanager
def _locked_root(context: Context, workspace: WorkspaceInfo, verb: str) -> Iterator[LockedRoot]:
    row = workspace_row(context.store.state(), workspace)
    notes = _make_if_gone(row)
    with Directories(row.path) as directories:
        if not directories.lock(context.policy.wait):
            raise Busy(
                f"cannot {verb}: another program has locked the directory {workspace.path}",
                hint="wait for it to end, or give it longer with --wait SECONDS",
                details={"lock": workspace.path, "holder": "another program"},
            )
        yield LockedRoot(row, directories, notes)


def _make_if_gone(row: WorkspaceRow) -> tuple[str, ...]:
    if os.path.lexists(row.path):
        return ()
    try:
        placing.make_root(row.path)
    except OSError as error:
        raise CasnapError(f"cannot create {escape(row.path)}: {error.strerror}") from error
    return (f"the directory was gone and is made anew: {escape(row.path)}",)
