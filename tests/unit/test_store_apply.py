"""What each operation does to a workspace and its checkpoints, one example each."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from casnap.codec.packs import IndexEntry
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.operation import (
    AnyOperation,
    CheckpointMade,
    CheckpointsDeleted,
    CheckpointsFoundGood,
    CheckpointsPinned,
    CheckpointUndeleted,
    OfStore,
    PackCut,
    PackRange,
    PathsExpunged,
    RollbackBegun,
    RollbackEnded,
    SpaceFreed,
    StoreChecked,
    StoreCreated,
    StoreRepaired,
    Verified,
    WorkspaceForgotten,
    WorkspaceRegistered,
)
from casnap.store.apply import apply, surviving_ancestor
from casnap.store.rows import CheckpointRow, Mark, OpenRollback, PackRow, Place, UndoTarget, Upkeep, WorkspaceRow
from casnap.store.tables import Tables

A, B, C, D, SAFETY, LATE = (f"{number:02x}" * 32 for number in range(1, 7))
A2, B2, C2, SAFETY2 = (f"{number:02x}" * 32 for number in range(0xA1, 0xA5))
P, Q = "ab" * 16, "cd" * 16
TIME = 1000
KEYS = [ObjectKey(ObjectKind.CHUNK, bytes([number]) * 32) for number in range(4)]


class Log:
    """Applies operations one after the other."""

    def __init__(self) -> None:
        self.entries: dict[PackRange, list[IndexEntry]] = {}
        self.tables = Tables(None, lambda written: self.entries.get(written, []))
        self.seq = 0

    def do(self, kind: Any, **fields: Any) -> AnyOperation:
        self.seq += 1
        if not issubclass(kind, OfStore):
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

    def write(self, pack: str, start: int, *numbers: int) -> PackRange:
        """A commit's range in a pack, 100 bytes for each of these chunks, and 100 for its index."""
        index = start + 100 * len(numbers)
        written = PackRange(pack, start, index + 100, index)
        self.entries[written] = [
            IndexEntry(KEYS[number].kind, KEYS[number].id, start + 100 * place) for place, number in enumerate(numbers)
        ]
        return written

    def places(self, number: int) -> list[Place]:
        return self.tables.index.places([KEYS[number]]).get(KEYS[number], [])


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
    undo = UndoTarget(bytes.fromhex(SAFETY), bytes.fromhex(C), bytes.fromhex(A), (b"a\xff",))
    assert log.head == C
    assert log.workspace.open == (
        OpenRollback(
            begin=6, time=TIME + 6, verb="rollback", safety=bytes.fromhex(SAFETY), target=bytes.fromhex(A), nonce="n1",
            head_after=bytes.fromhex(A), undo=undo, paths=(b"a\xff",),
        ),
    )  # fmt: skip
    safety = log.checkpoint(SAFETY)
    assert (safety.safety, safety.step, safety.name, safety.parent.hex()) == (True, 0, "", C)
    assert log.workspace.last_step == 3
    log.do(RollbackEnded, begin=begun.seq, result="done")
    assert log.head == A
    assert log.workspace.undo == undo
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
        (PathsExpunged, {"pattern": "p", "replaced": ((D, A2), (LATE, B2))}),
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


# What keeps a store in order: gc, check, repair, expunge.


def test_what_is_freed_is_listed_as_deleted_and_does_not_come_back(log: Log) -> None:
    log.do(CheckpointsDeleted, ids=(B,))
    log.do(SpaceFreed, freed=(B, A, "ff" * 32))
    b, a = log.checkpoint(B), log.checkpoint(A)
    assert (b.deleted, b.deleted_at, b.freed, b.name, b.step) == (True, TIME + 6, True, "c2", 2)
    assert (a.deleted, a.deleted_at, a.freed) == (True, TIME + 7, True)
    log.do(CheckpointUndeleted, id=B, name="c2")
    assert log.checkpoint(B) == b
    assert (log.head, log.checkpoint(C).freed) == (C, False)


def test_the_name_of_what_was_freed_may_be_given_again(log: Log) -> None:
    log.do(CheckpointsDeleted, ids=(B,))
    log.do(SpaceFreed, freed=(B,))
    log.do(CheckpointMade, id=D, step=4, name="c2")
    assert [(log.checkpoint(id).name, log.checkpoint(id).deleted) for id in (B, D)] == [("c2", True), ("c2", False)]


