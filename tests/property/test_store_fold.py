"""catalog = fold(apply, lines): live, rebuilt, or put into SQLite at any point, the state is the same."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from casnap.model.operation import (
    AnyOperation,
    CheckpointMade,
    CheckpointRenamed,
    CheckpointsDeleted,
    CheckpointsFoundGood,
    CheckpointsPinned,
    CheckpointUndeleted,
    PackCut,
    PathsExpunged,
    RollbackBegun,
    RollbackEnded,
    SpaceFreed,
    StoreChecked,
    StoreCreated,
    StoreRepaired,
    Verified,
    WorkspaceConfigured,
    WorkspaceForgotten,
    WorkspaceRegistered,
)
from casnap.store.state import State
from casnap.store.store import Store
from support.stores import POLICY, Ticking, chunk, noise, open_store, remove_catalogs

WORKSPACES = ("wa", "wb")
IDS = [bytes([number]) * 32 for number in range(4)]
NAMES = ("", "one", "two")
CHUNKS = {number: noise(number) for number in range(10)}
SMALL_PACK = 1500
"""Bytes at which packs are sealed here, so that some operations fill several."""


@dataclass
class Rows:
    """What the operations amount to, written down a second time: in plain dicts, without a word of the store's code."""

    workspaces: dict[str, dict[str, Any]] = field(default_factory=dict)
    checkpoints: dict[str, dict[str, Any]] = field(default_factory=dict)
    upkeep: dict[str, Any] = field(
        default_factory=lambda: {"collected": 0, "collected_at": 0, "checked_at": 0, "checked_clean": True}
    )

    def add(self, op: AnyOperation) -> None:
        if isinstance(op, SpaceFreed | StoreChecked | StoreRepaired):
            self._keep_up(op)
            return
        assert not isinstance(op, StoreCreated)
        ws = self.workspaces.get(op.workspace)
        if isinstance(op, WorkspaceRegistered):
            fresh = {"head": "", "last_step": 0, "undo": None, "open": [], "settings": {}}
            ws = self.workspaces[op.workspace] = (ws or fresh) | {
                "path": op.path.encode(), "forgotten": False, "dropped": False,
            }  # fmt: skip
        if isinstance(op, WorkspaceForgotten) and ws:
            ws |= {"forgotten": True, "dropped": op.drop}
        if isinstance(op, CheckpointMade):
            self.checkpoints.get(op.replaced, {}).update(name="")
            self._row(op, op.id, parent=op.parent, step=op.step, name=op.name, automatic=op.automatic, safety=False)
            self.checkpoints[op.id]["pinned"] = op.pinned
            if ws:
                head = ws["head"] if op.aside else op.id
                ws |= {"head": head, "last_step": max(op.step, ws["last_step"])}
        if isinstance(op, RollbackBegun):
            self._begin(op, ws)
        if isinstance(op, RollbackEnded):
            self._end(op, ws)
        if isinstance(op, CheckpointsDeleted):
            for id in op.ids:
                self.checkpoints.get(id, {}).update(deleted=True, deleted_at=op.time)
            if ws and self.checkpoints.get(ws["head"], {}).get("deleted"):
                ws["head"] = self.survivor(self.checkpoints[ws["head"]]["parent"])
        if isinstance(op, CheckpointUndeleted) and not self.checkpoints.get(op.id, {"freed": True})["freed"]:
            self.checkpoints[op.id] |= {"deleted": False, "deleted_at": 0, "name": op.name}
            if ws and not ws["head"] and not self.checkpoints[op.id]["safety"]:
                ws["head"] = op.id
        if isinstance(op, CheckpointsPinned):
            for id in op.ids:
                self.checkpoints.get(id, {}).update(pinned=op.pinned)
        if isinstance(op, CheckpointsFoundGood):
            for id in op.ids:
                self.checkpoints.get(id, {}).update(good=op.good)
        if isinstance(op, CheckpointRenamed):
            self.checkpoints.get(op.id, {}).update(name=op.name, automatic=False)
        if isinstance(op, WorkspaceConfigured) and ws:
            for key, value in op.values.items():
                ws["settings"].pop(key, None)
                ws["settings"] |= {key: value} if value else {}
        if isinstance(op, PathsExpunged):
            self._expunge(op, ws)
        if ws:
            ws["last_operation"] = op.seq

    def _keep_up(self, op: SpaceFreed | StoreChecked | StoreRepaired) -> None:
        if isinstance(op, StoreChecked):
            self.upkeep |= {"checked_at": op.time, "checked_clean": op.result == "clean"}
        if isinstance(op, SpaceFreed):
            self.upkeep |= {"collected": op.seq, "collected_at": op.time}
            rows = [self.checkpoints[id] for id in op.freed if id in self.checkpoints]
            for row in rows:
                row |= {"deleted": True, "deleted_at": row["deleted_at"] or op.time, "freed": True}
            for name in {row["workspace"] for row in rows} & self.workspaces.keys():
                ws = self.workspaces[name]
                ws["head"] = self.survivor(ws["head"]) if self.is_freed(ws["head"]) else ws["head"]
                ws["undo"] = None if ws["undo"] and self.is_freed(ws["undo"][0]) else ws["undo"]
                ws["open"] = [begun for begun in ws["open"] if not self.is_freed(begun[4][0])]

    def _expunge(self, op: PathsExpunged, ws: dict[str, Any] | None) -> None:
        new = dict(op.replaced)
        for old in new:
            if row := self.checkpoints.get(old):
                self.checkpoints[old] = row | {"deleted": True, "deleted_at": op.time, "freed": True, "name": ""}
                self.checkpoints[new[old]] = row | {"id": new[old]}
        for row in self.checkpoints.values():
            if row["workspace"] == op.workspace and row["id"] not in new:
                row["parent"] = new.get(row["parent"], row["parent"])
        if ws:
            ws["head"] = new.get(ws["head"], ws["head"])
            ws["undo"] = ws["undo"] and tuple(new.get(id, id) for id in ws["undo"])
            ws["open"] = [
                (begin, *(new.get(id, id) for id in ids), tuple(new.get(id, id) for id in undo), nonce)
                for begin, *ids, undo, nonce in ws["open"]
            ]

    def is_freed(self, id: str) -> bool:
        return bool(self.checkpoints.get(id, {}).get("freed"))

    def _begin(self, op: RollbackBegun, ws: dict[str, Any] | None) -> None:
        if op.made:
            self._row(op, op.safety, parent=op.head, step=0, name="", automatic=False, safety=True)
        if ws:
            ws["open"].append((op.seq, op.safety, op.target, op.head_after, (op.undo_safety, op.undo_head), op.nonce))

    def _end(self, op: RollbackEnded, ws: dict[str, Any] | None) -> None:
        if op.late:
            parent = ws["head"] if ws else ""
            self._row(op, op.late, parent=parent, step=0, name="", automatic=False, safety=True)
        if ws:
            for begun in ws["open"]:
                if begun[0] == op.begin and op.result != "failed":
                    ws |= {"head": self.survivor(begun[3]), "undo": begun[4]}
            if op.result == "failed":
                ws["open"] = [begun for begun in ws["open"] if begun[0] != op.begin]
            else:
                ws["open"] = [begun for begun in ws["open"] if begun[0] > op.begin]

    def _row(self, op: Any, id: str, **facts: Any) -> None:
        self.checkpoints[id] = facts | {
            "id": id, "workspace": op.workspace, "seq": op.seq, "counts": op.counts, "skipped": op.skipped,
            "new_bytes": op.new_bytes, "pinned": False, "deleted": False, "deleted_at": 0,
            "time": op.time, "freed": False, "good": False,
        }  # fmt: skip

    def survivor(self, id: str) -> str:
        for _ in range(len(self.checkpoints) + 1):
            if id not in self.checkpoints:
                return ""
            if not self.checkpoints[id]["deleted"]:
                return id
            id = self.checkpoints[id]["parent"]
        return ""


