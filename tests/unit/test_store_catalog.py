"""The catalog: losing it in any way changes no answer."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from casnap.errors import Damage
from casnap.model.operation import CheckpointsDeleted, PackCut, SpaceFreed, StoreChecked, WorkspaceRegistered
from casnap.store import schema
from casnap.store.store import Store
from support.stores import (
    WORKSPACE,
    catalogs,
    chunk,
    commit_chunks,
    make_store,
    noise,
    open_store,
    pack_files,
    remove_catalogs,
    segments,
)


def _answers(store: Store) -> Any:
    state = store.state()
    keys = [chunk(noise(number)) for number in range(12)]
    return (
        state.seq,
        state.last_hash,
        state.workspaces(),
        [state.history(row.id) for row in state.workspaces()],
        state.named(WORKSPACE, "c2"),
        state.places(keys),
        sorted(state.packs(), key=lambda row: row.id),
        state.upkeep,
    )


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three named checkpoints and more in two workspaces; the catalog has seen all but the last lines."""
    monkeypatch.setattr("casnap.store.follower.LONG_TAIL", 3)
    path = tmp_path / "store"
    store = make_store(path)
    store.commit(
        lambda _, line: WorkspaceRegistered(seq=line.seq, time=line.time, prev=line.prev, workspace="w2", path="/v")
    )
    ids = [commit_chunks(store, noise(number), name=f"c{number}") for number in range(8)]
    store.commit(
        lambda _, line: CheckpointsDeleted(
            seq=line.seq, time=line.time, prev=line.prev, workspace=WORKSPACE, ids=(ids[7].hex(), ids[3].hex())
        )
    )
    store.close()
    assert store._follower.tables.base.seq == 9
    return path


def _remove(path: Path) -> None:
    remove_catalogs(path)


def _truncate(path: Path) -> None:
    os.truncate(catalogs(path)[0], 0)


def _overwrite_first_page(path: Path) -> None:
    with open(catalogs(path)[0], "r+b") as file:
        file.write(b"\xa5" * 4096)