def test_a_checkpoint_that_is_made_once_more_is_not_freed(log: Log) -> None:
    log.do(CheckpointsDeleted, ids=(B,))
    log.do(SpaceFreed, freed=(B,))
    log.do(CheckpointMade, id=B, step=4)  # an import can make the very same one again
    assert (log.checkpoint(B).freed, log.checkpoint(B).deleted) == (False, False)


def test_a_dropped_workspace_leads_to_nothing_that_was_freed(log: Log) -> None:
    begun = _begin(log)
    log.do(RollbackEnded, begin=begun.seq, result="done")
    _begin(log, safety=LATE, undo_safety=LATE, nonce="n2")
    log.do(WorkspaceForgotten, drop=True)
    assert (log.head, log.workspace.undo is None, len(log.workspace.open)) == (A, False, 1)
    log.do(SpaceFreed, freed=(A, B, C, SAFETY, LATE))
    assert (log.head, log.workspace.undo, log.workspace.open) == ("", None, ())
    log.do(WorkspaceRegistered, path="/again")
    assert (log.head, log.workspace.last_step) == ("", 3)


def test_freeing_leaves_head_undo_and_what_is_open_where_their_checkpoints_stay(log: Log) -> None:
    begun = _begin(log)
    log.do(RollbackEnded, begin=begun.seq, result="done")
    _begin(log, safety=LATE, undo_safety=LATE, nonce="n2")
    before = log.workspace
    log.do(CheckpointsDeleted, ids=(B,))
    log.do(SpaceFreed, freed=(B,))
    after = log.workspace
    assert (after.head, after.undo, after.open) == (before.head, before.undo, before.open)


def test_a_pack_is_cut_where_the_line_says_or_removed(log: Log) -> None:
    log.do(CheckpointMade, id=D, step=4, packs=(log.write(P, 0, 0), log.write(Q, 0, 1)))
    log.do(CheckpointMade, id=D, step=5, packs=(log.write(P, 200, 1, 2),))
    assert [(place.pack, place.offset) for place in log.places(1)] == [(P, 200), (Q, 0)]
    log.do(SpaceFreed, cuts=(PackCut(P, 200), PackCut(Q, 0)), packs=(log.write("ef" * 16, 0, 3),))
    rows = log.tables.packs.select("1", (), lambda _: True)
    assert {row.id: row.length for row in rows} == {P: 200, "ef" * 16: 200}
    assert [log.places(number) for number in range(4)] == [
        [Place(P, 0, -1, 6)],
        [],
        [],
        [Place("ef" * 16, 0, -1, 8)],
    ]


@pytest.mark.parametrize("looked", [False, True])
def test_a_cut_takes_away_the_very_byte_that_it_names_and_none_before_it(log: Log, looked: bool) -> None:
    log.do(CheckpointMade, id=D, step=4, packs=(log.write(P, 0, 0, 1, 2),))
    if looked:
        assert log.places(1)
    log.do(SpaceFreed, cuts=(PackCut(P, 100),))
    assert [len(log.places(number)) for number in range(3)] == [1, 0, 0]


def test_a_cut_leaves_what_its_own_line_and_later_ones_write(log: Log) -> None:
    log.do(CheckpointMade, id=D, step=4, packs=(log.write(P, 0, 0), log.write(Q, 0, 1)))
    log.do(SpaceFreed, cuts=(PackCut(P, 0), PackCut(Q, 0)), packs=(log.write(P, 200, 2),))
    assert [len(log.places(number)) for number in range(3)] == [0, 0, 1]
    log.do(StoreRepaired, healed=1, packs=(log.write(Q, 0, 1),))  # the file had stayed, and was taken over once more
    assert log.places(1) == [Place(Q, 0, -1, 8)]
    row = log.tables.packs.get(Q)
    assert row is not None
    assert row.length == 200


def test_what_a_cut_took_is_found_where_it_lies_besides(log: Log) -> None:
    log.do(CheckpointMade, id=D, step=4, packs=(log.write(P, 0, 0), log.write(Q, 0, 0)))
    assert len(log.places(0)) == 2
    log.do(SpaceFreed, cuts=(PackCut(Q, 0),))
    assert log.places(0) == [Place(P, 0, -1, 6)]


