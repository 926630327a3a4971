"""``expunge``: what matches is in no checkpoint and in no pack any more, and all else is as it was."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from casnap.cli.running import run as run_here
from casnap.engine import expunge as engine
from casnap.engine.context import Context
from casnap.engine.history import load_object
from casnap.errors import Busy
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.operation import RollbackBegun
from casnap.settings import load_settings, open_context
from casnap.store.oplog import Oplog
from support.cases import git, make_repository
from support.cli import Result
from support.oracle import Snapshot, difference, snapshot
from support.scanning import settle
from support.stores import noise
from support.terminal import Terminal, plain_environment
from support.trees import make_tree, mutate

Call = Callable[..., Result]

SECRET = noise("a secret that got in", 3000)
LONG_SECRET = noise("a secret in many chunks", 1_500_000)
PATTERNS = ("*.key", "/vault/", "private/")


def is_out(path: bytes, tree: Snapshot) -> bool:
    """Whether the patterns above take a path out: said once more, in words of its own."""
    parts = path.split(b"/")
    for depth in range(1, len(parts) + 1):
        kind = tree[b"/".join(parts[:depth])].kind
        if parts[depth - 1].endswith(b".key") or (kind == "directory" and parts[depth - 1] == b"private"):
            return True
        if depth == 1 and kind == "directory" and parts[0] == b"vault":
            return True
    return False


def less(tree: Snapshot) -> Snapshot:
    """A snapshot without what the patterns take out."""
    stays = {path: record for path, record in tree.items() if not is_out(path, tree)}
    links = {path: tuple(name for name in record.links if name in stays) for path, record in stays.items()}
    return {path: replace(record, links=links[path] if len(links[path]) > 1 else ()) for path, record in stays.items()}


def hide(directory: Path, number: int) -> None:
    """Put secrets where the patterns find them, one of them behind a second name that stays, and one in chunks."""
    (directory / "vault" / "deep").mkdir(parents=True, exist_ok=True)
    (directory / "sub" / "private").mkdir(parents=True, exist_ok=True)
    (directory / "vault" / "deep" / "letter").write_bytes(SECRET + b"%d" % number)
    (directory / "sub" / "private" / "long").write_bytes(LONG_SECRET)
    (directory / "sub" / "one.key").write_bytes(SECRET)
    for name in ("two.key", "kept-1", "kept-2", "pair.key", "pair"):
        (directory / "sub" / name).unlink(missing_ok=True)
    (directory / "sub" / "two.key").write_bytes(b"three names %d" % number)
    (directory / "sub" / "pair.key").write_bytes(b"two names %d" % number)
    os.link(directory / "sub" / "pair.key", directory / "sub" / "pair")
    os.link(directory / "sub" / "two.key", directory / "sub" / "kept-1")
    os.link(directory / "sub" / "two.key", directory / "sub" / "kept-2")


@contextmanager
def opened() -> Iterator[Context]:
    context = open_context(load_settings())
    try:
        yield context
    finally:
        context.store.close()


def rows(context: Context, path: Path) -> list[Any]:
    """All checkpoints of a workspace that are not freed, oldest first."""
    state = context.store.state()
    row = state.workspace_at(os.fsencode(path))
    assert row is not None
    return [one for one in reversed(state.history(row.id)) if not one.freed]


def restored(call: Call, workspace: Path, revision: str, scratch: Path) -> Snapshot:
    shutil.rmtree(scratch, ignore_errors=True)
    call("restore-to", scratch, revision, cwd=workspace, check=0)
    return snapshot(scratch)


def in_packs(data: bytes) -> bool:
    """Whether any file of the store holds these bytes, which do not compress."""
    return any(data in file.read_bytes() for file in Path(os.environ["CASNAP_STORE"]).rglob("*") if file.is_file())


def records(call: Call, workspace: Path) -> list[Any]:
    found: list[Any] = call("list", "--safety", "--format", "json", cwd=workspace, check=0).json()
    return found


def pairs(result: Result) -> dict[str, str]:
    """The lines ``old -> new``."""
    lines = [line.split() for line in result.stdout.splitlines() if " -> " in line]
    return {words[0]: words[2] for words in lines}


@pytest.fixture
def leaky(workspace: Path, call: Call) -> tuple[Path, dict[str, Snapshot]]:
    """Checkpoints c0 (clean) to c4 with secrets from c1 on, c3 deleted, then a rollback to c2; trees by name."""
    rng = random.Random(7)
    make_tree(workspace / "tree", rng, files=30)
    trees = {}
    for number in range(5):
        if number:
            mutate(workspace / "tree", rng, 10)
            hide(workspace, number)
        call("checkpoint", f"c{number}", *(["--pin"] if number == 2 else []), cwd=workspace, check=0)
        trees[f"c{number}"] = snapshot(workspace)
    (workspace / "late").write_text("late\n")
    trees["safety"] = snapshot(workspace)
    call("rollback", "c2", "--yes", cwd=workspace, check=0)
    call("delete", "c3", cwd=workspace, check=0)
    return workspace, trees


def test_every_checkpoint_is_as_it_was_but_for_what_matches(
    leaky: tuple[Path, dict[str, Snapshot]], tmp_path: Path, call: Call
) -> None:
    workspace, trees = leaky
    before = {record["name"] or "safety": record for record in records(call, workspace)}
    live = snapshot(workspace)
    assert in_packs(SECRET)
    assert in_packs(LONG_SECRET[:2000])
    result = call("expunge", *PATTERNS, cwd=workspace, check=0)
    after = {record["name"] or "safety": record for record in records(call, workspace)}
    assert [one[:12] for one in pairs(result)] == [*pairs(result)]
    assert len(pairs(result)) == 5  # c1 to c4 and the safety checkpoint; c0 held nothing
    assert before["c0"]["id"] == after["c0"]["id"]
    for name, tree in trees.items():
        revision = pairs(result)[before[name]["id"][:12]] if name in before and name != "c0" else name
        if name == "c3":
            call("undelete", "c3", cwd=workspace, check=0)
        assert difference(less(tree), restored(call, workspace, revision, tmp_path / "out")) == [], name
    for name in before:
        kept = ("step", "name", "pinned", "created", "message", "counts", "safety", "head", "origin")
        assert {key: before[name][key] for key in kept} == {key: after[name][key] for key in kept}
    assert difference(live, snapshot(workspace)) == []
    assert not in_packs(SECRET)
    assert not in_packs(LONG_SECRET[:2000])
    assert not in_packs(LONG_SECRET[-2000:])
    assert call("check", "--read-data", cwd=workspace, check=0).stdout.rstrip().endswith("clean")


def test_undo_and_steps_back_lead_to_what_took_the_place(
    leaky: tuple[Path, dict[str, Snapshot]], call: Call, tmp_path: Path
) -> None:
    workspace, trees = leaky
    call("expunge", *PATTERNS, cwd=workspace, check=0)
    shutil.rmtree(workspace / "vault")
    shutil.rmtree(workspace / "sub")
    call("checkpoint", "clean", cwd=workspace, check=0)
    call("rollback", "-n", "1", "--yes", cwd=workspace, check=0)
    assert difference(less(trees["c2"]), snapshot(workspace)) == []
    call("rollback", "c4", "--yes", cwd=workspace, check=0)
    call("undo", "--yes", cwd=workspace, check=0)
    assert difference(less(trees["c2"]), snapshot(workspace)) == []


def test_an_undo_of_the_rollback_before_brings_all_back_but_what_was_taken_out(
    leaky: tuple[Path, dict[str, Snapshot]], call: Call
) -> None:
    workspace, trees = leaky
    call("expunge", *PATTERNS, cwd=workspace, check=0)
    call("undo", "--yes", cwd=workspace, check=0)
    assert difference(less(trees["safety"]), snapshot(workspace)) == []


def test_the_next_checkpoint_takes_in_what_the_workspace_holds_and_that_is_said(
    leaky: tuple[Path, dict[str, Snapshot]], tmp_path: Path, call: Call
) -> None:
    workspace, _ = leaky
    said = call("expunge", *PATTERNS, cwd=workspace, check=0).stderr
    assert "sub/one.key, sub/pair.key, sub/private and 2 more in " in said
    assert f"casnap config add -w {workspace} exclude '*.key' /vault/ private/" in said
    call("checkpoint", "again", cwd=workspace, check=0)  # the stat cache knew all of it as stored
    live = snapshot(workspace)
    assert difference(live, restored(call, workspace, "again", tmp_path / "out")) == []
    call("verify", "again", cwd=workspace, check=0)
    call("config", "add", "-w", workspace, "exclude", "*.key", "/vault/", "private/", cwd=workspace, check=0)
    assert "keep it out" not in call("expunge", *PATTERNS, cwd=workspace, check=0).stderr
    call("checkpoint", "last", cwd=workspace, check=0)
    assert difference(less(live), restored(call, workspace, "last", tmp_path / "out")) == []
    assert not in_packs(SECRET)


def test_a_stat_cache_that_vouches_for_what_is_gone_is_not_believed(
    protected: Path, tmp_path: Path, call: Call
) -> None:
    (protected / "a.key").write_bytes(SECRET)
    settle(protected)
    call("checkpoint", "c2", cwd=protected, check=0)  # from here on nothing needs to be read
    call("expunge", "*.key", cwd=protected, check=0)
    assert not in_packs(SECRET)
    call("checkpoint", "c3", cwd=protected, check=0)
    assert (restored(call, protected, "c3", tmp_path / "out")[b"a.key"]) == snapshot(protected)[b"a.key"]


def test_a_digest_is_that_of_a_directory_which_never_held_it(
    leaky: tuple[Path, dict[str, Snapshot]], tmp_path: Path, call: Call
) -> None:
    workspace, _ = leaky
    call("expunge", *PATTERNS, cwd=workspace, check=0)
    restored(call, workspace, "c2", tmp_path / "out")
    call("checkpoint", "fresh", cwd=tmp_path / "out", check=0)
    (fresh,) = records(call, tmp_path / "out")
    assert fresh["digest"] in {record["digest"] for record in records(call, workspace) if record["name"] == "c2"}


def test_a_few_bytes_go_from_a_pack_that_is_needed_but_for_them(protected: Path, call: Call) -> None:
    (protected / "a.key").write_bytes(SECRET[:40])
    (protected / "data").write_bytes(noise("what stays", 2_000_000))
    call("checkpoint", "c2", cwd=protected, check=0)
    (protected / "a.key").unlink()
    call("checkpoint", "c3", cwd=protected, check=0)
    call("gc", cwd=protected, check=0)
    assert in_packs(SECRET[:40])
    result = call("expunge", "a.key", "--json", cwd=protected, check=0).json()
    assert not in_packs(SECRET[:40])
    assert result["left"] == 0


def test_what_was_deleted_can_still_come_back(protected: Path, call: Call) -> None:
    (protected / "a.key").write_bytes(SECRET)
    call("checkpoint", "c2", cwd=protected, check=0)
    call("delete", "c2", cwd=protected, check=0)
    result = call("expunge", "*.key", cwd=protected, check=0)
    (new,) = pairs(result).values()
    assert "took 1 path out of 1 checkpoint; 1 checkpoint has another id\n" in result.stdout
    assert not in_packs(SECRET)
    call("undelete", new, cwd=protected, check=0)
    assert [record["name"] for record in records(call, protected)] == ["c2", "c1"]


@pytest.mark.parametrize("answer", ["n", "y"])
def test_at_a_terminal_it_asks(protected: Path, call: Call, answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain_environment(monkeypatch)
    before = records(call, protected)
    terminal = Terminal("expunge", "README", cwd=protected)
    terminal.wait_for("Take 1 path out of 1 checkpoint for good? [y/N]")
    terminal.type(f"{answer}\n")
    assert terminal.finish() == (0 if answer == "y" else 1)
    assert (records(call, protected) == before) == (answer == "n")


def test_a_dry_run_says_the_same_and_changes_nothing(leaky: tuple[Path, dict[str, Snapshot]], call: Call) -> None:
    workspace, trees = leaky
    out = {path for tree in trees.values() for path in tree if is_out(path, tree)}
    before = (
        records(call, workspace),
        snapshot(os.environ["CASNAP_STORE"] + "/packs"),
        call("log", cwd=workspace).stdout,
    )
    ahead = call("expunge", *PATTERNS, "--dry-run", cwd=workspace, check=0)
    assert before == (
        records(call, workspace), snapshot(os.environ["CASNAP_STORE"] + "/packs"), call("log", cwd=workspace).stdout,
    )  # fmt: skip
    done = call("expunge", *PATTERNS, cwd=workspace, check=0)
    assert pairs(ahead) == pairs(done)
    assert f"would take {len(out)} paths out of 5 checkpoints; 5 checkpoints would have another id" in ahead.stdout
    assert f"took {len(out)} paths out of 5 checkpoints; 5 checkpoints have another id" in done.stdout


def test_where_nothing_matches_nothing_is_written(leaky: tuple[Path, dict[str, Snapshot]], call: Call) -> None:
    workspace, _ = leaky
    before = snapshot(os.environ["CASNAP_STORE"] + "/packs"), call("log", "--all", cwd=workspace).stdout
    result = call("expunge", "*.nothing", cwd=workspace, check=0)
    assert result.stdout == "no checkpoint holds what matches: nothing was changed\n"
    assert before == (snapshot(os.environ["CASNAP_STORE"] + "/packs"), call("log", "--all", cwd=workspace).stdout)


def test_who_still_holds_the_same_bytes_is_named(protected: Path, tmp_path: Path, call: Call) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "copy").write_bytes(SECRET)
    call("checkpoint", "o1", cwd=other, check=0)
    (protected / "a.key").write_bytes(SECRET)
    (protected / "b").write_bytes(SECRET)
    (protected / "empty.key").touch()
    call("checkpoint", "c2", cwd=protected, check=0)
    result = call("expunge", "*.key", cwd=protected, check=0)
    new = {record["name"]: record["id"][:12] for record in records(call, protected) + records(call, other)}
    held = [line.partition("held by ")[2] for line in result.stderr.splitlines() if "held by" in line]
    assert sorted(held) == sorted([f"b in {protected} ({new['c2']})", f"copy in {other} ({new['o1']})"])
    assert in_packs(SECRET)
    for number in range(12):
        (other / f"more-{number}").write_bytes(SECRET)
    call("checkpoint", "o2", cwd=other, check=0)
    document = call("expunge", "b", "--json", cwd=protected, check=0).json()
    assert (len(document["holders"]), document["more_held"]) == (10, True)
    assert (document["left"], document["checkpoints"]) == (0, 1)


def test_all_is_about_every_workspace_and_those_that_were_forgotten(tmp_path: Path, call: Call) -> None:
    places = [tmp_path / name for name in ("one", "two", "three")]
    for place in places:
        place.mkdir()
        (place / "a.key").write_bytes(SECRET)
        (place / "b").write_text("b")
        call("checkpoint", "c1", cwd=place, check=0)
    call("forget", cwd=places[2], check=0)
    result = call("expunge", "--all", "*.key", "--json", cwd=tmp_path, check=0).json()
    assert {one["workspace"]["path"] for one in result["replaced"]} == set(map(str, places))
    assert result["workspace"] is None
    assert not in_packs(SECRET)
    call("init", cwd=places[2], check=0)
    for place in places:
        assert set(restored(call, place, "c1", tmp_path / "out")) == {b".", b"b"}


def test_a_checkpoint_alone_is_spared_where_only_another_workspace_is_meant(
    tmp_path: Path, protected: Path, call: Call
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "README").write_text("read me too\n")
    call("checkpoint", "o1", cwd=other, check=0)
    before = records(call, other)
    call("expunge", "README", cwd=protected, check=0)
    assert records(call, other) == before
    assert b"README" in restored(call, other, "o1", tmp_path / "out")


def test_later_patterns_have_the_last_word(protected: Path, tmp_path: Path, call: Call) -> None:
    for name in ("a.key", "b.key"):
        (protected / name).write_text(name)
    call("checkpoint", "c2", cwd=protected, check=0)
    call("expunge", "*.key", "!b.key", cwd=protected, check=0)
    assert {b"a.key", b"b.key"} & restored(call, protected, "c2", tmp_path / "out").keys() == {b"b.key"}


def test_a_database_goes_with_its_logs_and_of_a_git_directory_no_part_goes(
    workspace: Path, tmp_path: Path, call: Call
) -> None:
    make_repository(workspace)
    database = sqlite3.connect(workspace / "secret.db")
    database.execute("PRAGMA journal_mode = wal")
    database.execute("CREATE TABLE t (x)")
    database.commit()
    call("checkpoint", "c1", cwd=workspace, check=0)
    before = restored(call, workspace, "c1", tmp_path / "out")
    assert {b"secret.db", b"secret.db-wal"} <= before.keys()
    call("expunge", "secret.db", "config", "HEAD", cwd=workspace, check=0)
    database.close()
    after = restored(call, workspace, "c1", tmp_path / "out")
    assert not [path for path in after if path.startswith(b"secret.db")]
    assert git(tmp_path / "out", "fsck") == ""
    assert {path for path in before if path.startswith(b".git")} <= after.keys()


def test_what_was_never_captured_stays_known(workspace: Path, call: Call) -> None:
    (workspace / "a.key").write_text("a")
    (workspace / ".casnapignore").write_text("*.key\n")
    call("checkpoint", "c1", cwd=workspace, check=0)
    assert "nothing was changed" in call("expunge", "*.key", cwd=workspace, check=0).stdout
    call("rollback", "c1", "--yes", cwd=workspace, check=0)
    assert (workspace / "a.key").exists()


def test_an_interrupted_rollback_is_to_be_finished_first(protected: Path, call: Call) -> None:
    with opened() as context:
        head = rows(context, protected)[0]
        id = head.id.hex()
        context.store.commit(
            lambda _, line: RollbackBegun(
                seq=line.seq, time=line.time, prev=line.prev, workspace=head.workspace, verb="rollback", safety=id,
                target=id, nonce="ab", head=id, head_after=id, undo_safety=id, undo_head=id,
            )
        )  # fmt: skip
    result = call("expunge", "README", cwd=protected, check=14)
    assert f"a rollback of {protected} was interrupted" in result.stderr
    assert f"casnap recover -w {protected}" in result.stderr
    call("recover", "-w", protected, cwd=protected, check=0)
    call("expunge", "README", cwd=protected, check=0)


def test_where_a_checkpoint_cannot_be_read_nothing_is_changed(history: Path, call: Call) -> None:
    with opened() as context:
        tree = load_object(context, rows(context, history)[0].id).root.tree
        (place,) = context.store.state().places([ObjectKey(ObjectKind.TREE, tree)]).values()
    pack = Path(os.environ["CASNAP_STORE"]) / "packs" / f"{place[0].pack}.pack"
    data = bytearray(pack.read_bytes())
    data[place[0].offset + 60] ^= 1
    pack.write_bytes(data)
    before = records(call, history)
    result = call("expunge", "README", cwd=history, check=15)
    damaged = next(record["id"][:12] for record in before if record["name"] == "c1")
    assert f"nothing was changed: {damaged} cannot be read" in result.stderr
    assert "casnap check --repair" in result.stderr
    assert records(call, history) == before


def test_bad_requests_change_nothing(protected: Path, call: Call) -> None:
    before = records(call, protected)
    for args in ((), ("",), ("# README",), ("--all", "-w", str(protected), "README")):
        call("expunge", *args, cwd=protected, check=2)
    assert records(call, protected) == before


def test_some_thousand_checkpoints_go_line_by_line(
    leaky: tuple[Path, dict[str, Snapshot]], tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, trees = leaky
    monkeypatch.setattr(engine, "MOST_IN_A_LINE", 2)
    call("expunge", *PATTERNS, cwd=workspace, check=0)
    entries = call("log", "--format", "json", cwd=workspace, check=0).json()
    lines = [entry for entry in reversed(entries) if entry["operation"] == "expunge"]
    assert [len(entry["facts"]["replaced"]) for entry in lines] == [2, 2, 1]
    assert lines[0]["facts"]["pattern"] == "*.key\\n/vault/\\nprivate/"
    parents_are_right(workspace)
    for name in ("c1", "c2", "c4"):
        assert difference(less(trees[name]), restored(call, workspace, name, tmp_path / "out")) == []


def parents_are_right(workspace: Path) -> None:
    """The row and the object of every checkpoint name the same parent, which is there."""
    with opened() as context:
        found = rows(context, workspace)
        for row in found:
            assert load_object(context, row.id).parent == row.parent
            assert not row.parent or row.parent in {other.id for other in found}


def test_a_gc_that_cannot_run_is_told_and_the_same_command_makes_up_for_it(
    protected: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    (protected / "a.key").write_bytes(SECRET)
    call("checkpoint", "c2", cwd=protected, check=0)

    def busy(*_: object, **__: object) -> None:
        raise Busy("cannot gc: another one is running")

    with monkeypatch.context() as patch:
        patch.setattr(engine, "collect", busy)
        result = call("expunge", "*.key", cwd=protected, check=11)
    assert "the bytes are in the store still: cannot gc: another one is running" in result.stderr
    assert in_packs(SECRET)
    result = call("expunge", "*.key", cwd=protected, check=0)
    assert "nothing was changed" in result.stdout
    assert not in_packs(SECRET)


def test_two_that_differ_in_nothing_else_stay_two(protected: Path, call: Call, tmp_path: Path) -> None:
    (protected / "a.key").write_bytes(b"one")
    call("checkpoint", "c2", cwd=protected, check=0)
    with opened() as context:
        row = rows(context, protected)[-1]
        twin(context, row)
    result = call("expunge", "*.key", cwd=protected, check=0)
    assert len(set(pairs(result).values())) == 2
    assert [record["name"] for record in records(call, protected)] == ["twin", "c2", "c1"]


def twin(context: Context, row: Any) -> None:
    """A checkpoint that differs from another one in the bytes of a.key alone."""
    from msgspec.structs import replace as changed

    from casnap.codec.checkpoints import encode_checkpoint
    from casnap.codec.hashing import digest
    from casnap.codec.trees import build_tree, load_listing
    from casnap.model.operation import CheckpointMade

    found = load_object(context, row.id)
    listing = load_listing(context.store, found.root.tree)
    readme: Any = next(entry for entry in listing if entry.name == b"README")
    other = tuple(
        changed(entry, content=readme.content, size=readme.size) if entry.name == b"a.key" else entry
        for entry in listing
    )
    built = build_tree(other)
    key, data = encode_checkpoint(changed(found, root=changed(found.root, tree=built.id, digest=digest(other))))
    with context.store.session() as session:
        for object_key, object_data in (*built.objects, (key, data)):
            session.put(object_key, object_data)
        context.store.commit(
            lambda _, line: CheckpointMade(
                seq=line.seq, time=line.time, prev=line.prev, workspace=row.workspace, id=key.id.hex(), step=3,
                name="twin", parent=row.parent.hex(), packs=line.packs,
            ),
            session,
        )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_any_line_it_leaves_checkpoints_that_restore_and_finishes_when_it_is_run_again(
    leaky: tuple[Path, dict[str, Snapshot]], tmp_path: Path, call: Call, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, trees = leaky
    shutil.copytree(os.environ["CASNAP_STORE"], tmp_path / "copy")
    monkeypatch.setattr(engine, "MOST_IN_A_LINE", 2)
    killed = 0
    while _killed_at_line(killed + 1, when, workspace):
        killed += 1
        for record in records(call, workspace):
            tree = restored(call, workspace, record["id"], tmp_path / "out")
            expected = trees[record["name"] or "safety"]
            assert difference(less(expected), less(tree)) == []
            assert difference(expected, tree) == [] or difference(less(expected), tree) == []
        call("expunge", *PATTERNS, cwd=workspace, check=0)
        assert not in_packs(SECRET)
        parents_are_right(workspace)
        call("check", "--read-data", cwd=workspace, check=0)
        shutil.rmtree(os.environ["CASNAP_STORE"])
        shutil.copytree(tmp_path / "copy", os.environ["CASNAP_STORE"])
    assert killed >= 4  # three lines of expunge, and those of gc


def _killed_at_line(number: int, when: str, workspace: Path) -> bool:
    """Run an expunge in a child that kills itself before or after it writes a line; whether it came to that."""
    child = os.fork()
    if child == 0:
        left = [number]
        append = Oplog.append

        def appended(self: Oplog, line: bytes) -> tuple[int, int]:
            left[0] -= 1
            if not left[0] and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            written = append(self, line)
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            return written

        Oplog.append = appended  # type: ignore[method-assign]
        os.chdir(workspace)
        run_here(["expunge", *PATTERNS, "--quiet"])
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