class Places:
    """Where chunks are, by the lines and by what stands in the pack files, where a chunk's bytes are as they were."""

    def __init__(self, packs: Path) -> None:
        self.packs = packs
        self.found: set[tuple[str, int, int, int]] = set()
        self.starts: set[tuple[str, int]] = set()
        self.lengths: dict[str, int] = {}

    def add(self, op: AnyOperation) -> None:
        for cut in getattr(op, "cuts", ()):
            self.found = {place for place in self.found if place[0] != cut.pack or place[1] < cut.length}
            self.lengths[cut.pack] = min(self.lengths.get(cut.pack, 0), cut.length)
        for written in getattr(op, "packs", ()):
            self.starts.add((written.pack, written.start))
            self.lengths[written.pack] = max(self.lengths.get(written.pack, 0), written.end)
            data = (self.packs / f"{written.pack}.pack").read_bytes()
            for number, content in CHUNKS.items():
                at = data.find(content, written.start, written.end)
                while at >= 0:
                    self.found.add((written.pack, at, number, op.seq))
                    at = data.find(content, at + 1, written.end)

    def cuts(self, chosen: Iterable[int], written: Iterable[Any]) -> tuple[PackCut, ...]:
        """Cuts where some commits began, one a pack; gc makes no other ones, and none where it has just written."""
        busy = {one.pack for one in written}
        starts = [start for start in sorted(self.starts) if start[0] not in busy]
        return tuple(PackCut(*cut) for cut in dict(starts[number % len(starts)] for number in chosen if starts).items())

    def carry_out(self, op: SpaceFreed) -> None:
        """Do to the files what the line says."""
        for cut in op.cuts:
            file = self.packs / f"{cut.pack}.pack"
            if file.exists() and cut.length:
                os.truncate(file, min(cut.length, file.stat().st_size))
            elif file.exists():
                file.unlink()

    @property
    def present(self) -> set[int]:
        return {number for _, _, number, _ in self.found}


