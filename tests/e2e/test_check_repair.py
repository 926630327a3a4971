"""``check --repair``: what can be mended is as it was before, and what cannot is named."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from casnap.model.operation import StoreRepaired
from casnap.store import mending
from casnap.store.inspection import Inspection
from support.cases import as_ordinary_user, remove, run_here
from support.cli import run
from support.oracle import Snapshot, difference, snapshot
from support.stores import catalogs, chunk, noise, open_store, pack_files, segments

VARYING = ("store_bytes", "store_free", "dead_bytes", "last_check", "last_check_clean", "last_gc", "warnings", "notes")
"""What ``status`` says of the store itself."""


@dataclass
class History:
    """A store with two workspaces and much in its log; what a checkpoint holds, by its id."""

    store: Path
    one: Path
    two: Path
    holds: dict[str, Snapshot]

    def answers(self) -> Any:
        """Everything that the log says of the two workspaces, as it is shown to people and programs."""
        found = []
        for place in (self.one, self.two):
            for args in (("list", "--safety"), ("status",), ("config", "list")):
                document = run_here(*args, "-w", place, "--json", check=0).json()
                for varying in VARYING:
                    document.pop(varying, None)
                found.append(document)
        return found

    def require_restorable(self, scratch: Path) -> int:
        """See that every checkpoint that is listed restores exactly; how many there are."""
        count = 0
        for place in (self.one, self.two):
            for record in run_here("list", "--safety", "-w", place, "--json", check=0).json()["checkpoints"]:
                run_here("restore-to", "-q", "-w", place, scratch, record["id"], check=0)
                if record["id"] in self.holds:
                    assert difference(self.holds[record["id"]], snapshot(scratch)) == []
                    count += 1
                remove(scratch)
        return count


@pytest.fixture
def history(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    """Made so that the catalog has seen every line."""
    monkeypatch.setattr("casnap.store.follower.LONG_TAIL", 0)
    found = History(home / "store", tmp_path / "one", tmp_path / "two", {})

    def make(place: Path, name: str, *options: str) -> None:
        made = run_here("checkpoint", "-w", place, name, "--json", *options, check=0).json()["checkpoint"]
        found.holds[made["id"]] = snapshot(place)

    for place in (found.one, found.two):
        (place / "deep" / "er").mkdir(parents=True)
        (place / "same").write_bytes(noise(place.name))
        (place / "deep" / "er" / "big").write_bytes(noise(place.name + "big", 2_000_000))
        for number in range(3):
            (place / "deep" / f"f{number}").write_bytes(noise((place.name, number)))
            (place / "changing").write_bytes(noise((place.name, number, "changing")))
            make(place, f"c{number}")
    run_here("rename", "-w", found.one, "c0", "first", check=0)
    run_here("pin", "-w", found.one, "first", check=0)
    run_here("delete", "-w", found.two, "c0", check=0)
    run_here("delete", "-w", found.two, "c1", check=0)
    run_here("undelete", "-w", found.two, "2", check=0)
    run_here("run", "-w", found.two, "--", "true", check=0)
    run_here("config", "set", "-w", found.one, "retention.keep", "7", check=0)
    (found.one / "changing").write_bytes(b"changed since")
    run_here("rollback", "-w", found.one, "c1", check=0)
    run_here("undo", "-w", found.one, check=0)
    return found


def repair(status: int = 0) -> dict[str, Any]:
    document: dict[str, Any] = run_here("check", "--repair", "--json", check=status).json()
    assert document["clean"] is (status == 0)
    return document


def require_clean() -> None:
    document = run_here("check", "--read-data", "--json", check=0).json()
    assert document["findings"] == []


def spoil(log: Path, number: int) -> None:
    """Make one line of a log unreadable beyond help."""
    lines = log.read_bytes().splitlines(keepends=True)
    lines[number] = lines[number][:10] + b"\xff" * (len(lines[number]) - 20) + lines[number][-10:]
    log.write_bytes(b"".join(lines))


@pytest.mark.slow
def test_any_line_that_is_damaged_is_brought_back_from_the_catalog(history: History, tmp_path: Path) -> None:
    before = history.answers()
    (log,) = segments(history.store)
    kept = tmp_path / "kept"
    shutil.copytree(history.store, kept)
    count = log.read_bytes().count(b"\n")
    assert count > 15
    for number in range(count - 1):
        spoil(log, number)
        run_here("list", "-w", history.one, check=0)  # the catalog is beyond that line
        run_here("check", check=15)
        repair()
        assert history.answers() == before, number
        require_clean()
        if not number % 4:
            assert history.require_restorable(tmp_path / "scratch") == 5
        shutil.rmtree(history.store)
        shutil.copytree(kept, history.store)


@pytest.mark.slow
def test_a_line_with_one_wrong_byte_is_put_right_without_any_catalog(history: History, tmp_path: Path) -> None:
    before = history.answers()
    kept = tmp_path / "kept"
    shutil.copytree(history.store, kept)
    (log,) = segments(history.store)
    whole = log.read_bytes()
    for number, line in enumerate(whole.splitlines(keepends=True)):
        for path in history.store.glob("catalog-*"):
            path.unlink()
        start = whole.index(line)
        damaged = bytearray(whole)
        damaged[start + 17 * (number + 1) % (len(line) - 1)] ^= 0x10
        log.write_bytes(damaged)
        assert repair()["done"] != []
        assert history.answers() == before, number
        shutil.rmtree(history.store)
        shutil.copytree(kept, history.store)


@pytest.mark.parametrize("harm", ["files", "directory", "zeros", "format too"])
def test_a_log_that_is_gone_is_brought_back_from_the_catalog(history: History, tmp_path: Path, harm: str) -> None:
    before = history.answers()
    if harm == "zeros":
        for path in segments(history.store):
            path.write_bytes(bytes(path.stat().st_size))
    else:
        shutil.rmtree(history.store / "oplog")
        if harm == "files":
            (history.store / "oplog").mkdir(mode=0o700)
        if harm == "format too":
            (history.store / "casnap-store.json").unlink()
    found = run_here("check", "--json", check=15).json()
    assert "log" in {finding["fault"] for finding in found["findings"]}
    repair()
    assert history.answers() == before
    require_clean()
    assert history.require_restorable(tmp_path / "scratch") == 5
    told = run_here("log", "--all", "--json", check=0).json()["operations"]
    assert "repair" in {entry["operation"] for entry in told}
    # It is a store as any other from here on, and undo still leads where it led.
    run_here("undo", "-w", history.one, check=0)
    assert (history.one / "changing").read_bytes() == noise(("one", 1, "changing"))
    run_here("checkpoint", "-w", history.one, "after", check=0)
    run_here("rollback", "-w", history.one, "first", check=0)


@pytest.mark.parametrize("which", [0, 1, -1])
def test_a_segment_that_is_gone_is_brought_back(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, which: int
) -> None:
    monkeypatch.setattr("casnap.store.oplog.SEGMENT_SIZE", 1000)
    monkeypatch.setattr("casnap.store.mending.SEGMENT_SIZE", 1000)
    monkeypatch.setattr("casnap.store.follower.LONG_TAIL", 0)
    workspace = tmp_path / "one"
    workspace.mkdir()
    for number in range(8):
        (workspace / "f").write_bytes(noise(number))
        run_here("checkpoint", "-w", workspace, f"c{number}", check=0)
    listed = run_here("list", "-w", workspace, "--json", check=0).json()
    parts = segments(home / "store")
    assert len(parts) > 3
    parts[which].unlink()
    run_here("check", check=15)
    repair()
    assert run_here("list", "-w", workspace, "--json", check=0).json() == listed
    assert len(segments(home / "store")) > 3


def test_without_a_catalog_the_checkpoints_in_packs_come_back_in_their_order(history: History, tmp_path: Path) -> None:
    listed = run_here("list", "--safety", "-w", history.one, "--json", check=0).json()["checkpoints"]
    shutil.rmtree(history.store / "oplog")
    for path in history.store.glob("catalog-*"):
        path.unlink()
    repair()
    require_clean()
    found = run_here("list", "-w", history.one, "--json", check=0).json()["checkpoints"]
    assert [record["id"] for record in found] == [
        record["id"] for record in sorted(listed, key=lambda record: record["created"], reverse=True)
    ]
    assert [record["step"] for record in found] == list(range(len(found), 0, -1))
    assert all(record["automatic"] for record in found)
    assert history.require_restorable(tmp_path / "scratch") == 6  # what was deleted too: no line says that it was


def test_a_workspace_whose_line_is_lost_is_registered_again(history: History, tmp_path: Path) -> None:
    before = history.answers()
    (log,) = segments(history.store)
    lines = log.read_bytes().splitlines()
    for path in history.store.glob("catalog-*"):
        path.unlink()
    for number, line in enumerate(lines):
        if b'"op":"register"' in line:
            spoil(log, number)
    repair()
    assert history.answers() == before
    require_clean()
    assert history.require_restorable(tmp_path / "scratch") == 5


def test_more_ranges_than_a_line_holds_go_into_several(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mending, "MOST_RANGES", 2)
    before = history.answers()
    shutil.rmtree(history.store / "oplog")
    repair()
    assert history.answers() == before
    require_clean()
    assert history.require_restorable(tmp_path / "scratch") == 5
    lines = segments(history.store)[0].read_bytes().splitlines()
    assert sum(b'"op":"repair"' in line for line in lines) > 2


def test_without_anything_a_workspace_can_be_attached_again(history: History, tmp_path: Path) -> None:
    shutil.rmtree(history.store / "oplog")
    shutil.rmtree(history.store / "cache")
    for path in (*history.store.glob("catalog-*"), history.store / "casnap-store.json"):
        path.unlink()
    done = repair()["done"]
    told = [sentence for sentence in done if "workspace move" in sentence]
    assert len(told) == 2
    ids = [sentence.partition("/recovered/")[2].split()[0] for sentence in told]
    for id in ids:
        listed = run_here("list", "-w", f"/recovered/{id}", "--json", check=0).json()["checkpoints"]
        known = next(record["id"] for record in listed if record["id"] in history.holds)
        same = history.holds[known][b"same"]
        place = next(place for place in (history.one, history.two) if snapshot(place)[b"same"] == same)
        run_here("workspace", "move", f"/recovered/{id}", place, check=0)
    require_clean()
    assert history.require_restorable(tmp_path / "scratch") == 6


def test_what_a_readable_line_deleted_does_not_come_back(history: History) -> None:
    (log,) = segments(history.store)
    lines = log.read_bytes().splitlines(keepends=True)
    (deleting, *_) = [number for number, line in enumerate(lines) if b'"op":"delete"' in line]
    gone = json.loads(lines[deleting])["ids"][0]
    made = next(number for number, line in enumerate(lines) if f'"id":"{gone}"'.encode() in line)
    for path in history.store.glob("catalog-*"):
        path.unlink()
    spoil(log, made)
    repair()
    listed = run_here("list", "-w", history.two, "--json", check=0).json()["checkpoints"]
    assert gone not in {record["id"] for record in listed}


@pytest.mark.slow
def test_a_kill_during_the_swap_of_logs_leaves_the_old_one_or_the_new_one(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = history.answers()
    spoil(segments(history.store)[0], 4)
    kept = tmp_path / "kept"
    shutil.copytree(history.store, kept)
    steps = [0]
    limit = [0]

    def limited(act: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any) -> Any:
            steps[0] += 1
            if steps[0] > limit[0]:
                raise KeyboardInterrupt
            return act(*args)

        return step

    names = ("move_aside", "exchange", "sync_directory", "make_private_directory", "write_whole")
    for supported in (True, False):
        for number in range(30):
            steps[0], limit[0] = 0, number
            with monkeypatch.context() as patched:
                if not supported:
                    patched.setattr(mending, "exchange", lambda *_: False)
                for name in names:
                    patched.setattr(mending, name, limited(getattr(mending, name)))
                status = run_here("check", "--repair").status
            if status == 0:
                break
            assert status == 130
            assert run_here("list", "-w", history.one).status in (0, 15)
            repair()
            assert history.answers() == before, (supported, number)
            require_clean()
            shutil.rmtree(history.store)
            shutil.copytree(kept, history.store)
        assert number > 5
        shutil.rmtree(history.store)
        shutil.copytree(kept, history.store)


def records(store: Path) -> list[tuple[str, Path, int, bool]]:
    """Kind, pack, offset of every object; whether the newest checkpoint of a workspace leads to it is for others."""
    inspection = Inspection(store)
    inspection.load_places()
    found = [
        (key.kind.name, store / "packs" / f"{place.pack}.pack", place.offset, True)
        for key, place in inspection.places.rows()
    ]
    inspection.close()
    return found


@pytest.mark.slow
def test_whatever_record_is_damaged_is_healed_where_the_workspace_has_it_and_named_where_not(
    tmp_path: Path, home: Path
) -> None:
    workspace, store = tmp_path / "one", home / "store"
    (workspace / "sub").mkdir(parents=True)
    (workspace / "stays").write_bytes(noise("stays"))
    (workspace / "sub" / "big").write_bytes(noise("big", 1_200_000))
    (workspace / "goes").write_bytes(noise("goes"))
    run_here("checkpoint", "-w", workspace, "old", check=0)
    old = snapshot(workspace)
    (workspace / "goes").unlink()
    run_here("checkpoint", "-w", workspace, "new", check=0)
    new = snapshot(workspace)
    kept = tmp_path / "kept"
    shutil.copytree(store, kept)
    healed = named = 0
    seen = set()
    for kind, pack, offset, _ in records(store):
        if (pack, offset) in seen:  # of a group there is one for each object in it
            continue
        seen.add((pack, offset))
        data = bytearray(pack.read_bytes())
        data[offset + 42] ^= 1
        pack.write_bytes(data)
        done = run_here("check", "--repair", "--json")
        if done.status == 0:
            healed += 1
            assert done.json()["healed"] == 1
            require_clean()
            for name, wanted in (("old", old), ("new", new)):
                run_here("restore-to", "-q", "-w", workspace, tmp_path / "out", name, check=0)
                assert difference(wanted, snapshot(tmp_path / "out")) == []
                remove(tmp_path / "out")
        else:
            assert done.status == 15
            named += 1
            (finding,) = done.json()["findings"]
            hurt = {hit["name"]: [path["path"] for path in hit["paths"]] for hit in finding["checkpoints"]}
            # only what is no longer in the workspace: a checkpoint itself, the old root, the file that went
            assert hurt in ({"old": []}, {"new": []}, {"old": [""]}, {"old": ["goes"]}), (kind, hurt)
        assert difference(new, snapshot(workspace)) == []
        shutil.rmtree(store)
        shutil.copytree(kept, store)
    assert named == 4
    assert healed > 15


@pytest.mark.parametrize("left", [None, 0, 64, 400, 1400])
def test_what_a_pack_has_lost_is_given_up_once_all_of_it_is_healed(
    tmp_path: Path, home: Path, left: int | None
) -> None:
    """A pack with two chunks and nothing else is gone, or cut; both are still in the workspace."""
    workspace, path = tmp_path / "one", home / "store"
    workspace.mkdir()
    contents = {"f": noise("f", 1000), "g": noise("g", 1000)}
    (workspace / "base").write_bytes(noise("base", 9000))  # the fuller pack is the one that is gone on with
    run_here("checkpoint", "-w", workspace, "base", check=0)
    (other,) = pack_files(path)
    os.rename(other, tmp_path / "held")  # so that the chunks get a pack of their own
    store = open_store(path)
    with store.session() as session:
        for data in contents.values():
            session.put(chunk(data), data)
        store.commit(
            lambda _, line: StoreRepaired(seq=line.seq, time=line.time, prev=line.prev, packs=line.packs), session
        )
    store.close()
    (pack,) = pack_files(path)
    os.rename(tmp_path / "held", other)
    for name, data in contents.items():
        (workspace / name).write_bytes(data)
    run_here("checkpoint", "-w", workspace, "full", check=0)
    wanted = snapshot(workspace)
    size = pack.stat().st_size
    if left is None:
        pack.unlink()
    else:
        os.truncate(pack, left)
    found = run_here("check", "--json", check=15).json()
    hits = [hit for finding in found["findings"] for hit in finding["checkpoints"]]
    assert {(hit["name"], path["path"]) for hit in hits for path in hit["paths"]} == {
        ("full", name) for name in (contents if left != 1400 else "g")
    }
    document = repair()
    assert document["healed"] == (1 if left == 1400 else 2)
    assert any("no longer claims" in sentence for sentence in document["done"])
    left_over = {note["fault"] for note in run_here("check", "--read-data", "--json", check=0).json()["notes"]}
    assert left_over <= {"leftover"}  # what is behind the last whole record
    run_here("restore-to", "-q", "-w", workspace, tmp_path / "out", "full", check=0)
    assert difference(wanted, snapshot(tmp_path / "out")) == []
    assert not pack.exists() or pack.stat().st_size < size
    run_here("checkpoint", "-w", workspace, "later", check=0)
    require_clean()


def test_a_catalog_that_says_something_else_is_made_anew(history: History) -> None:
    before = history.answers()
    for change in ("UPDATE checkpoints SET name = 'other'", "DELETE FROM places WHERE kind = 3"):
        catalog = max(catalogs(history.store), key=lambda path: int(path.stem.partition("-")[2]))
        with sqlite3.connect(catalog) as connection:
            connection.execute(change)
        connection.close()
        run_here("check", check=15)
        assert any("set aside" in sentence for sentence in repair()["done"])
        assert history.answers() == before
        require_clean()


def test_what_may_not_be_read_is_not_taken_for_lost(tmp_path: Path) -> None:
    def act(place: Path) -> None:
        workspace = place / "workspace"
        workspace.mkdir()
        (workspace / "f").write_bytes(noise("f"))
        options = ("--store", place / "store")
        run_here("checkpoint", "-w", workspace, *options, check=0)
        (pack,) = pack_files(place / "store")
        size = pack.stat().st_size
        for path in (pack, segments(place / "store")[0], place / "store" / "casnap-store.json"):
            path.chmod(0)
            found = run_here("check", *options, check=17)
            assert "ermission denied" in found.stdout + found.stderr
            assert "ermission denied" in run_here("check", "--repair", *options, check=17).stderr
            path.chmod(0o600)
        run_here("check", *options, check=0)
        assert pack.stat().st_size == size

    as_ordinary_user(act)


def test_nothing_is_written_where_there_is_no_store(tmp_path: Path) -> None:
    place = tmp_path / "none"
    place.mkdir()
    for args in (("check",), ("check", "--repair")):
        run_here(*args, "--store", place, check=10)
        run_here(*args, "--store", place / "deeper", check=10)
    assert list(place.iterdir()) == []


def test_a_check_of_a_store_that_cannot_be_written_is_a_check(tmp_path: Path) -> None:
    def act(place: Path) -> None:
        workspace = place / "workspace"
        workspace.mkdir()
        options = ("--store", place / "store")
        run_here("checkpoint", "-w", workspace, *options, check=0)
        for path in (place / "store", *(place / "store").iterdir()):
            if path.is_dir():
                path.chmod(0o500)
        run_here("check", "--read-data", *options, check=0)
        assert run_here("check", "--repair", *options).status in (0, 17)

    as_ordinary_user(act)


def test_case_091_what_is_damaged_heals_when_the_same_content_is_read_again(tmp_path: Path, home: Path) -> None:
    """A byte flips, or an object is cut off; a checkpoint of a file with the same content heals older ones."""
    workspace, store = tmp_path / "workspace", home / "store"
    workspace.mkdir()
    content = noise("091", 5000)
    (workspace / "f").write_bytes(content)
    run("checkpoint", "-w", workspace, "one", check=0)
    for harm in ("flip", "cut"):
        pack = next(path for path in pack_files(store) if content in path.read_bytes())
        data = bytearray(pack.read_bytes())
        at = data.rindex(content)
        if harm == "flip":
            data[at + 700] ^= 0x04
        else:
            data[at + 100 : at + len(content)] = bytes(len(content) - 100)
        pack.write_bytes(data)
        found = run("check", "--read-data", "--json", check=15).json()
        (finding,) = found["findings"]
        assert {hit["name"] for hit in finding["checkpoints"]} >= {"one"}
        assert all(hit["paths"] == [{"path": "f"}] for hit in finding["checkpoints"])
        (workspace / "f").touch()
        run("checkpoint", "-w", workspace, f"after-{harm}", check=0)
        require_clean()
        for name in ("one", f"after-{harm}"):
            run("restore-to", "-w", workspace, tmp_path / name / harm, name, check=0)
            assert (tmp_path / name / harm / "f").read_bytes() == content


def test_case_093_several_faults_at_once_are_all_named_with_whom_they_hurt(tmp_path: Path, home: Path) -> None:
    """Three objects (flipped, cut, taken away), a tree, and a junk file: all five named, with the next step."""
    workspace, store = tmp_path / "workspace", home / "store"
    workspace.mkdir()
    (workspace / "dir").mkdir()
    for name in ("flipped", "zeroed", "gone"):
        (workspace / name).write_bytes(noise(name, 3000))
    (workspace / "dir" / "inside").write_bytes(noise("inside"))
    run("checkpoint", "-w", workspace, "one", check=0)
    (workspace / "more").write_text("more")
    run("checkpoint", "-w", workspace, "two", check=0)
    (pack,) = pack_files(store)
    inspection = Inspection(store)
    inspection.load_places()
    trees = [(key, place) for key, place in inspection.places.rows() if key.kind.name == "TREE"]
    (tree,) = [place for key, place in trees if b"inside" in inspection.read(key)]
    inspection.close()
    data = bytearray(pack.read_bytes())
    data[data.index(noise("flipped", 3000)) + 9] ^= 1
    at = data.index(noise("zeroed", 3000))
    data[at - 40 : at + 3000] = bytes(3040)
    at = data.index(noise("gone", 3000))
    data[at + 1000 : at + 3000] = bytes(2000)
    data[tree.offset + 45] ^= 1
    pack.write_bytes(data)
    (store / "packs" / "junk").write_bytes(b"junk")

    document = run("check", "--read-data", "--json", check=15).json()
    hurt = {
        path["path"]: sorted(hit["name"] for hit in finding["checkpoints"])
        for finding in document["findings"]
        for path in finding["checkpoints"][0]["paths"]
    }
    assert hurt == {path: ["one", "two"] for path in ("flipped", "zeroed", "gone", "dir")}
    assert document["found"] == 4
    assert all(finding["file"] == f"packs/{pack.name}" and finding["offset"] for finding in document["findings"])
    assert all("--repair" in finding["next"] for finding in document["findings"])
    assert [note["file"] for note in document["notes"]] == ["packs/junk"]

    text = run("check", "--read-data", check=15)
    assert "Traceback" not in text.stdout + text.stderr
    for path in ("flipped", "zeroed", "gone", "dir"):
        assert f"in {workspace}: {path}\n" in text.stdout
    assert text.stdout.count("step=1 name=one") == text.stdout.count("step=2 name=two") == 4
    assert "packs/junk" in text.stderr
    assert text.stdout.count("next: ") == 4
    assert "4 faults" in text.stdout.splitlines()[-1]

    assert repair()["healed"] == 4
    require_clean()
    checks = [one for one in run("log", "--all", "--json", check=0).json()["operations"] if one["operation"] == "check"]
    outcomes = [(one["facts"]["result"], one["facts"].get("found", 0)) for one in reversed(checks)]
    assert outcomes == [("damaged", 4), ("damaged", 4), ("clean", 0), ("clean", 0)]


def test_case_095_an_old_copy_of_the_catalog_put_back_changes_nothing(history: History, tmp_path: Path) -> None:
    old = {path.name: path.read_bytes() for path in history.store.glob("catalog-*")}
    (history.one / "new").write_text("new")
    run_here("checkpoint", "-w", history.one, "newest", check=0)
    run_here("rename", "-w", history.one, "c1", "other", check=0)
    before = history.answers()
    for path in history.store.glob("catalog-*"):
        path.unlink()
    for name, data in old.items():
        (history.store / name).write_bytes(data)
    assert history.answers() == before
    require_clean()


@pytest.mark.slow
@pytest.mark.parametrize("start", [5_000, 60_000, 120_000, 150_000, 170_000])
def test_bytes_that_are_missing_in_the_middle_of_a_pack_cost_what_a_repair_says(
    tmp_path: Path, home: Path, start: int
) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    for number in range(3):
        for file in range(4):
            (workspace / f"f{number}{file}").write_bytes(noise((number, file), 20_000))
        run_here("checkpoint", "-w", workspace, f"c{number}", check=0)
    (pack,) = pack_files(home / "store")
    data = pack.read_bytes()
    pack.write_bytes(data[:start] + data[start + 30_000 :])  # what follows comes to lie within what lost its end
    status = run_here("check", "--repair").status
    restored = [run_here("restore-to", "-w", workspace, tmp_path / f"c{n}", f"c{n}").status for n in range(3)]
    assert status == (15 if any(restored) else 0)
    assert run_here("check", "--read-data").status == status
    assert set(restored) <= {0, 15}
