"""``CheckpointManager``: the same verbs for programs."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import casnap
from casnap import CasnapError, ChangeKind, CheckpointManager, NotFound, Refused, Usage
from casnap.codec.hashing import content_id
from casnap.engine import scanning
from casnap.engine.checking.check import check
from casnap.engine.recorded import tree_of
from casnap.errors import StorageFailed
from casnap.fs import locks
from casnap.model.clock import Silent
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.tree import Directory
from casnap.settings import SystemClock
from casnap.store import packs
from casnap.store.inspection import Inspection
from casnap.workspace.cache_file import load_cache
from casnap.workspace.reader import Reader
from support.stores import make_store, open_store


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "project"
    directory.mkdir()
    (directory / "file").write_text("one\n")
    return directory


@pytest.fixture
def manager(workspace: Path) -> CheckpointManager:
    """A manager with c1, c2 and c3, the file being edited before each."""
    manager = CheckpointManager(workspace)
    for name, text in (("c1", "one\n"), ("c2", "two\n"), ("c3", "three\n")):
        (workspace / "file").write_text(text)
        manager.create(name)
    return manager


def test_the_snippet_of_oh_my_coder_runs_as_it_stands(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project_path = workspace
    manager = CheckpointManager(project_path)
    cp = manager.create(name="before-refactor", description="stable before the refactor")
    print(cp.id, cp.timestamp)  # noqa: T201
    (workspace / "file").write_text("changed\n")
    for cp in manager.list():
        print(cp.name, cp.timestamp)  # noqa: T201
    print(manager.diff("before-refactor"))  # noqa: T201
    manager.rollback("before-refactor")
    manager.delete("before-refactor")
    said = capsys.readouterr().out
    assert f"before-refactor {cp.timestamp}\n" in said
    assert "-one\n+changed\n" in said
    assert (workspace / "file").read_text() == "one\n"
    assert manager.list() == []


def test_a_checkpoint_has_its_facts_as_attributes(workspace: Path) -> None:
    found = CheckpointManager(workspace).create("c1", "why", metadata={"ticket": 7})
    assert (found.name, found.step, found.parent, found.head) == ("c1", 1, None, True)
    assert (found.message, found.description, found.metadata) == ("why", "why", {"ticket": 7})
    assert found.timestamp.tzinfo is dt.UTC
    assert found.created.startswith(found.timestamp.strftime("%Y-%m-%dT%H:%M:%S."))


def test_an_int_is_a_step_and_a_string_a_revision(manager: CheckpointManager) -> None:
    assert manager.show(1).name == "c1"
    assert manager.show("2").name == "c2"
    assert manager.show("@~2").name == "c1"
    assert manager.show().name == "c3"
    with pytest.raises(NotFound):
        manager.show(4)
    with pytest.raises(NotFound):
        manager.show(-1)
    with pytest.raises(Usage):
        manager.show("")


def test_the_list_is_newest_first(manager: CheckpointManager) -> None:
    assert [found.name for found in manager.list()] == ["c3", "c2", "c1"]
    assert [found.name for found in manager.list(limit=1)] == ["c3"]
    manager.rollback("c1")
    manager.rollback("c3")
    assert [found.safety for found in manager.list(safety=True)].count(True) == 0  # c3, c2, c1 served as such
    assert [found.name for found in manager.list()] == ["c3", "c2", "c1"]


def test_a_diff_is_a_patch_and_iterates_over_changes(manager: CheckpointManager) -> None:
    found = manager.diff("c1", "c2")
    assert str(found).endswith("@@ -1 +1 @@\n-one\n+two\n")
    assert [(change.path, change.kind) for change in found] == [(b"file", ChangeKind.CHANGED)]
    assert not manager.diff()


def test_rollback_without_a_revision_drops_the_changes_since_head(manager: CheckpointManager, workspace: Path) -> None:
    (workspace / "file").write_text("broken\n")
    report = manager.rollback()
    assert (workspace / "file").read_text() == "three\n"
    assert report.complete
    assert report.safety is not None
    assert (report.counts.added, report.counts.changed, report.counts.removed) == (0, 1, 0)


@pytest.mark.parametrize(("n", "text"), [(0, "three\n"), (1, "two\n"), (2, "one\n")])
def test_n_counts_parents_of_head(manager: CheckpointManager, workspace: Path, n: int, text: str) -> None:
    manager.rollback(n=n)
    assert (workspace / "file").read_text() == text


def test_a_bad_request_is_refused(manager: CheckpointManager) -> None:
    with pytest.raises(Usage, match="rev and n"):
        manager.rollback("c1", n=1)
    with pytest.raises(Usage, match="negative"):
        manager.rollback(n=-1)
    with pytest.raises(NotFound) as caught:
        manager.rollback(n=3)
    assert caught.value.details["maximum"] == 2
    with pytest.raises(Usage, match="none is given"):
        manager.rollback("c1", paths=[])
    with pytest.raises(Usage, match="outside"):
        manager.rollback("c1", paths=["../x"])
    with pytest.raises(Refused):
        manager.create("c1")
    with pytest.raises(Usage):
        manager.create("a b")
    with pytest.raises(Usage):
        manager.create(metadata=[1])  # type: ignore[arg-type]


def test_a_preview_changes_nothing(manager: CheckpointManager, workspace: Path) -> None:
    report = manager.rollback("c1", preview=True)
    assert report.preview
    assert [change.path for change in report.changes] == [b"file"]
    assert (workspace / "file").read_text() == "three\n"


def test_paths_may_be_text_bytes_or_path_objects(manager: CheckpointManager, workspace: Path) -> None:
    odd = os.fsencode(workspace) + b"/caf\xe9"
    for name in (odd, os.fsencode(workspace / "other")):
        with open(name, "wb") as file:
            file.write(b"1")
    manager.create("c4")
    for name in (odd, os.fsencode(workspace / "other"), os.fsencode(workspace / "file")):
        os.unlink(name)
    manager.rollback("c4", paths=[b"caf\xe9", workspace / "file"])
    assert sorted(os.listdir(os.fsencode(workspace))) == [b"caf\xe9", b"file"]
    manager.rollback("c4", paths=["other"])
    assert (workspace / "other").exists()


def test_undo_goes_back_and_verify_is_true_when_equal(manager: CheckpointManager, workspace: Path) -> None:
    (workspace / "extra").write_text("x")
    assert not manager.verify()
    manager.rollback("c1")
    assert manager.verify("c1")
    report = manager.undo()
    assert report.verb == "undo"
    assert (workspace / "extra").read_text() == "x"


def test_delete_takes_several_and_nothing_else_goes(manager: CheckpointManager) -> None:
    report = manager.delete("c1", 2)
    assert [found.name for found in report.deleted] == ["c1", "c2"]
    assert [found.name for found in manager.list()] == ["c3"]


def test_status_says_how_things_stand(manager: CheckpointManager, workspace: Path) -> None:
    (workspace / "new").write_text("x")
    found = manager.status()
    assert (found.protected, found.checkpoints, found.safety_points) == (True, 3, 0)
    assert found.head is not None
    assert found.head.name == "c3"
    assert found.changes is not None
    assert [change.path for change in found.changes if change.path] == [b"new"]


@pytest.mark.parametrize("touched", [False, True], ids=["as it was", "touched"])
def test_if_changed_makes_up_for_a_cache_that_was_lost_unless_head_does_not_hold_all_of_it(
    manager: CheckpointManager, workspace: Path, monkeypatch: pytest.MonkeyPatch, touched: bool
) -> None:
    (cache,) = (Path(os.environ["CASNAP_STORE"]) / "cache").glob("*.stat")
    cache.unlink()
    if touched:
        os.utime(workspace / "file", (1, 1))
    time.sleep(0.05)
    assert manager.create(if_changed=True).name == "c3"
    assert cache.exists() is not touched
    if not touched:
        monkeypatch.setattr(Reader, "read", None)  # whatever is read fails
        assert manager.create(if_changed=True).name == "c3"


def test_a_manager_reads_the_stat_cache_again_only_when_it_is_another(
    manager: CheckpointManager, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []

    def counted(path: Path, **names: str) -> object:
        read.append(path)
        return load_cache(path, **names)

    monkeypatch.setattr(scanning, "load_cache", counted)
    time.sleep(0.05)
    for _ in range(4):  # the first of them finds that all has settled, and says so in the file
        manager.create()
    assert len(read) <= 2
    del read[:]
    with CheckpointManager(workspace) as other:
        (workspace / "file").write_text("edited elsewhere")
        other.create("elsewhere")
    del read[:]
    assert manager.create(if_changed=True).name == "elsewhere"
    assert len(read) == 1


def test_a_tree_that_was_damaged_since_a_manager_read_it_is_written_anew(
    manager: CheckpointManager, workspace: Path
) -> None:
    (workspace / "sub").mkdir()
    for number in range(20):  # so many that their tree is a record of its own
        (workspace / "sub" / f"file{number}").write_text(f"{number}")
    for _ in range(2):
        time.sleep(0.05)
        manager.create()
    (workspace / "sub" / "new").write_text("new")
    manager.status()  # reads what was in the directory
    (workspace / "sub" / "new").unlink()
    context = manager._context
    assert context is not None
    store = context.store
    sub = tree_of(context, manager.show()).entry(b"sub")
    assert isinstance(sub, Directory)
    key = ObjectKey(ObjectKind.TREE, sub.tree)
    (place,) = store.state().places([key])[key]
    with open(store.path / "packs" / f"{place.pack}.pack", "r+b") as pack:
        pack.seek(place.offset + 44)
        byte = pack.read(1)
        pack.seek(-1, os.SEEK_CUR)
        pack.write(bytes([byte[0] ^ 1]))
    manager.create()
    assert open_store(store.path).read(key)


def test_if_changed_returns_head_when_nothing_has(manager: CheckpointManager) -> None:
    assert manager.create("c4", if_changed=True).name == "c3"
    assert len(manager.list()) == 3


@pytest.mark.parametrize(
    "call",
    ["list", "show", "diff", "rollback", "undo", "verify", "status", "delete"],
)
def test_before_create_nothing_is_found(workspace: Path, tmp_path: Path, call: str) -> None:
    arguments = ("c1",) if call == "delete" else ()
    with pytest.raises(NotFound):
        getattr(CheckpointManager(workspace), call)(*arguments)
    (tmp_path / "other").mkdir()
    CheckpointManager(tmp_path / "other").create()
    with pytest.raises(LookupError):
        getattr(CheckpointManager(workspace), call)(*arguments)


def test_a_path_is_exact_and_none_looks_around(
    manager: CheckpointManager, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "sub").mkdir()
    with pytest.raises(NotFound):
        CheckpointManager(workspace / "sub").list()
    monkeypatch.chdir(workspace / "sub")
    assert CheckpointManager().show().name == "c3"


def test_the_store_may_be_given(workspace: Path, tmp_path: Path, home: Path) -> None:
    CheckpointManager(workspace, store=tmp_path / "elsewhere").create("c1")
    assert CheckpointManager(workspace, store=str(tmp_path / "elsewhere")).show().name == "c1"
    assert not (home / "store").exists()


def test_a_bad_name_registers_nothing(workspace: Path, home: Path) -> None:
    with pytest.raises(CasnapError):
        CheckpointManager(workspace).create("a b")
    assert not (home / "store").exists()


def test_a_closed_manager_says_so(workspace: Path) -> None:
    with CheckpointManager(workspace) as manager:
        manager.create()
    manager.close()
    with pytest.raises(Usage, match="closed"):
        manager.list()


def test_threads_may_share_a_manager(manager: CheckpointManager, workspace: Path) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(3):
                (workspace / f"file-{number}").write_text(f"{turn}")
                manager.create(f"t{number}-{turn}")
                manager.list()
                manager.status()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(found.step or 0 for found in manager.list()) == list(range(1, 16))


def test_another_manager_sees_what_one_has_done(manager: CheckpointManager, workspace: Path) -> None:
    other = CheckpointManager(workspace)
    assert other.show().name == "c3"
    manager.create("c4")
    assert other.show().name == "c4"


def test_the_door_names_what_it_opens_and_nothing_else() -> None:
    assert [name for name in casnap.__all__ if not hasattr(casnap, name)] == []
    assert dir(casnap) == sorted(casnap.__all__)
    with pytest.raises(AttributeError):
        casnap.nonsense  # noqa: B018


def test_importing_casnap_imports_nothing_that_is_not_asked_for() -> None:
    code = "import casnap, sys; print({'click', 'rich', 'sqlite3', 'msgspec'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_manager_goes_on_with_a_store_that_was_made_anew(manager: CheckpointManager, workspace: Path) -> None:
    store = Path(os.environ["CASNAP_STORE"])
    manager.create("old")
    shutil.rmtree(store)
    with CheckpointManager(workspace) as other:
        other.create("theirs")
    (workspace / "file").write_text("mine\n")
    assert manager.create("mine").step == 2
    assert [one.name for one in manager.list()] == ["mine", "theirs"]
    report = check(lambda: Inspection(store), SystemClock(), Silent(), read_data=True)
    assert report.findings == ()
    assert report.notes == ()


def test_a_manager_whose_store_is_gone_makes_a_new_one(manager: CheckpointManager) -> None:
    manager.create("old")
    shutil.rmtree(os.environ["CASNAP_STORE"])
    with pytest.raises(NotFound):
        manager.list()
    assert manager.create("new").step == 1
    assert [one.name for one in manager.list()] == ["new"]


def test_a_format_file_that_was_written_anew_is_still_that_of_the_store(manager: CheckpointManager) -> None:
    manager.create("one")
    format_file = Path(os.environ["CASNAP_STORE"]) / "casnap-store.json"
    data = format_file.read_bytes()
    format_file.unlink()
    format_file.write_bytes(data)
    manager.create("two")
    assert [one.name for one in manager.list(limit=2)] == ["two", "one"]


def test_nothing_is_written_to_another_store_than_the_one_that_was_opened(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    shutil.rmtree(tmp_path / "store")
    make_store(tmp_path / "store")
    with pytest.raises(StorageFailed, match="another one is"), store.session():
        pass
    shutil.rmtree(tmp_path / "store")
    with pytest.raises(StorageFailed, match="not there any more"), store.lock("x", "test"):
        pass


def replace_store(store: Path) -> None:
    """Put another store in the place of one."""
    shutil.rmtree(store)
    make_store(store)


def test_a_session_that_began_in_a_store_writes_nothing_into_the_one_that_took_its_place(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    key = ObjectKey(ObjectKind.CHUNK, content_id(b"late"))
    with pytest.raises(StorageFailed, match="another one is"), store.session() as session:
        replace_store(tmp_path / "store")
        session.put(key, b"late")
        session.finish()
    assert os.listdir(tmp_path / "store" / "packs") == []


def test_a_session_that_needs_a_further_pack_does_not_make_it_in_another_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(tmp_path / "store")
    monkeypatch.setattr(packs, "PACK_SIZE", 1)
    with pytest.raises(StorageFailed, match="another one is"), store.session() as session:
        for number in range(3):
            data = os.urandom(1000)
            session.put(ObjectKey(ObjectKind.CHUNK, content_id(data)), data)
            session.finish()
            if number == 1:
                replace_store(tmp_path / "store")
    assert os.listdir(tmp_path / "store" / "packs") == []


def test_a_lock_whose_holder_removed_the_store_is_no_leave_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(tmp_path / "store")
    real = locks.Lock.acquire

    def acquire(self: locks.Lock, wait: float, holder: str) -> None:
        real(self, wait, holder)
        if self.path.parent.parent == tmp_path / "store":
            monkeypatch.undo()
            replace_store(tmp_path / "store")

    monkeypatch.setattr(locks.Lock, "acquire", acquire)
    with pytest.raises(StorageFailed, match="another one is"), store.lock("x", "test"):
        pass