def test_the_tables_know_when_the_store_was_last_looked_after(log: Log) -> None:
    assert log.tables.upkeep == Upkeep(0, 0, 0, True)
    log.do(StoreChecked, result="damaged", found=2)
    assert log.tables.upkeep == Upkeep(0, 0, TIME + 6, False)
    log.do(SpaceFreed, automatic=True)
    assert log.tables.upkeep == Upkeep(7, TIME + 7, TIME + 6, False)
    log.do(StoreRepaired, healed=1)
    log.do(StoreChecked, result="clean", read_data=True)
    assert log.tables.upkeep == Upkeep(7, TIME + 7, TIME + 9, True)
    assert log.workspace.last_operation == 5


def test_what_took_another_s_place_has_all_that_it_had_and_the_other_is_freed(log: Log) -> None:
    log.do(CheckpointsPinned, ids=(B,))
    before = log.checkpoint(B)
    log.do(PathsExpunged, pattern="*.key", replaced=((A, A2), (B, B2), (C, C2)))
    new, old = log.checkpoint(B2), log.checkpoint(B)
    assert new == replace(before, id=bytes.fromhex(B2), parent=bytes.fromhex(A2))
    assert (new.step, new.name, new.pinned, new.seq) == (2, "c2", True, 4)
    assert (old.deleted, old.deleted_at, old.freed, old.name) == (True, TIME + 7, True, "")
    assert (log.checkpoint(A2).parent, log.checkpoint(C2).parent.hex()) == (b"", B2)
    assert (log.head, log.workspace.last_step, log.workspace.last_operation) == (C2, 3, 7)


def test_what_was_found_good_is_so_until_a_line_takes_it_back_whatever_else_befalls_it(log: Log) -> None:
    log.do(CheckpointsFoundGood, ids=(B, D))  # there is no D, and no line is refused
    assert [log.checkpoint(id).good for id in (A, B, C)] == [False, True, False]
    log.do(CheckpointsDeleted, ids=(B,))
    assert log.checkpoint(B).good
    log.do(CheckpointUndeleted, id=B)
    log.do(PathsExpunged, pattern="*.key", replaced=((B, B2), (C, C2)))
    assert [log.checkpoint(id).good for id in (B2, C2)] == [True, False]
    log.do(CheckpointsFoundGood, ids=(B2,), good=False)
    assert not log.checkpoint(B2).good
    assert log.workspace.last_operation == 10


def test_what_was_deleted_stays_deleted_and_can_come_back_without_what_was_expunged(log: Log) -> None:
    log.do(CheckpointsDeleted, ids=(B,))
    log.do(PathsExpunged, pattern="*.key", replaced=((B, B2), (C, C2)))
    assert (log.checkpoint(B2).deleted, log.checkpoint(B2).deleted_at) == (True, TIME + 6)
    log.do(CheckpointUndeleted, id=B, name="c2")
    log.do(CheckpointUndeleted, id=B2, name="c2")
    assert (log.checkpoint(B).deleted, log.checkpoint(B2).deleted, log.checkpoint(B2).name) == (True, False, "c2")


def test_undo_and_what_is_open_lead_to_what_took_the_place(log: Log) -> None:
    begun = _begin(log)
    log.do(RollbackEnded, begin=begun.seq, result="done")
    _begin(log, safety=LATE, made=False, target=B, head_after=B, undo_safety=SAFETY, undo_head=C, nonce="n2")
    log.do(PathsExpunged, pattern="*.key", replaced=((A, A2), (B, B2), (C, C2), (SAFETY, SAFETY2)))
    assert log.head == A2
    assert log.workspace.undo == UndoTarget(bytes.fromhex(SAFETY2), bytes.fromhex(C2), bytes.fromhex(A2))
    (still,) = log.workspace.open
    assert [id.hex() for id in (still.safety, still.target, still.head_after)] == [LATE, B2, B2]
    assert still.undo == UndoTarget(bytes.fromhex(SAFETY2), bytes.fromhex(C2), bytes.fromhex(B2))
    log.do(RollbackEnded, begin=still.begin, result="done")
    assert log.head == B2


def test_what_is_left_as_it_is_leads_to_what_took_its_parent_s_place(log: Log) -> None:
    log.do(CheckpointsDeleted, ids=(B,))
    log.do(SpaceFreed, freed=(B,))  # it cannot be read any more, so nothing takes its place
    log.do(PathsExpunged, pattern="*.key", replaced=((A, A2),))  # the first of two lines
    assert surviving_ancestor(log.tables, log.checkpoint(C).parent).hex() == A2
    log.do(PathsExpunged, pattern="*.key", replaced=((C, C2),))
    assert log.checkpoint(C2).parent.hex() == B
    assert surviving_ancestor(log.tables, log.checkpoint(C2).parent).hex() == A2
