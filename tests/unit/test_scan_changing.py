"""Files and directories that others change while the scan is at work."""

from __future__ import annotations

import itertools
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

from casnap.errors import CasnapError
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.report import Problem
from casnap.model.tree import NANOSECONDS, File, FileFlag, OmitReason, Omitted
from casnap.workspace import reader as reader_module
from casnap.workspace import rounds as rounds_module
from casnap.workspace import signature as signature_module
from casnap.workspace.found import FoundDirectory
from casnap.workspace.git_directories import GitDirectories
from casnap.workspace.lister import Lister
from casnap.workspace.walk import GIT_AT_WORK
from support.scanning import (
    MemoryStore,
    PinnedClock,
    chunk,
    deadline,
    entries_of,
    facts_of,
    facts_on_disk,
    settle,
    take,
)

CHANGED = "captured, but it kept changing while it was read"

Act = Callable[[], None]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "workspace"
    (directory / "d").mkdir(parents=True)
    (directory / "d" / "f").write_bytes(b"first")
    (directory / "other").write_bytes(b"other")
    settle(directory)
    return directory


@pytest.fixture
def before_opening(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes, list[Act]], None]:
    """Have one act done right before each time that a file of this name is opened, until there are no more."""

    def arrange(name: bytes, acts: list[Act]) -> None:
        real = reader_module.open_file

        def meddle(directory_fd: int, opened: bytes) -> int:
            if opened == name and acts:
                acts.pop(0)()
            return real(directory_fd, opened)

        monkeypatch.setattr(rounds_module, "open_file", meddle)

    return arrange


@pytest.fixture
def while_reading(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[Act]], None]:
    """Have one act done right after each time that something has been read."""

    def arrange(acts: list[Act]) -> None:
        real = os.pread

        def meddle(fd: int, size: int, offset: int) -> bytes:
            data = real(fd, size, offset)
            if acts:
                acts.pop(0)()
            return data

        monkeypatch.setattr(os, "pread", meddle)

    return arrange


def entry(root: Path, **options: Any) -> tuple[Any, list[Problem], MemoryStore]:
    store = MemoryStore()
    scan = take(root, store, **options)
    return entries_of(store, scan.root).get(b"d/f"), scan.problems, store


def test_a_file_that_changes_once_while_read_is_read_again(
    root: Path, while_reading: Callable[[list[Act]], None]
) -> None:
    while_reading([lambda: None, lambda: (root / "d" / "f").write_bytes(b"second") and None])
    os.rename(root / "other", root / "a-other")  # read first
    settle(root)
    found, problems, _ = entry(root)
    assert isinstance(found, File)
    assert (found.size, found.content, found.flags) == (6, blake3(b"second").digest(), 0)
    assert problems == []


def test_a_file_that_changes_at_each_reading_is_flagged_and_never_believed(
    root: Path, while_reading: Callable[[list[Act]], None]
) -> None:
    (root / "other").unlink()
    written: list[bytes] = []

    def append() -> None:
        with open(root / "d" / "f", "ab") as file:
            file.write(b"+")
        written.append((root / "d" / "f").read_bytes())

    acts: list[Act] = [append] * 50
    while_reading(acts)
    store = MemoryStore()
    scan = take(root, store)
    found = entries_of(store, scan.root)[b"d/f"]
    assert isinstance(found, File)
    assert found.flags == FileFlag.CHANGED_WHILE_READ
    assert scan.problems == [Problem(b"d/f", CHANGED)]
    assert store.objects[chunk(written[1])] == written[1][: found.size]
    assert 50 - len(acts) == 3
    acts.clear()
    settle(root)
    again = take(root, store, cache=scan.cache)
    assert again.files_read == 1
    assert again.problems == []
    assert facts_of(store, again.root) == facts_on_disk(root)


def test_a_file_that_is_cut_short_while_read_is_recorded_as_long_as_what_was_read(
    root: Path, while_reading: Callable[[list[Act]], None]
) -> None:
    path = root / "d" / "f"
    path.write_bytes(os.urandom(3 << 20))
    (root / "other").unlink()
    settle(root)
    while_reading([lambda: os.truncate(path, 2 << 20), lambda: os.truncate(path, 10), lambda: None, lambda: None])
    found, problems, store = entry(root)
    assert isinstance(found, File)
    assert (found.size, found.flags, found.chunk_list) == (10, 0, b"")
    assert store.objects[chunk(path.read_bytes())] == path.read_bytes()
    assert problems == []


