"""What a verb that is limited to paths is limited to."""

from __future__ import annotations

from casnap.engine.compare import TreeView
from casnap.model.paths import ancestors
from casnap.model.tree import File
from casnap.workspace.side_files import SIDE_FILES, database_of, may_be_database


def with_databases(paths: tuple[bytes, ...], *views: TreeView) -> tuple[bytes, ...]:
    """The paths, and for each file of an SQLite database the rest of its set: apart they are worth nothing."""
    found = dict.fromkeys(paths)
    for path in paths:
        database = database_of(path)
        beside = [database + suffix for suffix in SIDE_FILES]
        is_set = any(may_be_database(view.entry(database)) for view in views)
        if is_set and any(isinstance(view.entry(name), File) for view in views for name in beside):
            found.update(dict.fromkeys((database, *beside)))
    return tuple(found)


def made_for(paths: tuple[bytes, ...], interrupted: tuple[TreeView, ...]) -> frozenset[bytes]:
    """The directories above paths that were not there when an interrupted run began: it made them on its way."""
    above = {directory for path in paths for directory in ancestors(path) if directory}
    return frozenset(directory for directory in above for tree in interrupted if tree.entry(directory) is None)
