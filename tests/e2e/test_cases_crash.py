"""Field cases, group E: crashes, many processes at once, files that move, and damage."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from casnap import Busy, CheckpointManager, Damage
from casnap.store.store import Store
from support import cli
from support.cases import as_ordinary_user, beside, flip, in_processes, kill_after, restores_to, swapping
from support.cases import run_here as run
from support.oracle import Snapshot, difference, inodes, snapshot
from support.trees import make_tree, mutate

pytestmark = pytest.mark.slow

CRASH_ROUNDS = int(os.environ.get("CASNAP_CRASH_ROUNDS", "6"))
CRASH_FILES = int(os.environ.get("CASNAP_CRASH_FILES", "200"))
ROUNDS = int(os.environ.get("CASNAP_CASE_ROUNDS", "4"))
SIZE = int(os.environ.get("CASNAP_CASE_MB", "8")) << 20


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "ws"
    directory.mkdir()
    return directory


@pytest.fixture
def manager(workspace: Path) -> Iterator[CheckpointManager]:
    with CheckpointManager(workspace) as found:
        yield found


class Program:
    """A Python program beside the test, until the block ends; ``ready`` waits for its first line."""

    def __init__(self, code: str, *args: str | Path, env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", code, *map(str, args)],
            env=cli.environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def ready(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"ready\n", self.process.communicate()[1]

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


ALTERNATING = """
import itertools, os, random, sys, time
fd, size = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), int(sys.argv[2])
for letter in itertools.cycle(b"AB"):
    for start in range(0, size, 1 << 20):
        os.pwrite(fd, bytes([letter]) * (1 << 20), start)
    if letter == 66 and not os.path.exists(sys.argv[1] + ".ready"):
        os.close(os.open(sys.argv[1] + ".ready", os.O_CREAT))
        print("ready", flush=True)
    time.sleep(random.choice((0, 0, 0, 0.05)))
"""

APPENDING = """
import itertools, sys, time
print("ready", flush=True)
for number in itertools.count():
    with open(sys.argv[1], "a") as file:
        file.write(f"{number}\\n")
    time.sleep(0.002)
"""

TRUNCATING = """
import itertools, random, sys, time
print("ready", flush=True)
for letter in itertools.cycle("abc"):
    with open(sys.argv[1], "w") as file:
        file.write(letter * random.randint(1, 3_000_000))
    time.sleep(0.02)
