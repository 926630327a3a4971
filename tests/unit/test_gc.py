"""gc: what goes, what stays, and what happens beside it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from casnap import Busy, CheckpointManager, Damage, NotFound
from casnap.engine import checkpoint as checkpoint_engine
from casnap.engine import gc
from casnap.engine.context import Context
from casnap.engine.gc import collect
from casnap.engine.gc_terms import ASKED_FOR, AUTOMATIC, Terms
from casnap.engine.workspaces import forget
from casnap.model.report import WorkspaceInfo
from casnap.settings import load_settings, open_context
from casnap.store import follower, packs
from casnap.store.collection import Collection
from casnap.store.compaction import Compaction
from casnap.store.marks import Marks
from casnap.store.oplog import Oplog
from casnap.store.space import Space
from support.oracle import snapshot
from support.stores import Ticking, noise

HOUR = 3600 * 10**9
EVERYTHING = Terms(grace=0, share=0.0)


@pytest.fixture
def store(home: Path) -> Path:
    return home / "store"


@pytest.fixture
def context(manager: CheckpointManager, workspace: Path) -> Iterator[Context]:
    """The store opened once more, as another process would, after a first checkpoint."""
    (workspace / "first").write_bytes(noise("first", 5000))
    manager.create("first")
    opened = open_context(load_settings())
    yield opened
    opened.store.close()


def pack_bytes(store: Path) -> int:
    return sum(path.stat().st_size for path in (store / "packs").iterdir())


def make(manager: CheckpointManager, workspace: Path, *names: str, size: int = 5000) -> None:
    """A checkpoint each, with one file that only it has."""
    for name in names:
        (workspace / "f").write_bytes(noise(name, size))
        manager.create(name)


def gc_before_the_first_commit(monkeypatch: pytest.MonkeyPatch, context: Context, freed: list[str]) -> list[int]:
    """Have a gc, which frees these checkpoints, run just before the next commit of one; a list that counts commits."""
    commits: list[int] = []
    commit = checkpoint_engine._commit

    def after_a_gc(*arguments: Any) -> Any:
        commits.append(len(commits))
        if len(commits) == 1:
            assert sorted(str(one.name) for one in collect(context, EVERYTHING).checkpoints) == freed
        return commit(*arguments)

    monkeypatch.setattr(checkpoint_engine, "_commit", after_a_gc)
    return commits


def restored(manager: CheckpointManager, directory: Path, revision: str) -> dict[bytes, Any]:
    manager.restore_to(directory / revision, revision)
    return dict(snapshot(directory / revision))


def test_what_was_freed_cannot_come_back_and_that_is_said(
    manager: CheckpointManager, workspace: Path, context: Context
) -> None:
    make(manager, workspace, "c2", "c3")
    gone = manager.delete("c2").deleted[0]
    assert manager.undelete("c2").checkpoint.name == "c2"
    manager.delete("c2")
    assert [freed.id for freed in collect(context).checkpoints] == [gone.id]
    for revision in ("c2", gone.id, "2"):
        with pytest.raises(NotFound, match="freed"):
            manager.undelete(revision)
        with pytest.raises(NotFound, match="its bytes have been freed") as caught:
            manager.show(revision)
        assert caught.value.hint is None
    assert [one.name for one in manager.list()] == ["c3", "first"]
    assert manager.show("c3").parent == manager.show("first").id


def test_its_space_comes_back_but_for_what_others_share(
    manager: CheckpointManager, workspace: Path, context: Context, store: Path, tmp_path: Path
) -> None:
    make(manager, workspace, "c2", "c3", size=100_000)
    before = pack_bytes(store)
    manager.delete("c2")
    report = collect(context)
    assert 100_000 < before - pack_bytes(store) == report.freed_bytes < 101_500
    assert restored(manager, tmp_path, "c3") == dict(snapshot(workspace))
    assert (tmp_path / "c3" / "first").read_bytes() == noise("first", 5000)


def test_what_undo_leads_to_stays_also_when_it_was_deleted(
    manager: CheckpointManager, workspace: Path, context: Context
) -> None:
    make(manager, workspace, "c2")
    (workspace / "f").write_bytes(noise("unsaved"))
    here = snapshot(workspace)
    safety = manager.rollback("first").safety
    assert safety is not None
    manager.delete(safety.id, "c2")
    assert [freed.name for freed in collect(context, EVERYTHING).checkpoints] == []
    manager.undo()
    assert snapshot(workspace) == here


def test_an_automatic_gc_spares_what_was_deleted_less_than_a_day_ago(
    manager: CheckpointManager, workspace: Path, context: Context
) -> None:
    make(manager, workspace, "c2", "c3")
    manager.delete("c2")
    deleted_at = next(row.deleted_at for row in context.store.state().all_checkpoints() if row.deleted)
    terms = msgspec.structs.replace(AUTOMATIC, least_bytes=0, least_share=0.0)
    early, late = (replace(context, clock=Ticking(deleted_at + hours * HOUR)) for hours in (23, 24))
    assert collect(early, terms).checkpoints == ()
    assert manager.undelete("c2").checkpoint.name == "c2"
    manager.delete("c2")
    assert collect(early, terms).checkpoints == ()
    assert [freed.name for freed in collect(late, terms).checkpoints] == ["c2"]


def test_an_automatic_gc_does_nothing_where_little_is_dead(
    manager: CheckpointManager, workspace: Path, context: Context, store: Path
) -> None:
    make(manager, workspace, "c2", "c3", size=50_000)
    manager.delete("c2")
    before = pack_bytes(store)
    later = replace(context, clock=Ticking(context.clock.now() + 48 * HOUR))
    for terms in (
        AUTOMATIC,
        msgspec.structs.replace(AUTOMATIC, least_bytes=0, least_share=0.6),
        msgspec.structs.replace(AUTOMATIC, least_bytes=60_000, least_share=0.0),
    ):
        report = collect(later, terms)
        assert (report.done, report.freed_bytes, report.checkpoints) == (False, 0, ())
        assert pack_bytes(store) == before
    assert collect(later, msgspec.structs.replace(AUTOMATIC, least_bytes=40_000, least_share=0.4)).freed_bytes > 50_000


def test_a_dropped_workspace_goes_whole_and_begins_anew_when_it_is_taken_up_again(
    manager: CheckpointManager, workspace: Path, context: Context, store: Path
) -> None:
    make(manager, workspace, "c2")
    with CheckpointManager(workspace.parent / "other") as other:
        (workspace.parent / "other").mkdir()
        (workspace.parent / "other" / "f").write_bytes(noise("other"))
        other.create("other")
        (info,) = [one for one in _workspaces(context) if one.path == str(workspace)]
        forget(context, info, drop=True)
        assert collect(context, msgspec.structs.replace(AUTOMATIC, least_bytes=0, least_share=0.0)).checkpoints == ()
        assert sorted(str(freed.name) for freed in collect(context).checkpoints) == ["c2", "first"]
        assert pack_bytes(store) < 2500
        assert manager.create("anew").step == 3
        assert [one.name for one in manager.list()] == ["anew"]
        assert manager.show("anew").parent is None
        assert [one.name for one in other.list()] == ["other"]


def _workspaces(context: Context) -> list[WorkspaceInfo]:
    return [WorkspaceInfo(row.id, os.fsdecode(row.path)) for row in context.store.state().workspaces()]


def test_case_012_nothing_goes_while_something_that_is_needed_cannot_be_read(
    manager: CheckpointManager, workspace: Path, context: Context, store: Path
) -> None:
    make(manager, workspace, "c2", "c3")
    manager.delete("c2")
    head = manager.show("c3").id
    (pack,) = (store / "packs").iterdir()
    data = bytearray(pack.read_bytes())
    data[data.index(bytes.fromhex(head)[:8]) + 40] ^= 1
    pack.write_bytes(data)
    for dry_run in (True, False):
        with pytest.raises(Damage, match=f"nothing was freed.*checkpoint {head}") as caught:
            collect(context, dry_run=dry_run)
        assert "casnap check" in str(caught.value.hint)
    assert pack.read_bytes() == bytes(data)
    assert manager.undelete("c2").checkpoint.name == "c2"


def test_nothing_goes_while_a_pack_that_is_needed_is_away(
    manager: CheckpointManager, workspace: Path, context: Context, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packs, "PACK_SIZE", 10_000)
    make(manager, workspace, *(f"c{number}" for number in range(8)))
    manager.delete("c2", "c3", "c4")
    lost = max((store / "packs").iterdir(), key=lambda path: noise("c6", 5000) in path.read_bytes())
    lost.rename(store.parent / lost.name)
    before = sorted((store / "packs").iterdir())
    with pytest.raises(Damage, match="nothing was freed"):
        collect(context)
    assert sorted((store / "packs").iterdir()) == before
    (store.parent / lost.name).rename(lost)
    assert collect(context).freed_bytes > 15_000


def test_case_089_what_a_checkpoint_found_there_and_a_gc_then_took_is_written_anew(
    manager: CheckpointManager,
    workspace: Path,
    context: Context,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(packs, "PACK_SIZE", 10_000)  # so that nobody appends to the pack that goes
    make(manager, workspace, "c2", "c3", size=12_000)
    manager.delete("c2")
    other = tmp_path / "other"
    other.mkdir()
    (other / "again").write_bytes(noise("c2", 12_000))
    commits = gc_before_the_first_commit(monkeypatch, context, ["c2"])
    with CheckpointManager(other) as beside:
        beside.create("again")
        assert commits == [0, 1]
        assert restored(beside, tmp_path, "again") == dict(snapshot(other))


def test_a_gc_in_every_gap_is_kept_out_in_the_end(
    manager: CheckpointManager, workspace: Path, context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packs, "PACK_SIZE", 10_000)
    other = tmp_path / "other"
    other.mkdir()
    (other / "again").write_bytes(noise("again", 12_000))
    impatient = replace(context, store=open_context(load_settings(wait=0.0)).store)
    came: list[str] = []
    record, commit = checkpoint_engine._recorded, checkpoint_engine._commit

    def after_it_came_and_was_deleted(*arguments: Any, **options: Any) -> Any:
        make(manager, workspace, "again", size=12_000)
        manager.delete("again")
        return record(*arguments, **options)

    def after_a_gc(*arguments: Any) -> Any:
        try:
            came.append(" ".join(str(freed.name) for freed in collect(impatient, EVERYTHING).checkpoints))
        except Busy as busy:
            came.append(str(busy.details["lock"]))
        return commit(*arguments)

    with CheckpointManager(other) as beside, monkeypatch.context() as patch:
        (other / "again").rename(tmp_path / "later")
        beside.create("nothing-yet")
        (tmp_path / "later").rename(other / "again")
        patch.setattr(checkpoint_engine, "_recorded", _only(other, after_it_came_and_was_deleted, record))
        patch.setattr(checkpoint_engine, "_commit", _only(other, after_a_gc, commit))
        beside.create("again")
    assert came == ["again", "again", "again", "gc"]
    with CheckpointManager(other) as beside:
        assert restored(beside, tmp_path, "again") == dict(snapshot(other))


def _only(place: Path, patched: Any, plain: Any) -> Any:
    """What calls ``patched`` for the workspace at ``place``, and ``plain`` for any other."""

    def call(*arguments: Any, **options: Any) -> Any:
        return (patched if arguments[1].path == bytes(place) else plain)(*arguments, **options)

    return call


def test_what_became_reachable_while_it_looked_is_spared(
    manager: CheckpointManager, workspace: Path, context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packs, "PACK_SIZE", 10_000)
    make(manager, workspace, *(f"c{number}" for number in range(8)))
    manager.delete("c2", "c3", "c4")
    looked = Collection.hold

    def undeleted_meanwhile(self: Collection, chosen: Any) -> Any:
        held = looked(self, chosen)
        with contextlib.suppress(NotFound), CheckpointManager(workspace) as second:
            second.undelete("c3")
        return held

    monkeypatch.setattr(Collection, "hold", undeleted_meanwhile)
    with contextlib.suppress(Exception):
        collect(context, EVERYTHING)
    monkeypatch.undo()
    assert manager.show("c3").name == "c3"
    manager.restore_to(tmp_path / "c3", "c3")
    assert (tmp_path / "c3" / "f").read_bytes() == noise("c3", 5000)


def test_a_reader_that_looked_before_finds_what_moved(
    manager: CheckpointManager, workspace: Path, context: Context, tmp_path: Path
) -> None:
    make(manager, workspace, "c2", "c3")
    with CheckpointManager(workspace) as reader:
        reader.restore_to(tmp_path / "before", "c3")
        manager.delete("c2")
        assert collect(context, EVERYTHING).rewritten == 1
        reader._context.store._files.close()  # type: ignore[union-attr]
        reader.restore_to(tmp_path / "after", "c3")
    assert snapshot(tmp_path / "after") == snapshot(tmp_path / "before")


def test_a_pack_that_somebody_writes_to_is_left_for_the_next_time(
    manager: CheckpointManager, workspace: Path, context: Context
) -> None:
    make(manager, workspace, "c2", "c3", size=50_000)
    manager.delete("c2")
    writing = open_context(load_settings())
    with writing.store.session() as session:
        session.put(*_chunk(noise("being written")))
        report = collect(context)
        assert (report.freed_bytes, report.rewritten) == (0, 0)
        assert "being written to" in report.notes[0]
    writing.store.close()
    assert collect(context).freed_bytes > 50_000


def _chunk(data: bytes) -> Any:
    from support.stores import chunk

    return chunk(data), data


def test_what_a_killed_command_left_is_swept_and_what_a_live_one_writes_is_not(
    manager: CheckpointManager, workspace: Path, context: Context, store: Path
) -> None:
    orphan = store / "packs" / f"{'0' * 32}.pack"
    orphan.write_bytes(noise("orphan", 3000))
    (pack,) = [path for path in (store / "packs").iterdir() if path != orphan]
    whole = pack.read_bytes()
    pack.write_bytes(whole + noise("tail", 800))
    left = [
        store / "cache" / f"x.stat.{'ab' * 4}.tmp",
        store / "cache" / f"scratch-{'0' * 16}",
        store / "a.12345678.tmp",
    ]
    for path in left:
        path.write_bytes(noise(path.name, 100))
    stale = store / "cache" / "0123456789ab.stat"
    stale.write_bytes(bytes(50))
    mine = store / "cache" / f"y.stat.{'cd' * 4}.tmp"
    with mine.open("wb") as live:
        fcntl.flock(live, fcntl.LOCK_EX)
        told = collect(context, dry_run=True)
        report = collect(context)
        assert mine.exists()
    assert told.freed_bytes - report.freed_bytes == 0
    assert report.freed_bytes == 3000 + 800 + 300 + 50
    assert not any(path.exists() for path in (orphan, stale, *left))
    assert pack.read_bytes() == whole


def test_a_pack_that_a_session_let_go_of_and_a_sweep_took_is_not_committed(
    manager: CheckpointManager, workspace: Path, context: Context, store: Path
) -> None:
    from support.stores import commit_session

    with context.store.session() as session:
        session.put(*_chunk(noise("new", 3000)))
        session.finish()
        for writer in session._packs or ():
            writer.file.close()
        with CheckpointManager(workspace):
            other = open_context(load_settings())
            other.store.sweep()
            other.store.close()
        with pytest.raises(Exception, match="taken away meanwhile"):
            commit_session(context.store, session)


def test_two_gcs_do_not_run_together(manager: CheckpointManager, context: Context) -> None:
    other = open_context(load_settings(wait=0.0))
    with other.store.lock("gc", "the first gc"), pytest.raises(Busy, match="the first gc"):
        collect(replace(context, store=open_context(load_settings(wait=0.0)).store))


@pytest.mark.parametrize("room", [9_000, 20_000, 60_000])
def test_a_pack_is_taken_over_bit_by_bit_where_there_is_no_room_for_a_copy(
    manager: CheckpointManager,
    workspace: Path,
    context: Context,
    store: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    room: int,
) -> None:
    names = [f"c{number}" for number in range(12)]
    for name in names:
        (workspace / name).write_bytes(noise(name, 5000))
        (workspace / "f").unlink(missing_ok=True)
        manager.create(name)
        (workspace / "f").write_bytes(noise(f"{name} f", 5000))
        manager.create(f"{name}-f")
    manager.delete(*(f"{name}-f" for name in names[:-1]))
    start = pack_bytes(store)
    peak: list[int] = []

    def free(_space: Space) -> tuple[int, int]:
        peak.append(pack_bytes(store))
        return max(0, start + room - peak[-1]) + (64 << 10), 1 << 30

    monkeypatch.setattr(Space, "free", free)
    report = collect(context)
    monkeypatch.undo()
    assert start - pack_bytes(store) == report.freed_bytes > 11 * 5000
    assert max(peak) <= start + room
    shutil.rmtree(workspace)
    workspace.mkdir()
    for again in range(2):
        for name in ("c0", "c5", "c11", "c11-f"):
            manager.rollback(name)
            assert (workspace / name.removesuffix("-f")).read_bytes() == noise(name.removesuffix("-f"), 5000)
        for catalog in store.glob("catalog-*"):
            assert again == 0 or catalog.unlink() is None


def test_where_there_is_not_even_room_for_a_record_that_is_said(
    manager: CheckpointManager, workspace: Path, context: Context, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(manager, workspace, "c2", "c3", "c4", size=50_000)
    manager.delete("c2", "c3")
    monkeypatch.setattr(Space, "free", lambda _space: (60 << 10, 1 << 30))
    report = collect(context)
    assert [freed.name for freed in report.checkpoints] == ["c2", "c3"]
    assert "no room" in " ".join(report.notes)
    monkeypatch.undo()
    assert collect(context, ASKED_FOR).freed_bytes > 100_000
    assert manager.verify("c4")


def test_the_catalog_forgets_what_went_and_gives_its_space_back_too(
    manager: CheckpointManager, workspace: Path, context: Context, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(400):
        (workspace / f"f{number}").write_bytes(noise(number, 10))
    monkeypatch.setattr(follower, "LONG_TAIL", 0)
    manager.create("many")
    for number in range(400):
        (workspace / f"f{number}").unlink()
    manager.create("few")
    monkeypatch.undo()
    manager.delete("many")
    before = in_catalog(store, "PRAGMA page_count")
    assert in_catalog(store, "SELECT count(*) FROM places") > 400
    collect(context)
    assert in_catalog(store, "SELECT count(*) FROM places") < 10
    assert in_catalog(store, "PRAGMA freelist_count") == 0
    assert in_catalog(store, "PRAGMA page_count") < before - 4  # of 4 KiB: an id alone has 32 bytes
    assert [one.name for one in manager.list()] == ["few", "first"]


def in_catalog(store: Path, query: str) -> int:
    (catalog,) = store.glob("catalog-*.db")
    with contextlib.closing(sqlite3.connect(f"file:{catalog}?mode=ro", uri=True)) as connection:
        return int(connection.execute(query).fetchone()[0])


def test_a_base_that_a_gc_took_before_the_commit_is_done_without(
    manager: CheckpointManager, workspace: Path, context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packs, "PACK_SIZE", 10_000)  # so that nobody appends to the pack that goes
    make(manager, workspace, "c2", size=12_000)
    manager.delete("c2", "first")
    (workspace / "f").write_bytes(noise("c2", 12_000) + b"and a little more")
    commits = gc_before_the_first_commit(monkeypatch, context, ["c2", "first"])
    manager.create("c3")
    assert commits == [0, 1]
    with CheckpointManager(workspace) as fresh:
        assert restored(fresh, tmp_path, "c3") == dict(snapshot(workspace))


@pytest.fixture
def dying_base(
    manager: CheckpointManager, workspace: Path, context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two deleted checkpoints: the file of the second is a difference, in a pack that stays when its base goes."""
    monkeypatch.setattr(packs, "PACK_SIZE", 130_000)
    (workspace / "f").write_bytes(noise("f", 140_000))
    manager.create("one")
    (workspace / "f").write_bytes(noise("f", 140_000)[:-9] + b"a new end")
    manager.create("two")
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "g").write_bytes(noise("g", 125_000))
    with CheckpointManager(beside) as second:
        second.create()
    manager.delete("first", "one", "two")


