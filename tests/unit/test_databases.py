"""SQLite databases: taken and restored as one set with their logs, flagged where they moved on, copied when in use."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from casnap import CheckpointManager
from casnap.model.change import ChangeKind
from casnap.model.tree import File, FileFlag
from casnap.store.database_copy import copy_database
from casnap.workspace.databases import MOVED_ON, Databases
from casnap.workspace.side_files import database_of
from casnap.workspace.switching import Switch
from support.oracle import difference, snapshot
from support.scanning import MemoryStore, entries_of, take


def make(path: Path, mode: str = "delete", rows: int = 50) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA journal_mode={mode}")
        connection.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(number, "x" * 200) for number in range(rows)])


def values(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return [value for (value,) in connection.execute("SELECT DISTINCT v FROM t ORDER BY v")]


@contextmanager
def in_use(path: Path, *statements: str) -> Iterator[None]:
    """Another process that has run these statements and keeps its connection; it dies without closing it."""
    code = (
        "import os, sqlite3, sys\n"
        "connection = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "for statement in sys.argv[2:]: connection.execute(statement).fetchall()\n"
        "print(flush=True); sys.stdin.read(); os._exit(0)"
    )
    command = [sys.executable, "-c", code, str(path), *statements]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield
        process.kill()


@pytest.mark.parametrize(
    ("name", "database"),
    [
        (b"a/b.db-wal", b"a/b.db"),
        (b"b-shm", b"b"),
        (b"b-journal", b"b"),
        (b"b-wal-wal", b"b-wal"),
        (b"b.db", b"b.db"),
        (b"-wal", b"-wal"),
        (b"d/-shm", b"d/-shm"),
    ],
)
def test_a_side_file_is_known_by_its_name(name: bytes, database: bytes) -> None:
    assert database_of(name) == database


def test_a_log_that_came_after_the_checkpoint_is_gone_with_what_it_held(
    workspace: Path, manager: CheckpointManager
) -> None:
    path = workspace / "app.db"
    make(path, "wal")
    manager.create("c1")
    with in_use(path, "UPDATE t SET v = 'new'"):
        assert (workspace / "app.db-wal").stat().st_size > 0
        manager.create("c2")
        report = manager.rollback("c1")
    assert sorted(os.listdir(workspace)) == ["app.db"]
    assert values(path) == ["x" * 200]
    assert len(report.notes) == 2  # the log and its index are held by the process
    manager.rollback("c2")
    assert values(path) == ["new"]


def test_a_rollback_limited_to_a_database_takes_its_logs_along(workspace: Path, manager: CheckpointManager) -> None:
    path = workspace / "app.db"
    make(path, "wal")
    (workspace / "other").write_text("1")
    manager.create("c1")
    with in_use(path, "UPDATE t SET v = 'new'"):
        (workspace / "other").write_text("2")
    manager.rollback("c1", paths=["app.db"])
    assert values(path) == ["x" * 200]
    assert sorted(os.listdir(workspace)) == ["app.db", "other"]
    assert (workspace / "other").read_text() == "2"
    manager.undo()
    assert values(path) == ["new"]


def test_restore_to_of_a_database_takes_its_logs_along(
    workspace: Path, tmp_path: Path, manager: CheckpointManager
) -> None:
    make(workspace / "app.db", "wal")
    with in_use(workspace / "app.db", "UPDATE t SET v = 'new'"):
        manager.create("c1")
    from casnap.cli.running import run

    assert run(["restore-to", str(tmp_path / "out"), "c1", "-w", str(workspace), "--", "app.db"]) == 0
    assert values(tmp_path / "out" / "app.db") == ["new"]


def test_no_moment_of_a_rollback_has_a_database_beside_the_log_of_another(
    workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, log = workspace / "app.db", workspace / "app.db-wal"
    make(path, "wal")
    sets = {}
    for name in ("c1", "c2"):
        with in_use(path, f"UPDATE t SET v = '{name}'"):
            manager.create(name)
            sets[name] = (path.read_bytes(), log.read_bytes())
        if name == "c1":
            with closing(sqlite3.connect(path)) as connection:  # what is in the log goes into the database
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    seen: list[tuple[bytes, bytes | None]] = []

    def watched(act: Callable[..., None]) -> Callable[..., None]:
        def watching(*args: Any) -> None:
            act(*args)
            seen.append((path.read_bytes(), log.read_bytes() if log.exists() else None))

        return watching

    for name in ("_remove", "_place"):
        monkeypatch.setattr(Switch, name, watched(getattr(Switch, name)))
    manager.rollback("c1")
    assert seen[-1] == sets["c1"]
    assert sets["c1"][0] != sets["c2"][0]
    for database, beside in seen:
        assert beside is None or (database, beside) in sets.values()


def test_a_database_that_changes_before_the_switch_is_left_alone_with_its_logs(
    workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = workspace / "app.db"
    make(path, "wal")
    (workspace / "f").write_text("1")
    manager.create("c1")
    with in_use(path, "UPDATE t SET v = 'new'"):
        pass
    (workspace / "f").write_text("2")
    run = Switch.run

    def late(self: Switch) -> object:
        with open(path, "ab") as file:
            file.write(b"\0" * 4096)
        return run(self)

    monkeypatch.setattr(Switch, "run", late)
    report = manager.rollback("c1")
    assert {problem.path for problem in report.left_alone} == {b"app.db", b"app.db-shm", b"app.db-wal"}
    assert (workspace / "app.db-wal").exists()
    assert (workspace / "f").read_text() == "1"


class Meddler:
    """Changes files between the reading of a set and the look whether it has moved on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, act: Callable[[int], None]) -> None:
        self.looks = 0
        settle = Databases.settle

        def meddled(databases: Databases, *args: Any) -> Any:
            act(self.looks)
            self.looks += 1
            return settle(databases, *args)

        monkeypatch.setattr(Databases, "settle", meddled)