"""


def test_case_079_no_unflagged_file_is_a_mixture_and_none_that_is_flagged_is_believed(
    workspace: Path, tmp_path: Path
) -> None:
    names = {"alternating": ALTERNATING, "appended": APPENDING, "truncated": TRUNCATING}
    for name in names:
        (workspace / name).touch()
    writers = [Program(code, workspace / name, str(SIZE)) for name, code in names.items()]
    made = []
    try:
        for writer in writers:
            writer.ready()
        for _ in range(ROUNDS):
            done = cli.run("checkpoint", "-w", workspace, "--json")
            document = done.json()
            flagged = {problem["path"] for problem in document["problems"]}
            assert done.status == (3 if flagged else 0)
            made.append((document["checkpoint"]["id"], flagged))
    finally:
        for writer in writers:
            writer.kill()
    run("checkpoint", "-w", workspace, "last", check=0)  # nothing has changed since, and some of it was flagged
    run("verify", "-w", workspace, "last", check=0)
    appended = (workspace / "appended").read_bytes()
    for id, flagged in made:
        run("restore-to", "-w", workspace, tmp_path / id, id, check=0)
        sizes = {entry["path"]: entry.get("size") for entry in files_of(workspace, id)}
        found = {name: (tmp_path / id / name).read_bytes() for name in names}
        assert {name: sizes[name] for name in names} == {name: len(content) for name, content in found.items()}
        assert appended.startswith(found["appended"])
        for name in {"alternating", "truncated"} - flagged:
            assert len(set(found[name])) <= 1, name
        if "alternating" not in flagged:
            assert len(found["alternating"]) == SIZE


def files_of(workspace: Path, revision: str) -> list[dict[str, object]]:
    return list(run("show", "-w", workspace, revision, "--files", "--json", check=0).json()["files"])


def test_case_081_a_file_that_is_cut_while_it_is_read_kills_nobody(workspace: Path) -> None:
    (workspace / "f").write_text("beside it")
    big = workspace / "big"
    big.touch()

    def cut() -> None:
        os.truncate(big, 0)
        time.sleep(random.random() * 0.05)
        os.truncate(big, 16 << 20)
        with big.open("r+b") as file:
            file.write(b"x" * (2 << 20))
        time.sleep(random.random() * 0.05)

    with beside(cut):
        for verb in ["checkpoint"] * ROUNDS + ["rollback"]:
            done = cli.run(verb, "-w", workspace)
            assert done.status in (0, 3), done.stderr
            assert "Traceback" not in done.stderr
    run("checkpoint", "-w", workspace, "last", check=0)
    run("verify", "-w", workspace, "last", check=0)


TRANSACTIONS = """
import os, sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode = WAL")
connection.execute("PRAGMA wal_autocheckpoint = 20")
number = 0
while True:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE account SET amount = amount - ? WHERE id = 1", (number,))
    connection.execute("UPDATE account SET amount = amount + ? WHERE id = 2", (number,))
    connection.execute("INSERT INTO log (amount, noise) VALUES (?, ?)", (number, os.urandom(3000)))
    connection.execute("COMMIT")
    number += 1
    if number == 5:
        print("ready", flush=True)
    if number >= int(sys.argv[2]):
        time.sleep(1000)
