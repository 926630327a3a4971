"""What each operation does to a workspace and its checkpoints, one example each."""

from __future__ import annotations

from typing import Any

import pytest

from casnap.model.operation import (
    AnyOperation,
    CheckpointMade,
    CheckpointsDeleted,
    CheckpointUndeleted,
    PackRange,
    RollbackBegun,
    RollbackEnded,
    StoreCreated,
    Verified,
    WorkspaceForgotten,
    WorkspaceRegistered,
)
from casnap.store.apply import apply, surviving_ancestor
from casnap.store.rows import CheckpointRow, Mark, OpenRollback, PackRow, UndoTarget, WorkspaceRow
from casnap.store.tables import Tables

A, B, C, D, SAFETY, LATE = (f"{number:02x}" * 32 for number in range(1, 7))
TIME = 1000


class Log:
    """Applies operations one after the other."""

    def __init__(self) -> None:
        self.tables = Tables(None, lambda _: ())
        self.seq = 0

    def do(self, kind: Any, **fields: Any) -> AnyOperation:
        self.seq += 1
        if kind is not StoreCreated:
            fields.setdefault("workspace", "w")
        operation: AnyOperation = kind(seq=self.seq, time=TIME + self.seq, prev="0" * 64, **fields)
        apply(self.tables, operation, Mark(self.seq, "0" * 64, 1, self.seq * 100))
        return operation

    @property
    def workspace(self) -> WorkspaceRow:
        row = self.tables.workspaces.get("w")
        assert row is not None
        return row

    @property
    def head(self) -> str:
        return self.workspace.head.hex()

    def checkpoint(self, id: str) -> CheckpointRow:
        row = self.tables.checkpoints.get(bytes.fromhex(id))
        assert row is not None
        return row


@pytest.fixture
def log() -> Log:
    """A workspace with A, B and C, each the parent of the next; seq 5."""
    log = Log()
    log.do(StoreCreated, format={})
    log.do(WorkspaceRegistered, path="/some\\\\dir\\xff")
    for step, (id, parent) in enumerate([(A, ""), (B, A), (C, B)], 1):
        log.do(
            CheckpointMade, id=id, step=step, name=f"c{step}", parent=parent, counts=(1, 2, 3), skipped=4, new_bytes=5
        )
    return log


def _begin(log: Log, **fields: Any) -> AnyOperation:
    facts = {"verb": "rollback", "safety": SAFETY, "target": A, "nonce": "n1", "undo_safety": SAFETY}
    return log.do(RollbackBegun, **facts | {"head": C, "head_after": A, "undo_head": C, "made": True} | fields)


def test_registering_unescapes_the_path_and_attaching_again_keeps_the_history(log: Log) -> None:
    assert log.workspace.path == b"/some\\dir\xff"
    log.do(WorkspaceForgotten, drop=True)
    assert (log.workspace.forgotten, log.workspace.dropped) == (True, True)
    log.do(WorkspaceRegistered, path="/elsewhere")
    assert log.workspace == WorkspaceRow("w", b"/elsewhere", False, False, bytes.fromhex(C), 3, None, (), log.seq)


def test_a_checkpoint_becomes_head_and_takes_its_step(log: Log) -> None:
    assert (log.head, log.workspace.last_step) == (C, 3)
    assert log.checkpoint(C) == CheckpointRow(
        id=bytes.fromhex(C), workspace="w", seq=5, step=3, name="c3", automatic=False, safety=False,
        parent=bytes.fromhex(B), counts=(1, 2, 3), skipped=4, new_bytes=5, pinned=False, deleted=False, deleted_at=0,
        time=TIME + 5,
    )  # fmt: skip


def test_the_last_step_never_goes_back(log: Log) -> None:
    log.do(CheckpointMade, id=D, step=2)
    assert log.workspace.last_step == 3


def test_a_rollback_moves_head_only_when_it_ends_well(log: Log) -> None:
    begun = _begin(log, paths=("a\\xff",))
    assert log.head == C
    assert log.workspace.open == (
        OpenRollback(
            begin=6, time=TIME + 6, verb="rollback", safety=bytes.fromhex(SAFETY), target=bytes.fromhex(A), nonce="n1",
            head_after=bytes.fromhex(A), undo=UndoTarget(bytes.fromhex(SAFETY), bytes.fromhex(C)), paths=(b"a\xff",),
        ),
    )  # fmt: skip
    safety = log.checkpoint(SAFETY)
    assert (safety.safety, safety.step, safety.name, safety.parent.hex()) == (True, 0, "", C)
    assert log.workspace.last_step == 3
    log.do(RollbackEnded, begin=begun.seq, result="done")
    assert log.head == A
    assert log.workspace.undo == UndoTarget(bytes.fromhex(SAFETY), bytes.fromhex(C))
    assert log.workspace.open == ()


