"""Where the outside world comes in: files, environment, home, identity and clock are read here and nowhere else.

The command line and :mod:`casnap.manager` both go through here, so that the same words mean the same store
and the same workspace to both (docs/reference/environment.md, docs/reference/configuration.md).
"""

from __future__ import annotations

from casnap.settings.background import free_space_if_due
from casnap.settings.environment import DEFAULT_PAGER, ROOT_STORE, SystemClock, may_ask, pager_command, wants_plain
from casnap.settings.layers import Layer, Setting, Settings, load_settings, stored_layer
from casnap.settings.resolution import (
    AnyPath,
    Protected,
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
    "free_space_if_due",
    "load_settings",
    "may_ask",
    "open_context",
    "pager_command",
    "paths_within",
    "protect",
    "resolve_workspace",
    "stored_layer",
    "wants_plain",
    "workspace_path",
    "workspaces_in_view",
]
