"""A store as its users see it: create, put, commit, read, and what that costs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from casnap.errors import Damage, NoStore, Refused, StorageFailed
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.operation import Verified, WorkspaceRegistered
from casnap.store.space import Space, reserve_size
from casnap.store.store import Store
from support.stores import (
    POLICY,
    WORKSPACE,
    Ticking,
    chunk,
    commit_chunks,
    commit_session,
    make_store,
    noise,
    open_store,
    pack_files,
    put,
    segments,
    watched_syncs,
)


def test_what_was_put_and_committed_is_read_back_by_another_process(tmp_path: Path) -> None:
    path = tmp_path / "store"
    contents = [b"", b"a", b"compressible " * 1000, noise(1, 100_000), noise(2, 4 << 20)]
    commit_chunks(make_store(path), *contents)
    code = (
        "import sys; from pathlib import Path; sys.path[:0] = sys.argv[2:]\n"
        "from support.stores import open_store, chunk, noise\n"
        "store = open_store(Path(sys.argv[1]))\n"
        "for data in [b'', b'a', b'compressible ' * 1000, noise(1, 100_000), noise(2, 4 << 20)]:\n"
        "    assert store.read(chunk(data)) == data\n"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code, path, root, root / "tests"], check=True)


def test_an_object_is_kept_once(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    commit_chunks(store, b"one" * 100)
    with store.session() as session:
        put(session, b"one" * 100)
        assert session.new_bytes == 0
        assert session.finish() == ()


def test_existence_is_asked_for_a_kind(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    commit_chunks(store, b"one")
    key = chunk(b"one")
    other = ObjectKey(ObjectKind.TREE, key.id)
    assert store.present([key, other]) == {key}
    with pytest.raises(Damage, match="does not have it"):
        store.read(other)


def test_a_session_reads_what_it_has_put_before_it_is_committed(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    with store.session() as session:
        put(session, b"new")
        assert session.read(chunk(b"new")) == b"new"
        assert session.present([chunk(b"new"), chunk(b"other")]) == {chunk(b"new")}
        assert store.present([chunk(b"new")]) == set()
        with pytest.raises(Damage):
            store.read(chunk(b"new"))


def test_no_pack_is_opened_before_the_first_new_object(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    commit_chunks(store, b"one")
    before = pack_files(tmp_path / "store")[0].stat().st_mtime_ns
    with store.session() as session:
        put(session, b"one")
        commit_session(store, session)
    assert [file.stat().st_mtime_ns for file in pack_files(tmp_path / "store")] == [before]


def test_new_bytes_are_what_the_packs_grew_by(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    commit_chunks(store, noise(1))
    before = sum(file.stat().st_size for file in pack_files(tmp_path / "store"))
    id = commit_chunks(store, noise(2), noise(3, 300_000))
    grown = sum(file.stat().st_size for file in pack_files(tmp_path / "store")) - before
    row = store.state().checkpoint(id)
    assert row is not None
    assert row.new_bytes == grown


def test_one_session_may_be_committed_twice(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    with store.session() as session:
        put(session, b"first")
        commit_session(store, session)
        put(session, b"second")
        commit_session(store, session)
    again = open_store(tmp_path / "store")
    assert [again.read(chunk(data)) for data in (b"first", b"second")] == [b"first", b"second"]
    assert again.state().workspace(WORKSPACE).last_step == 2


def test_a_build_that_raises_commits_nothing_and_the_session_can_go_on(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    log = segments(tmp_path / "store")[0].read_bytes()

    def refuse(*_: object) -> WorkspaceRegistered:
        raise Refused("no")

    with store.session() as session:
        put(session, b"one")
        with pytest.raises(Refused):
            store.commit(refuse, session)
        assert segments(tmp_path / "store")[0].read_bytes() == log
        assert store.state().seq == 2
        put(session, b"two")
        commit_session(store, session)
    again = open_store(tmp_path / "store")
    assert again.present([chunk(b"one"), chunk(b"two")]) == {chunk(b"one"), chunk(b"two")}


def test_an_operation_that_leaves_out_the_packs_is_not_written(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    with store.session() as session:
        put(session, b"one")
        with pytest.raises(ValueError, match="packs"):
            store.commit(
                lambda _, line: Verified(
                    seq=line.seq, time=line.time, prev=line.prev, workspace=WORKSPACE, id="0" * 64, result="equal"
                ),
                session,
            )
    assert store.state().seq == 2


def test_build_sees_what_another_process_has_committed_meanwhile(tmp_path: Path) -> None:
    first, second = make_store(tmp_path / "store"), open_store(tmp_path / "store")
    commit_chunks(second, b"x", name="theirs")
    seen = []

    def build(state, line):  # type: ignore[no-untyped-def]
        seen.append((line.seq, state.seq, state.named(WORKSPACE, "theirs").step))
        return Verified(seq=line.seq, time=line.time, prev=line.prev, workspace=WORKSPACE, id="0" * 64, result="equal")

    first.commit(build)
    assert seen == [(4, 3, 1)]


def test_a_commit_forces_out_just_the_packs_and_the_operation_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(tmp_path / "store")
    with watched_syncs(monkeypatch.setattr) as synced:
        commit_chunks(store, *(noise(number) for number in range(25)))
        [pack] = pack_files(tmp_path / "store")
        assert synced == [f"fdatasync {pack.name}", "fsync packs", "fdatasync 0000000001.jsonl"]
        synced.clear()
        commit_chunks(open_store(tmp_path / "store"), *(noise(-number) for number in range(1, 26)))
        assert synced == [f"fdatasync {pack.name}", "fdatasync 0000000001.jsonl"]
        synced.clear()
        commit_chunks(store)
        assert synced == ["fdatasync 0000000001.jsonl"]


def test_a_new_segment_costs_one_more_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("casnap.store.oplog.SEGMENT_SIZE", 1)
    store = make_store(tmp_path / "store")
    with watched_syncs(monkeypatch.setattr) as synced:
        commit_chunks(store)
    assert synced == ["fdatasync 0000000003.jsonl", "fsync oplog"]
    assert open_store(tmp_path / "store").state().seq == 3


def test_an_ordinary_commit_writes_nothing_to_the_catalog(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    before = [(file.name, file.stat().st_mtime_ns) for file in sorted((tmp_path / "store").glob("catalog-*.db*"))]
    for number in range(20):
        commit_chunks(store, noise(number))
    after = [(file.name, file.stat().st_mtime_ns) for file in sorted((tmp_path / "store").glob("catalog-*.db*"))]
    assert after == before


def test_what_others_left_unsynced_is_forced_out_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = make_store(tmp_path / "store")
    (tmp_path / "store/cache/oplog-synced").unlink()
    with watched_syncs(monkeypatch.setattr) as synced:
        commit_chunks(store)
    assert synced == ["fdatasync 0000000001.jsonl", "fsync oplog", "fdatasync 0000000001.jsonl"]


def test_the_path_of_every_command_imports_neither_sqlite_utils_nor_a_terminal(tmp_path: Path) -> None:
    make_store(tmp_path / "store").close()
    code = (
        "import sys; from pathlib import Path; sys.path[:0] = sys.argv[2:]\n"
        "from support.stores import open_store, commit_chunks\n"
        "commit_chunks(open_store(Path(sys.argv[1])), b'data')\n"
        "print([name for name in ('sqlite_utils', 'rich', 'click') if name in sys.modules])\n"
    )
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", code, tmp_path / "store", root, root / "tests"]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "[]\n"


def test_a_failed_sync_of_the_log_is_final_and_leaves_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = make_store(tmp_path / "store")
    log = segments(tmp_path / "store")[0].read_bytes()
    calls = []

    def failing(fd: int) -> None:
        calls.append(fd)
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", failing)
        with pytest.raises(StorageFailed, match="Input/output error"):
            commit_chunks(store)
    assert len(calls) == 1
    assert segments(tmp_path / "store")[0].read_bytes() == log
    commit_chunks(store, name="later")
    assert open_store(tmp_path / "store").state().named(WORKSPACE, "later").seq == 3


def test_a_failed_sync_of_a_pack_leaves_nothing_to_adopt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = make_store(tmp_path / "store")
    commit_chunks(store, b"before")
    [pack] = pack_files(tmp_path / "store")
    size = pack.stat().st_size

    def failing(fd: int) -> None:
        raise OSError(5, "Input/output error")

    with store.session() as session:
        put(session, noise(1))
        with monkeypatch.context() as patch:
            patch.setattr(os, "fdatasync", failing)
            with pytest.raises(StorageFailed):
                commit_session(store, session)
        assert pack.stat().st_size == size
        with pytest.raises(StorageFailed):  # the session is of no more use
            put(session, noise(2))
    assert store.state().seq == 3
    commit_chunks(store, noise(1))
    assert open_store(tmp_path / "store").read(chunk(noise(1))) == noise(1)


def test_creating_is_idempotent(tmp_path: Path) -> None:
    first = make_store(tmp_path / "store")
    second = Store.create(tmp_path / "store", clock=Ticking(), policy=POLICY)
    assert second.id == first.id
    assert second.state().seq == 2


def test_a_store_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        (tmp_path / "store").mkdir()
        store = make_store(tmp_path / "store")
        commit_chunks(store, b"secret")
    finally:
        os.umask(before)
    modes = {path.is_dir(): oct(path.stat().st_mode & 0o777) for path in (tmp_path / "store").rglob("*")}
    assert modes == {True: "0o700", False: "0o600"}
    assert oct((tmp_path / "store").stat().st_mode & 0o777) == "0o700"


def test_a_new_store_has_a_reserve_whose_space_is_taken(tmp_path: Path) -> None:
    make_store(tmp_path / "store")
    reserve = (tmp_path / "store/reserve").stat()
    assert reserve.st_size == 5 << 18
    assert reserve.st_blocks * 512 >= 5 << 18


@pytest.mark.parametrize(
    ("disk", "kept", "mebibytes"),
    [
        (1 << 40, 0, 1.25),
        (1 << 40, 32 << 20, 1.25),
        (1 << 40, 64 << 20, 2),
        (1 << 40, 1 << 40, 4),
        (8 << 20, 1 << 40, 0.5),
    ],
)
def test_a_reserve_grows_with_the_store_and_never_takes_much_of_a_disk(disk: int, kept: int, mebibytes: float) -> None:
    assert reserve_size(disk, kept) == mebibytes * (1 << 20)


def test_a_reserve_that_has_become_small_for_its_store_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(tmp_path / "store")
    reserve = store.path / "reserve"
    monkeypatch.setattr(Space, "used", lambda self: 64 << 20)
    store.space.keep_reserve()
    assert (reserve.stat().st_size, reserve.stat().st_blocks * 512 >= 2 << 20) == (2 << 20, True)
    monkeypatch.setattr(Space, "used", lambda self: 0)
    store.space.keep_reserve()
    assert reserve.stat().st_size == 2 << 20
    monkeypatch.setattr(Space, "used", lambda self: 1 << 40)
    monkeypatch.setattr(Space, "free", lambda self: (15 << 20, 1 << 40))
    store.space.keep_reserve()
    assert reserve.stat().st_size == 2 << 20  # there is not plenty


def test_a_directory_with_other_files_does_not_become_a_store(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(Refused, match="other files"):
        Store.create(tmp_path, clock=Ticking(), policy=POLICY)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.txt"]


@pytest.mark.parametrize("made", ["nothing", "file", "directory"])
def test_where_there_is_no_store_that_is_said(tmp_path: Path, made: str) -> None:
    path = tmp_path / "store"
    if made == "file":
        path.write_text("x")
    elif made == "directory":
        path.mkdir()
    with pytest.raises(NoStore) as caught:
        open_store(path)
    assert caught.value.exit_status == 10


def test_a_creation_that_was_killed_is_finished_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "store"
    first = make_store(path)
    id = first.id
    first.close()
    (path / "casnap-store.json").unlink()
    assert open_store(path).id == id
    assert Store.create(path, clock=Ticking(), policy=POLICY).id == id
    assert (path / "casnap-store.json").exists()


@pytest.mark.parametrize("cut", [0, 1, 100])
def test_a_creation_that_was_killed_in_its_first_line_is_begun_again(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "store"
    Store.create(path, clock=Ticking(), policy=POLICY).close()
    (path / "casnap-store.json").unlink()
    for catalog in path.glob("catalog-*"):
        catalog.unlink()
    os.truncate(segments(path)[0], cut)
    store = Store.create(path, clock=Ticking(), policy=POLICY)
    assert store.state().seq == 1
    assert open_store(path).id == store.id


def test_space_is_counted_as_an_ordinary_user_sees_it(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    disk = os.statvfs(tmp_path)
    free, size = store.space.free()
    assert size == disk.f_blocks * disk.f_frsize
    assert abs(free - disk.f_bavail * disk.f_frsize) < 1 << 30
    used = int(
        subprocess.run(["du", "-s", "-B1", tmp_path / "store"], capture_output=True, check=True).stdout.split()[0]
    )
    assert abs(store.space.used() - used) <= 16 * 4096
