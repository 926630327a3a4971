"""catalog = fold(apply, lines): live, rebuilt, or put into SQLite at any point, the state is the same."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from casnap.model.operation import (
    AnyOperation,
    CheckpointMade,
    CheckpointRenamed,
    CheckpointsDeleted,
    CheckpointsPinned,
    CheckpointUndeleted,
    RollbackBegun,
    RollbackEnded,
    Verified,
    WorkspaceConfigured,
    WorkspaceForgotten,
    WorkspaceRegistered,
)
from casnap.store.state import State
from casnap.store.store import Store
from support.stores import POLICY, Ticking, chunk, noise, open_store, remove_catalogs

WORKSPACES = ("wa", "wb")
IDS = [bytes([number]) * 32 for number in range(3)]
NAMES = ("", "one", "two")


@dataclass
class Rows:
    """What the operations amount to, written down a second time: in plain dicts, without a word of the store's code."""

    workspaces: dict[str, dict[str, Any]] = field(default_factory=dict)
    checkpoints: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, op: AnyOperation) -> None:
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
        if isinstance(op, CheckpointUndeleted) and op.id in self.checkpoints:
            self.checkpoints[op.id] |= {"deleted": False, "deleted_at": 0, "name": op.name}
            if ws and not ws["head"] and not self.checkpoints[op.id]["safety"]:
                ws["head"] = op.id
        if isinstance(op, CheckpointsPinned):
            for id in op.ids:
                self.checkpoints.get(id, {}).update(pinned=op.pinned)
        if isinstance(op, CheckpointRenamed):
            self.checkpoints.get(op.id, {}).update(name=op.name, automatic=False)
        if isinstance(op, WorkspaceConfigured) and ws:
            for key, value in op.values.items():
                ws["settings"].pop(key, None)
                ws["settings"] |= {key: value} if value else {}
        if ws:
            ws["last_operation"] = op.seq

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
            "time": op.time,
        }  # fmt: skip

    def survivor(self, id: str) -> str:
        for _ in range(len(self.checkpoints) + 1):
            if id not in self.checkpoints:
                return ""
            if not self.checkpoints[id]["deleted"]:
                return id
            id = self.checkpoints[id]["parent"]
        return ""


def _hex(value: bytes) -> str:
    return value.hex()


def _check(state: State, rows: Rows) -> None:
    """The state answers every question as the plain rows do."""
    assert {row.id: _workspace(row) for row in state.workspaces()} == rows.workspaces
    assert [row.path for row in state.workspaces()] == sorted(ws["path"] for ws in rows.workspaces.values())
    for name in WORKSPACES:
        mine = sorted(
            (row for row in rows.checkpoints.values() if row["workspace"] == name), key=lambda row: -row["seq"]
        )
        assert [_checkpoint(row) for row in state.history(name)] == mine
        for label in NAMES:
            named = [row for row in mine if label and row["name"] == label and not row["deleted"]]
            found = state.named(name, label)
            assert (found and _checkpoint(found)) == (named[0] if named else None)
        for step in range(1, 5):
            stepped = [row for row in mine if row["step"] == step]
            found = state.stepped(name, step)
            assert (found and _checkpoint(found)) == (stepped[0] if stepped else None)
        for prefix in ("", "0", "01", "0202", "ff", "03" * 32, "zz"):
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

REGISTER = [{"op": WorkspaceRegistered, "workspace": name, "path": f"/{name}"} for name in WORKSPACES]

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
    st.builds(dict, op=st.just(CheckpointRenamed), workspace=workspaces, id=ids, name=st.sampled_from(NAMES)),
    st.builds(
        dict, op=st.just(WorkspaceConfigured), workspace=workspaces,
        values=st.dictionaries(st.sampled_from(["a", "b.c"]), st.sampled_from(["", "1", '"x"'])),
    ),
    st.builds(dict, op=st.just(Verified), workspace=workspaces, id=ids, result=st.sampled_from(["equal", "differs"])),
)  # fmt: skip
moments = st.sampled_from(["", "", "", "flush", "reopen", "rebuild"])


def _commit(store: Store, given_operation: dict[str, Any]) -> tuple[AnyOperation, list[int]]:
    fields = dict(given_operation)
    kind, numbers, back = fields.pop("op"), fields.pop("chunks", []), fields.pop("back", 0)
    made: list[AnyOperation] = []

    def build(state: State, line: Any) -> AnyOperation:
        if back:
            fields["begin"] = max(1, line.seq - back)
        if line.packs:
            fields["packs"] = line.packs
        made.append(kind(seq=line.seq, time=line.time, prev=line.prev, **fields))
        return made[0]

    with store.session() as session:
        for number in numbers:
            session.put(chunk(noise(number)), noise(number))
        store.commit(build, session)
    return made[0], numbers


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(operations, moments), min_size=12, max_size=24))
def test_the_state_is_the_fold_of_the_lines_however_it_came_about(steps: list[tuple[dict[str, Any], str]]) -> None:
    directory = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    try:
        path, rows, present = directory / "store", Rows(), set()
        store = Store.create(path, clock=Ticking(), policy=POLICY)
        for operation, moment in [*((operation, "") for operation in REGISTER), *steps]:
            made, numbers = _commit(store, operation)
            rows.add(made)
            present |= set(numbers)
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
        keys = [chunk(noise(number)) for number in range(10)]
        live = store.state()
        _check(live, rows)
        assert store.present(keys) == {chunk(noise(number)) for number in present}
        places = live.places(keys)
        remove_catalogs(path)
        for again in (open_store(path), open_store(path)):
            _check(again.state(), rows)
            assert (again.state().seq, again.state().last_hash) == (live.seq, live.last_hash)
            assert again.state().places(keys) == places
            for number in present:
                assert again.read(chunk(noise(number))) == noise(number)
            again.close()
    finally:
        shutil.rmtree(directory)
