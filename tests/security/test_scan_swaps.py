"""Entries that are swapped under the scan's eyes: it never waits, and never looks outside the workspace."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from casnap.errors import Refused
from casnap.fs.directories import Directories
from casnap.model.tree import Directory, Fifo, File, Omitted, Symlink
from casnap.workspace import reader as reader_module
from casnap.workspace import rounds as rounds_module
from support.scanning import MemoryStore, chunk, deadline, entries_of, settle, take

SECRET = b"secret bytes of another place"


@pytest.fixture(autouse=True)
def nothing_hangs() -> Iterator[None]:
    with deadline(30):
        yield


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "workspace" / "d" / "e").mkdir(parents=True)
    (tmp_path / "workspace" / "d" / "f").write_bytes(b"inside")
    (tmp_path / "workspace" / "d" / "e" / "f").write_bytes(b"inside")
    (tmp_path / "outside" / "e").mkdir(parents=True)
    (tmp_path / "outside" / "f").write_bytes(SECRET)
    (tmp_path / "outside" / "e" / "f").write_bytes(SECRET)
    settle(tmp_path)
    return tmp_path / "workspace"


def before_opening_files(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    real, acts = reader_module.open_file, [act]

    def meddle(directory_fd: int, name: bytes) -> int:
        if acts:
            acts.pop()()
        return real(directory_fd, name)

    monkeypatch.setattr(rounds_module, "open_file", meddle)


def test_a_pipe_swapped_in_for_a_file_is_not_waited_for(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def swap() -> None:
        (root / "d" / "f").unlink()
        os.mkfifo(root / "d" / "f")

    before_opening_files(monkeypatch, swap)
    store = MemoryStore()
    scan = take(root, store)
    assert isinstance(entries_of(store, scan.root)[b"d/f"], Fifo)
    assert scan.problems == []


def test_a_link_swapped_in_for_a_file_is_not_followed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def swap() -> None:
        (root / "d" / "f").unlink()
        (root / "d" / "f").symlink_to(root.parent / "outside" / "f")

    before_opening_files(monkeypatch, swap)
    store = MemoryStore()
    scan = take(root, store)
    assert isinstance(entries_of(store, scan.root)[b"d/f"], Symlink)
    assert chunk(SECRET) not in store.objects


def test_a_link_swapped_in_for_a_directory_is_not_followed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "d").rename(root / "elsewhere")
    (root / "elsewhere").rename(root / "d")
    settle(root)
    with Directories(os.fsencode(root)) as directories:

        def swap() -> None:
            (root / "d").rename(root / "moved")
            (root / "d").symlink_to(root.parent / "outside")
            directories.forget(b"")

        real, acts = rounds_module.open_file, [swap]

        def meddle(directory_fd: int, name: bytes) -> int:
            fd = real(directory_fd, name)
            if acts:
                acts.pop()()
            return fd

        monkeypatch.setattr(rounds_module, "open_file", meddle)
        store = MemoryStore()
        scan = take(root, store, directories=directories)
    assert chunk(SECRET) not in store.objects
    assert isinstance(entries_of(store, scan.root)[b"d"], Symlink)


def test_a_directory_that_keeps_turning_into_a_link_never_leads_outside(root: Path) -> None:
    stop = threading.Event()
    (root.parent / "link").symlink_to(root.parent / "outside")

    def swap() -> None:
        while not stop.is_set():
            (root / "d").rename(root.parent / "aside")
            (root.parent / "link").rename(root / "d")
            (root / "d").rename(root.parent / "link")
            (root.parent / "aside").rename(root / "d")

    swapping = threading.Thread(target=swap)
    swapping.start()
    seen: set[Any] = set()
    try:
        for _ in range(60):
            store = MemoryStore()
            found = entries_of(store, take(root, store).root).get(b"d")
            seen.add(type(found))
            assert chunk(SECRET) not in store.objects
            assert found is None or not isinstance(found, File)
    finally:
        stop.set()
        swapping.join()
    assert seen <= {Directory, Symlink, type(None), Omitted}
    store = MemoryStore()
    assert isinstance(entries_of(store, take(root, store).root)[b"d"], Directory)


def test_links_are_never_followed_wherever_they_lead(root: Path) -> None:
    (root / "to-directory").symlink_to(root.parent / "outside")
    (root / "to-file").symlink_to(root.parent / "outside" / "f")
    (root / "to-root").symlink_to("/")
    store = MemoryStore()
    entries = entries_of(store, take(root, store).root)
    assert chunk(SECRET) not in store.objects
    links = {path: entry.target for path, entry in entries.items() if isinstance(entry, Symlink)}
    assert links == {
        b"to-directory": os.fsencode(root.parent / "outside"),
        b"to-file": os.fsencode(root.parent / "outside" / "f"),
        b"to-root": b"/",
    }


def test_a_root_that_has_become_a_link_is_refused(root: Path) -> None:
    root.rename(root.parent / "moved")
    root.symlink_to(root.parent / "outside")
    with pytest.raises(Refused):
        Directories(os.fsencode(root))


def test_a_scan_changes_nothing_in_the_workspace(root: Path) -> None:
    (root / "link").symlink_to("d/f")
    paths = [root, root / "d", root / "d" / "f", root / "link"]
    for path in paths:
        os.utime(path, ns=(1, 2), follow_symlinks=False)
    before = [os.lstat(path) for path in paths]
    take(root)
    after = [os.lstat(path) for path in paths]
    for old, new in zip(before, after, strict=True):
        assert (old.st_mtime_ns, old.st_ctime_ns, old.st_ino) == (new.st_mtime_ns, new.st_ctime_ns, new.st_ino)
    assert after[2].st_atime_ns == 1


DEEP = """
import os, resource, sys
from casnap.fs.directories import Directories
from support.scanning import MemoryStore, entries_of, take
root, levels = sys.argv[1], 1500
fd = os.open(root, os.O_RDONLY)
for level in range(levels):
    os.mkdir("d", dir_fd=fd)
    if level % 50 == 49:
        with open(os.open("f", os.O_WRONLY | os.O_CREAT, dir_fd=fd), "w") as file:
            file.write(str(level))
    below = os.open("d", os.O_RDONLY, dir_fd=fd)
    if level % 50 == 0:
        os.mkdir("z", dir_fd=fd)  # visited on the way back, when its parent has been closed
    os.close(fd)
    fd = below