def _hex(value: bytes) -> str:
    return value.hex()


def _check(state: State, rows: Rows) -> None:
    """The state answers every question as the plain rows do."""
    assert {name: getattr(state.upkeep, name) for name in rows.upkeep} == rows.upkeep
    assert {row.id: _workspace(row) for row in state.workspaces()} == rows.workspaces
    assert [row.path for row in state.workspaces()] == sorted(ws["path"] for ws in rows.workspaces.values())
    for name in WORKSPACES:
        mine = sorted(
            (row for row in rows.checkpoints.values() if row["workspace"] == name),
            key=lambda row: (row["seq"], row["id"]),
            reverse=True,
        )
        assert [_checkpoint(row) for row in state.history(name)] == mine
        for label in NAMES:
            named = [row for row in mine if label and row["name"] == label and not row["deleted"]]
            found = state.named(name, label)
            assert (found and _checkpoint(found)) == (named[0] if named else None)
        for step in range(1, 5):
            stepped = [row for row in mine if row["step"] == step]
            stepped.sort(key=lambda row: row["freed"])  # what took its place has its step
            found = state.stepped(name, step)
            assert (found and _checkpoint(found)) == (stepped[0] if stepped else None)
        for prefix in ("", "0", "01", "0202", "ff", "04" * 32, "zz"):
            got = [row.id.hex() for row in state.with_prefix(name, prefix)]
            assert got == [row["id"] for row in mine if row["id"].startswith(prefix)]
    for id in IDS:
        found = state.checkpoint(id)
        assert (found and _checkpoint(found)) == rows.checkpoints.get(id.hex())
        if found:
            assert state.present_parent(found).hex() == rows.survivor(rows.checkpoints[id.hex()]["parent"])


def _workspace(row: Any) -> dict[str, Any]:
    undo = row.undo and (_hex(row.undo.safety), _hex(row.undo.head))
    opened = [
        (one.begin, _hex(one.safety), _hex(one.target), _hex(one.head_after),
         (_hex(one.undo.safety), _hex(one.undo.head)), one.nonce)
        for one in row.open
    ]  # fmt: skip
    return {
        "path": row.path, "forgotten": row.forgotten, "dropped": row.dropped, "head": _hex(row.head), "undo": undo,
        "last_step": row.last_step, "open": opened, "last_operation": row.last_operation,
        "settings": dict(row.settings),
    }  # fmt: skip


