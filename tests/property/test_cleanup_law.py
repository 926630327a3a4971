"""What a cleanup lets go, against the rule in plain Python, over random histories."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casnap.engine.cleanup import Rule, cleanup
from casnap.engine.context import Context
from casnap.model.checkpoint import Origin
from casnap.model.operation import (
    AnyOperation,
    CheckpointMade,
    CheckpointRenamed,
    CheckpointsDeleted,
    CheckpointsPinned,
    CheckpointUndeleted,
    RollbackBegun,
    RollbackEnded,
    WorkspaceRegistered,
)
from casnap.model.report import WorkspaceInfo
from casnap.store.store import Store
from support.stores import POLICY

SECOND = 10**9
_numbers = itertools.count(1)


class Clock:
    """A clock that stands still until it is set, also backwards."""

    def __init__(self) -> None:
        self.time = 10**6 * SECOND

    def now(self) -> int:
        return self.time

    def sleep(self, seconds: float) -> None:
        raise AssertionError


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Context]:
    """One store for all histories, each in a workspace of its own; nothing is forced out to the disk."""
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch:
        for sync in ("fsync", "fdatasync"):
            patch.setattr(os, sync, lambda _fd: None)
        store = Store.create(tmp_path_factory.mktemp("cleanup") / "store", clock=clock, policy=POLICY)
        yield Context(store, POLICY, clock, Origin(), "boot")
        store.close()


@dataclass
class Point:
    """A checkpoint; ``step`` 0 is a safety checkpoint, ``parent`` the place of the one that it descends from."""

    id: str
    time: int
    step: int
    name: str = ""
    parent: str = ""
    pinned: bool = False
    deleted: bool = False


@dataclass
class History:
    """What happened, told to a store and remembered in plain Python."""

    store: Store
    clock: Clock
    number: int = field(default_factory=lambda: next(_numbers))
    points: dict[str, Point] = field(default_factory=dict)
    head: str = ""
    undo: tuple[str, ...] = ()
    open: list[tuple[int, str, str, tuple[str, ...]]] = field(default_factory=list)
    steps: int = 0

    @property
    def workspace(self) -> str:
        return f"w{self.number}"

    def tell(self, kind: type[AnyOperation], **facts: object) -> int:
        def build(_state: object, line: object) -> AnyOperation:
            place = {"seq": line.seq, "time": line.time, "prev": line.prev}  # type: ignore[attr-defined]
            return kind(**place, workspace=self.workspace, **facts)  # type: ignore[arg-type, call-arg]

        return self.store.commit(build).seq

    def new_id(self) -> str:
        return f"{self.number:032x}{len(self.points):032x}"

    def live(self) -> list[Point]:
        return [point for point in self.points.values() if not point.deleted]

    def surviving(self, id: str) -> str:
        while id and self.points[id].deleted:
            id = self.points[id].parent
        return id

    def checkpoint(self, name: str, pinned: bool) -> None:
        self.steps += 1
        name = name if name not in [point.name for point in self.live()] else ""
        one = Point(self.new_id(), self.clock.time, self.steps, name, self.head, pinned)
        self.tell(
            CheckpointMade,
            id=one.id,
            step=one.step,
            name=name or f"auto-{one.step}",
            automatic=not name,
            pinned=pinned,
            parent=self.head,
        )
        self.points[one.id] = one
        self.head = one.id

    def rollback(self, target: Point, made: bool, result: str) -> None:
        """To a checkpoint with a step; it stays open where the result is empty."""
        if made or not self.head:
            safety = Point(self.new_id(), self.clock.time, 0, parent=self.head)
            self.points[safety.id] = safety
            serving = safety.id
        else:
            made, serving = False, self.head
        undo = (serving, self.head)
        begin = self.tell(
            RollbackBegun,
            verb="rollback",
            safety=serving,
            target=target.id,
            nonce=f"{len(self.points)}",
            made=serving != self.head,
            head=self.head,
            head_after=target.id,
            undo_safety=serving,
            undo_head=self.head,
        )
        self.open.append((begin, serving, target.id, undo))
        if not result:
            return
        self.tell(RollbackEnded, begin=begin, result=result)
        if result == "failed":
            self.open.pop()
        else:
            self.open, self.undo, self.head = [], undo, self.surviving(target.id)

    def pin(self, point: Point, pinned: bool) -> None:
        self.tell(CheckpointsPinned, ids=(point.id,), pinned=pinned)
        point.pinned = pinned

    def delete(self, point: Point) -> None:
        if not point.pinned:
            self.tell(CheckpointsDeleted, ids=(point.id,))
            point.deleted = True
            self.head = self.surviving(self.head)

    def undelete(self, point: Point) -> None:
        self.tell(CheckpointUndeleted, id=point.id)
        point.deleted, point.name = False, ""
        if not self.head and point.step:
            self.head = point.id

    def rename(self, point: Point, name: str) -> None:
        if point.step and name not in [other.name for other in self.live()]:
            self.tell(CheckpointRenamed, id=point.id, name=name)
            point.name = name

    def goes(self, keep: int | None, age: int | None, keep_named: bool) -> set[str]:
        """The rule, as its description has it."""
        needed = {*self.undo}
        for _, safety, target, undo in self.open:
            needed |= {safety, target, *undo}
        steps = [point for point in reversed(self.points.values()) if point.step and not point.deleted]
        gone, newer = set(), 0
        for point in steps:
            if point.pinned or point.id == self.head or point.id in needed or (keep_named and point.name):
                continue
            reasons = []
            if keep is not None:
                reasons.append(newer >= keep)
            if age is not None:
                reasons.append(point is not steps[0] and self.clock.time - point.time > age)
            if reasons and all(reasons):
                gone.add(point.id)
            newer += 1
        kept = [point.id for point in steps if point.id not in gone]
        order = list(self.points)
        for point in self.live():
            older = kept and all(order.index(point.id) < order.index(id) for id in kept)
            if not point.step and older and not point.pinned and point.id not in needed:
                gone.add(point.id)
        return gone


NAMES = st.sampled_from(["", "", "a", "b", "c"])
WHICH = st.integers(0, 30)
ACTS = st.one_of(
    st.tuples(st.just("checkpoint"), NAMES, st.sampled_from([False, False, False, True])),
    st.tuples(st.just("checkpoint"), NAMES, st.just(False)),
    st.tuples(st.just("rollback"), WHICH, st.booleans(), st.sampled_from(["done", "done", "partial", "failed", ""])),
    st.tuples(st.just("pin"), WHICH, st.booleans()),
    st.tuples(st.just("delete"), WHICH),
    st.tuples(st.just("undelete"), WHICH),
    st.tuples(st.just("rename"), WHICH, st.sampled_from(["a", "d"])),
    st.tuples(st.just("wait"), st.sampled_from([1, 5, 60, -30])),
)
RULES = st.tuples(st.none() | st.integers(0, 4), st.none() | st.sampled_from([0, 3, 20, 100]), st.booleans())


def play(history: History, act: tuple[object, ...]) -> None:
    match act:
        case ("checkpoint", str(name), bool(pinned)):
            history.checkpoint(name, pinned)
        case ("wait", int(seconds)):
            history.clock.time += seconds * SECOND
        case ("undelete", int(which)):
            if deleted := [point for point in history.points.values() if point.deleted]:
                history.undelete(deleted[which % len(deleted)])
        case ("rollback", int(which), bool(made), str(result)):
            if steps := [point for point in history.live() if point.step]:
                history.rollback(steps[which % len(steps)], made, result)
        case (str(verb), int(which), *more):
            if live := history.live():
                getattr(history, verb)(live[which % len(live)], *more)


@settings(max_examples=60)
@given(names=st.lists(NAMES, min_size=1, max_size=8), acts=st.lists(ACTS, min_size=4, max_size=16), rule=RULES)
def test_a_cleanup_lets_go_what_its_rule_says_and_a_dry_run_says_the_same(
    context: Context, names: list[str], acts: list[tuple[object, ...]], rule: tuple[int | None, int | None, bool]
) -> None:
    keep, seconds, keep_named = rule
    age = None if seconds is None else seconds * SECOND
    store, clock = context.store, context.clock
    assert isinstance(clock, Clock)
    history = History(store, clock)
    here = WorkspaceInfo(history.workspace, "/w")
    history.tell(WorkspaceRegistered, path="/w")
    for act in [*(("checkpoint", name, False) for name in names), *acts]:
        play(history, act)
    expected = history.goes(keep, age, keep_named)
    wanted = Rule(keep, age, keep_named)

    ahead = cleanup(context, here, wanted, dry_run=True)
    assert {one.id for one in ahead.deleted} == expected
    assert (ahead.dry_run, any(one.deleted for one in ahead.deleted)) == (True, False)
    before = store.state().seq
    done = cleanup(context, here, wanted)
    assert [one.id for one in done.deleted] == [one.id for one in ahead.deleted]
    assert (done.kept, done.rule, done.dry_run) == (ahead.kept, ahead.rule, False)
    assert store.state().seq == before + bool(expected)

    state = store.state()
    row = state.workspace(here.id)
    assert row is not None
    assert row.head.hex() == history.head
    there = {one.id.hex(): one for one in state.history(here.id)}
    assert {id for id, one in there.items() if one.deleted} == expected | {
        point.id for point in history.points.values() if point.deleted
    }
    for one in done.deleted:
        assert one.deleted
        assert one.parent == (state.present_parent(there[one.id]).hex() or None)
        assert one.name is None or state.named(here.id, one.name) is None
    assert cleanup(context, here, wanted).deleted == ()
