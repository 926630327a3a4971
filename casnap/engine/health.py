"""How a store and the workspaces in it are, for ``casnap doctor``; changes nothing and reads no object."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from casnap.engine.context import Context
from casnap.engine.upkeep import upkeep_status
from casnap.engine.workspaces import all_workspaces
from casnap.model.checkpoint import format_instant
from casnap.model.health import Diagnosis, bad, good, note
from casnap.model.paths import escape
from casnap.store.state import State, WorkspaceRow


def store_health(context: Context) -> Iterator[Diagnosis]:
    """The store as a whole."""
    store, state = context.store, context.store.state()
    free, _ = store.space.free()
    if store.writable:
        yield good("store", f"{store.path}: {store.space.used()} bytes are used, {free} free")
    else:
        yield bad("store", f"{store.path} cannot be written: {store.obstacle}", "name another one with CASNAP_STORE")
    yield from _catalog(store.catalog, state.seq)
    most = max((_checkpoints(state, row) for row in state.workspaces()), default=0)
    upkeep = upkeep_status(context, most)
    for warning in upkeep.warnings:
        said, _, remedy = warning.partition(": ")
        yield (note if upkeep.clean else bad)("store", said, remedy)
    if upkeep.checked_ns is not None and upkeep.clean:
        yield good("store", f"checked at {format_instant(upkeep.checked_ns)}, and nothing was wrong")


def _catalog(path: Path | None, seq: int) -> Iterator[Diagnosis]:
    """The catalog, which is made anew when it is gone."""
    from casnap.store.catalog import CatalogLost
    from casnap.store.catalog_inspection import inspect_catalog  # here, since it takes long to import

    if path is None:
        yield note("catalog", "there is none, so that each command reads the whole log", "the next checkpoint makes it")
        return
    try:
        facts = inspect_catalog(path)
    except CatalogLost as error:
        yield bad("catalog", f"{path} cannot be read: {error}", "set it aside and make it anew: casnap check --repair")
        return
    if facts.strange:
        said = f"{path} has other tables than it should have: {'; '.join(facts.strange)}"
        yield bad("catalog", said, "set it aside and make it anew: casnap check --repair")
        return
    yield good("catalog", _catalog_text(path.name, facts.rows["checkpoints"], facts.seq, seq))


def _catalog_text(name: str, checkpoints: int, has: int, seq: int) -> str:
    """What a catalog holds: it may well lag behind, since writing it costs more than reading a few lines again."""
    if has == seq:
        return f"{name} has all {seq} operations; checkpoints: {checkpoints}"
    return (
        f"{name} is behind by {seq - has} of {seq} operations, and may be: each command reads so few from the log, "
        "and one that writes brings it up to date once they are many"
    )


def workspace_health(context: Context) -> Iterator[Diagnosis]:
    """Each registered workspace that there is something to say of, and how many there are."""
    state = context.store.state()
    workspaces = all_workspaces(context)
    for workspace in workspaces:
        row = state.workspace(workspace.id)
        if row is not None:
            yield from _workspace(row)
    if not workspaces:
        yield note("workspaces", "none is registered", "protect a directory with: casnap init -w DIR")
    else:
        yield good("workspaces", f"{len(workspaces)} registered")


def _workspace(row: WorkspaceRow) -> Iterator[Diagnosis]:
    path = escape(row.path)
    subject = f"workspace {path}"
    if not os.path.isdir(row.path):
        yield note(
            subject,
            "its directory is gone",
            f"bring it back with: casnap rollback -w {path} --yes; or forget it with: casnap forget -w {path}",
        )
    if row.open:
        yield bad(subject, f"a {row.open[-1].verb} was interrupted", f"go on with: casnap recover -w {path}")
    if not row.head:
        yield bad(subject, "there is no checkpoint to go back to", f"make one with: casnap checkpoint -w {path}")


def _checkpoints(state: State, row: WorkspaceRow) -> int:
    return sum(not found.deleted and not found.safety for found in state.history(row.id))