def _checkpoint(row: Any) -> dict[str, Any]:
    fields = {name: getattr(row, name) for name in row.__struct_fields__}
    return fields | {"id": _hex(row.id), "parent": _hex(row.parent)}


ids = st.sampled_from([id.hex() for id in IDS])
no_or_ids = st.one_of(st.just(""), ids)
workspaces = st.sampled_from(["wa", "wa", "wa", "wb"])
chunks = st.lists(st.integers(0, 9), max_size=3)
facts = {"counts": st.tuples(*[st.integers(0, 9)] * 3), "skipped": st.integers(0, 3), "new_bytes": st.integers(0, 9)}

FIRST = [
    *({"op": WorkspaceRegistered, "workspace": name, "path": f"/{name}"} for name in WORKSPACES),
    *(
        {"op": CheckpointMade, "workspace": "wa", "id": IDS[step].hex(), "step": step, "parent": parent.hex(),
         "chunks": [2 * step, 2 * step + 1]}
        for step, parent in ((1, b""), (2, IDS[1]), (3, IDS[2]))
    ),
]  # fmt: skip
"""What each example begins with, so that the operations to come have something to work on."""

operations = st.deferred(lambda: st.one_of(*_KINDS, *_KINDS[2:5]))  # what rollbacks are made of comes more often
_KINDS = (
    st.builds(dict, op=st.just(WorkspaceRegistered), workspace=workspaces, path=st.sampled_from(["/x", "/y", "/z/é"])),
    st.builds(dict, op=st.just(WorkspaceForgotten), workspace=workspaces, drop=st.booleans()),
    st.builds(
        dict, op=st.just(CheckpointMade), workspace=workspaces, id=ids, step=st.integers(1, 4), parent=no_or_ids,
        name=st.sampled_from(NAMES), automatic=st.booleans(), pinned=st.booleans(), replaced=no_or_ids,
        aside=st.booleans(), chunks=chunks, **facts,
    ),
    st.builds(
        dict, op=st.just(RollbackBegun), workspace=workspaces, verb=st.sampled_from(["rollback", "undo", "recover"]),
        safety=ids, target=ids, nonce=st.sampled_from(["a1", "b2"]), made=st.booleans(), head=no_or_ids,
        head_after=no_or_ids, undo_safety=ids, undo_head=no_or_ids, chunks=chunks, **facts,
    ),
    st.builds(
        dict, op=st.just(RollbackEnded), workspace=workspaces, back=st.integers(1, 2),
        result=st.sampled_from(["done", "partial", "failed"]), late=no_or_ids, chunks=chunks, **facts,
    ),
    st.builds(dict, op=st.just(CheckpointsDeleted), workspace=workspaces, ids=st.lists(ids, max_size=3).map(tuple)),
    st.builds(dict, op=st.just(CheckpointUndeleted), workspace=workspaces, id=ids, name=st.sampled_from(NAMES)),
    st.builds(
        dict, op=st.just(CheckpointsPinned), workspace=workspaces, ids=st.lists(ids, max_size=3).map(tuple),
        pinned=st.booleans(),
    ),
    st.builds(
        dict, op=st.just(CheckpointsFoundGood), workspace=workspaces, ids=st.lists(ids, max_size=3).map(tuple),
        good=st.booleans(),
    ),
    st.builds(dict, op=st.just(CheckpointRenamed), workspace=workspaces, id=ids, name=st.sampled_from(NAMES)),
    st.builds(
        dict, op=st.just(WorkspaceConfigured), workspace=workspaces,
        values=st.dictionaries(st.sampled_from(["a", "b.c"]), st.sampled_from(["", "1", '"x"'])),
    ),
    st.builds(dict, op=st.just(Verified), workspace=workspaces, id=ids, result=st.sampled_from(["equal", "differs"])),
    *[
        st.builds(
            dict, op=st.just(SpaceFreed), freed=st.lists(ids, max_size=2).map(tuple), chunks=chunks,
            cuts=st.lists(st.integers(0, 20), max_size=3), carried_out=st.booleans(), automatic=st.booleans(),
        )
    ] * 3,
    st.builds(dict, op=st.just(StoreChecked), result=st.sampled_from(["clean", "damaged"]), read_data=st.booleans()),
    st.builds(dict, op=st.just(StoreRepaired), healed=st.integers(0, 9), chunks=chunks),
    *[
        st.builds(
            dict, op=st.just(PathsExpunged), workspace=workspaces, pattern=st.just("*.key"), chunks=chunks,
            replaced=st.permutations([id.hex() for id in IDS]).flatmap(
                lambda order: st.sampled_from([(tuple(order[:2]),), (tuple(order[:2]), tuple(order[2:]))])
            ),
        )
    ] * 2,
)  # fmt: skip
moments = st.sampled_from(["", "", "", "flush", "reopen", "rebuild"])


