"""What is left out has no row in the stat cache, and still decides: a change of it is seen, and it adds no links."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from casnap import CheckpointManager
from support.scanning import settle

TAG = b"Signature: 8a477f597d28d172789f06886806bc55\n"


def twice(manager: CheckpointManager, workspace: Path) -> None:
    """Two checkpoints with a change elsewhere between them: the second believes the cache of the first."""
    settle(workspace)
    manager.create()
    (workspace / "elsewhere").write_text("changed")
    settle(workspace)
    manager.create()


def test_a_link_that_is_left_out_makes_no_group(manager: CheckpointManager, workspace: Path) -> None:
    (workspace / "d").mkdir()
    (workspace / "d" / "f").write_text("f")
    os.link(workspace / "d" / "f", workspace / "d" / "f.log")
    (workspace / ".casnapignore").write_text("*.log\n")
    twice(manager, workspace)
    assert manager.verify()


def test_hard_links_of_links_and_fifos_are_kept(manager: CheckpointManager, workspace: Path) -> None:
    for name in ("d", "e"):
        (workspace / name).mkdir()
    os.symlink("t", workspace / "d" / "l")
    os.link(workspace / "d" / "l", workspace / "e" / "m", follow_symlinks=False)
    os.mkfifo(workspace / "d" / "p")
    os.link(workspace / "d" / "p", workspace / "e" / "q")
    twice(manager, workspace)
    assert manager.verify()


def test_an_ignore_file_that_leaves_itself_out_is_read_when_it_was_edited_in_place(
    manager: CheckpointManager, workspace: Path
) -> None:
    (workspace / ".casnapignore").write_text(".casnapignore\nkeep.txt\n")
    (workspace / "keep.txt").write_text("kept")
    settle(workspace)
    manager.create()
    (workspace / ".casnapignore").write_text(".casnapignore\n")
    manager.create("two")
    (workspace / "keep.txt").unlink()
    manager.rollback("two")
    assert (workspace / "keep.txt").read_text() == "kept"


@pytest.mark.parametrize("rules", ["CACHEDIR.TAG\n", ""])
def test_a_tag_that_becomes_valid_in_place_is_seen(manager: CheckpointManager, workspace: Path, rules: str) -> None:
    (workspace / "d").mkdir()
    (workspace / "d" / "f").write_text("f")
    (workspace / "d" / "CACHEDIR.TAG").write_bytes(TAG.lower())
    (workspace / ".casnapignore").write_text(rules)
    settle(workspace)
    before = manager.create()
    (workspace / "d" / "CACHEDIR.TAG").write_bytes(TAG)
    after = manager.create()
    assert after.skipped > before.skipped - bool(rules)
    assert after.digest != before.digest