def test_a_busy_writer_never_makes_an_unflagged_mixture(root: Path) -> None:
    """The whole file always holds one letter; whatever is recorded without a flag must too."""
    path, stop = root / "d" / "f", threading.Event()
    size = 200_000

    def write() -> None:
        pauses = itertools.cycle((0.0, 0.045, 0.0, 0.021, 0.024))
        with open(path, "r+b", buffering=0) as file:
            for letter in itertools.cycle(b"abcdef"):
                os.pwrite(file.fileno(), bytes([letter]) * size, 0)
                if stop.wait(next(pauses)):
                    break

    path.write_bytes(b"z" * size)
    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(10):
            found, problems, _ = entry(root)
            assert isinstance(found, File)
            if found.flags & FileFlag.CHANGED_WHILE_READ:
                assert problems == [Problem(b"d/f", CHANGED)]
            else:
                assert found.content in {blake3(bytes([letter]) * size).digest() for letter in b"abcdefz"}
    finally:
        stop.set()
        writer.join()


def test_a_file_that_is_gone_when_opened_is_simply_absent(
    root: Path, before_opening: Callable[[bytes, list[Act]], None]
) -> None:
    before_opening(b"f", [(root / "d" / "f").unlink])
    store = MemoryStore()
    scan = take(root, store)
    assert sorted(entries_of(store, scan.root)) == [b"", b"d", b"other"]
    assert scan.problems == []
    assert b"d/f" not in scan.signatures


def test_a_directory_that_is_gone_when_its_file_is_opened_is_absent_with_all_in_it(
    root: Path, before_opening: Callable[[bytes, list[Act]], None]
) -> None:
    (root / "d" / "sub" / "sub").mkdir(parents=True)
    for name in ("d/g", "d/sub/h", "d/sub/sub/i"):
        (root / name).write_bytes(b"x")
    settle(root)
    before_opening(b"f", [lambda: shutil.rmtree(root / "d")])
    store = MemoryStore()
    scan = take(root, store)
    assert sorted(entries_of(store, scan.root)) == [b"", b"other"]
    assert sorted(scan.signatures) == [b"", b"other"]
    assert scan.problems == []


@pytest.mark.parametrize("kind", ["symlink", "fifo", "directory", "file"])
def test_a_file_that_became_something_else_is_captured_as_that(
    root: Path, before_opening: Callable[[bytes, list[Act]], None], kind: str
) -> None:
    path = root / "d" / "f"

    def swap() -> None:
        path.unlink()
        if kind == "symlink":
            path.symlink_to("elsewhere")
        elif kind == "fifo":
            os.mkfifo(path)
        elif kind == "directory":
            (path / "sub").mkdir(parents=True)
            (path / "sub" / "new").write_bytes(b"new")
        else:
            path.write_bytes(b"another")

    before_opening(b"f", [swap])
    store = MemoryStore()
    scan = take(root, store)
    expected, found = facts_on_disk(root), facts_of(store, scan.root)
    for facts in (expected, found):
        facts[b"d"] = facts[b"d"][:4]  # its time was taken when it was listed
    assert found == expected
    assert scan.problems == []


