"""Which directories are protected: registering, finding and forgetting workspaces."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from casnap.engine.context import Context, workspace_lock, workspace_row
from casnap.errors import NotFound, Refused, Usage
from casnap.fs.paths import canonical
from casnap.model.paths import escape
from casnap.model.report import WorkspaceInfo
from casnap.store.state import State, WorkspaceRow
from casnap.store.store import Commit

if TYPE_CHECKING:
    from casnap.model.operation import AnyOperation


def register(
    context: Context, path: str | bytes, *, home: bytes | None, allow_home: bool = False
) -> tuple[WorkspaceInfo, bool, tuple[str, ...]]:
    """Protect a directory; harmless when it is protected already.

    Returns:
        The workspace, whether it is new, and notes for a person.

    Raises:
        Usage: the path is no directory.
        Refused: the path is ``/``, the home directory or above it, or inside the store.
    """
    state = context.store.state()
    known = _known(state, path)
    if known is not None and not known.forgotten:
        return _info(known), False, ()
    directory = canonical(path)
    require_place(directory, store=bytes(context.store.path), home=home, allow_home=allow_home)

    from casnap.model.operation import WorkspaceRegistered  # here and below, since most only look

    def build(state: State, commit: Commit) -> AnyOperation:
        earlier = state.workspace_at(directory)
        return WorkspaceRegistered(
            seq=commit.seq,
            time=commit.time,
            prev=commit.prev,
            by=context.by,
            workspace=earlier.id if earlier else os.urandom(6).hex(),
            path=escape(directory),
        )

    with context.store.lock("register", context.holder("init")):
        row = context.store.state().workspace_at(directory)
        if row is not None and not row.forgotten:
            return _info(row), False, ()
        row = context.store.commit(build).workspace_at(directory)
    assert row is not None
    return _info(row), True, _neighbour_notes(context, row)


def require_place(path: bytes, *, store: bytes, home: bytes | None, allow_home: bool) -> None:
    """See that a canonical path may become a workspace of the store at ``store``.

    Raises:
        Usage: it is no directory.
        Refused: it is ``/``, the home directory or above it, or inside the store.
    """
    _require_directory(path)
    _require_allowed(path, store, home, allow_home)


def _require_directory(path: bytes) -> None:
    try:
        status = os.stat(path)
    except OSError as error:
        raise Usage(f"cannot protect {escape(path)}: {error.strerror}", hint="name a directory that exists") from None
    if not stat.S_ISDIR(status.st_mode):
        raise Usage(f"no workspace at {escape(path)}: it is not a directory", hint="name the directory that holds it")


def _require_allowed(path: bytes, store: bytes, home: bytes | None, allow_home: bool) -> None:
    if _is_at_or_below(path, canonical(store)):
        raise Refused(f"cannot protect {escape(path)}: it lies inside the store", code="forbidden-path")
    if path == b"/":
        raise Refused(
            "cannot protect /: it is the root of the file system",
            code="forbidden-path",
            hint="protect the directories that you work in",
        )
    home = canonical(home) if home else None
    if home is None or not _is_at_or_below(home, path) or (path == home and allow_home):
        return
    raise Refused(
        f"cannot protect {escape(path)}: it {'is' if path == home else 'holds'} your home directory",
        code="forbidden-path",
        hint="protect a directory below it" + (", or say --allow-home" if path == home else ""),
    )


def _neighbour_notes(context: Context, row: WorkspaceRow) -> tuple[str, ...]:
    notes = []
    if (moved := gone_namesake(context, row.path)) is not None:
        notes.append(
            f"the workspace {moved.path} is gone; if it was moved here, forget this one, and then join its history "
            f"with: casnap workspace move {moved.path} {escape(row.path)}"
        )
    for other in all_workspaces(context):
        path = os.fsencode(other.path)
        if other.id == row.id:
            continue
        if _is_at_or_below(row.path, path):
            notes.append(f"it lies inside the workspace {escape(path)}")
        elif _is_at_or_below(path, row.path):
            notes.append(f"the workspace {escape(path)} lies inside it")
    return tuple(notes)


def find(context: Context, path: str | bytes) -> WorkspaceInfo:
    """The workspace registered at exactly this path.

    Raises:
        Usage: a file is there.
        Refused: it is ``/``, which can never be one.
        NotFound: none is; the message names the enclosing workspace where there is one.
    """
    row = _known(context.store.state(), path)
    if row is not None and not row.forgotten:
        return _info(row)
    directory = canonical(path)
    if directory == b"/":
        _require_allowed(directory, bytes(context.store.path), None, allow_home=False)
    if os.path.lexists(directory):
        _require_directory(directory)
    around = enclosing(context, directory)
    hint = f"use -w {around.path}" if around else f"register it with: casnap init -w {escape(directory)}"
    if (moved := gone_namesake(context, directory)) is not None:
        hint = f"if it was moved here from {moved.path}: casnap workspace move {moved.path} {escape(directory)}"
    raise NotFound(
        f"no workspace at {escape(directory)}: it is not registered" + (f", but {around.path} is" if around else ""),
        code="no-workspace",
        hint=hint,
        details={"path": escape(directory), "enclosing": around.path if around else None},
    )


def enclosing(context: Context, path: str | bytes) -> WorkspaceInfo | None:
    """The nearest workspace registered at or above a path."""
    directory = canonical(path)
    rows = {row.path: row for row in context.store.state().workspaces() if not row.forgotten}
    while True:
        if directory in rows:
            return _info(rows[directory])
        parent = os.path.dirname(directory)
        if parent == directory:
            return None
        directory = parent


def gone_namesake(context: Context, directory: bytes) -> WorkspaceInfo | None:
    """A registered workspace whose directory is gone, if there is just one that may have been moved here.

    That it was is for the person to say: inodes are used again at once, and prove nothing.
    """
    gone = [found for found in all_workspaces(context) if not os.path.lexists(found.path)]
    same = [found for found in gone if os.path.basename(os.fsencode(found.path)) == os.path.basename(directory)]
    chosen = same or gone
    return chosen[0] if len(chosen) == 1 and os.path.isdir(directory) else None


def is_registered(context: Context, path: str | bytes) -> bool:
    """Whether a path, as it is spelt or without its links, is that of a workspace."""
    row = _known(context.store.state(), path)
    return row is not None and not row.forgotten


def all_workspaces(context: Context) -> list[WorkspaceInfo]:
    """Every registered workspace, sorted by path."""
    return [_info(row) for row in context.store.state().workspaces() if not row.forgotten]


def around_and_inside(state: State, row: WorkspaceRow) -> list[str]:
    """The ids of a workspace and of those registered inside and around it: what its rollback locks."""
    return [
        other.id
        for other in state.workspaces()
        if not other.forgotten and (_is_at_or_below(other.path, row.path) or _is_at_or_below(row.path, other.path))
    ]


def forget(context: Context, workspace: WorkspaceInfo, *, drop: bool = False) -> None:
    """Stop protecting a workspace; its checkpoints stay unless ``drop`` gives them to gc."""

    from casnap.model.operation import WorkspaceForgotten

    def build(state: State, commit: Commit) -> AnyOperation:
        row = workspace_row(state, workspace)
        return WorkspaceForgotten(
            seq=commit.seq, time=commit.time, prev=commit.prev, by=context.by, workspace=row.id, drop=drop
        )

    context.store.space.make_room()
    with workspace_lock(context, [workspace.id], "forget"):
        context.store.commit(build, last=True)


def _known(state: State, path: str | bytes) -> WorkspaceRow | None:
    """The row of a path: as it is spelt first, since a registered path may have become a link."""
    spelt = os.path.abspath(os.fsencode(path))
    return state.workspace_at(spelt) or state.workspace_at(canonical(path))


def _is_at_or_below(path: bytes, directory: bytes) -> bool:
    return path == directory or path.startswith(directory.rstrip(b"/") + b"/")


def _info(row: WorkspaceRow) -> WorkspaceInfo:
    return WorkspaceInfo(row.id, os.fsdecode(row.path))