def flags(root: Path) -> tuple[dict[str, int], list[str]]:
    store = MemoryStore()
    scan = take(root, store)
    found = entries_of(store, scan.root)
    entries = {os.fsdecode(path): entry.flags for path, entry in found.items() if isinstance(entry, File)}
    return entries, [problem.message for problem in scan.problems]


def touch(path: Path, byte: bytes) -> None:
    path.write_bytes(byte * path.stat().st_size)


@pytest.mark.parametrize("suffix", ["", "-wal", "-journal"])
def test_a_set_of_which_one_file_moves_on_once_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    for name in ("a.db", "a.db-wal", "a.db-journal"):
        (tmp_path / name).write_bytes(b"0" * 700)
    Meddler(monkeypatch, lambda look: touch(tmp_path / f"a.db{suffix}", b"1") if look == 0 else None)
    store = MemoryStore()
    scan = take(tmp_path, store)
    assert scan.problems == []
    assert scan.files_read == 6
    entry = entries_of(store, scan.root)[os.fsencode(f"a.db{suffix}")]
    assert isinstance(entry, File)
    assert b"1" * 700 in store.objects.values()


def test_a_set_that_goes_on_moving_is_flagged_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.db", "a.db-wal", "a.db-shm", "b.db"):
        (tmp_path / name).write_bytes(b"0" * 700)
    meddler = Meddler(monkeypatch, lambda look: touch(tmp_path / "a.db-wal", b"%d" % (look % 10)))
    changed = int(FileFlag.CHANGED_WHILE_READ)
    expected = {"a.db": changed, "a.db-wal": changed, "a.db-shm": changed, "b.db": 0}
    assert flags(tmp_path) == (expected, [MOVED_ON])
    assert meddler.looks == 4


def test_a_log_that_comes_while_a_database_is_read_belongs_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "a.db")
    Meddler(monkeypatch, lambda look: (tmp_path / "a.db-journal").write_bytes(b"j" * 99) if look == 0 else None)
    entries, problems = flags(tmp_path)
    assert entries == {"a.db": 0, "a.db-journal": 0}
    assert problems == []


def test_an_empty_log_that_comes_or_goes_means_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "a.db")
    (tmp_path / "a.db-wal").touch()
    Meddler(monkeypatch, lambda look: (tmp_path / "a.db-wal").unlink())
    assert flags(tmp_path)[1] == []


def test_an_index_that_changes_alone_means_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.db", "a.db-wal", "a.db-shm"):
        (tmp_path / name).write_bytes(b"0" * 700)
    meddler = Meddler(monkeypatch, lambda look: touch(tmp_path / "a.db-shm", b"1"))
    assert flags(tmp_path)[1] == []
    assert meddler.looks == 1


@pytest.fixture
def consistent(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CheckpointManager]:
    monkeypatch.setenv("CASNAP_SQLITE_CONSISTENT", "true")
    with CheckpointManager(workspace) as manager:
        yield manager


def test_a_database_in_use_is_copied_as_its_last_commit_left_it(
    workspace: Path, tmp_path: Path, consistent: CheckpointManager
) -> None:
    path = workspace / "app.db"
    make(path, "wal")
    with in_use(path, "UPDATE t SET v = 'new'", "BEGIN", "UPDATE t SET v = 'not committed'"):
        before = snapshot(workspace)
        made = consistent.create("c1")
        assert consistent.verify("c1")
        assert consistent.create(if_changed=True).id == made.id
        assert difference(before, snapshot(workspace)) == []
    consistent.restore_to(tmp_path / "out", "c1")
    assert os.listdir(tmp_path / "out") == ["app.db"]
    assert values(tmp_path / "out" / "app.db") == ["new"]
    consistent.rollback("c1")
    assert sorted(os.listdir(workspace)) == ["app.db"]
    assert values(path) == ["new"]
    cache = Path(os.environ["CASNAP_STORE"]) / "cache"
    assert [name for name in os.listdir(cache) if name.startswith("scratch")] == []