def test_a_link_that_is_gone_whenever_it_is_read_leaves_no_trace(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_list, real_read = os.listdir, os.readlink

    def listdir(fd: Any) -> list[str]:
        if "other" in real_list(fd):
            (root / "link").symlink_to("x")
        return real_list(fd)

    def readlink(path: Any, **options: Any) -> Any:
        if path == b"link":
            (root / "link").unlink()
        return real_read(path, **options)

    monkeypatch.setattr(os, "listdir", listdir)
    monkeypatch.setattr(os, "readlink", readlink)
    scan = take(root)
    assert sorted(scan.signatures) == [b"", b"d", b"d/f", b"other"]
    assert scan.entries == 3
    assert scan.problems == []


def test_a_file_that_never_stops_being_something_else_is_left_out_and_reported(
    root: Path, before_opening: Callable[[bytes, list[Act]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(directory_fd: int, name: bytes) -> int:
        raise OSError(40, "Too many levels of symbolic links")

    (root / "other").unlink()
    monkeypatch.setattr(rounds_module, "open_file", refuse)
    found, problems, _ = entry(root)
    assert found == Omitted(b"f", OmitReason.UNREADABLE)
    assert problems == [Problem(b"d/f", "not captured: it kept changing while it was looked at")]


def test_a_file_that_the_disk_cannot_give_is_left_out_and_reported(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(fd: int, size: int, offset: int) -> bytes:
        raise OSError(5, "Input/output error")

    (root / "other").unlink()
    monkeypatch.setattr(os, "pread", fail)
    found, problems, _ = entry(root)
    assert found == Omitted(b"f", OmitReason.UNREADABLE)
    assert problems == [Problem(b"d/f", "not captured: Input/output error")]


@pytest.mark.skipif(not os.path.exists("/proc/sys/kernel/random/boot_id"), reason="needs Linux's own files")
def test_a_file_that_lies_about_its_size_is_flagged() -> None:
    store = MemoryStore()
    scan = take("/proc/sys/kernel/random", store)
    found = entries_of(store, scan.root)[b"boot_id"]
    assert isinstance(found, File)
    assert (found.size, found.flags) == (0, FileFlag.CHANGED_WHILE_READ)
    assert Problem(b"boot_id", CHANGED) in scan.problems


def test_an_error_of_the_store_is_never_taken_for_one_of_a_file(root: Path) -> None:
    class Full(MemoryStore):
        def put(self, key: Any, data: bytes, base: Any = None) -> None:
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        take(root, Full())


def test_running_out_of_descriptors_stops_the_scan(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(directory_fd: int, name: bytes) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(rounds_module, "open_file", fail)
    with pytest.raises(CasnapError, match=r"^cannot look at .*: Too many open files$"):
        take(root)


def test_a_directory_that_changes_while_it_is_listed_is_listed_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, made = os.listdir, iter(["new1", "new2"])

    def listdir(fd: Any) -> list[str]:
        names = real(fd)
        if "f" in names and (name := next(made, None)):
            (root / "d" / name).write_bytes(b"x")
            (root / "d" / "f").unlink(missing_ok=True)
        return names

    monkeypatch.setattr(os, "listdir", listdir)
    store = MemoryStore()
    scan = take(root, store)
    assert sorted(entries_of(store, scan.root)) == [b"", b"d", b"d/new1", b"other"]
    monkeypatch.undo()
    assert facts_of(store, scan.root) == facts_on_disk(root)


def test_a_link_that_changes_while_it_is_read_is_read_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "link").symlink_to("first")
    real, swaps = os.readlink, iter([True, False])

    def readlink(path: Any, **options: Any) -> Any:
        target = real(path, **options)
        if path == b"link" and next(swaps, False):
            (root / "link").unlink()
            (root / "link").symlink_to("second")
        return target

    monkeypatch.setattr(os, "readlink", readlink)
    store = MemoryStore()
    scan = take(root, store)
    monkeypatch.undo()
    assert facts_of(store, scan.root)[b"link"] == facts_on_disk(root)[b"link"]


def test_a_database_waits_for_its_young_side_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("base.db", "base.db-wal", "base.db-shm", "apart.db"):
        (root / name).write_bytes(b"x")
    settle(root)
    (root / "base.db-wal").write_bytes(b"young")
    order: list[bytes] = []
    real = reader_module.open_file

    def spy(directory_fd: int, name: bytes) -> int:
        order.append(name)
        return real(directory_fd, name)

    monkeypatch.setattr(rounds_module, "open_file", spy)
    store = MemoryStore()
    scan = take(root, store, clock=PinnedClock.just_after(root / "base.db-wal"))
    assert order == [b"apart.db", b"other", b"f", b"base.db", b"base.db-shm", b"base.db-wal"]
    assert facts_of(store, scan.root) == facts_on_disk(root)


@pytest.fixture
def repository(root: Path) -> Path:
    git = root / ".git"
    for directory in ("logs", "modules/m/objects", "objects/ab", "objects/pack", "refs/heads"):
        (git / directory).mkdir(parents=True)
    (git / "HEAD").write_bytes(b"ref: refs/heads/main")
    (git / "objects" / "ab" / "old").write_bytes(b"commit 1")
    (git / "refs" / "heads" / "main").write_bytes(b"1")
    settle(root)
    return git


def commit(git: Path) -> None:
    (git / "objects" / "ab" / "new").write_bytes(b"commit 2")
    (git / "refs" / "heads" / "main").write_bytes(b"2")


def git_paths(store: MemoryStore, scan: Any) -> list[bytes]:
    entries = entries_of(store, scan.root)
    return sorted(path[5:] for path, found in entries.items() if path.startswith(b".git/") and isinstance(found, File))


def test_git_objects_are_looked_at_after_the_references(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, done = os.listdir, []

    def listdir(fd: Any) -> list[str]:
        if real(fd) == ["main"] and not done:
            done.append(commit(repository))
        return real(fd)

    monkeypatch.setattr(os, "listdir", listdir)
    store = MemoryStore()
    scan = take(repository.parent, store)
    assert git_paths(store, scan) == [b"HEAD", b"objects/ab/new", b"objects/ab/old", b"refs/heads/main"]


def test_a_commit_after_the_walk_is_captured_with_its_objects(
    repository: Path, before_opening: Callable[[bytes, list[Act]], None]
) -> None:
    before_opening(b"main", [lambda: commit(repository)])
    store = MemoryStore()
    scan = take(repository.parent, store)
    assert git_paths(store, scan) == [b"HEAD", b"objects/ab/new", b"objects/ab/old", b"refs/heads/main"]
    assert store.objects[chunk(b"commit 2")] == b"commit 2"
    assert scan.files_read == 6  # what had been read is not read again
    assert scan.problems == []


def test_objects_that_are_packed_after_the_walk_are_captured_in_their_pack(
    repository: Path, before_opening: Callable[[bytes, list[Act]], None]
) -> None:
    def pack() -> None:
        (repository / "objects" / "pack" / "p.pack").write_bytes(b"commit 1, packed")
        (repository / "objects" / "ab" / "old").unlink()
        (repository / "objects" / "ab").rmdir()

    before_opening(b"old", [pack])
    store = MemoryStore()
    scan = take(repository.parent, store)
    assert git_paths(store, scan) == [b"HEAD", b"objects/pack/p.pack", b"refs/heads/main"]
    assert scan.problems == []


def test_a_git_directory_that_never_rests_is_captured_all_the_same(
    repository: Path, before_opening: Callable[[bytes, list[Act]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    acts: list[Act] = [lambda: commit(repository)] * 50
    before_opening(b"main", acts)
    monkeypatch.setattr(signature_module, "MARGIN", 3600 * NANOSECONDS)  # however slow this machine is
    store = MemoryStore()
    scan = take(repository.parent, store, clock=PinnedClock.just_after(repository))
    assert git_paths(store, scan) == [b"HEAD", b"objects/ab/new", b"objects/ab/old", b"refs/heads/main"]
    assert [problem.path for problem in scan.problems] == [b".git/refs/heads/main"]


@pytest.fixture(autouse=True)
def nothing_hangs() -> Iterator[None]:
    with deadline(30):
        yield


def packed(root: Path, look: int) -> None:
    """What ``git pack-refs`` does: the ref moves from its file into packed-refs."""
    (root / ".git" / "packed-refs").write_text(f"{look:040x} refs/heads/main\n")
    (root / ".git" / "refs" / "heads" / "main").unlink(missing_ok=True)


def test_a_ref_that_is_packed_during_the_scan_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heads = tmp_path / ".git" / "refs" / "heads"
    heads.mkdir(parents=True)
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / ".git" / "packed-refs").write_text("# nothing yet\n")
    (tmp_path / ".git" / "objects").mkdir()
    (heads / "main").write_text("0" * 40 + "\n")
    listed, looks = Lister.list, [0]

    def meddled(self: Lister, path: bytes, fd: int, above: FoundDirectory | None) -> FoundDirectory | None:
        if path == b".git/refs/heads" and not looks[0]:
            looks[0] += 1
            packed(tmp_path, looks[0])
        return listed(self, path, fd, above)

    monkeypatch.setattr(Lister, "list", meddled)
    store = MemoryStore()
    scan = take(tmp_path, store)
    captured = entries_of(store, scan.root)
    assert b".git/refs/heads/main" not in captured
    entry = captured[b".git/packed-refs"]
    assert isinstance(entry, File)
    assert store.objects[ObjectKey(ObjectKind.CHUNK, entry.content)].startswith(b"%040x" % 1)
    assert scan.problems == []


def test_refs_that_are_packed_all_the_time_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git" / "refs" / "heads").mkdir(parents=True)
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    looks = itertools.count()
    settled = GitDirectories.settle

    def meddled(self: GitDirectories) -> bool:
        packed(tmp_path, next(looks))
        return settled(self)

    monkeypatch.setattr(GitDirectories, "settle", meddled)
    assert take(tmp_path).problems == [Problem(b".git", GIT_AT_WORK)]
    assert next(looks) == 4