def _overwrite_from_second_page(path: Path) -> None:
    with open(catalogs(path)[0], "r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (catalogs(path)[0].stat().st_size - 4096))


def _cut_in_half(path: Path) -> None:
    os.truncate(catalogs(path)[0], catalogs(path)[0].stat().st_size // 2)


def _remove_wal(path: Path) -> None:
    for file in path.glob("catalog-*.db-wal"):
        file.unlink()


def _remove_shm(path: Path) -> None:
    for file in path.glob("catalog-*.db-shm"):
        file.unlink()


def _junk_wal(path: Path) -> None:
    catalogs(path)[0].with_name(catalogs(path)[0].name + "-wal").write_bytes(noise("wal", 100_000))


def _other_database(path: Path) -> None:
    catalogs(path)[0].unlink()
    with sqlite3.connect(catalogs(path)[0] if catalogs(path) else path / "catalog-1.db") as connection:
        connection.execute("CREATE TABLE position (seq, hash, segment, offset)")
        connection.execute("INSERT INTO position VALUES (9, 'x', 1, 1)")
    connection.close()


def _drop_a_table(path: Path) -> None:
    with sqlite3.connect(catalogs(path)[0]) as connection:
        connection.execute("DROP TABLE checkpoints")
    connection.close()


def _strange_position(path: Path, value: str) -> None:
    """As a damaged page may give it: with the marks of a catalog, and values that no catalog has."""
    columns = "seq, hash, segment, offset, collected, collected_at, checked_at, checked_clean"
    catalogs(path)[0].unlink()
    with sqlite3.connect(path / "catalog-1.db") as connection:
        connection.execute(f"CREATE TABLE position ({columns})")
        connection.execute(f"INSERT INTO position VALUES (9, 'x', {value}, 1, 0, 0, 0, 1)")
        connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {schema.VERSION}")
    connection.close()


def _no_number(path: Path) -> None:
    _strange_position(path, "NULL")


def _no_text(path: Path) -> None:
    _strange_position(path, "CAST(x'fb' AS TEXT)")


WAYS = [
    _no_number,
    _no_text,
    _remove,
    _truncate,
    _overwrite_first_page,
    _overwrite_from_second_page,
    _cut_in_half,
    _remove_wal,
    _remove_shm,
    _junk_wal,
    _other_database,
    _drop_a_table,
]


@pytest.mark.parametrize("lose", WAYS)
def test_case_095_losing_the_catalog_changes_no_answer(path: Path, lose: Callable[[Path], None]) -> None:
    expected = _answers(open_store(path))
    lose(path)
    assert _answers(open_store(path)) == expected
    store = open_store(path)
    assert _answers(store) == expected
    for number in range(8, 12):  # and life goes on
        commit_chunks(store, noise(number), name=f"c{number}")
    expected = _answers(store)
    assert _answers(open_store(path)) == expected
    remove_catalogs(path)
    assert _answers(open_store(path)) == expected


@pytest.mark.parametrize("lose", [_remove, _truncate, _overwrite_first_page, _other_database])
def test_the_next_command_makes_the_catalog_anew_under_a_new_name(path: Path, lose: Callable[[Path], None]) -> None:
    lose(path)
    gone = not catalogs(path)
    store = open_store(path)
    assert [file.name for file in catalogs(path)] == ["catalog-1.db" if gone else "catalog-2.db"]
    assert store._follower.tables.tail == 0
    if not gone:
        assert (path / "catalog-1.db.aside").exists()
        assert store.notes[0].startswith("catalog-1.db was set aside and made anew from the operation log: ")
    assert open_store(path).notes == ()


def test_case_095_an_old_copy_put_back_is_brought_forward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("casnap.store.follower.LONG_TAIL", 0)
    path = tmp_path / "store"
    store = make_store(path)
    commit_chunks(store, noise(1), name="c1")
    store.close()
    shutil.copy(path / "catalog-1.db", tmp_path / "copy")
    store = open_store(path)
    for number in range(2, 6):
        commit_chunks(store, noise(number), name=f"c{number}")
    store.close()
    expected = _answers(open_store(path))
    shutil.copy(tmp_path / "copy", path / "catalog-1.db")
    store = open_store(path)
    assert store._follower.tables.base.seq == 3
    assert _answers(store) == expected
    assert store.notes == ()


def test_a_catalog_that_is_ahead_of_the_log_keeps_from_writing_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("casnap.store.follower.LONG_TAIL", 0)
    path = tmp_path / "store"
    store = make_store(path)
    commit_chunks(store, noise(1), name="c1")
    log = segments(path)[0].read_bytes()
    expected = _answers(store)
    commit_chunks(store, noise(2), name="c2")
    store.close()
    segments(path)[0].write_bytes(log)  # an older copy of the log was put back
    store = open_store(path)
    assert _answers(store) == expected  # what can be read is read
    assert store.notes == ("the catalog has seen operations that the operation log has lost: run `casnap check`",)
    with pytest.raises(Damage, match="operation 4 is damaged or lost") as raised:
        commit_chunks(store, noise(3), name="c3")
    assert "--repair" in (raised.value.hint or "")
    assert [file.name for file in catalogs(path)] == ["catalog-1.db"]  # it remembers what the log does not


def test_a_catalog_of_another_store_is_not_believed(path: Path, tmp_path: Path) -> None:
    expected = _answers(open_store(path))
    other = make_store(tmp_path / "other")
    for number in range(20):
        commit_chunks(other, noise(-number))
    other.close()
    shutil.copy(tmp_path / "other/catalog-1.db", path / "catalog-7.db")
    assert _answers(open_store(path)) == expected


def test_a_catalog_of_a_newer_version_is_left_to_it(path: Path) -> None:
    expected = _answers(open_store(path))
    with sqlite3.connect(path / "catalog-1.db") as connection:
        connection.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    connection.close()
    before = (path / "catalog-1.db").read_bytes()
    assert _answers(open_store(path)) == expected
    commit_chunks(open_store(path), noise(8), name="c8")
    assert (path / "catalog-1.db").read_bytes() == before
    assert open_store(path)._follower.tables.base.seq == 13
    assert open_store(path).notes == ()


VERSION_2 = """
ALTER TABLE position DROP COLUMN collected; ALTER TABLE position DROP COLUMN collected_at;
ALTER TABLE position DROP COLUMN checked_at; ALTER TABLE position DROP COLUMN checked_clean;
DROP INDEX checkpoints_to_free; ALTER TABLE checkpoints DROP COLUMN freed;
ALTER TABLE checkpoints DROP COLUMN good; PRAGMA user_version = 2;
"""
"""What makes a catalog one of version 2, which knew no upkeep."""

VERSION_4 = "ALTER TABLE checkpoints DROP COLUMN good; PRAGMA user_version = 4;"
"""What makes a catalog one of version 4, which knew nothing of what is good."""


VERSION_5 = "PRAGMA user_version = 5;"
"""What makes a catalog one of version 5, which knew nothing of the run that an undo takes back."""


@pytest.mark.parametrize("older", [VERSION_2, VERSION_4, VERSION_5], ids=["version 2", "version 4", "version 5"])
def test_a_catalog_of_an_older_version_is_not_believed_and_the_next_commit_makes_one_of_today(
    path: Path, older: str
) -> None:
    _keep_up(path)
    expected = _answers(open_store(path))
    with sqlite3.connect(path / "catalog-1.db") as connection:
        connection.executescript(older)
    connection.close()
    reader = open_store(path)
    assert (reader._follower.tables.base.seq, reader.notes) == (0, ())
    assert _answers(reader) == expected
    reader.close()
    writer = open_store(path)
    commit_chunks(writer, noise(8), name="c8")
    expected = _answers(writer)
    writer.close()
    assert open_store(path)._follower.tables.base.seq == expected[0]
    assert _answers(open_store(path)) == expected
    assert (path / "catalog-2.db").exists()


def _keep_up(path: Path) -> None:
    """The store is checked, and a deleted checkpoint is freed: what the catalog of version 2 has no columns for."""
    store = open_store(path)
    deleted = next(row.id.hex() for row in store.state().history(WORKSPACE) if row.deleted)
    store.commit(lambda _, line: StoreChecked(seq=line.seq, time=line.time, prev=line.prev, result="damaged", found=1))
    store.commit(lambda _, line: SpaceFreed(seq=line.seq, time=line.time, prev=line.prev, freed=(deleted,)))
    store.close()


def _facts(path: Path) -> tuple[set[str], int]:
    """The packs that the catalog file has, and how many places."""
    with sqlite3.connect(catalogs(path)[-1]) as connection:
        packs = {id for (id,) in connection.execute("SELECT id FROM packs")}
        (places,) = connection.execute("SELECT count(*) FROM places").fetchone()
        strays = connection.execute("SELECT 1 FROM places WHERE pack NOT IN (SELECT number FROM packs)").fetchall()
    connection.close()
    assert strays == []
    return packs, places


def test_packs_that_were_removed_leave_the_file_and_come_back_when_they_are_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("casnap.store.follower.LONG_TAIL", 0)
    monkeypatch.setattr("casnap.store.packs.PACK_SIZE", 1000)
    path = tmp_path / "store"
    store = make_store(path)
    for number in range(9):
        commit_chunks(store, noise(number))
    before, places = _facts(path)
    assert (len(before), places) == (3, 9)
    whole, shortened, kept = sorted(before)
    cuts = (PackCut(whole, 0), PackCut(shortened, _second_commit(store, shortened)))
    store.commit(lambda _, line: SpaceFreed(seq=line.seq, time=line.time, prev=line.prev, cuts=cuts))
    packs, left = _facts(path)
    assert packs == {shortened, kept}
    assert left == 9 - 3 - 2
    assert len(store.present(chunk(noise(number)) for number in range(9))) == left
    assert _answers(open_store(path)) == _answers(store)
    commit_chunks(store, noise("another"))  # it finds the files as they were, and takes what is in them
    assert _facts(path)[0] >= before
    assert len(store.present(chunk(noise(number)) for number in range(9))) == 9
    assert _answers(open_store(path)) == _answers(store)


def _second_commit(store: Store, pack: str) -> int:
    """Where in a pack the second commit to it began."""
    return sorted(
        written.start
        for operation in store.operations()
        for written in getattr(operation, "packs", ())
        if written.pack == pack
    )[1]


def test_a_catalog_that_is_damaged_while_it_is_in_use_changes_no_answer(path: Path) -> None:
    store = open_store(path)
    expected = _answers(open_store(path))
    store.state()

    def broken(*_: object) -> list[tuple[Any, ...]]:
        from casnap.store.catalog import CatalogLost

        raise CatalogLost("database disk image is malformed", damaged=True)

    store._follower.tables.catalog.fetch = broken  # type: ignore[method-assign,union-attr]
    assert _answers(store) == expected
    commit_chunks(store, noise(8), name="c8")
    assert [file.name for file in catalogs(path)] == ["catalog-2.db"]
    assert store.notes[0].endswith("database disk image is malformed")


def test_a_long_tail_is_put_into_the_catalog_by_a_commit(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    for number in range(70):
        commit_chunks(store, noise(number))
    assert open_store(tmp_path / "store")._follower.tables.base.seq == 66


def test_many_new_objects_are_put_into_the_catalog_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("casnap.store.follower.MANY_ROWS", 100)
    store = make_store(tmp_path / "store")
    commit_chunks(store, *(noise(number) for number in range(150)))
    fresh = open_store(tmp_path / "store")
    assert fresh._follower.tables.base.seq == 3
    assert len(fresh.present(chunk(noise(number)) for number in range(150))) == 150


@pytest.mark.parametrize("commits", [1, 2])
def test_rows_go_from_index_records_into_the_catalog_as_if_they_had_been_asked_for(
    tmp_path: Path, commits: int
) -> None:
    rows = []
    for name, asked in (("straight", False), ("asked", True)):
        store = make_store(tmp_path / name)
        for commit in range(commits):
            commit_chunks(store, *(noise(number) for number in range(5 * commit, 5 * commit + 9)))
        index = store._follower.tables.index
        if asked:
            index.load()
        rows.append([row[:2] + row[3:] for row in sorted(index.rows_to_store())])  # but for the packs' ids
    assert len(rows[0]) == 5 * commits + 4
    assert rows[0] == rows[1]
    assert {type(row[0]) for row in rows[0]} == {int}


def test_rows_of_a_pack_that_is_away_are_told_to_be_missing(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    commit_chunks(store, noise(1))
    (pack,) = pack_files(store.path)
    index = open_store(store.path)._follower.tables.index
    pack.rename(tmp_path / "away")
    assert index.rows_to_store() == []
    assert len(index.unreadable) == 1
    (tmp_path / "away").rename(pack)
    index.retry()
    assert len(index.rows_to_store()) == 1
    assert not index.unreadable


def test_a_catalog_is_made_in_parts_without_holding_everything_in_memory(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = _answers(open_store(path))
    monkeypatch.setattr("casnap.store.follower._REBUILT_AT_ONCE", 1)
    remove_catalogs(path)
    store = open_store(path)
    assert store._follower.tables.base.seq == 12
    assert _answers(store) == expected


def test_where_no_catalog_can_be_written_nothing_fails(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from casnap.store.catalog import CatalogLost

    expected = _answers(open_store(path))
    remove_catalogs(path)

    def refuse(_: Path) -> None:
        raise CatalogLost("database or disk is full", damaged=False)

    monkeypatch.setattr("casnap.store.catalog.create", refuse)
    store = open_store(path)
    assert _answers(store) == expected
    commit_chunks(store, noise(8), name="c8")
    assert store.state().named(WORKSPACE, "c8").seq == 13
    assert list(path.glob("catalog-*")) == []


def test_a_reader_keeps_to_one_instant_until_it_asks_for_the_state(path: Path) -> None:
    reader, writer = open_store(path), open_store(path)
    state = reader.state()
    before = state.history(WORKSPACE)
    for number in range(20, 30):  # the catalog is brought forward more than once meanwhile
        commit_chunks(writer, noise(number))
    assert state.history(WORKSPACE) == before
    assert len(reader.state().history(WORKSPACE)) == len(before) + 10
    reader.state()
    assert reader._follower.tables.tail <= 4  # from now on it starts from the new catalog


def test_a_closed_store_leaves_no_write_ahead_log_to_be_mixed_with_an_older_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("casnap.store.follower.LONG_TAIL", 0)
    store = make_store(tmp_path / "store")
    commit_chunks(store, noise(1))
    store.close()
    assert [file.stat().st_size for file in (tmp_path / "store").glob("*-wal")] in ([], [0])


def test_the_catalog_says_what_it_is(tmp_path: Path) -> None:
    make_store(tmp_path / "store").close()
    with sqlite3.connect(tmp_path / "store/catalog-1.db") as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (schema.APPLICATION_ID,)
        assert connection.execute("PRAGMA user_version").fetchone() == (schema.VERSION,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        tables = connection.execute("SELECT name, strict, wr FROM pragma_table_list WHERE schema = 'main'").fetchall()
    connection.close()
    assert {name: (strict, wr) for name, strict, wr in tables if not name.startswith("sqlite_")} == dict.fromkeys(
        {"position", "workspaces", "checkpoints", "packs", "places"}, (1, 1)
    )


def test_a_forked_child_opens_its_own_catalog(path: Path) -> None:
    store = open_store(path)
    expected = _answers(store)
    child = os.fork()
    if child == 0:
        os._exit(0 if _answers(store) == expected else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert _answers(store) == expected


@pytest.mark.parametrize("first_lost", [1, 2])
def test_an_index_that_was_written_over_by_one_of_less_hides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first_lost: int
) -> None:
    """A sealed pack is cut within a commit by a command that is killed before it does; the next takes what is left."""
    monkeypatch.setattr("casnap.store.packs.PACK_SIZE", 850)
    store = make_store(tmp_path / "store")
    contents = [noise(number) for number in range(3)]
    commit_chunks(store, *contents)
    keys = [chunk(content) for content in contents]
    (place,) = store.state().places(keys)[keys[first_lost]]
    cuts = (PackCut(place.pack, place.offset),)
    store.commit(lambda _, line: SpaceFreed(seq=line.seq, time=line.time, prev=line.prev, cuts=cuts))
    commit_chunks(store, *contents[first_lost:])
    ranges = [written for operation in store.operations() for written in getattr(operation, "packs", ())]
    assert ranges[0].index == ranges[1].index  # the shorter one stands where the longer one stood
    store.close()
    remove_catalogs(store.path)
    opened = open_store(store.path)
    assert opened.present(keys) == set(keys)
    assert [opened.read(key) for key in keys] == contents