"""


def make_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, amount INTEGER)")
    connection.execute("CREATE TABLE log (id INTEGER PRIMARY KEY, amount INTEGER, noise BLOB)")
    connection.execute("INSERT INTO account VALUES (1, 0), (2, 0)")
    connection.commit()
    connection.close()


def transactions_in(path: Path) -> int:
    """How many transactions a database holds, which must be whole."""
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        ((amounts, total, count),) = connection.execute(
            "SELECT (SELECT group_concat(amount) FROM (SELECT amount FROM account ORDER BY id)),"
            " (SELECT coalesce(sum(amount), 0) FROM log), (SELECT count(*) FROM log)"
        )
        assert amounts == f"{-total},{total}"
        return int(count)
    finally:
        connection.close()


@pytest.mark.parametrize("consistent", [False, True])
def test_case_083_a_live_database_is_captured_whole_or_flagged(
    workspace: Path, tmp_path: Path, consistent: bool
) -> None:
    env = {"CASNAP_SQLITE_CONSISTENT": "true"} if consistent else {}
    make_database(workspace / "base.db")
    whole = []
    with Program(TRANSACTIONS, workspace / "base.db", "1000000000") as writer:
        writer.ready()
        for _ in range(ROUNDS):
            done = cli.run("checkpoint", "-w", workspace, "--json", env=env)
            problems = done.json()["problems"]
            assert done.status == (3 if problems else 0)
            if problems:
                assert not consistent, problems
                assert re.search(r"\bbase\.db(?!-)", " ".join(f"{p['path']} {p['message']}" for p in problems)), (
                    problems
                )
            else:
                whole.append(done.json()["checkpoint"]["id"])
    for number, id in enumerate(whole):
        run("restore-to", "-w", workspace, tmp_path / str(number), id, check=0)
        assert transactions_in(tmp_path / str(number) / "base.db") >= 5
    if not consistent:  # the writer is gone: nothing moves any more
        run("checkpoint", "-w", workspace, "quiet", check=0)
        whole.append("quiet")
    (workspace / "base.db").write_bytes(b"overwritten")
    run("rollback", "-w", workspace, whole[-1], env=env, check=0)
    assert transactions_in(workspace / "base.db") >= 5


def test_case_083_side_files_that_came_later_go_with_their_database(workspace: Path) -> None:
    make_database(workspace / "base.db")
    assert sorted(os.listdir(workspace)) == ["base.db"]
    run("checkpoint", "-w", workspace, "one", check=0)
    first = snapshot(workspace)
    with Program(TRANSACTIONS, workspace / "base.db", "7") as writer:
        writer.ready()
        time.sleep(0.2)
    assert sorted(os.listdir(workspace)) == ["base.db", "base.db-shm", "base.db-wal"]
    run("rollback", "-w", workspace, "one", check=0)
    assert difference(first, snapshot(workspace)) == []
    assert transactions_in(workspace / "base.db") == 0
    run("undo", "-w", workspace, check=0)
    assert transactions_in(workspace / "base.db") == 7


def test_case_083_a_program_that_has_a_restored_database_open_is_named(workspace: Path) -> None:
    make_database(workspace / "base.db")
    run("checkpoint", "-w", workspace, "one", check=0)
    with Program(TRANSACTIONS, workspace / "base.db", "7") as writer:
        writer.ready()
        time.sleep(0.2)
        done = run("rollback", "-w", workspace, "one", check=0)
        pattern = rf"^note: process {writer.process.pid} \([^)]+\) has .*base\.db.* open for writing"
        assert re.search(pattern, done.stderr, re.M), done.stderr
    assert transactions_in(workspace / "base.db") == 0


def tree_beside(workspace: Path) -> Snapshot:
    """The tree without what is swapped meanwhile."""
    return {path: record for path, record in snapshot(workspace).items() if not path.startswith(b"arena/")}


def test_case_084_a_killed_rollback_is_recovered_while_links_come_and_go(
    workspace: Path, tmp_path: Path, home: Path
) -> None:
    rng, outside = random.Random(84), tmp_path / "outside"
    make_tree(workspace, rng, files=CRASH_FILES)
    (workspace / "arena" / "d").mkdir(parents=True)
    (outside / "sub").mkdir(parents=True)
    for name in ("f", "g"):
        (outside / name).write_text("outside")
        (workspace / "arena" / "d" / name).write_text("old")
    os.utime(workspace / "arena", ns=(1, 1))
    run("checkpoint", "-w", workspace, "old", check=0)
    trees = {"old": tree_beside(workspace)}
    arena = workspace / "arena"
    shutil.move(arena, tmp_path / "arena")
    mutate(workspace, rng, CRASH_FILES // 2)
    shutil.move(tmp_path / "arena", arena)
    for name in ("f", "h"):
        (arena / "d" / name).write_text("new")
    os.utime(arena, ns=(1, 1))
    run("checkpoint", "-w", workspace, "new", check=0)
    trees["new"] = tree_beside(workspace)
    before = (snapshot(outside), inodes(outside))
    interrupted, longest = 0, CRASH_FILES / 1000
    for number in range(CRASH_ROUNDS):
        target = ("old", "new")[number % 2]
        with swapping(arena / "d", outside):
            delay = longest * number / CRASH_ROUNDS * rng.random()
            kill_after(delay, "rollback", "-w", workspace, target, written=home / "store" / "oplog")
            status = run("status", "-w", workspace, "--json").json()
            interrupted += status["interrupted"] is not None
            assert run("recover", "-w", workspace).status in (0, 3)
        os.utime(arena, ns=(1, 1))
        found = tree_beside(workspace)
        assert not difference(trees["old"], found) or not difference(trees["new"], found)
        assert (snapshot(outside), inodes(outside)) == before
        if number % 3 == 0:
            run("rollback", "-w", workspace, target, check=0)
            os.utime(arena, ns=(1, 1))
            assert difference(trees[target], tree_beside(workspace)) == []
        assert run("status", "-w", workspace, "--json", check=0).json()["interrupted"] is None
    assert interrupted
    with CheckpointManager(workspace) as manager:
        restores_to(manager, tmp_path / "scratch")


ACTS = (
    "rename",
    "unlink",
    "rmdir",
    "mkdir",
    "link",
    "symlink",
    "mkfifo",
    "open",
    "write",
    "chmod",
    "utime",
    "ftruncate",
)


def die_at(number: int, rollback: Callable[[], object]) -> int:
    """Do it in a forked process that dies at its so manyth system call that changes something; how many it made."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        made = 0

        def counted(act: Callable[..., object]) -> Callable[..., object]:
            def call(*args: object, **options: object) -> object:
                nonlocal made
                made += 1
                if made == number:
                    os._exit(9)
                return act(*args, **options)

            return call

        for name in ACTS:
            setattr(os, name, counted(getattr(os, name)))
        rollback()
        os.writev(writer, [str(made).encode()])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answers:
        answer = answers.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == (0 if answer else 9)
    return int(answer or number)


