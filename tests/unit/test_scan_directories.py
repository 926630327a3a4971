"""Reaching directories by descriptors."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from casnap.errors import NotFound, Refused, Usage
from casnap.fs.directories import OPEN_LIMIT, Directories


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "workspace").mkdir()
    return tmp_path / "workspace"


def test_a_directory_is_reached_by_its_path(root: Path) -> None:
    (root / "a" / "b").mkdir(parents=True)
    with Directories(os.fsencode(root)) as directories:
        for path in ("", "a", "a/b", "a"):
            reached = os.fstat(directories.fd(path.encode()))
            assert os.path.samestat(reached, os.stat(root / path))
        assert directories.root_path == os.fsencode(root)


def test_few_descriptors_stay_open_and_none_after_closing(root: Path) -> None:
    before = descriptors()
    for number in range(3 * OPEN_LIMIT):
        (root / f"{number}" / "x").mkdir(parents=True)
    with Directories(os.fsencode(root)) as directories:
        for number in range(3 * OPEN_LIMIT):
            directories.fd(b"%d/x" % number)
            assert descriptors() <= before + OPEN_LIMIT + 1
        recent = directories.fd(b"%d/x" % (3 * OPEN_LIMIT - 1))
        for number in range(OPEN_LIMIT // 2 - 1):
            directories.fd(b"%d/x" % number)
        assert os.fstat(recent).st_nlink == 2
    assert descriptors() == before
    directories.close()


def test_what_is_cached_is_not_opened_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "a" / "b" / "c").mkdir(parents=True)
    opened: list[bytes] = []
    real = os.open
    with Directories(os.fsencode(root)) as directories:
        monkeypatch.setattr(os, "open", lambda path, *rest, **o: opened.append(path) or real(path, *rest, **o))
        directories.fd(b"a/b")
        directories.fd(b"a/b/c")
        directories.fd(b"a")
        assert opened == [b"a", b"b", b"c"]
        directories.forget(b"a/b")
        directories.fd(b"a/b/c")
        assert opened == [b"a", b"b", b"c", b"b", b"c"]


def test_forgetting_a_path_spares_one_that_only_begins_alike(root: Path) -> None:
    (root / "a").mkdir()
    (root / "ab").mkdir()
    with Directories(os.fsencode(root)) as directories:
        kept = directories.fd(b"ab")
        directories.fd(b"a")
        directories.forget(b"a")
        assert directories.fd(b"ab") == kept
        os.fstat(kept)


@pytest.mark.parametrize("path", [b"link", b"link/below", b"a/link", b"file", b"absent", b"a/absent/x"])
def test_links_files_and_absent_names_are_no_directories(root: Path, path: bytes) -> None:
    (root / "a" / "below").mkdir(parents=True)
    (root / "link").symlink_to("a")
    (root / "a" / "link").symlink_to("below")
    (root / "file").touch()
    with Directories(os.fsencode(root)) as directories, pytest.raises((NotADirectoryError, FileNotFoundError)):
        directories.fd(path)


def test_a_root_that_is_a_symbolic_link_is_refused(root: Path) -> None:
    link = root.with_name("link")
    link.symlink_to(root)
    with pytest.raises(Refused, match=r"^cannot open workspace .*link: it has become a symbolic link$") as caught:
        Directories(os.fsencode(link))
    assert caught.value.exit_status == 14
    link.unlink()
    link.symlink_to("nowhere")
    with pytest.raises(Refused):
        Directories(os.fsencode(link))


def test_an_absent_root_is_not_found_and_a_file_is_misuse(root: Path) -> None:
    with pytest.raises(NotFound, match="it does not exist"):
        Directories(os.fsencode(root / "absent"))
    (root / "file").touch()
    with pytest.raises(Usage, match="it is not a directory"):
        Directories(os.fsencode(root / "file"))
    with pytest.raises(Usage):
        Directories(os.fsencode(root / "file" / "below"))