@pytest.mark.usefixtures("dying_base")
def test_a_difference_whose_base_a_gc_took_is_not_relied_on(
    manager: CheckpointManager, workspace: Path, context: Context, tmp_path: Path
) -> None:
    collect(context)
    manager.create("three")  # nothing has changed
    with CheckpointManager(workspace) as fresh:
        assert restored(fresh, tmp_path, "three") == dict(snapshot(workspace))


@pytest.mark.usefixtures("dying_base")
@pytest.mark.parametrize("elsewhere", [False, True], ids=["where nothing has changed", "in another workspace"])
def test_a_difference_that_was_found_whole_and_then_lost_its_base_to_a_gc_is_written_anew(
    workspace: Path, context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    place = workspace
    if elsewhere:
        place = tmp_path / "elsewhere"
        place.mkdir()
        shutil.copy(workspace / "f", place)
    commits = gc_before_the_first_commit(monkeypatch, context, ["first", "one", "two"])
    with CheckpointManager(place) as manager:
        manager.create("three")
    assert commits == [0, 1]
    with CheckpointManager(place) as fresh:
        assert restored(fresh, tmp_path, "three") == dict(snapshot(place))


@pytest.mark.parametrize("line", [1, 2])
def test_a_signal_while_a_line_is_written_takes_nothing_away_that_the_line_names(
    manager: CheckpointManager,
    workspace: Path,
    context: Context,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    line: int,
) -> None:
    make(manager, workspace, "c2", "c3", size=50_000)
    manager.delete("c2")
    append, written = Oplog.append, []

    def interrupted(self: Oplog, data: bytes) -> tuple[int, int]:
        written.append(data)
        if len(written) == line:
            os.kill(os.getpid(), signal.SIGINT)  # waits until the line is written
        return append(self, data)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Oplog, "append", interrupted)
        collect(context)
    with CheckpointManager(workspace) as fresh:
        assert restored(fresh, tmp_path, "c3") == dict(snapshot(workspace))
        opened, _ = fresh._find()
        collect(opened)
        fresh.restore_to(tmp_path / "after", "first")
    assert (tmp_path / "after" / "first").read_bytes() == noise("first", 5000)


