"""Faults of rules, databases and interruptions, found by trying to break rollback; each stands for its kind."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from casnap import CheckpointManager, Damage
from casnap.fs import placing
from casnap.workspace.databases import _is_hot
from casnap.workspace.staging import Staging
from casnap.workspace.switching import Switch
from support.oracle import Snapshot, difference, snapshot

Manager = CheckpointManager


def insert(path: Path, rows: int, *, crash: bool = False) -> None:
    """Rows in WAL mode; with ``crash`` the log stays, as when the program dies."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=wal")
    connection.execute("CREATE TABLE IF NOT EXISTS t (v TEXT)")
    connection.executemany("INSERT INTO t VALUES (?)", [("x" * 100,)] * rows)
    if crash:
        kept = {
            name: (path.parent / name).read_bytes() for name in os.listdir(path.parent) if name.startswith(path.name)
        }
        connection.close()
        for name, data in kept.items():
            (path.parent / name).write_bytes(data)
    else:
        connection.close()


def rows(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return int(connection.execute("SELECT count(*) FROM t").fetchone()[0])


def die_after(monkeypatch: pytest.MonkeyPatch, name: str, count: int, act: Callable[[], object]) -> None:
    """Run ``act``, and die after the ``count``-th call of a function that places or removes something."""
    done = [0]
    real = getattr(placing, name)

    def counted(*args: Any, **options: Any) -> Any:
        result = real(*args, **options)
        done[0] += 1
        if done[0] == count:
            raise SystemExit
        return result

    with monkeypatch.context() as patch:
        patch.setattr(placing, name, counted)
        with pytest.raises(SystemExit):
            act()


@pytest.mark.parametrize("rule", ["*.db\n", "*-wal\n*-shm\n"])
def test_rules_do_not_part_a_database_from_its_log(workspace: Path, manager: Manager, rule: str) -> None:
    path = workspace / "a.db"
    (workspace / ".casnapignore").write_text(rule)
    insert(path, 80, crash=True)
    manager.create("c1")
    insert(path, 220)
    before = snapshot(workspace, times=False)
    manager.rollback("c1")
    if rule.startswith("*.db"):
        assert difference(before, snapshot(workspace, times=False)) == []
        assert rows(path) == 300
    else:
        assert rows(path) == 80


def test_a_log_of_an_ignored_database_is_not_removed(workspace: Path, manager: Manager) -> None:
    path = workspace / "a.db"
    (workspace / ".casnapignore").write_text("*.db\n")
    insert(path, 5)
    manager.create("c1")
    insert(path, 15, crash=True)
    assert (workspace / "a.db-wal").exists()
    manager.rollback("c1")
    assert rows(path) == 20


def test_a_database_above_the_limit_keeps_its_log(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = workspace / "a.db"
    insert(path, 5)
    monkeypatch.setenv("CASNAP_MAX_FILE_SIZE", "50K")
    with CheckpointManager(workspace) as manager:
        manager.create("c1")
        insert(path, 1500)
        insert(path, 5, crash=True)
        assert path.stat().st_size > 50 << 10
        report = manager.rollback("c1")
        assert not report.complete
        assert rows(path) == 1510


def test_a_database_that_the_older_rules_ignored_keeps_its_log(workspace: Path, manager: Manager) -> None:
    path = workspace / "a.db"
    (workspace / ".casnapignore").write_text("*.db\n")
    manager.create("c1")
    (workspace / ".casnapignore").unlink()
    insert(path, 7, crash=True)
    manager.create("c2")
    assert manager.rollback("c1").kept == (b"a.db",)
    assert rows(path) == 7


@pytest.mark.parametrize("how", ["rule", "cache tag"])
def test_what_a_rule_hides_although_the_target_has_it_is_left_alone_and_said(
    workspace: Path, manager: Manager, how: str
) -> None:
    (workspace / "src").mkdir()
    (workspace / "src" / "a").write_text("good")
    manager.create("c1")
    (workspace / "src" / "a").write_text("bad")
    if how == "rule":
        (workspace / ".casnapignore").write_text("*\n")
    else:
        (workspace / "src" / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55")
    report = manager.rollback("c1")
    assert [problem.path for problem in report.left_alone] == [b"src"]
    assert not report.complete
    assert not manager.verify("c1")


def test_a_rule_that_comes_while_a_rollback_runs_hides_nothing(
    workspace: Path, manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "f").write_text("1")
    manager.create("c1")
    (workspace / "f").write_text("2")
    run = Switch.run

    def hostile(self: Switch) -> object:
        (workspace / ".casnapignore").write_text("*\n")
        (workspace / "evil").write_text("x")
        return run(self)

    monkeypatch.setattr(Switch, "run", hostile)
    report = manager.rollback("c1")
    assert {b".casnapignore", b"evil"} <= {problem.path for problem in report.left_alone}


@pytest.mark.parametrize("kind", ["file", "directory", "link", "fifo"])
def test_what_a_rule_hides_is_looked_at_once_it_is_put_back(
    workspace: Path, manager: Manager, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    path = workspace / "x.tmp"
    make = {
        "file": lambda: path.write_text("1"),
        "directory": path.mkdir,
        "link": lambda: path.symlink_to("1"),
        "fifo": lambda: os.mkfifo(path),
    }
    make[kind]()
    manager.create("c1")
    shutil.rmtree(path) if kind == "directory" else path.unlink()
    (workspace / ".casnapignore").write_text(".casnapignore\n*.tmp\n")
    manager.create("c2")
    report = manager.rollback("c1")
    assert ([change.path for change in report.changes], report.left_alone) == ([b"x.tmp"], ())
    shutil.rmtree(path) if kind == "directory" else path.unlink()
    run = Switch.run

    def hostile(self: Switch) -> object:
        outcome = run(self)
        shutil.rmtree(path) if kind == "directory" else path.unlink()
        path.write_text("2")
        return outcome

    monkeypatch.setattr(Switch, "run", hostile)
    report = manager.rollback("c1")
    assert [problem.path for problem in report.left_alone] == [b"x.tmp"]
    assert report.changes == ()


@pytest.mark.parametrize("held", [False, True])
def test_recover_protects_what_the_rules_of_before_ignored(
    workspace: Path, manager: Manager, monkeypatch: pytest.MonkeyPatch, held: bool
) -> None:
    (workspace / "f").write_text("1")
    if held:
        (workspace / "a.log").write_text("v1")
    manager.create("c1")
    (workspace / ".casnapignore").write_text("*.log\n")
    (workspace / "a.log").write_text("precious")
    (workspace / "f").write_text("2")
    die_after(monkeypatch, "remove_file", 1, lambda: manager.rollback("c1"))
    assert not (workspace / ".casnapignore").exists()
    manager.recover()
    assert (workspace / "a.log").read_text() == "precious"
    assert (workspace / "f").read_text() == "1"


def fill(workspace: Path, text: str) -> None:
    for number in range(4):
        (workspace / f"f{number}").write_text(text)


def test_back_after_two_interruptions_leads_to_before_the_first(
    workspace: Path, manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(workspace, "v1")
    manager.create("c1")
    fill(workspace, "v3")
    before = snapshot(workspace)
    die_after(monkeypatch, "replace", 2, lambda: manager.rollback("c1"))
    die_after(monkeypatch, "replace", 1, manager.undo)
    manager.recover(back=True)
    assert difference(before, snapshot(workspace)) == []


def test_the_same_rollback_after_a_killed_way_back_still_leads_back(
    workspace: Path, manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(workspace, "v1")
    manager.create("c1")
    fill(workspace, "v3")
    before = snapshot(workspace)
    die_after(monkeypatch, "replace", 2, lambda: manager.rollback("c1"))
    die_after(monkeypatch, "replace", 1, lambda: manager.recover(back=True))
    manager.rollback("c1")
    manager.undo()
    assert difference(before, snapshot(workspace)) == []


def test_a_way_back_is_undone_with_what_was_done_in_between(
    workspace: Path, manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(workspace, "v1")
    manager.create("c1")
    fill(workspace, "v3")
    die_after(monkeypatch, "replace", 2, lambda: manager.rollback("c1"))
    (workspace / "f3").write_text("an hour of work")
    (workspace / "g").write_text("new")
    manager.recover(back=True)
    manager.undo()
    assert (workspace / "f3").read_text() == "an hour of work"
    assert (workspace / "g").read_text() == "new"


def test_a_path_that_only_looks_like_a_log_takes_nothing_along(workspace: Path, manager: Manager) -> None:
    (workspace / "thesis").mkdir()
    for name in ("thesis/ch1", "thesis-journal", "-wal", "notes", "notes-wal"):
        (workspace / name).write_text("1")
    manager.create("c1")
    for name in ("thesis/ch1", "thesis-journal", "-wal", "notes", "notes-wal"):
        (workspace / name).write_text("weeks of work")
    for name in ("thesis-journal", "-wal", "notes-wal"):
        report = manager.rollback("c1", paths=[name])
        assert [change.path for change in report.changes] == [name.encode()]
        assert report.complete
    assert (workspace / "thesis/ch1").read_text() == (workspace / "notes").read_text() == "weeks of work"


@pytest.mark.parametrize("moment", ["before the switch", "before its own turn"])
def test_a_database_that_came_into_use_is_left_alone(
    workspace: Path, manager: Manager, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    path = workspace / "a.db"
    insert(path, 5)
    manager.create("c1")
    insert(path, 15)
    act = Switch.run if moment == "before the switch" else Switch._place

    def late(self: Switch, *args: Any) -> object:
        insert(path, 10, crash=True)
        return act(self, *args)

    monkeypatch.setattr(Switch, act.__name__, late)
    report = manager.rollback("c1")
    assert b"a.db" in {problem.path for problem in report.left_alone}
    assert rows(path) == 30


def test_a_hard_link_out_of_the_scope_is_no_difference(workspace: Path, manager: Manager) -> None:
    (workspace / "d").mkdir()
    (workspace / "d" / "a").write_text("1")
    os.link(workspace / "d" / "a", workspace / "out")
    manager.create("c1")
    (workspace / "d" / "a").unlink()
    (workspace / "d" / "a").write_text("agent")
    report = manager.rollback("c1", paths=["d/a"])
    assert report.complete
    assert [change.path for change in report.changes] == [b"d/a"]
    assert manager.rollback("c1", paths=["d/a"]).changes == ()


def test_a_guarded_file_in_place_of_a_directory_does_not_stop_the_rest(workspace: Path, manager: Manager) -> None:
    (workspace / "d").mkdir()
    (workspace / "d" / "x").write_text("x")
    (workspace / "g").write_text("1")
    manager.create("c1")
    shutil.rmtree(workspace / "d")
    (workspace / "g").unlink()
    (workspace / "d").write_text("a file")
    with (workspace / ".casnapignore").open("wb") as file:
        file.truncate(1 << 20)
    report = manager.rollback("c1")
    assert (workspace / "g").read_text() == "1"
    assert (workspace / "d").read_text() == "a file"
    assert b"d" in {problem.path for problem in report.left_alone}


def test_a_checkpoint_under_other_rules_does_not_serve_as_the_way_back(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "x.log").write_text("1")
    with CheckpointManager(workspace) as manager:
        manager.create("c1")
    (workspace / "x.log").unlink()
    monkeypatch.setenv("CASNAP_EXCLUDE", "*.log")
    with CheckpointManager(workspace) as manager:
        manager.create("c2")
    monkeypatch.delenv("CASNAP_EXCLUDE")
    with CheckpointManager(workspace) as manager:
        manager.rollback("c1")
        assert (workspace / "x.log").exists()
        manager.undo()
    assert not (workspace / "x.log").exists()


def test_what_a_rollback_brought_goes_with_its_undo_although_it_is_ignored(workspace: Path, manager: Manager) -> None:
    (workspace / ".env").write_text("KEY=1")
    manager.create("c1")
    (workspace / ".env").unlink()
    (workspace / ".casnapignore").write_text(".env\n")
    manager.create("c2")
    before = snapshot(workspace)
    manager.rollback("c1")
    manager.undo()
    assert difference(before, snapshot(workspace)) == []


def test_what_a_limited_rollback_brought_goes_with_its_undo_although_it_is_ignored(
    workspace: Path, manager: Manager
) -> None:
    (workspace / ".env").write_text("KEY=1")
    manager.create("c1")
    (workspace / ".env").unlink()
    (workspace / ".casnapignore").write_text(".env\n")
    manager.create("c2")
    before = snapshot(workspace)
    manager.rollback("c1", paths=[".env", ".casnapignore"])
    assert manager.undo().complete
    assert difference(before, snapshot(workspace)) == []
    manager.undo()  # and comes again with the redo
    assert (workspace / ".env").read_text() == "KEY=1"
    assert not (workspace / ".casnapignore").exists()
    (workspace / ".env").write_text("KEY=2")  # nobody brought that
    manager.undo()
    assert (workspace / ".env").read_text() == "KEY=2"


@pytest.mark.parametrize("way", ["undo", "recover"])
def test_what_an_interrupted_run_brought_goes_with_the_way_back_although_it_is_ignored(
    workspace: Path, manager: Manager, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    (workspace / ".env").write_text("KEY=1")
    (workspace / "late").write_text("1")
    manager.create("c1")
    (workspace / ".env").unlink()
    (workspace / "late").unlink()
    (workspace / ".casnapignore").write_text(".env\n")
    manager.create("c2")
    (workspace / "new").write_text("2")
    before = snapshot(workspace)
    die_after(monkeypatch, "place_new", 1, lambda: manager.rollback("c1"))
    assert (workspace / ".env").read_text() == "KEY=1"
    assert not (workspace / ".casnapignore").exists()
    if way == "undo":
        assert manager.undo().complete
    else:
        manager.recover(back=True)
    assert difference(before, snapshot(workspace)) == []


def below_root(workspace: Path) -> Snapshot:
    """All but the workspace's own entry, whose time a limited rollback may move."""
    return {path: one for path, one in snapshot(workspace).items() if path not in (b"", b".")}


@pytest.mark.parametrize("back", [False, True])
def test_a_directory_that_an_interrupted_run_made_is_finished_or_taken_away(
    workspace: Path, manager: Manager, monkeypatch: pytest.MonkeyPatch, back: bool
) -> None:
    (workspace / "a").mkdir(mode=0o755)
    (workspace / "a" / "f").write_text("1")
    manager.create("c1")
    with_a = below_root(workspace)
    shutil.rmtree(workspace / "a")
    without = below_root(workspace)
    die_after(monkeypatch, "place_new", 1, lambda: manager.rollback("c1", paths=["a/f"]))
    manager.recover(back=back)
    assert difference(without if back else with_a, below_root(workspace)) == []
    assert (workspace / "a").exists() is not back


def test_only_gits_own_lock_files_are_left_out(workspace: Path, manager: Manager) -> None:
    names = (".git/HEAD", ".git/refs/heads/main", ".git/objects/info/x", ".git/annex/key.lock", ".git/wt/Cargo.lock")
    locks = (".git/index.lock", ".git/refs/heads/main.lock", ".git/objects/info/commit-graph.lock")
    for name in (*names, *locks):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text("x")
    manager.create("c1")
    shutil.rmtree(workspace)
    manager.rollback("c1")
    assert all((workspace / name).exists() for name in names)
    assert not any((workspace / name).exists() for name in locks)


def test_an_unchanged_file_that_a_rule_hides_by_now_is_no_difference(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "big").write_bytes(b"b" * 300)
    (workspace / "x.log").write_bytes(b"x")
    with CheckpointManager(workspace) as manager:
        manager.create("c1")
    monkeypatch.setenv("CASNAP_MAX_FILE_SIZE", "100")
    monkeypatch.setenv("CASNAP_EXCLUDE", "*.log")
    with CheckpointManager(workspace) as manager:
        assert manager.verify("c1")
        report = manager.rollback("c1")
        assert (report.complete, report.kept) == (True, (b"big", b"x.log"))
        (workspace / "big").write_bytes(b"c" * 300)
        (workspace / "x.log").chmod(0o755)
        assert [change.path for change in manager.verify("c1").changes] == [b"big", b"x.log"]
        assert [problem.path for problem in manager.rollback("c1").left_alone] == [b"big", b"x.log"]


def test_a_directory_swapped_while_a_rollback_stages_is_left_alone_and_the_rest_goes_on(
    workspace: Path, tmp_path: Path, manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outside").mkdir()
    for number in range(40):  # more than are kept open at a time
        (workspace / f"d{number:02}").mkdir()
        (workspace / f"d{number:02}" / "f").write_text("1")
    manager.create("c1")
    for number in range(40):
        (workspace / f"d{number:02}" / "f").write_text("2")
    stage = Staging.stage

    def swapped(self: Staging) -> None:
        (workspace / "d05").rename(tmp_path / "moved")
        (workspace / "d05").symlink_to(tmp_path / "outside")
        stage(self)

    monkeypatch.setattr(Staging, "stage", swapped)
    report = manager.rollback("c1")
    assert b"d05/f" in {problem.path for problem in report.left_alone}
    assert all((workspace / f"d{number:02}" / "f").read_text() == "1" for number in range(40) if number != 5)
    assert os.listdir(tmp_path / "outside") == []


@pytest.mark.parametrize("mode", ["persist", "truncate"])
def test_a_journal_that_is_done_does_not_keep_a_database_from_being_copied(tmp_path: Path, mode: str) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as connection:
        connection.execute(f"PRAGMA journal_mode={mode}")
        connection.execute("CREATE TABLE t (v TEXT)")
        connection.execute("INSERT INTO t VALUES ('x')")
        fd = os.open(tmp_path, os.O_RDONLY)
        assert (tmp_path / "a.db-journal").exists()
        assert not _is_hot(fd, b"a.db-journal")
        connection.execute("PRAGMA cache_size=1")
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO t VALUES (?)", [("y" * 5000,)] * 9)
        assert _is_hot(fd, b"a.db-journal")
        os.close(fd)


def test_an_undo_does_not_mind_an_identical_directory_that_the_older_rules_hide(
    workspace: Path, manager: Manager
) -> None:
    (workspace / ".casnapignore").write_text("cache/\n*.tmp\n")
    manager.create("c1")
    (workspace / ".casnapignore").unlink()
    (workspace / "cache" / "deep").mkdir(parents=True)
    (workspace / "cache" / "deep" / "f").write_text("x")
    (workspace / "a.tmp").symlink_to("cache")
    before = snapshot(workspace)
    manager.rollback("c1")
    report = manager.undo()
    assert report.complete
    assert difference(before, snapshot(workspace)) == []
    manager.rollback("c1")
    (workspace / "cache" / "deep" / "f").write_text("y")
    report = manager.undo()
    assert [problem.path for problem in report.left_alone] == [b"cache"]


def test_a_file_named_like_a_log_without_a_database_goes_by_its_own_rules(workspace: Path, manager: Manager) -> None:
    (workspace / ".casnapignore").write_text("k.db\n")
    manager.create("c1")
    (workspace / "k.db-journal").write_text("x")
    assert manager.rollback("c1").complete
    assert not (workspace / "k.db-journal").exists()


def test_patterns_count_for_what_is_named_like_a_log_beside_a_plain_file(workspace: Path, manager: Manager) -> None:
    (workspace / ".casnapignore").write_text("*-journal\n")
    (workspace / "notes").write_text("text")
    (workspace / "notes-journal").write_text("text")
    made = manager.create("c1")
    assert made.skipped == 1
    (workspace / "notes-journal").write_text("edited")
    report = manager.rollback("c1")
    assert report.complete
    assert (workspace / "notes-journal").read_text() == "edited"


def test_a_foreign_log_in_the_place_of_the_targets_own_stops_the_database(
    workspace: Path, manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = workspace / "a.db"
    insert(path, 5, crash=True)
    manager.create("c1")
    insert(path, 15)
    assert sorted(os.listdir(workspace)) == ["a.db"]
    place = Switch._place

    def late(self: Switch, changed: bytes) -> None:
        if changed == b"a.db":
            insert(path, 10, crash=True)
        place(self, changed)

    monkeypatch.setattr(Switch, "_place", late)
    assert b"a.db" in {problem.path for problem in manager.rollback("c1").left_alone}
    assert rows(path) == 30


def test_damage_behind_a_rule_does_not_hide_what_was_done(
    workspace: Path, manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "d").mkdir()
    (workspace / "d" / "f").write_text("1")
    (workspace / "g").write_text("1")
    manager.create("c1")
    (workspace / ".casnapignore").write_text("d/\n")
    (workspace / "g").write_text("2")

    def damaged(*_: object) -> set[bytes]:
        raise Damage("a tree is bad")

    monkeypatch.setattr("casnap.engine.alike._Comparison._names", damaged)
    report = manager.rollback("c1")
    assert [problem.path for problem in report.left_alone] == [b"d"]
    assert (workspace / "g").read_text() == "1"
