"""Which workspace a directory of an agent belongs to, and whether it may become one without a person asking."""

from __future__ import annotations

import os
from pathlib import Path

from casnap.engine.context import Context
from casnap.engine.workspaces import enclosing
from casnap.errors import NoStore, Refused
from casnap.fs.paths import canonical
from casnap.model.paths import escape, is_within
from casnap.model.report import WorkspaceInfo
from casnap.settings import Settings, git_work_tree, open_context, protect, temporary_roots
from casnap.store.media import file_system
from casnap.workspace.mounts import PSEUDO

_DEVICES, _SHARED_MEMORY = b"/dev", b"/dev/shm"

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
    if (reason := _against(settings, chosen)) is not None:
        raise Refused(
            f"cannot protect {escape(chosen)}: {reason}",
            code="forbidden-path",
            hint="let the agent work in a directory of its own",
        )
    return chosen


def _against(settings: Settings, chosen: bytes) -> str | None:
    """Why a directory must not become a workspace without a person asking; None where nothing speaks against it."""
    if chosen in (*temporary_roots(settings.environ), _SHARED_MEMORY):
        return "everybody's temporary files are in it"
    kind = file_system(Path(os.fsdecode(chosen)))
    if kind in PSEUDO:
        return f"it is on a pseudo file system ({kind}), which holds no files of anybody"
    if is_within(chosen, _DEVICES) and not is_within(chosen, _SHARED_MEMORY):  # in containers it is a tmpfs
        return "devices are in it, and no files of anybody"
    return None
