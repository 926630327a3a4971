"""What unit tests of rollback share: a workspace, and a manager of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from casnap import CheckpointManager


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty directory to protect."""
    directory = tmp_path / "workspace"
    directory.mkdir()
    return directory


@pytest.fixture
def manager(workspace: Path) -> Iterator[CheckpointManager]:
    """A manager of the workspace, over the test's own store."""
    with CheckpointManager(workspace) as found:
        yield found
