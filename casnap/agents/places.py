"""Which workspace a directory of an agent belongs to, and whether it may become one without a person asking."""

from __future__ import annotations

import os

from casnap.engine.context import Context
from casnap.engine.workspaces import enclosing
from casnap.errors import NoStore, Refused
from casnap.fs.paths import canonical
from casnap.model.paths import escape
from casnap.model.report import WorkspaceInfo
from casnap.settings import Settings, git_work_tree, open_context, protect, temporary_roots

_HOW = "protect it with: casnap init -w {}"


def open_workspace(settings: Settings, directory: bytes) -> tuple[Context, WorkspaceInfo]:
    """The store, and the registered workspace around a directory; one is registered where ``hook.auto_init`` allows.

    Raises:
        Refused: none is registered, and none may be.
        Usage: there is no such directory.
    """
    place = canonical(directory)
    try:
        context = open_context(settings)
    except NoStore:
        context = None
    if context is not None and (known := enclosing(context, place)) is not None:
        return context, known
    protected = protect(settings, os.fsdecode(_may_become_one(settings, place)), context=context)
    return protected.context, protected.workspace


def _may_become_one(settings: Settings, place: bytes) -> bytes:
    """The directory to register: the git work tree around a place, else that itself.

    What must never be one is refused by :func:`casnap.settings.protect`, but for roots of temporary directories.
    """
    rule = next(setting.value for setting in settings.effective() if setting.key == "hook.auto_init")
    tree = git_work_tree(place)
    shown = escape(place)
    if rule == "never":
        raise Refused(f"no workspace at {shown}: hooks register none", code="no-auto-init", hint=_HOW.format(shown))
    if rule == "project" and tree is None:
        raise Refused(
            f"no workspace at {shown}: it is in no git work tree, and hooks register no other directory",
            code="no-auto-init",
            hint=_HOW.format(shown),
        )
    chosen = tree or place
    if chosen in temporary_roots(settings.environ):
        raise Refused(
            f"cannot protect {escape(chosen)}: everybody's temporary files are in it",
            code="forbidden-path",
            hint="let the agent work in a directory of its own",
        )
    return chosen
