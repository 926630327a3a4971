"""Paths as somebody types them, as paths in the workspace."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casnap.errors import Usage
from casnap.model.paths import is_valid_name
from casnap.model.report import WorkspaceInfo
from casnap.settings import load_settings, paths_within

names = st.binary(min_size=1, max_size=6).filter(is_valid_name)
relative_paths = st.lists(names, min_size=1, max_size=4).map(b"/".join)


def within(workspace: Path, *given: str | bytes, exact: bool = True) -> tuple[bytes, ...]:
    return paths_within(load_settings(), WorkspaceInfo("id", str(workspace)), given, exact=exact)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "workspace"
    (directory / "sub").mkdir(parents=True)
    return directory


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("file", b"file"),
        ("sub/", b"sub"),
        ("./sub/./file", b"sub/file"),
        ("sub/../file", b"file"),
        ("no/such/thing", b"no/such/thing"),
        (".", b""),
        ("sub//file", b"sub/file"),
        ("*.txt", b"*.txt"),
        ("-f", b"-f"),
        (b"caf\xe9", b"caf\xe9"),
        ("~", b"~"),
    ],
)
def test_a_path_is_literal_and_relative_to_the_workspace_that_was_named(
    workspace: Path, given: str | bytes, path: bytes
) -> None:
    assert within(workspace, given) == (path,)


def test_without_a_named_workspace_a_path_is_relative_to_the_current_directory(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace / "sub")
    assert within(workspace, "file", "../other", exact=False) == (b"sub/file", b"other")
    assert within(workspace, "file", exact=True) == (b"file",)


def test_an_absolute_path_may_be_used(workspace: Path) -> None:
    assert within(workspace, f"{workspace}/sub/file", f"/{workspace}") == (b"sub/file", b"")


@pytest.mark.parametrize("given", ["..", "../other", "/", "/etc/passwd", "sub/../../x", "../workspace2/file"])
def test_a_path_outside_is_refused(workspace: Path, given: str) -> None:
    with pytest.raises(Usage, match="outside the workspace") as caught:
        within(workspace, given)
    assert caught.value.code == "bad-path"


@pytest.mark.parametrize("given", ["", "nul\0byte"])
def test_what_is_no_path_is_refused(workspace: Path, given: str) -> None:
    with pytest.raises(Usage, match="bad path"):
        within(workspace, given)


def test_a_link_in_the_workspace_is_an_entry_and_not_followed(workspace: Path) -> None:
    (workspace / "out").symlink_to("/etc")
    (workspace / "in").symlink_to("sub")
    assert within(workspace, "out", "out/passwd", "in/file") == (b"out", b"out/passwd", b"in/file")
    assert within(workspace, f"{workspace}/in/file") == (b"in/file",)


def test_a_link_that_leads_to_the_workspace_is_followed(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(workspace)
    (tmp_path / "deep").symlink_to(workspace / "sub")
    assert within(workspace, f"{tmp_path}/link/sub/x") == (b"sub/x",)
    assert within(workspace, f"{tmp_path}/deep/x") == (b"sub/x",)
    assert within(workspace, f"{tmp_path}/link", f"{tmp_path}/deep") == (b"", b"sub")


def test_a_link_that_leads_to_the_workspace_does_not_make_links_in_it_followed(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(workspace)
    (workspace / "in").symlink_to("sub")
    assert within(workspace, f"{tmp_path}/link/in/x") == (b"in/x",)


@given(relative_paths)
def test_any_relative_path_means_itself(path: bytes) -> None:
    assert within(Path("/no/such/workspace"), path) == (path,)
    assert within(Path("/no/such/workspace"), os.path.join(b"/no/such/workspace", path)) == (path,)