def _commit(store: Store, given_operation: dict[str, Any], places: Places) -> AnyOperation:
    fields = dict(given_operation)
    kind, numbers, back = fields.pop("op"), fields.pop("chunks", []), fields.pop("back", 0)
    carried_out = fields.pop("carried_out", False)
    made: list[AnyOperation] = []

    def build(state: State, line: Any) -> AnyOperation:
        if back:
            fields["begin"] = max(1, line.seq - back)
        if line.packs:
            fields["packs"] = line.packs
        if "cuts" in fields:
            fields["cuts"] = places.cuts(fields["cuts"], line.packs)
        made.append(kind(seq=line.seq, time=line.time, prev=line.prev, **fields))
        return made[0]

    with store.session() as session:
        for number in numbers:
            session.put(chunk(CHUNKS[number]), CHUNKS[number])
        store.commit(build, session)
    places.add(made[0])
    if carried_out:
        places.carry_out(made[0])
    return made[0]


@contextmanager
def _new_store() -> Iterator[tuple[Path, Store]]:
    """A store whose packs are sealed soon, at seq 1."""
    directory = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    try:
        with mock.patch("casnap.store.packs.PACK_SIZE", SMALL_PACK):
            yield directory / "store", Store.create(directory / "store", clock=Ticking(), policy=POLICY)
    finally:
        shutil.rmtree(directory)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(operations, moments), min_size=12, max_size=24))
def test_the_state_is_the_fold_of_the_lines_however_it_came_about(steps: list[tuple[dict[str, Any], str]]) -> None:
    with _new_store() as (path, store):
        rows, places = Rows(), Places(path / "packs")
        for operation, moment in [*((operation, "") for operation in FIRST), *steps]:
            rows.add(_commit(store, operation, places))
            if moment == "flush":
                store._follower._write(store._follower.tables.catalog.path)
                store._follower.load()
            elif moment == "reopen":
                store.close()
                store = open_store(path)
            elif moment == "rebuild":
                store.close()
                remove_catalogs(path)
                store = open_store(path)
        keys = [chunk(content) for content in CHUNKS.values()]
        expected = {chunk(CHUNKS[number]) for number in places.present}
        live = store.state()
        _check(live, rows)
        assert store.present(keys) == expected
        found = live.places(keys)
        assert found.keys() == expected
        lengths = {pack: length for pack, length in places.lengths.items() if length}
        assert {row.id: row.length for row in live.packs()} == lengths
        remove_catalogs(path)
        for again in (open_store(path), open_store(path)):
            _check(again.state(), rows)
            assert (again.state().seq, again.state().last_hash) == (live.seq, live.last_hash)
            assert again.state().places(keys) == found
            assert {row.id: row.length for row in again.state().packs()} == lengths
            for number in places.present:
                assert again.read(chunk(CHUNKS[number])) == CHUNKS[number]
            again.close()