@pytest.mark.parametrize("moment", [(gc._Run, "_note"), (Marks, "adopt"), (Compaction, "confirm")])
def test_a_signal_after_a_line_is_written_takes_nothing_away_that_the_line_names(
    manager: CheckpointManager,
    workspace: Path,
    context: Context,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    moment: tuple[type, str],
) -> None:
    make(manager, workspace, "c2", "c3", size=50_000)
    manager.delete("c2")

    place, name = moment
    act, calls = getattr(place, name), []

    def interrupted(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 2:  # the first line frees a checkpoint, the second one packs
            raise KeyboardInterrupt
        return act(*arguments)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(place, name, interrupted)
        collect(context)
    with CheckpointManager(workspace) as fresh:
        assert restored(fresh, tmp_path, "c3") == dict(snapshot(workspace))
        opened, _ = fresh._find()
        collect(opened)
        fresh.restore_to(tmp_path / "after", "first")
    assert (tmp_path / "after" / "first").read_bytes() == noise("first", 5000)


def test_an_adopted_difference_whose_base_a_gc_took_is_written_anew(
    manager: CheckpointManager, workspace: Path, context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packs, "PACK_SIZE", 130_000)
    (workspace / "f").write_bytes(noise("f", 140_000))
    (workspace / "first").unlink()
    manager.create("one")  # its pack is full
    (workspace / "f").write_bytes(noise("f", 140_000)[:-9] + b"a new end")

    def killed(*arguments: Any) -> None:
        arguments[-1].finish()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, CheckpointManager(workspace) as second, pytest.raises(KeyboardInterrupt):
        patch.setattr(checkpoint_engine, "_commit", killed)
        second.create("two")
    manager.delete("first", "one")
    commits = gc_before_the_first_commit(monkeypatch, context, ["first", "one"])
    with CheckpointManager(workspace) as third:
        third.create("three")
    assert commits == [0, 1]
    with CheckpointManager(workspace) as fresh:
        assert restored(fresh, tmp_path, "three") == dict(snapshot(workspace))
