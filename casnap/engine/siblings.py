"""Siblings: a workspace that another one is a copy of, or a work tree beside it, with a few lines changed.

What is the same is shared whatever the paths. What differs a little is written as a difference to what stands at the
same path in the sibling; a wrong guess costs bytes and nothing else.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from casnap.engine.compare import TreeView
from casnap.engine.context import Context
from casnap.engine.history import load_object
from casnap.errors import CasnapError
from casnap.fs.directories import Directories
from casnap.model.tree import AnyEntry
from casnap.store.rows import WorkspaceRow
from casnap.workspace.scan import Sibling

LOOKED_AT = 32
"""Of so many workspaces, those that were busy last, the root is compared."""

ALIKE = 0.5
"""The least part of all names in both roots that must be in both."""

_NEARLY = 0.05
"""Of those that are as alike but for so much, the newest is taken: then each builds on the one before it, and is
counted where too much stands on one object.
"""


def sibling_of(context: Context, row: WorkspaceRow, directories: Directories) -> Sibling | None:
    """The workspace that is most like another one, of which nothing is known yet; None where none is much like it."""
    try:
        names = frozenset(map(os.fsencode, os.listdir(directories.root_fd)))
    except OSError:
        return None
    rated = [(likeness, view) for view in _views(context, row) if (likeness := _likeness(names, view)) >= ALIKE]
    if not rated:
        return None
    best = max(likeness for likeness, _ in rated)
    view = next(view for likeness, view in rated if likeness >= best - _NEARLY)

    def entry(path: bytes) -> AnyEntry | None:
        with contextlib.suppress(CasnapError):  # it is only a hint
            return view.entry(path)
        return None

    return entry


def _views(context: Context, row: WorkspaceRow) -> Iterator[TreeView]:
    """The newest checkpoints of other workspaces, those that were busy last first."""
    others = [other for other in context.store.state().workspaces() if other.id != row.id and other.head]
    others.sort(key=lambda other: other.last_operation, reverse=True)
    for other in others[:LOOKED_AT]:
        with contextlib.suppress(CasnapError):
            yield TreeView(context.store, load_object(context, other.head).root)


def _likeness(names: frozenset[bytes], view: TreeView) -> float:
    if view.root is None:
        return 0.0
    try:
        known = view.entries(view.root.tree).keys()
    except CasnapError:
        return 0.0
    return len(names & known) / max(1, len(names | known))
