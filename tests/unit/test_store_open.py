"""Which stores are opened, which are refused, and what works where nothing can be written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from casnap.errors import Busy, CasnapError, Damage, Refused, StorageFailed, TooNew
from casnap.store import signals
from casnap.store.media import file_system
from casnap.store.store import Store
from support.stores import (
    POLICY,
    WORKSPACE,
    Ticking,
    chunk,
    commit_chunks,
    make_store,
    noise,
    open_store,
    remove_catalogs,
    segments,
)

ROOT = Path(__file__).parents[2]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store"
    store = make_store(path)
    commit_chunks(store, noise(1), name="one")
    store.close()
    return path


def _edit(path: Path, **changes: Any) -> None:
    file = path / "casnap-store.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def test_the_format_file_says_what_kind_of_store_it_is_and_the_log_repeats_it(path: Path) -> None:
    fields = json.loads((path / "casnap-store.json").read_text())
    assert fields == {
        "format": 1,
        "id": open_store(path).id,
        "hash": "blake3",
        "ids": "plain",
        "chunker": {"name": "fastcdc", "whole": 1048576, "min": 16384, "average": 65536, "max": 262144},
        "delta_depth": 4,
        "features": {"compatible": [], "write": [], "collect": [], "read": []},
    }
    assert json.loads(segments(path)[0].read_bytes().splitlines()[0])["format"] == fields


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 2},
        {"format": 2, "id": 7, "whatever": []},
        {"features": {"read": ["encryption"]}},
        {"hash": "sha3"},
        {"ids": "keyed"},
        {"chunker": {"name": "gear"}},
    ],
)
def test_case_101_a_newer_store_is_refused_before_anything_is_written(path: Path, changes: dict[str, Any]) -> None:
    _edit(path, **changes)
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    with pytest.raises(TooNew) as caught:
        open_store(path)
    with pytest.raises(TooNew):
        Store.create(path, clock=Ticking(), policy=POLICY)
    assert caught.value.exit_status == 16
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before
    if "format" in changes:
        assert "format 2" in caught.value.message
        assert "format 1" in caught.value.message


def test_features_keep_from_just_what_they_say(path: Path) -> None:
    _edit(path, features={"compatible": ["colours"]})
    assert open_store(path).writable
    _edit(path, features={"collect": ["holds"]})
    assert open_store(path).writable
    assert open_store(path).format.unknown_to_collect == ("holds",)
    _edit(path, features={"write": ["seals"]})
    store = open_store(path)
    assert not store.writable
    assert store.read(chunk(noise(1))) == noise(1)
    with pytest.raises(StorageFailed, match="seals"), store.session():
        pass
    with pytest.raises(StorageFailed, match="seals"):
        commit_chunks(store)
    with pytest.raises(StorageFailed, match="seals"), store.lock("gc", "me"):
        pass


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": 1}', b'{"format": 1, "id": "xy"}', b"\xff" * 90])
def test_a_damaged_format_file_is_replaced_by_the_first_operation(path: Path, content: bytes) -> None:
    id = open_store(path).id
    (path / "casnap-store.json").write_bytes(content)
    assert open_store(path).id == id
    remove_catalogs(path)
    segments(path)[0].write_bytes(b"x" + segments(path)[0].read_bytes())
    with pytest.raises(Damage, match=r"casnap-store\.json"):
        open_store(path)


def _as_nobody(path: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run code as another user, who can reach the checkout and the store."""
    preamble = (
        "import os, sys; from pathlib import Path; sys.path[:0] = sys.argv[2:]; sys.dont_write_bytecode = True\n"
        "from support.stores import *; from casnap.errors import *\n"
        "from casnap.codec import chunk_lists, hashing\n"
        "import hashlib, sqlite3, casnap.store.store; path = Path(sys.argv[1])  # loaded late, where nobody may look\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
    )
    command = [sys.executable, "-c", preamble + code, path, ROOT, ROOT / "tests"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _open_to_others(path: Path, *, uid: int, mode: int) -> None:
    for parent in path.parents:
        if parent.owner() and parent != Path("/") and os.stat(parent).st_mode & 0o005 != 0o005:
            os.chmod(parent, 0o755)
    for entry in [path, *path.rglob("*")]:
        os.chown(entry, uid, uid)
        os.chmod(entry, mode | 0o111 if entry.is_dir() else mode)


@needs_root
def test_case_098_a_store_without_write_permission_is_read(path: Path) -> None:
    store = open_store(path)
    for number in range(2, 5):
        commit_chunks(store, noise(number), name=f"c{number}")
    store.close()
    _open_to_others(path, uid=65534, mode=0o444)
    done = _as_nobody(
        path,
        "store = open_store(path)\n"
        "print(store.writable, [row.name for row in store.state().history(WORKSPACE)])\n"
        "assert store.read(chunk(noise(4))) == noise(4)\n"
        "try: commit_chunks(store)\n"
        "except StorageFailed as error: print(error)\n",
    )
    assert done.stdout.splitlines() == [
        "False ['c4', 'c3', 'c2', 'one']",
        f"cannot write to store {path}: permission denied",
    ], done.stderr


@needs_root
def test_another_users_store_is_refused_but_to_root_who_asks_for_it(path: Path) -> None:
    _open_to_others(path, uid=12345, mode=0o644)
    with pytest.raises(Refused, match="belongs to uid 12345") as caught:
        open_store(path)
    assert caught.value.exit_status == 14
    store = Store.open(path, clock=Ticking(), policy=POLICY, explicit=True)
    remove_catalogs(path)
    for number in range(2, 6):
        commit_chunks(store, noise(number))
    Store.open(path, clock=Ticking(), policy=POLICY, explicit=True)
    with store.lock("workspace-1", "root"):
        pass
    assert {entry.stat().st_uid for entry in [path, *path.rglob("*")]} == {12345}


@pytest.fixture
def read_only(path: Path, tmp_path: Path) -> Iterator[Path]:
    """The store once more, through a mount that nothing can be written to."""
    target = tmp_path / "mounted"
    target.mkdir()
    subprocess.run(["mount", "--bind", path, target], check=True)
    subprocess.run(["mount", "-o", "remount,ro,bind", target], check=True)
    yield target
    subprocess.run(["umount", "-l", target], check=True)


@needs_root
@pytest.mark.parametrize("state", ["closed", "in use", "without a catalog"])
def test_case_098_a_read_only_mount_shows_all_that_is_committed(path: Path, read_only: Path, state: str) -> None:
    writer = open_store(path)
    for number in range(2, 80):
        commit_chunks(writer, noise(number), name=f"c{number}")
    if state != "in use":
        writer.close()
    if state == "without a catalog":
        remove_catalogs(path)
    store = open_store(read_only)
    assert not store.writable
    assert store.state().seq == 81
    assert [row.name for row in store.state().history(WORKSPACE)][:2] == ["c79", "c78"]
    assert store.read(chunk(noise(1))) == noise(1)
    with pytest.raises(StorageFailed, match="read only"):
        commit_chunks(store)
    commit_chunks(writer, noise(80), name="new")
    assert store.state().named(WORKSPACE, "new").seq == 82


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    target = tmp_path / "disk"
    target.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", target], check=True)
    yield target
    subprocess.run(["umount", "-l", target], check=True)


def _fill(disk: Path) -> None:
    with open(disk / "filler", "ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass


@needs_root
@pytest.mark.parametrize("catalog", ["kept", "removed"])
def test_case_041_a_full_disk_takes_nothing_away(small_disk: Path, catalog: str) -> None:
    path = small_disk / "store"
    store = make_store(path)
    assert (path / "reserve").stat().st_size == (8 << 20) // 16
    commit_chunks(store, noise(1), name="one")
    store.close()
    _fill(small_disk)
    if catalog == "removed":
        remove_catalogs(path)
        _fill(small_disk)
    store = open_store(path)
    assert store.writable
    for attempt in range(3):
        with pytest.raises(StorageFailed, match="No space left"):
            commit_chunks(store, noise(attempt + 10, 1 << 20))
    assert [row.name for row in open_store(path).state().history(WORKSPACE)] == ["one"]
    assert store.read(chunk(noise(1))) == noise(1)
    (small_disk / "filler").unlink()
    commit_chunks(store, noise(10, 1 << 20), name="two")
    fresh = open_store(path)
    assert [row.name for row in fresh.state().history(WORKSPACE)] == ["two", "one"]
    assert fresh.read(chunk(noise(10, 1 << 20))) == noise(10, 1 << 20)


@needs_root
def test_a_store_that_fills_its_disk_by_itself_keeps_what_was_committed(small_disk: Path) -> None:
    path = small_disk / "store"
    store = make_store(path)
    done = 0
    with pytest.raises(StorageFailed, match="No space left"):
        for done in range(100):
            commit_chunks(store, noise(done, 300_000), name=f"c{done}")
    assert 10 < done < 30
    fresh = open_store(path)
    assert [row.name for row in fresh.state().history(WORKSPACE)] == [f"c{n}" for n in reversed(range(done))]
    for number in range(done):
        assert fresh.read(chunk(noise(number, 300_000))) == noise(number, 300_000)


def test_case_087_a_lock_that_is_held_is_waited_for_and_its_holder_named(path: Path) -> None:
    store, other = open_store(path), open_store(path)
    object.__setattr__(other, "_policy", type(POLICY)(wait=0.05))
    holding = store.lock("commit", "process 4711, checkpoint")
    with holding, pytest.raises(Busy, match="process 4711, checkpoint holds it"):
        commit_chunks(other)
    commit_chunks(other)


def test_a_signal_during_a_commit_waits_until_it_has_been_reported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(path)
    append = store._oplog.append
    seen = []

    def interrupted(line: bytes) -> tuple[int, int]:
        signal.raise_signal(signal.SIGINT)
        return append(line)

    monkeypatch.setattr(store._oplog, "append", interrupted)
    with pytest.raises(KeyboardInterrupt), signals.held():
        commit_chunks(store, name="two")
        seen.append(store.state().named(WORKSPACE, "two").seq)
    assert seen == [4]
    assert open_store(path).state().seq == 4


def test_threads_may_take_turns(path: Path) -> None:
    store, failures = open_store(path), []
    turn = threading.Lock()

    def work(number: int) -> None:
        try:
            for step in range(3):
                with turn:
                    commit_chunks(store, noise((number, step)))
                    assert store.read(chunk(noise((number, step)))) == noise((number, step))
        except (CasnapError, AssertionError) as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert open_store(path).state().seq == 12


def test_the_file_system_of_a_path_is_told_from_the_mounts() -> None:
    assert file_system(Path("/proc/self")) == "proc"
    assert file_system(Path("/dev/shm")) == "tmpfs"


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
def test_a_store_on_a_network_file_system_is_read_only(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 0:5 / {tmp_path} rw shared:1 - {kind} server:/x rw\n")
    monkeypatch.setattr("casnap.store.media._MOUNTS", mounts)
    store = open_store(path)
    assert not store.writable
    with pytest.raises(StorageFailed, match=f"network file system \\({kind}\\)"):
        commit_chunks(store)
    assert store.read(chunk(noise(1))) == noise(1)
