"""What is left out has no row in the stat cache, and still decides: a change of it is seen, and it adds no links."""

from __future__ import annotations

import os
from array import array
from pathlib import Path
from typing import Any

import pytest

from casnap import CheckpointManager
from casnap.workspace.cache_file import CacheFile, load_cache
from casnap.workspace.cache_saving import encode_cache
from casnap.workspace.rounds import Rounds
from support.scanning import MemoryStore, settle, take

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


def create_without_cache(manager: CheckpointManager, home: Path, name: str) -> None:
    """A checkpoint that believes no cache."""
    for cache in (home / "store" / "cache").glob("*.stat"):
        cache.unlink()
    manager.create(name)


@pytest.mark.parametrize("before", ["", "*.key\n"], ids=["a rule comes", "a rule goes"])
def test_an_ignore_file_that_changes_while_others_are_read_counts_the_next_time(
    manager: CheckpointManager, workspace: Path, home: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    after = "" if before else "*.key\n"
    (workspace / "z").mkdir()
    (workspace / "z" / ".casnapignore").write_text(before)
    (workspace / "z" / "secret.key").write_text("secret")
    settle(workspace)
    run = Rounds.run

    def changed_meanwhile(*arguments: Any) -> Any:
        (workspace / "z" / ".casnapignore").write_text(after)
        return run(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Rounds, "run", changed_meanwhile)
        manager.create("one")
    settle(workspace)
    (workspace / "z" / "secret.key").write_text("edited")
    settle(workspace)
    manager.create("two")
    create_without_cache(manager, home, "all")
    assert manager.show("two").digest == manager.show("all").digest


@pytest.mark.parametrize(
    ("rule", "name", "text"),
    [
        ({"exclude": ".casnapignore\n"}, ".casnapignore", "*.log\n"),
        ({"exclude": "pyproject.toml\n"}, "pyproject.toml", '[tool.casnap]\nexclude = ["*.log"]\n'),
        ({"exclude": ".gitignore\n", "use_gitignore": True}, "d/.gitignore", "*.log\n"),
        ({"exclude": "CACHEDIR.TAG\n"}, "d/CACHEDIR.TAG", TAG.decode()),
    ],
)
def test_an_empty_ignore_file_that_is_left_out_is_read_when_it_was_edited_in_place(
    workspace: Path, home: Path, monkeypatch: pytest.MonkeyPatch, rule: dict[str, Any], name: str, text: str
) -> None:
    for key, value in rule.items():
        monkeypatch.setenv(f"CASNAP_{key.upper()}", str(value))
    (workspace / "d").mkdir()
    (workspace / name).write_text("")
    (workspace / "d" / "x.log").write_text("log")
    settle(workspace)
    with CheckpointManager(workspace) as manager:
        manager.create("one")
        manager.create("two")
        (workspace / name).write_text(text)
        settle(workspace)
        manager.create("three")
        create_without_cache(manager, home, "all")
        assert manager.show("three").digest == manager.show("all").digest != manager.show("two").digest


def test_links_are_found_when_the_disk_has_another_number_than_before(workspace: Path, tmp_path: Path) -> None:
    names, store = {"store": "s", "workspace": "w", "boot": "b"}, MemoryStore()
    for name in ("a", "b"):
        (workspace / name).mkdir()
    (workspace / "a" / "x").write_text("x")
    os.link(workspace / "a" / "x", workspace / "b" / "y")
    settle(workspace)
    found = take(workspace, store)
    (tmp_path / "cache").write_bytes(encode_cache(found.cache, **names, checkpoint=b"c" * 32))
    cache = load_cache(tmp_path / "cache", **names)
    assert cache is not None
    assert isinstance(cache.directories, CacheFile)
    cache.directories.devices = array("Q", [device + 1 for device in cache.directories.devices])
    (workspace / "b" / "z").write_text("z")
    settle(workspace)
    assert take(workspace, store, cache=cache).links == ((b"a/x", b"b/y"),)
