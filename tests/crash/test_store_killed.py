"""Processes that die, and processes that work at once: what was committed stays, and the next command works."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from casnap.errors import Busy
from support.stores import (
    WORKSPACE,
    chunk,
    commit_chunks,
    commit_session,
    make_store,
    noise,
    open_store,
    pack_files,
    put,
    remove_catalogs,
    segments,
    watched_syncs,
)

ROOT = Path(__file__).parents[2]
PREAMBLE = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = sys.argv[2:4]
from support.stores import *
path, arguments = Path(sys.argv[1]), sys.argv[4:]
"""


def _start(path: Path, code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PREAMBLE + code, path, ROOT, ROOT / "tests", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _all_good(path: Path, names: list[str]) -> None:
    """Each named checkpoint is there with the chunks that it was made of, also for one who knows no catalog."""
    for _ in range(2):
        store = open_store(path)
        assert [row.name for row in reversed(store.state().history(WORKSPACE))][: len(names)] == names
        for name in names:
            for number in range(3):
                data = noise((name, number), 5000)
                assert store.read(chunk(data)) == data
        store.close()
        remove_catalogs(path)


KILLED_IN_SESSION = """
store = open_store(path)
with store.session() as session:
    for number in range(40):
        put(session, noise(("killed", number), 20_000))
    session.read(chunk(noise(("killed", 0), 20_000)))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_session_wrote_is_adopted_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "store"
    store = make_store(path)
    commit_chunks(store, noise(0))
    process = _start(path, KILLED_IN_SESSION)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    [pack] = pack_files(path)
    size = pack.stat().st_size
    assert size > 40 * 20_000
    with store.session() as session:
        put(session, *(noise(("killed", number), 20_000) for number in range(40)))
        commit_session(store, session, name="resumed")
        assert session.new_bytes < 4000
    remove_catalogs(path)
    fresh = open_store(path)
    for number in range(40):
        assert fresh.read(chunk(noise(("killed", number), 20_000))) == noise(("killed", number), 20_000)


KILLED_BEFORE_SYNC = """
store = open_store(path)
real = os.fdatasync
def die(fd):
    if "jsonl" in os.readlink(f"/proc/self/fd/{fd}"):
        os.kill(os.getpid(), signal.SIGKILL)
    real(fd)
os.fdatasync = die
commit_chunks(store, noise("mine"), name="mine")
"""


def test_a_line_that_was_written_and_not_forced_out_is_forced_out_before_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store"
    store = make_store(path)
    _start(path, KILLED_BEFORE_SYNC).communicate()
    with watched_syncs(monkeypatch.setattr) as synced:
        commit_chunks(store, name="next")
    assert synced == ["fdatasync 0000000001.jsonl", "fsync oplog", "fdatasync 0000000001.jsonl"]
    assert [row.name for row in store.state().history(WORKSPACE)] == ["next", "mine"]
    assert open_store(path).read(chunk(noise("mine"))) == noise("mine")


ENDLESS = """
store = open_store(path)
number = int(arguments[0])
while True:
    name = f"c{number}"
    commit_chunks(store, *(noise((name, part), 5000) for part in range(3)), name=name)
    print(name, flush=True)
    number += 1
"""


@pytest.mark.parametrize("seed", range(4))
def test_what_was_reported_before_a_kill_at_any_moment_is_there(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "store"
    make_store(path).close()
    names: list[str] = []
    moments = random.Random(seed)
    for _ in range(3):
        with _start(path, ENDLESS, len(names)) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            names.append(process.stdout.readline().strip())
            time.sleep(moments.uniform(0, 0.15))
            process.kill()
            names += process.stdout.read().split()  # communicate() would lose what readline() has read ahead
            assert process.stderr.read() == ""
        history = [row.name for row in reversed(open_store(path).state().history(WORKSPACE))]
        assert history[: len(names)] == names
        assert len(history) <= len(names) + 1  # the one that was under way may have been committed
        names = history
    _all_good(path, names)


CREATE = """
from casnap.store.store import Store
import time
while not (path.parent / "go").exists():
    time.sleep(0.001)
store = Store.create(path, clock=Ticking(), policy=POLICY)
commit_chunks(store, noise(arguments[0]), name=f"c{arguments[0]}")
print(store.id)
"""


def test_case_086_many_processes_make_one_store_at_once(tmp_path: Path) -> None:
    path = tmp_path / "store"
    code = CREATE.replace("commit_chunks(store,", "make_workspace(store); commit_chunks(store,").replace(
        "import time\n",
        "import time\nfrom casnap.model.operation import WorkspaceRegistered\n"
        "def make_workspace(store):\n"
        "    store.commit(lambda _, line: WorkspaceRegistered(seq=line.seq, time=line.time, prev=line.prev,\n"
        "        workspace=WORKSPACE, path='/w'))\n",
    )
    processes = [_start(path, code, number) for number in range(6)]
    time.sleep(0.5)
    (tmp_path / "go").touch()
    results = [process.communicate(timeout=60) for process in processes]
    assert [errors for _, errors in results] == [""] * 6
    assert len({output for output, _ in results}) == 1
    store = open_store(path)
    assert store.state().seq == 13
    assert {row.name for row in store.state().history(WORKSPACE)} == {f"c{number}" for number in range(6)}
    assert len(store.present(chunk(noise(str(number))) for number in range(6))) == 6
    assert store.notes == ()


WRITER = """
store = open_store(path)
for number in range(15):
    name = f"{arguments[0]}-{number}"
    commit_chunks(store, *(noise((name, part), 5000) for part in range(3)), name=name)
"""

READER = """
for number in range(25):
    store = open_store(path)
    for row in store.state().history(WORKSPACE)[:3]:
        for part in range(3):
            assert store.read(chunk(noise((row.name, part), 5000))) == noise((row.name, part), 5000)
    store.close()
"""


def test_case_096_writers_and_readers_at_once_never_meet_an_error(tmp_path: Path) -> None:
    path = tmp_path / "store"
    make_store(path).close()
    code = "import casnap.store.follower; casnap.store.follower.LONG_TAIL = 3\n"
    processes = [_start(path, code + WRITER, name) for name in "ab"] + [_start(path, code + READER) for _ in range(2)]
    results = [process.communicate(timeout=120) for process in processes]
    assert [errors for _, errors in results] == [""] * 4
    store = open_store(path)
    names = [row.name for row in reversed(store.state().history(WORKSPACE))]
    assert sorted(names) == sorted(f"{writer}-{number}" for writer in "ab" for number in range(15))
    assert len(pack_files(path)) <= 2
    store.close()
    _all_good(path, names)


STOPPED = """
store = open_store(path)
with store.lock("commit", "process 4711, checkpoint"):
    print("held", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
"""


def test_case_087_a_stopped_holder_is_not_overridden_and_a_dead_one_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "store"
    store = make_store(path)
    store._policy = type(store._policy)(wait=0.1)
    process = _start(path, STOPPED)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    with pytest.raises(Busy, match="process 4711"):
        commit_chunks(store)
    process.kill()
    process.communicate()
    commit_chunks(store)


def test_a_forked_child_keeps_neither_packs_nor_locks_alive(tmp_path: Path) -> None:
    path = tmp_path / "store"
    store = make_store(path)
    with store.session() as session:
        put(session, noise(1))
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(write)
            os.read(read, 1)  # outlives its parent's session
            os._exit(0)
        commit_session(store, session)
    commit_chunks(open_store(path), noise(2))
    assert len(pack_files(path)) == 1  # the pack was free again
    os.close(write)
    assert os.waitpid(child, 0)[1] == 0
    os.close(read)


def test_a_session_that_is_killed_at_any_write_leaves_a_store_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failing system call instead of a kill, at each of them in turn: what it leaves on the disk is the same."""

    class Killed(BaseException):
        pass

    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, lambda _: None)
    path = tmp_path / "store"
    store = make_store(path)
    commit_chunks(store, noise(("base", 0), 5000), name="base")
    calls = {"left": 10**9}

    def killing(real):  # type: ignore[no-untyped-def]
        def call(*arguments, **options):  # type: ignore[no-untyped-def]
            calls["left"] -= 1
            if calls["left"] < 0:
                raise Killed
            return real(*arguments, **options)

        return call

    done, moment = False, 0
    while not done:
        calls["left"] = moment
        with monkeypatch.context() as patch:
            for name in ("pwrite", "write", "ftruncate", "fdatasync", "fsync", "replace", "open"):
                patch.setattr(os, name, killing(getattr(os, name)))
            victim = None
            try:
                victim = open_store(path)
                commit_chunks(victim, *(noise((f"m{moment}", part), 5000) for part in range(3)), name=f"m{moment}")
                done = True
            except Killed:
                pass
        if victim is not None:
            victim.close()
        fresh = open_store(path)
        lines = segments(path)[0].read_bytes().count(b"\n")
        assert fresh.state().seq == lines
        for row in fresh.state().history(WORKSPACE):
            parts = range(3 if row.name.startswith("m") else 1)
            assert all(fresh.read(chunk(noise((row.name, part), 5000))) for part in parts)
        commit_chunks(fresh, noise((f"after{moment}", 0), 5000), name=f"after{moment}")
        fresh.close()
        moment += 1
    assert 10 < moment < 100
