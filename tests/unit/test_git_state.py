"""Where a git work tree stands: branch, commit, and how many tracked paths are otherwise than staged."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from casnap import CheckpointManager
from casnap.engine import git as engine_git
from casnap.engine.git_index import parse_index
from casnap.model.checkpoint import GitState


def git(directory: Path, *args: str) -> str:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ["HOME"],
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    command = ["git", *identity, "-C", directory, *args]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(workspace: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    git(workspace, "init", "-q", "-b", "main")
    (workspace / "sub").mkdir()
    for name in ("a", "b", "sub/c", "sub/déjà vu", "x.sh"):
        (workspace / name).write_text(f"content of {name}\n")
    (workspace / "link").symlink_to("a")
    git(workspace, "add", "-A")
    git(workspace, "commit", "-qm", "one")
    return workspace


def state(manager: CheckpointManager) -> GitState:
    found = manager.create().git
    assert found is not None
    return found


def differing(repository: Path) -> int:
    """What git itself says is otherwise than staged."""
    lines = git(repository, "-c", "core.quotePath=false", "diff-files", "--name-only", "-z").split("\0")
    git(repository, "update-index", "-q", "--refresh") if not any(lines) else None
    return len({line for line in lines if line})


def test_a_clean_work_tree_has_no_changed_path(repository: Path, manager: CheckpointManager) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    assert state(manager) == GitState("main", commit, 0)
    git(repository, "checkout", "-q", "--detach")
    found = state(manager)
    assert found == GitState("", commit, 0)
    assert found.detached


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_changes_are_counted_by_content(repository: Path, manager: CheckpointManager, version: str) -> None:
    git(repository, "update-index", "--index-version", version)
    (repository / "a").write_text("edited\n")
    (repository / "b").unlink()
    os.utime(repository / "sub" / "c", ns=(5, 5))  # touched, not changed
    (repository / "x.sh").chmod(0o755)
    (repository / "link").unlink()
    (repository / "link").symlink_to("b")
    (repository / "untracked").write_text("x")
    assert differing(repository) == 5  # git counts what it has not looked at again
    assert state(manager).changed == 4
    git(repository, "add", "-A")
    assert state(manager).changed == 0


def test_an_edit_right_after_git_looked_is_seen(repository: Path, manager: CheckpointManager) -> None:
    """Of the same size, and with the time that git noted: the index says so by its own time, or by size 0."""
    before = (repository / "a").stat()
    (repository / "a").write_text("CONTENT of a\n")
    os.utime(repository / "a", ns=(before.st_atime_ns, before.st_mtime_ns))
    index = repository / ".git" / "index"
    os.utime(index, ns=(before.st_mtime_ns, before.st_mtime_ns))
    assert state(manager).changed == 1


def test_conflicts_submodules_and_what_git_was_told_to_ignore(repository: Path, manager: CheckpointManager) -> None:
    git(repository, "update-index", "--assume-unchanged", "a")
    git(repository, "update-index", "--skip-worktree", "b")
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module")
    (repository / "a").write_text("edited\n")
    (repository / "b").write_text("edited\n")
    assert state(manager).changed == 0
    git(repository, "reset", "-q", "--hard")
    git(repository, "checkout", "-q", "-b", "side")
    (repository / "sub" / "c").write_text("side\n")
    git(repository, "commit", "-qam", "side")
    git(repository, "checkout", "-q", "main")
    (repository / "sub" / "c").write_text("main\n")
    git(repository, "commit", "-qam", "main")
    with pytest.raises(subprocess.CalledProcessError):
        git(repository, "merge", "-q", "side")
    assert state(manager).changed == 1


def test_what_takes_too_long_is_not_counted(
    repository: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "a").write_text("edited\n")
    monkeypatch.setattr(engine_git, "CONTENT_MOST", 3)
    assert state(manager).changed is None
    monkeypatch.undo()
    monkeypatch.setattr(engine_git, "INDEX_MOST", 10)
    assert state(manager).changed is None


@pytest.mark.parametrize(
    "data", [b"", b"DIRC", b"DIRC\0\0\0\x09\0\0\0\0", b"DIRC\0\0\0\x02\0\0\0\x05" + b"x" * 70, b"x" * 99]
)
def test_what_is_no_index_is_said(data: bytes) -> None:
    with pytest.raises(ValueError, match="index"):
        list(parse_index(data))


def test_a_broken_index_costs_only_the_count(repository: Path, manager: CheckpointManager) -> None:
    (repository / ".git" / "index").write_bytes(b"broken" * 9)
    assert state(manager).changed is None


@pytest.mark.parametrize("file", ["HEAD", "commondir", "gitdir"])
def test_zeros_that_a_crash_left_in_a_name_stop_nothing(workspace: Path, manager: CheckpointManager, file: str) -> None:
    git = workspace / ".git"
    (workspace / "f").write_text("f")
    if file == "gitdir":
        git.write_bytes(b"gitdir: /nowhere/a\0\0b\n")
    else:
        git.mkdir()
        (git / "HEAD").write_text("ref: refs/heads/main\n")
        (git / file).write_bytes(b"ref: refs/heads/ma\0\0in\n")
    manager.create("torn")
    assert manager.show("torn").git is None or manager.show("torn").git.commit == ""
    (workspace / "f").write_text("changed")
    assert manager.rollback("torn").complete
    assert (workspace / "f").read_text() == "f"