@pytest.mark.parametrize(("result", "head"), [("done", A), ("partial", A), ("failed", C)])
def test_a_partial_rollback_counts_and_a_failed_one_does_not(log: Log, result: str, head: str) -> None:
    begun = _begin(log)
    log.do(RollbackEnded, begin=begun.seq, result=result)
    assert log.head == head
    assert (log.workspace.undo is None) == (result == "failed")
    assert log.workspace.open == ()


def test_a_target_that_was_deleted_meanwhile_does_not_become_head(log: Log) -> None:
    begun = _begin(log, target=B, head_after=B)
    log.do(CheckpointsDeleted, ids=(B,))
    log.do(RollbackEnded, begin=begun.seq, result="done")
    assert log.head == A


def test_a_checkpoint_that_serves_as_safety_is_not_made_again(log: Log) -> None:
    _begin(log, made=False, safety=C, undo_safety=C)
    assert log.tables.checkpoints.get(bytes.fromhex(SAFETY)) is None
    assert log.checkpoint(C).step == 3


def test_an_end_closes_the_rollbacks_before_it_and_none_after_it(log: Log) -> None:
    begun = [_begin(log, nonce=f"n{number}", made=False).seq for number in range(3)]
    log.do(RollbackEnded, begin=begun[1], result="done")
    assert [one.begin for one in log.workspace.open] == [begun[2]]


def test_what_others_wrote_meanwhile_becomes_a_safety_checkpoint_of_what_was_head_then(log: Log) -> None:
    begun = _begin(log)
    log.do(RollbackEnded, begin=begun.seq, result="partial", late=LATE, counts=(0, 1, 0))
    late = log.checkpoint(LATE)
    assert (late.safety, late.step, late.parent.hex(), late.counts, late.seq) == (True, 0, C, (0, 1, 0), 7)
    assert log.head == A


def test_when_head_is_deleted_its_nearest_survivor_is_head(log: Log) -> None:
    log.do(CheckpointsDeleted, ids=(B,))
    assert log.head == C
    assert (log.checkpoint(B).deleted, log.checkpoint(B).deleted_at) == (True, TIME + 6)
    log.do(CheckpointsDeleted, ids=(C,))
    assert log.head == A
    log.do(CheckpointsDeleted, ids=(A,))
    assert log.head == ""


def test_an_undeleted_checkpoint_comes_back_under_the_name_that_the_line_gives_it(log: Log) -> None:
    log.do(CheckpointsDeleted, ids=(B, C))
    log.do(CheckpointUndeleted, id=B, name="")
    assert (log.checkpoint(B).deleted, log.checkpoint(B).deleted_at, log.checkpoint(B).name) == (False, 0, "")
    assert log.head == A
    assert surviving_ancestor(log.tables, log.checkpoint(C).parent).hex() == B


def test_verifying_changes_nothing_but_when_something_last_happened(log: Log) -> None:
    before = log.workspace
    log.do(Verified, id=C, result="equal")
    assert (before.last_operation, log.workspace.last_operation) == (5, 6)
    assert log.workspace.head == before.head


def test_a_pack_grows_by_what_is_committed_to_it(log: Log) -> None:
    log.do(CheckpointMade, id=D, step=4, packs=(PackRange("ab" * 16, 0, 1000, 904),))
    log.do(Verified, id=D, result="equal")
    log.do(
        CheckpointMade, id=D, step=5, packs=(PackRange("ab" * 16, 1000, 2000, 1936), PackRange("cd" * 16, 0, 80, 64))
    )
    rows = log.tables.packs.select("1", (), lambda _: True)
    assert sorted(rows, key=lambda row: row.id) == [PackRow("ab" * 16, 2000, 5), PackRow("cd" * 16, 80, 0)]


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (WorkspaceForgotten, {}),
        (CheckpointMade, {"id": D, "step": 1}),
        (RollbackEnded, {"begin": 1, "result": "done", "late": LATE}),
        (CheckpointsDeleted, {"ids": (D, A)}),
        (CheckpointUndeleted, {"id": D}),
        (Verified, {"id": D, "result": "equal"}),
    ],
)
def test_no_line_is_refused_whatever_it_refers_to(log: Log, kind: Any, fields: dict[str, Any]) -> None:
    log.do(kind, workspace="unknown", **fields)
    assert log.tables.workspaces.get("unknown") is None
    log.do(kind, **fields)
    assert log.workspace.last_operation == log.seq


def test_parents_that_go_round_in_a_circle_have_no_survivor(log: Log) -> None:
    log.do(CheckpointMade, id=A, step=1, parent=B)
    log.do(CheckpointsDeleted, ids=(A, B))
    assert surviving_ancestor(log.tables, bytes.fromhex(B)) == b""
    assert log.head == ""
