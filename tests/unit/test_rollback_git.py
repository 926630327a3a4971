"""Rollback and git directories: what goes back is told first, git at work is not disturbed, and on demand kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from casnap import CheckpointManager, Refused
from casnap.model.report import GitMove
from casnap.workspace.switching import Switch
from support.oracle import difference, snapshot

IDENTITY = {
    "GIT_AUTHOR_NAME": "n",
    "GIT_AUTHOR_EMAIL": "e@example.org",
    "GIT_COMMITTER_NAME": "n",
    "GIT_COMMITTER_EMAIL": "e@example.org",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(directory: Path, *args: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], **IDENTITY}
    done = subprocess.run(["git", "-C", directory, *args], env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(directory: Path, text: str) -> None:
    (directory / "f").write_text(text)
    git(directory, "add", "-A")
    git(directory, "commit", "-qm", text)


@pytest.fixture
def repository(workspace: Path) -> Iterator[Path]:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    git(workspace, "init", "-q", "-b", "main")
    commit(workspace, "one")
    return workspace


def test_commits_and_refs_that_go_back_are_counted(repository: Path, manager: CheckpointManager) -> None:
    manager.create("c1")
    commit(repository, "two")
    commit(repository, "three")
    git(repository, "branch", "side")
    preview = manager.rollback("c1", preview=True)
    assert preview.git == (GitMove(b".git", commits=2, returning=0, refs=2),)
    assert manager.rollback("c1").git == preview.git
    assert git(repository, "log", "--format=%s") == "one"
    assert git(repository, "fsck", "--strict") == ""
    assert manager.undo().git == (GitMove(b".git", commits=0, returning=2, refs=2),)
    assert git(repository, "log", "--format=%s") == "three\ntwo\none"


def test_commits_in_packs_are_counted_by_the_reflog(repository: Path, manager: CheckpointManager) -> None:
    manager.create("c1")
    commit(repository, "two")
    git(repository, "gc", "-q", "--prune=now")
    assert manager.rollback("c1").git == (GitMove(b".git", commits=1, returning=0, refs=1),)
    assert git(repository, "log", "--format=%s") == "one"
    assert git(repository, "fsck", "--strict") == ""


def test_each_git_directory_is_told_of_and_one_without_changes_is_not(
    repository: Path, manager: CheckpointManager
) -> None:
    inner = repository / "inner"
    inner.mkdir()
    git(inner, "init", "-q", "-b", "main")
    commit(inner, "a")
    manager.create("c1")
    commit(inner, "b")
    (repository / "f").write_text("edited")
    assert manager.rollback("c1").git == (GitMove(b"inner/.git", commits=1, returning=0, refs=1),)


def test_a_switch_of_branches_is_one_ref(repository: Path, manager: CheckpointManager) -> None:
    git(repository, "branch", "side")
    manager.create("c1")
    git(repository, "checkout", "-q", "side")
    assert manager.rollback("c1").git == (GitMove(b".git", commits=0, returning=0, refs=1),)
    assert git(repository, "symbolic-ref", "HEAD") == "refs/heads/main"


def test_keep_git_leaves_every_git_directory_as_it_is(repository: Path, manager: CheckpointManager) -> None:
    inner = repository / "deep" / "inner"
    inner.mkdir(parents=True)
    git(inner, "init", "-q", "-b", "main")
    commit(inner, "a")
    manager.create("c1")
    commit(repository, "two")
    commit(inner, "b")
    before = snapshot(repository / ".git"), snapshot(inner / ".git")
    report = manager.rollback("c1", keep_git=True)
    assert difference(before[0], snapshot(repository / ".git")) == []
    assert difference(before[1], snapshot(inner / ".git")) == []
    assert (repository / "f").read_text() == "one"
    assert (inner / "f").read_text() == "a"
    assert report.git == ()
    assert report.kept == (b".git", b"deep/inner/.git")
    assert report.complete


def test_keep_git_keeps_the_directories_above_a_repository_that_the_target_does_not_have(
    workspace: Path, manager: CheckpointManager
) -> None:
    (workspace / "a").write_text("1")
    manager.create("c1")
    inner = workspace / "deep" / "inner"
    inner.mkdir(parents=True)
    git(inner, "init", "-q", "-b", "main")
    commit(inner, "a")
    before = snapshot(inner / ".git")
    manager.rollback("c1", keep_git=True)
    assert difference(before, snapshot(inner / ".git")) == []
    assert os.listdir(inner) == [".git"]


def test_a_fresh_lock_refuses_the_rollback_and_an_old_one_does_not(
    repository: Path, manager: CheckpointManager
) -> None:
    manager.create("c1")
    commit(repository, "two")
    lock = repository / ".git" / "refs" / "heads" / "main.lock"
    lock.touch()
    before = snapshot(repository)
    for preview in (True, False):
        with pytest.raises(Refused, match=r"refs/heads/main\.lock: git is at work") as refused:
            manager.rollback("c1", preview=preview)
        assert refused.value.exit_status == 14
        assert refused.value.code == "git-locked"
    assert difference(before, snapshot(repository)) == []
    assert len(manager.list(safety=True)) == 1
    old = time.time() - 601
    os.utime(lock, (old, old))
    assert manager.rollback("c1").complete
    assert lock.exists()
    assert git(repository, "log", "--format=%s") == "one"


def test_a_lock_does_not_stop_what_leaves_git_alone(repository: Path, manager: CheckpointManager) -> None:
    manager.create("c1")
    (repository / "f").write_text("edited")
    (repository / ".git" / "index.lock").touch()
    assert manager.rollback("c1").complete
    commit_free = (repository / "f").read_text()
    assert commit_free == "one"
    (repository / ".git" / "HEAD").write_text("ref: refs/heads/other\n")
    assert manager.rollback("c1", keep_git=True).complete
    (repository / "g").write_text("new")
    assert manager.rollback("c1", paths=["g"]).complete


def test_a_lock_is_not_brought_back(repository: Path, manager: CheckpointManager) -> None:
    (repository / ".git" / "index.lock").touch()
    manager.create("c1")
    (repository / ".git" / "index.lock").unlink()
    (repository / "f").write_text("edited")
    manager.rollback("c1")
    assert not (repository / ".git" / "index.lock").exists()


def test_a_git_directory_that_was_removed_comes_back_also_with_keep_git(
    repository: Path, manager: CheckpointManager
) -> None:
    manager.create("c1")
    shutil.rmtree(repository / ".git")
    manager.rollback("c1", keep_git=True)
    assert git(repository, "log", "--format=%s") == "one"


def test_damaged_and_odd_files_in_a_git_directory_are_no_obstacle(repository: Path, manager: CheckpointManager) -> None:
    manager.create("c1")
    objects = repository / ".git" / "objects" / "ab"
    objects.mkdir(exist_ok=True)
    (objects / ("c" * 38)).write_bytes(b"no zlib at all")
    (repository / ".git" / "packed-refs").write_bytes(b"\xff\n# x\n^abc\nnothing\n")
    (repository / ".git" / "logs" / "HEAD").write_bytes(b"\0\n broken \tcommit\n")
    assert [move.commits for move in manager.rollback("c1").git] == [0]


def test_recover_of_a_rollback_that_keeps_git_keeps_it_as_well(
    repository: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager.create("c1")
    commit(repository, "two")
    before = snapshot(repository / ".git")

    def die(self: Switch) -> None:
        raise SystemExit

    monkeypatch.setattr(Switch, "run", die)
    with pytest.raises(SystemExit):
        manager.rollback("c1", keep_git=True)
    monkeypatch.undo()
    manager.recover()
    assert (repository / "f").read_text() == "one"
    assert difference(before, snapshot(repository / ".git")) == []
