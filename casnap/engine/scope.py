"""What a verb that is limited to paths is limited to."""

from __future__ import annotations

from casnap.engine.compare import TreeView
from casnap.model.tree import File
from casnap.workspace.databases import SIDE_FILES, database_of


def with_databases(paths: tuple[bytes, ...], *views: TreeView) -> tuple[bytes, ...]:
    """The paths, and for each file of an SQLite database the rest of its set: apart they are worth nothing."""
    found = dict.fromkeys(paths)
    for path in paths:
        database = database_of(path)
        beside = [database + suffix for suffix in SIDE_FILES]
        if any(isinstance(view.entry(name), File) for view in views for name in beside):
            found.update(dict.fromkeys((database, *beside)))
    return tuple(found)