def test_what_a_rollback_replaces_is_kept_to_the_byte_also_with_copies(
    workspace: Path, consistent: CheckpointManager
) -> None:
    path = workspace / "app.db"
    make(path, "wal")
    consistent.create("c1")
    with in_use(path, "UPDATE t SET v = 'new'"):
        before = snapshot(workspace)
        consistent.rollback("c1")
    consistent.undo()
    assert difference(before, snapshot(workspace)) == []


def test_what_nobody_has_open_is_taken_to_the_byte_also_with_copies(
    workspace: Path, consistent: CheckpointManager
) -> None:
    make(workspace / "app.db", "wal")
    with in_use(workspace / "app.db", "UPDATE t SET v = 'new'"):
        pass  # killed: its log stays
    make(workspace / "hot.db")
    with in_use(workspace / "hot.db", "PRAGMA cache_size=1", "BEGIN", "UPDATE t SET v = 'y'"):
        assert (workspace / "hot.db-journal").exists()
    before = snapshot(workspace)
    consistent.create("c1")
    assert difference(before, snapshot(workspace)) == []
    shutil.rmtree(workspace)
    consistent.rollback("c1")
    assert difference(before, snapshot(workspace)) == []
    assert values(workspace / "app.db") == ["new"]
    assert values(workspace / "hot.db") == ["x" * 200]


def test_a_database_that_cannot_be_copied_is_taken_as_it_stands(
    workspace: Path, consistent: CheckpointManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("casnap.store.database_copy.copy_database", lambda *args, **options: None)
    make(workspace / "app.db", "wal")
    with in_use(workspace / "app.db", "UPDATE t SET v = 'new'"):
        before = snapshot(workspace)
        consistent.create("c1")
    shutil.rmtree(workspace)
    consistent.rollback("c1")
    assert difference(before, snapshot(workspace)) == []


def test_another_file_that_was_swapped_in_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite opens by path, and a directory may be swapped meanwhile."""
    (tmp_path / "inside").mkdir()
    (tmp_path / "outside").mkdir()
    make(tmp_path / "inside" / "a.db")
    make(tmp_path / "outside" / "a.db")
    fd = os.open(tmp_path / "inside", os.O_RDONLY)
    connect = sqlite3.connect

    def swapped(address: str, **options: Any) -> sqlite3.Connection:
        elsewhere = tmp_path / "outside" / "a.db"
        return (
            connect(f"file:{elsewhere}?mode=ro", **options)
            if "mode=ro" in str(address)
            else connect(address, **options)
        )

    copy = copy_database(fd, b"a.db", tmp_path)
    assert copy is not None
    (tmp_path / "copy.db").write_bytes(os.pread(copy, 1 << 20, 0))
    os.close(copy)
    assert values(tmp_path / "copy.db") == ["x" * 200]
    monkeypatch.setattr(sqlite3, "connect", swapped)
    assert copy_database(fd, b"a.db", tmp_path) is None
    os.close(fd)


def test_a_copy_fails_without_leaving_anything(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "a.db").write_bytes(b"no database" * 99)
    fd = os.open(tmp_path, os.O_RDONLY)
    descriptors = len(os.listdir("/proc/self/fd"))
    assert copy_database(fd, b"a.db", tmp_path / "scratch") is None
    assert copy_database(fd, b"absent", tmp_path / "scratch") is None
    assert copy_database(fd, b"a.db", tmp_path / "absent") is None
    assert os.listdir(tmp_path / "scratch") == []
    assert len(os.listdir("/proc/self/fd")) == descriptors
    os.close(fd)


def test_a_plain_diff_of_a_database_is_no_database_matter(workspace: Path, manager: CheckpointManager) -> None:
    """Files that merely are named like logs are files."""
    (workspace / "notes-wal").write_text("no database beside it")
    manager.create("c1")
    (workspace / "notes-wal").write_text("edited")
    (workspace / "x-journal").write_text("new")
    assert [(c.path, c.kind) for c in manager.rollback("c1").changes] == [
        (b"notes-wal", ChangeKind.CHANGED),
        (b"x-journal", ChangeKind.REMOVED),
    ]
    assert (workspace / "notes-wal").read_text() == "no database beside it"