@pytest.mark.parametrize("user", ["who runs the tests", "without privileges"])
def test_case_084_a_rollback_that_dies_at_any_system_call_is_recovered(tmp_path: Path, user: str) -> None:
    if user == "without privileges":
        as_ordinary_user(die_at_many_calls)
    else:
        die_at_many_calls(tmp_path)


def change_in_many_ways(workspace: Path) -> None:
    """Edit, remove, retype, join and move files, whatever the modes of their directories are."""
    for directory, _, names in list(os.walk(workspace)):
        mode = os.stat(directory).st_mode
        os.chmod(directory, 0o700)
        for number, path in enumerate(Path(directory) / name for name in sorted(names)):
            match number % 7:
                case 0:
                    os.unlink(path)
                    path.write_text("edited")
                case 1:
                    os.unlink(path)
                case 2:
                    os.unlink(path)
                    path.mkdir()
                    (path / "inside").write_text("was a file")
                    path.chmod(0o555)
                case 3:
                    os.link(path, path.with_name(f"joined {number}"), follow_symlinks=False)
                case 4:
                    os.unlink(path)
                    path.symlink_to("elsewhere")
                case 5:
                    path.rename(path.with_name(f"moved {number}"))
        os.chmod(directory, mode & 0o777)


def die_at_many_calls(place: Path) -> None:
    """Let a rollback die at calls from its first to its last, and recover each time."""
    workspace, rng, rounds = place / "ws", random.Random(840), CRASH_ROUNDS
    make_tree(workspace, rng, files=24)
    with CheckpointManager(workspace, store=place / "store") as manager:
        manager.create("old")
        trees = [snapshot(workspace)]
        change_in_many_ways(workspace)
        manager.create("new")
        trees.append(snapshot(workspace))

        def rollback() -> None:
            CheckpointManager(workspace, store=place / "store").rollback("old")

        acts, interrupted = die_at(-1, rollback), 0
        manager.rollback("new")
        for number in range(rounds):
            die_at(1 + number * acts // rounds, rollback)
            was_open = manager.status().interrupted is not None
            interrupted += was_open
            manager.recover()
            assert difference(trees[0 if was_open else 1], snapshot(workspace)) == []
            assert manager.status().interrupted is None
            assert manager.rollback("old").complete
            assert difference(trees[0], snapshot(workspace)) == []
            assert manager.rollback("new").complete
            assert difference(trees[1], snapshot(workspace)) == []
        assert interrupted > rounds // 3


def test_case_084_an_interrupted_rollback_can_be_taken_back(workspace: Path) -> None:
    with CheckpointManager(workspace) as manager:
        for text in ("one", "two"):
            for number in range(20):
                (workspace / f"f{number}").write_text(f"{text} {number}")
            manager.create(text)
        (workspace / "f3").write_text("in no checkpoint")
        (workspace / "new").write_text("in no checkpoint")
        dirty = snapshot(workspace)
    acts = die_at(-1, lambda: CheckpointManager(workspace).rollback("one"))
    run("undo", "-w", workspace, check=0)
    for number in (acts // 2, acts * 3 // 4):
        die_at(number, lambda: CheckpointManager(workspace).rollback("one"))
        assert run("status", "-w", workspace, "--json", check=0).json()["interrupted"] is not None
        run("recover", "--back", "-w", workspace, check=0)
        assert difference(dirty, snapshot(workspace)) == []
        assert run("status", "-w", workspace, "--json", check=0).json()["interrupted"] is None


DYING = """
import os, signal, sys
from casnap.cli import main
from casnap.store.oplog import Oplog
append, operation, when = Oplog.append, os.fsencode(sys.argv[1]), sys.argv[2]
def dying(self, line):
    mine = b'"op":"%s"' % operation in line
    if mine and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    if mine and when == "torn":
        pwrite = os.pwrite
        def torn(fd, data, offset):
            pwrite(fd, bytes(data)[: len(data) // 2], offset)
            os.kill(os.getpid(), signal.SIGKILL)
        os.pwrite = torn
    done = append(self, line)
    if mine:
        os.kill(os.getpid(), signal.SIGKILL)
    return done
Oplog.append = dying
del sys.argv[1:3]
main()
"""


@pytest.mark.parametrize("when", ["before", "torn", "after"])
@pytest.mark.parametrize("operation", ["delete", "undelete"])
def test_case_085_a_deletion_that_is_killed_happened_or_did_not(
    workspace: Path, tmp_path: Path, operation: str, when: str
) -> None:
    trees = history(workspace, 6)
    ids = {record["name"]: record["id"] for record in listed(workspace)}
    gone = ["c1", "c3", "c5"]
    if operation == "undelete":
        run("delete", "-w", workspace, "c2", check=0)
        gone = ["c2"]
    words = [ids[name] for name in gone]
    with Program(DYING, operation, when, operation, "-w", workspace, *words) as killed:
        assert killed.process.wait() == -signal.SIGKILL, killed.process.communicate()
    with CheckpointManager(workspace) as manager:
        names = {checkpoint.name for checkpoint in manager.list()}
        happened = when == "after"
        assert set(gone).isdisjoint(names) == (happened == (operation == "delete"))
        assert set(gone) <= names or set(gone).isdisjoint(names)
        restores_to(manager, tmp_path / "scratch", trees)
        left = [id for name, id in ids.items() if name in gone and (name in names) == (operation == "delete")]
        if left:
            run(operation, "-w", workspace, *left, check=0)
        assert {c.name for c in manager.list()} == (set(trees) - set(gone) if operation == "delete" else set(trees))
        restores_to(manager, tmp_path / "scratch", trees)


def test_case_085_deletions_that_are_killed_at_any_moment_converge(workspace: Path, tmp_path: Path) -> None:
    trees = history(workspace, 12)
    ids = [record["id"] for record in listed(workspace)]
    rng = random.Random(85)
    with CheckpointManager(workspace) as manager:
        for number in range(ROUNDS):
            kill_after(rng.uniform(0.2, 0.45), "delete", "-w", workspace, *ids[number::ROUNDS][:3])
            restores_to(manager, tmp_path / "scratch", trees)
        for id in ids[:6]:
            if id in {checkpoint.id for checkpoint in manager.list()}:
                manager.delete(id)
        assert {checkpoint.id for checkpoint in manager.list()} <= set(ids[6:])
        for id in ids:
            if id not in {checkpoint.id for checkpoint in manager.list()}:
                assert manager.undelete(id).name_lost is None
        assert [checkpoint.id for checkpoint in manager.list()] == ids
        assert restores_to(manager, tmp_path / "scratch", trees) == 12


def history(workspace: Path, count: int) -> dict[str, Snapshot]:
    """So many checkpoints of a file and a half; their trees by name."""
    trees = {}
    with CheckpointManager(workspace) as manager:
        for number in range(count):
            (workspace / "f").write_text(f"{number}" * 1000)
            (workspace / f"g{number % 3}").write_text(f"{number}")
            manager.create(f"c{number}")
            trees[f"c{number}"] = snapshot(workspace)
    return trees


def listed(workspace: Path) -> list[dict[str, str]]:
    return list(run("list", "-w", workspace, "--format", "json", check=0).json())


PROCESSES = 10


def test_case_086_first_checkpoints_of_one_workspace_at_once(workspace: Path, tmp_path: Path) -> None:
    make_tree(workspace, random.Random(86), files=40)
    tree = snapshot(workspace)

    def checkpoint(number: int) -> list[str]:
        try:
            with CheckpointManager(workspace) as manager:
                return ["made", manager.create(f"c{number}").id]
        except Busy as error:
            return ["held by", error.details["holder"]]

    answers = in_processes(PROCESSES, checkpoint)
    made = [id for answer, id in answers if answer == "made"]
    assert made
    assert all(holder for _, holder in answers)
    with CheckpointManager(workspace) as manager:
        found = manager.list()
        assert sorted(checkpoint.id for checkpoint in found) == sorted(made)
        assert sorted(checkpoint.step or 0 for checkpoint in found) == list(range(1, len(made) + 1))
        restores_to(manager, tmp_path / "scratch", {str(checkpoint.name): tree for checkpoint in found})
    document = run("status", "--json", cwd=tmp_path, check=0).json()
    assert [entry["workspace"]["path"] for entry in document["workspaces"]] == [str(workspace)]


def test_case_086_first_checkpoints_of_many_workspaces_at_once(tmp_path: Path) -> None:
    places = [tmp_path / f"ws{number}" for number in range(PROCESSES)]
    for number, place in enumerate(places):
        make_tree(place, random.Random(number // 2), files=20)  # two and two share all content
    in_processes(PROCESSES, lambda number: CheckpointManager(places[number]).create("one").id)
    document = run("status", "--json", cwd=tmp_path, check=0).json()
    assert sorted(entry["workspace"]["path"] for entry in document["workspaces"]) == sorted(map(str, places))
    assert len({entry["workspace"]["id"] for entry in document["workspaces"]}) == PROCESSES
    for place in places:
        with CheckpointManager(place) as manager:
            assert restores_to(manager, tmp_path / "scratch", {"one": snapshot(place)}) == 1


def test_case_086_init_by_many_at_once_registers_once(workspace: Path, tmp_path: Path) -> None:
    statuses = in_processes(PROCESSES, lambda number: run("init", "-w", workspace).status)
    assert set(statuses) <= {0, 11}
    assert 0 in statuses
    workspaces = run("status", "--json", cwd=tmp_path, check=0).json()["workspaces"]
    assert [entry["workspace"]["path"] for entry in workspaces] == [str(workspace)]


STOPPING = """
import os, signal, sys
from casnap.cli import main
from casnap.store.store import Store
commit = Store.commit
def stopped(self, *args, **options):
    os.kill(os.getpid(), signal.SIGSTOP)
    return commit(self, *args, **options)
Store.commit = stopped
main()
"""


def test_case_087_a_stopped_holder_is_named_and_a_dead_one_is_no_obstacle(workspace: Path) -> None:
    (workspace / "f").write_text("one")
    run("checkpoint", "-w", workspace, "one", check=0)
    (workspace / "f").write_text("two")
    with Program(STOPPING, "checkpoint", "-w", workspace, "two") as holder:
        pid, status = os.waitpid(holder.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        for args in (["checkpoint", "three"], ["rollback", "one"]):
            done = run(*args, "-w", workspace, "--wait", "0.2", check=11)
            assert str(pid) in done.stderr
            assert "--wait" in done.stderr
        for args in (["list"], ["status"], ["diff"]):
            run(*args, "-w", workspace, check=0)
        assert (workspace / "f").read_text() == "two"
    run("checkpoint", "-w", workspace, "--wait", "0", "four", check=0)
    assert [record["name"] for record in listed(workspace)] == ["four", "one"]


@pytest.mark.parametrize("holder", ["process 1, checkpoint", "process OURS, rollback", "elsewhere 4711", ""])
def test_case_087_the_text_in_a_lock_file_is_no_lock(workspace: Path, home: Path, holder: str) -> None:
    run("checkpoint", "-w", workspace, "one", check=0)
    locks = [path for path in (home / "store" / "locks").iterdir() if path.is_file()]
    assert locks
    for lock in locks:
        lock.write_text(holder.replace("OURS", str(os.getpid())))
    run("checkpoint", "-w", workspace, "--wait", "0", "two", check=0)
    run("rollback", "-w", workspace, "--wait", "0", "one", check=0)


@pytest.mark.parametrize("meanwhile", ["delete", "forget", "commit"])
def test_case_089_an_object_that_others_let_go_before_the_commit_is_not_lost(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    other = tmp_path / "other"
    make_tree(workspace, random.Random(89), files=20)
    shutil.copytree(workspace, other, symlinks=True)
    if meanwhile != "commit":
        run("checkpoint", "-w", other, "theirs", check=0)  # it alone holds the objects
    run("init", "-w", workspace, check=0)
    tree, commit = snapshot(workspace), Store.commit
    acts = [
        {
            "delete": ["delete", "theirs", "-w", other],
            "forget": ["forget", "--drop", "-w", other],
            "commit": ["checkpoint", "theirs", "-w", other],
        }[meanwhile]
    ]

    def commit_later(self: Store, *args: object, **options: object) -> object:
        if acts:
            cli.run(*acts.pop(), check=0)
        return commit(self, *args, **options)  # type: ignore[arg-type]

    with CheckpointManager(workspace) as manager:
        with monkeypatch.context() as patch:
            patch.setattr(Store, "commit", commit_later)
            manager.create("mine")
        assert acts == []
        assert restores_to(manager, tmp_path / "scratch", {"mine": tree}) == 1
        (workspace / "more").write_text("more")
        manager.create("again")
        assert restores_to(manager, tmp_path / "scratch", {"mine": tree, "again": snapshot(workspace)}) == 2
    if meanwhile != "forget":
        with CheckpointManager(other) as theirs:
            if meanwhile == "delete":
                theirs.undelete(1)
            assert restores_to(theirs, tmp_path / "scratch", {"theirs": snapshot(other)}) == 1


CALLS = "write,pwrite64,writev,pwritev,fsync,fdatasync,rename,renameat,renameat2"


def calls_of(*args: str | Path) -> list[tuple[str, str]]:
    """The system calls of a command that write or force out, each with the name of its file, in order."""
    log = Path(os.environ["HOME"]) / "strace"
    words = [sys.executable, "-P", "-m", "casnap", *map(str, args)]
    ran = subprocess.run(
        ["strace", "-f", "-y", "-qq", "-s", "0", "-e", f"trace={CALLS}", "-o", log, *words],
        env=cli.environment(),
        capture_output=True,
        check=False,
    )
    if ran.returncode != 0 and b"ptrace" in ran.stderr:
        pytest.skip("processes must not be traced here")
    assert ran.returncode == 0, ran.stderr
    found = re.findall(r"^\d+ +(\w+)\((?:\d+|AT_FDCWD)<([^>]*)>", log.read_text(), re.M)
    return [(call, path) for call, path in found]


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_case_090_objects_are_forced_out_before_the_line_that_speaks_of_them(workspace: Path, home: Path) -> None:
    (workspace / "f").write_bytes(os.urandom(50_000))
    store = str(home / "store")
    for number in range(2):
        calls = calls_of("checkpoint", "-w", workspace, f"c{number}")
        packs = [index for index, (call, path) in enumerate(calls) if path.endswith(".pack") and "write" in call]
        lines = [index for index, (call, path) in enumerate(calls) if "/oplog/" in path and "write" in call]
        assert packs
        assert lines

        def forced(path: str, after: int, before: int, calls: list[tuple[str, str]] = calls) -> bool:
            found = calls[after + 1 : before]
            return any(call in ("fsync", "fdatasync") and name.startswith(path) for call, name in found)

        assert forced(f"{store}/packs/", packs[-1], lines[-1])
        told = next(index for index, (_, path) in enumerate(calls) if "pipe:" in path and index > lines[-1])
        assert forced(f"{store}/oplog/", lines[-1], told)
        if number == 0:
            assert any(call == "fsync" and path == f"{store}/packs" for call, path in calls[packs[0] : lines[-1]])
        (workspace / "f").write_bytes(os.urandom(50_000))


@pytest.mark.parametrize("harm", ["truncated", "zeros", "gone"])
def test_case_090_a_pack_that_a_power_loss_emptied_is_detected_and_replaced(
    workspace: Path, home: Path, tmp_path: Path, harm: str
) -> None:
    pack = home / "store" / "packs"
    with CheckpointManager(workspace) as manager:
        (workspace / "f").write_bytes(os.urandom(50_000))
        manager.create("one")
        first = snapshot(workspace)
        kept = {path: path.stat().st_size for path in pack.iterdir()}
        (workspace / "g").write_bytes(os.urandom(50_000))
        manager.create("two")
    for path in pack.iterdir():
        match harm:
            case "truncated":
                os.truncate(path, kept[path])
            case "zeros":
                size = path.stat().st_size
                os.truncate(path, kept[path])
                os.truncate(path, size)
            case _:
                path.unlink()
    with CheckpointManager(workspace) as manager:
        with pytest.raises(Damage):
            manager.restore_to(tmp_path / "two", "two")
        for path in (workspace / "f", workspace / "g", workspace):
            os.utime(path)
        manager.create("three")
        manager.restore_to(tmp_path / "three", "three")
        assert difference(snapshot(workspace), snapshot(tmp_path / "three")) == []
        if harm == "gone":
            with pytest.raises(Damage):
                manager.restore_to(tmp_path / "one", "one")
        else:
            manager.restore_to(tmp_path / "one", "one")
            assert difference(first, snapshot(tmp_path / "one")) == []


@pytest.mark.parametrize("at", [-30, 0, 50_000], ids=["header", "beginning", "middle"])
def test_case_091_damage_does_not_spread_to_later_checkpoints(
    workspace: Path, home: Path, tmp_path: Path, at: int
) -> None:
    noise = os.urandom(100_000)
    (workspace / "f").write_bytes(noise)
    with CheckpointManager(workspace) as manager:
        manager.create("one")
    flip(home / "store", noise[:64], at)
    with CheckpointManager(workspace) as manager:
        os.utime(workspace / "f")
        shutil.copy(workspace / "f", workspace / "copy")
        manager.create("two")
        for name in ("one", "two"):
            manager.restore_to(tmp_path / name, name)
            assert (tmp_path / name / "f").read_bytes() == noise
        assert (tmp_path / "two" / "copy").read_bytes() == noise


def test_case_096_nobody_meets_a_lock_of_the_catalog(workspace: Path, home: Path, tmp_path: Path) -> None:
    places = [tmp_path / f"ws{number}" for number in range(4)]
    for place in places:
        place.mkdir()
        run("init", "-w", place, check=0)
    catalog = next(path for path in (home / "store").glob("catalog-*.db"))
    reader = sqlite3.connect(catalog, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM sqlite_schema").fetchall()

    def work(number: int) -> list[int]:
        statuses = []
        for step in range(4):
            (places[number] / "f").write_text(f"{number} {step}")
            for args in (["checkpoint", f"c{step}"], ["list", "--all"], ["status"], ["verify"]):
                statuses.append(run(*args, "-w", places[number]).status)
        return statuses

    try:
        found = in_processes(4, work)
    finally:
        reader.close()
    assert found == [[0] * 16] * 4
    for place in places:
        with CheckpointManager(place) as manager:
            assert [checkpoint.name for checkpoint in manager.list()] == [f"c{step}" for step in reversed(range(4))]
            restores_to(manager, tmp_path / "scratch")
