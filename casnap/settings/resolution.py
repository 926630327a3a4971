"""Which store and which workspace somebody means, and what paths they name in it."""

from __future__ import annotations

import os
from collections.abc import Iterable

from msgspec import Struct

from casnap.engine.context import Context
from casnap.engine.workspaces import all_workspaces, enclosing, find, register, require_place
from casnap.errors import NoStore, NotFound, Usage
from casnap.fs.paths import canonical
from casnap.model.clock import Progress, Silent
from casnap.model.paths import escape, is_within
from casnap.model.report import WorkspaceInfo
from casnap.settings.environment import SystemClock
from casnap.settings.layers import Settings
from casnap.store.store import Store

AnyPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]


def open_context(settings: Settings, *, create: bool = False, progress: Progress | None = None) -> Context:
    """Open the store, or with ``create`` make it where there is none.

    Raises:
        NoStore: there is none, and none is to be made.
    """
    clock, policy = SystemClock(), settings.policy
    try:
        store = Store.open(settings.store, clock=clock, policy=policy, explicit=settings.explicit)
    except NoStore:
        if not create:
            raise
        store = Store.create(settings.store, clock=clock, policy=policy, user=settings.origin.user)
    return Context(
        store,
        policy,
        clock,
        settings.origin,
        settings.boot,
        progress or Silent(),
        policies=settings.policy_of,
        processes=settings.processes,
    )


class Protected(Struct, frozen=True):
    """A workspace that is registered by now, whether it was before, and what there is to say about it."""

    context: Context
    workspace: WorkspaceInfo
    new: bool
    notes: tuple[str, ...]


def protect(
    settings: Settings,
    given: str | None,
    *,
    context: Context | None = None,
    allow_home: bool = False,
    progress: Progress | None = None,
) -> Protected:
    """Register the workspace that ``init`` or ``checkpoint`` is about; nothing is written for a forbidden one.

    ``context`` is the store where it is open already.

    Raises:
        Usage: there is no such directory.
        Refused: it is one that must not be a workspace.
    """
    try:
        context = context or open_context(settings, progress=progress)
        path = _place_to_protect(settings, given, context)
    except NoStore:
        path = _place_to_protect(settings, given, None)
        # register asks this too; here it keeps a refusal from making a store
        require_place(canonical(path), store=os.fsencode(settings.store), home=settings.home, allow_home=allow_home)
        context = open_context(settings, create=True, progress=progress)
    workspace, new, notes = register(context, path, home=settings.home, allow_home=allow_home)
    return Protected(context, workspace, new, notes)


def resolve_workspace(settings: Settings, context: Context, given: str | None) -> WorkspaceInfo:
    """The registered workspace that a verb is about: the one given exactly, else the one around here.

    Raises:
        NotFound: none is registered there.
    """
    if (exact := given if given is not None else settings.workspace) is not None:
        return find(context, _place(settings, exact))
    here = _here(settings)
    if (workspace := enclosing(context, here)) is None:
        raise NotFound(
            f"no workspace here: {escape(here)} is in none that is registered",
            code="no-workspace",
            hint="register one with `casnap init`, or name one with -w DIR",
        )
    return workspace


def workspaces_in_view(
    settings: Settings, context: Context, given: str | None
) -> tuple[WorkspaceInfo, ...] | WorkspaceInfo:
    """What a verb shows that is about all workspaces when it is not within one.

    Raises:
        NotFound: the workspace that was named is not registered.
    """
    if given is not None or settings.workspace is not None:
        return resolve_workspace(settings, context, given)
    within = None if settings.cwd is None else enclosing(context, settings.cwd)
    return within or tuple(all_workspaces(context))


def paths_within(
    settings: Settings, workspace: WorkspaceInfo, given: Iterable[AnyPath], *, exact: bool
) -> tuple[bytes, ...]:
    """Paths as somebody names them, as paths relative to the workspace; they need not exist.

    They are relative to the workspace when that was named exactly, else to the current directory.
    A link inside the workspace is an entry of it and not followed; links that lead to it are.

    Raises:
        Usage: a path is empty or lies outside the workspace.
    """
    root = workspace_path(workspace)
    return tuple(_path_within(root, root if exact else _here(settings), os.fsencode(path)) for path in given)


def workspace_path(workspace: WorkspaceInfo) -> bytes:
    """The workspace's directory."""
    return os.fsencode(workspace.path)


def _place_to_protect(settings: Settings, given: str | None, context: Context | None) -> bytes:
    if (exact := given if given is not None else settings.workspace) is not None:
        return _place(settings, exact)
    here = _here(settings)
    if context is not None and (workspace := enclosing(context, here)) is not None:
        return workspace_path(workspace)
    return git_work_tree(here) or here


def git_work_tree(directory: bytes) -> bytes | None:
    """The nearest directory at or above that has a ``.git``: a directory, or in linked work trees a file."""
    while not os.path.lexists(os.path.join(directory, b".git")):
        if directory == (parent := os.path.dirname(directory)):
            return None
        directory = parent
    return directory


def _place(settings: Settings, given: str) -> bytes:
    if not given:
        raise Usage("no workspace: its name is empty", hint="name a directory")
    path = os.fsencode(given)
    return path if os.path.isabs(path) else os.path.join(_here(settings), path)


def _here(settings: Settings) -> bytes:
    if settings.cwd is None:
        raise Usage("cannot tell the current directory: it was removed", hint="name the workspace with -w DIR")
    return settings.cwd


def _path_within(root: bytes, base: bytes, given: bytes) -> bytes:
    if not given:
        raise Usage("bad path '': it is empty", code="bad-path")
    if b"\0" in given:
        raise Usage(f"bad path {escape(given)!r}: it holds a NUL", code="bad-path")
    path = os.path.normpath(os.path.join(base, given))
    if path.startswith(b"//"):  # POSIX lets two slashes mean something else; Linux does not
        path = path[1:]
    if (inside := _below(path, root)) is not None:
        return inside
    parts = path.split(b"/")
    for end in range(2, len(parts) + 1):  # a link outside that leads here: the outermost one counts
        reached = _below(os.path.realpath(b"/".join(parts[:end])), root)
        if reached is not None:
            return b"/".join(part for part in (reached, *parts[end:]) if part)
    raise Usage(
        f"bad path {escape(given)}: it lies outside the workspace {escape(root)}",
        code="bad-path",
        hint="name paths inside the workspace",
    )


def _below(path: bytes, root: bytes) -> bytes | None:
    """``path`` relative to ``root``; None when it is not within."""
    return path[len(root) :].lstrip(b"/") if is_within(path, root) else None
