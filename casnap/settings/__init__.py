"""Where the outside world comes in: files, environment, home, identity and clock are read here and nowhere else.

The command line and :mod:`casnap.manager` both go through here, so that the same words mean the same store
and the same workspace to both (docs/reference/environment.md, docs/reference/configuration.md).
"""

from __future__ import annotations

import importlib
from typing import Any

from casnap.settings.environment import (
    DEFAULT_PAGER,
    ROOT_STORE,
    SystemClock,
    may_ask,
    pager_command,
    temporary_roots,
    wants_plain,
)
from casnap.settings.layers import Layer, Setting, Settings, load_settings, stored_layer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from casnap.settings.background import free_space_if_due
    from casnap.settings.detaching import Vanished, apart
    from casnap.settings.resolution import (
        AnyPath,
        Protected,
        git_work_tree,
        open_context,
        paths_within,
        protect,
        resolve_workspace,
        workspace_path,
        workspaces_in_view,
    )

__all__ = [
    "DEFAULT_PAGER",
    "ROOT_STORE",
    "AnyPath",
    "Layer",
    "Protected",
    "Setting",
    "Settings",
    "SystemClock",
    "Vanished",
    "apart",
    "free_space_if_due",
    "git_work_tree",
    "load_settings",
    "may_ask",
    "open_context",
    "pager_command",
    "paths_within",
    "protect",
    "resolve_workspace",
    "stored_layer",
    "temporary_roots",
    "wants_plain",
    "workspace_path",
    "workspaces_in_view",
]


_ROOMS = {"Vanished": "detaching", "apart": "detaching", "free_space_if_due": "background"}


def __getattr__(name: str) -> Any:
    """What needs a store, or another process, is imported when it is asked for: few commands need all of it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"casnap.settings.{_ROOMS.get(name, 'resolution')}"), name)