os.mkdir("L" * 255, dir_fd=fd)
os.close(fd)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
store = MemoryStore()
scan = take(root, store)
assert scan.problems == [], scan.problems[:3]
assert scan.entries == levels + 2 * (levels // 50) + 1, scan.entries
entries = entries_of(store, scan.root)
deepest = b"/".join([b"d"] * levels)
assert deepest + b"/" + b"L" * 255 in entries
assert entries[deepest[:-1] + b"f"].size == 4
again = take(root, store, cache=scan.cache)
assert (again.root, again.files_read) == (scan.root, 0)
with Directories(root.encode()) as directories:
    names = os.listdir(directories.fd(deepest))
assert names == ["L" * 255], names
fd = os.open(root, os.O_RDONLY)
os.chdir(fd)
print("fine")
"""


def test_a_tree_of_1500_levels_is_captured_with_64_descriptors() -> None:
    memory = Path("/dev/shm")  # where there is none, the disk does too
    place = tempfile.mkdtemp(dir=memory if memory.is_dir() else None)
    paths = os.pathsep.join([str(Path(__file__).parents[2]), str(Path(__file__).parents[1])])
    ran = subprocess.run(
        [sys.executable, "-c", DEEP, place],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        assert (ran.stdout, ran.stderr) == ("fine\n", "")
    finally:
        subprocess.run(["rm", "-rf", place], check=True)
