"""A temporary directory goes with all that is in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from casnap.errors import StorageFailed
from casnap.fs.scratch import scratch_directory


def test_a_directory_goes_with_whatever_is_in_it_and_nothing_else(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("stays\n")
    with scratch_directory(tmp_path, "begins-") as path:
        assert path.name.startswith("begins-")
        assert path.stat().st_mode & 0o777 == 0o700
        (path / "removing-0" / "removing-1").mkdir(parents=True)
        (path / "removing-1").write_text("a file with the name that a directory gets\n")
        (path / "removing-0" / "link").symlink_to(outside)
        (path / "link").symlink_to(outside)
        os.mkfifo(path / "pipe")
    assert os.listdir(tmp_path) == ["outside"]
    assert os.listdir(outside) == ["file"]


def test_a_tree_that_is_deeper_than_any_path_is_long_goes(tmp_path: Path) -> None:
    with scratch_directory(tmp_path, "deep-") as path:
        fd = os.open(path, os.O_RDONLY)
        for _ in range(1_100):
            os.mkdir("directory", dir_fd=fd)
            inner = os.open("directory", os.O_RDONLY, dir_fd=fd)
            os.close(fd)
            fd = inner
        os.close(fd)
    assert os.listdir(tmp_path) == []


def test_an_error_within_is_let_through_and_takes_it_away_too(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), scratch_directory(tmp_path, "") as path:
        (path / "file").write_text("gone\n")
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []


def test_a_place_that_is_none_is_a_failure_of_the_storage(tmp_path: Path) -> None:
    with (
        pytest.raises(StorageFailed, match="cannot create a temporary directory in"),
        scratch_directory(tmp_path / "absent", ""),
    ):
        pass
