"""Which paths stored bytes may hold."""

from __future__ import annotations

from casnap.model.paths import components, is_valid_name


def is_path(path: bytes) -> bool:
    """Whether ``path`` can be the path of something in a workspace, its root included."""
    return all(map(is_valid_name, components(path)))
