"""Which workspace a command is about, from wherever it is given."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.cli import Result, environment, run
from support.oracle import snapshot

Call = Callable[..., Result]


def registered(call: Call) -> set[str]:
    """The paths of all workspaces."""
    return {one["workspace"]["path"] for one in call("status", "--json", cwd="/", check=0).json()["workspaces"]}


def test_init_is_idempotent(workspace: Path, call: Call) -> None:
    first = call("init", "--json", cwd=workspace, check=0).json()
    again = call("init", "--json", cwd=workspace, check=0).json()
    assert (first["new"], again["new"]) == (True, False)
    assert first["workspace"] == again["workspace"]
    assert registered(call) == {str(workspace)}


def test_init_and_checkpoint_leave_no_trace_in_the_workspace(workspace: Path, call: Call) -> None:
    before = snapshot(workspace)
    call("init", cwd=workspace, check=0)
    call("checkpoint", cwd=workspace, check=0)
    assert snapshot(workspace) == before


def test_checkpoint_protects_the_current_directory(workspace: Path, call: Call) -> None:
    call("checkpoint", cwd=workspace / "src", check=0)
    assert registered(call) == {str(workspace / "src")}


@pytest.mark.parametrize("kind", ["directory", "file"])
@pytest.mark.parametrize("verb", ["init", "checkpoint"])
def test_in_a_git_work_tree_its_root_is_protected(workspace: Path, kind: str, verb: str, call: Call) -> None:
    if kind == "directory":
        (workspace / ".git").mkdir()
    else:
        (workspace / ".git").write_text("gitdir: elsewhere\n")
    call(verb, cwd=workspace / "src", check=0)
    assert registered(call) == {str(workspace)}


def test_the_nearest_protected_directory_comes_before_a_git_work_tree(workspace: Path, call: Call) -> None:
    call("init", "-w", workspace, check=0)
    (workspace / "src" / ".git").mkdir()
    call("checkpoint", cwd=workspace / "src", check=0)
    assert registered(call) == {str(workspace)}


def test_the_nearest_of_several_protected_directories_is_meant(workspace: Path, call: Call) -> None:
    call("checkpoint", "outer", "-w", workspace, check=0)
    told = call("checkpoint", "inner", "-w", workspace / "src", check=0).stderr
    assert f"it lies inside the workspace {workspace}" in told
    (workspace / "src" / "deep").mkdir()
    assert "name=inner" in call(cwd=workspace / "src" / "deep", check=0).stdout
    assert "name=outer" in call(cwd=workspace, check=0).stdout


def test_a_named_workspace_is_exact(protected: Path, call: Call) -> None:
    call("checkpoint", "-w", protected / "src", cwd=protected, check=0)
    assert registered(call) == {str(protected), str(protected / "src")}


def test_the_variable_names_the_workspace_and_the_option_comes_before_it(
    protected: Path, tmp_path: Path, call: Call
) -> None:
    (tmp_path / "other").mkdir()
    env = {"CASNAP_WORKSPACE": str(protected)}
    assert run("show", "--json", cwd=tmp_path, env=env, check=0).json()["workspace"]["path"] == str(protected)
    run("checkpoint", "-w", tmp_path / "other", env=env, check=0)
    assert registered(call) == {str(protected), str(tmp_path / "other")}
    run("list", cwd=protected, env={"CASNAP_WORKSPACE": str(tmp_path / "nowhere")}, check=13)
    run("list", cwd=protected, env={"CASNAP_WORKSPACE": ""}, check=0)


def test_a_link_to_a_workspace_is_that_workspace(protected: Path, tmp_path: Path, call: Call) -> None:
    (tmp_path / "link").symlink_to(protected)
    for path in (tmp_path / "link", f"{tmp_path}/link/", f"{protected}/", f"{protected}/src/.."):
        assert call("show", "--json", "-w", path, check=0).json()["workspace"]["path"] == str(protected)
    call("init", "-w", tmp_path / "link", check=0)
    assert registered(call) == {str(protected)}


def test_a_workspace_that_has_become_a_link_is_refused(protected: Path, tmp_path: Path, call: Call) -> None:
    protected.rename(tmp_path / "moved")
    protected.symlink_to(tmp_path / "moved")
    (tmp_path / "moved" / "README").write_text("changed\n")
    call("rollback", "-w", protected, check=14)
    assert (tmp_path / "moved" / "README").read_text() == "changed\n"


def test_outside_any_workspace_list_and_status_are_about_all(history: Path, tmp_path: Path, call: Call) -> None:
    (tmp_path / "other").mkdir()
    call("checkpoint", "o1", "-w", tmp_path / "other", check=0)
    listed = call("list", "--format", "json", cwd=tmp_path, check=0).json()
    assert [one["name"] for one in listed] == ["o1", "c3", "c2", "c1"]
    text = call("list", cwd=tmp_path, check=0).stdout
    assert f"workspace {tmp_path}/other\n" in text
    assert f"workspace {history}\n" in text
    assert call("list", "--all", "--format", "json", cwd=history, check=0).json() == listed
    assert [one["name"] for one in call("list", "--format", "json", cwd=history, check=0).json()] == ["c3", "c2", "c1"]


def test_paths_are_relative_to_where_one_stands_or_to_the_named_workspace(history: Path, call: Call) -> None:
    for name in ("README", "src/main.py"):
        (history / name).write_text("changed\n")
    call("rollback", "--", "main.py", cwd=history / "src", check=0)
    assert (history / "src" / "main.py").read_text() == "print(3)\n"
    assert (history / "README").read_text() == "changed\n"
    call("rollback", "-w", history, "--", "README", cwd=history / "src", check=0)
    assert (history / "README").read_text() == "read me\n"


def test_a_removed_workspace_comes_back_from_elsewhere(history: Path, call: Call) -> None:
    before = snapshot(history)
    shutil.rmtree(history)
    call("rollback", "-w", history, "--yes", cwd="/", check=0)
    assert snapshot(history) == before


def test_a_removed_workspace_comes_back_from_within(history: Path) -> None:
    before = snapshot(history)
    script = f'cd "{history}" && rm -rf "{history}" && "{sys.executable}" -m casnap rollback'
    done = subprocess.run(["sh", "-c", script], env=environment(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert snapshot(history) == before


def test_a_forgotten_workspace_is_not_found_and_comes_back_with_its_history(history: Path, call: Call) -> None:
    before = snapshot(history)
    assert f"casnap init -w {history}" in call("forget", cwd=history, check=0).stderr
    assert registered(call) == set()
    assert snapshot(history) == before
    call("list", "-w", history, check=13)
    call("unregister", "-w", history, check=13)
    call("init", cwd=history, check=0)
    assert [one["name"] for one in call("list", "--format", "json", cwd=history, check=0).json()] == ["c3", "c2", "c1"]


@pytest.mark.skipif(os.geteuid() == 0, reason="the store of root is the system's")
def test_by_default_the_store_is_among_the_users_data(workspace: Path, tmp_path: Path) -> None:
    run("checkpoint", cwd=workspace, env={"CASNAP_STORE": "", "XDG_DATA_HOME": str(tmp_path / "data")}, check=0)
    assert (tmp_path / "data" / "casnap" / "casnap-store.json").is_file()
