"""What a cleanup lets go, against the rule in plain Python, over random histories."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

from casnap.codec.checkpoints import encode_checkpoint
from casnap.codec.trees import build_tree
from casnap.engine.cleanup import Rule, cleanup
from casnap.engine.context import Context
from casnap.model.checkpoint import CheckpointObject, Origin
from casnap.model.ids import ObjectKey, ObjectKind
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
from casnap.model.tree import Directory, OmitReason, Omitted
from casnap.store.store import Store
from support.codec_strategies import file
from support.stores import POLICY

SECOND = 10**9
_numbers = itertools.count(1)
EMPTY = build_tree(())
LEFT_OUT = build_tree((Omitted(b"node_modules", OmitReason.IGNORED),))
WITH_A_FILE = build_tree((file(b"f"),))


def named(checkpoint: bytes) -> bytes:
    """The id of a checkpoint object, as docs/format/ids.md has it."""
    return blake3(checkpoint, derive_key_context="casnap 2026 store format 1 checkpoint").digest()


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
    """A checkpoint; ``step`` 0 is a safety checkpoint, ``parent`` the place of the one that it descends from.

    ``holds`` says what it recorded; of one that is "lost" nobody can tell, so it counts as full.
    """

    id: str
    time: int
    step: int
    holds: str
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

    def tell(self, kind: type[AnyOperation], recorded: bytes = b"", **facts: object) -> int:
        """Commit an operation, and with it the object of the checkpoint that it makes."""

        def build(_state: object, line: object) -> AnyOperation:
            place = {"seq": line.seq, "time": line.time, "prev": line.prev}  # type: ignore[attr-defined]
            if recorded:
                place["packs"] = line.packs  # type: ignore[attr-defined]
            return kind(**place, workspace=self.workspace, **facts)  # type: ignore[arg-type, call-arg]

        if not recorded:
            return self.store.commit(build).seq
        with self.store.session() as session:
            session.put(ObjectKey(ObjectKind.CHECKPOINT, named(recorded)), recorded)
            for tree in (EMPTY, WITH_A_FILE, LEFT_OUT):
                for key, data in tree.objects:
                    session.put(key, data)
            return self.store.commit(build, session).seq

    def recorded(self, holds: str) -> bytes:
        """The object of a new checkpoint."""
        tree = {"nothing": EMPTY, "a file": WITH_A_FILE, "lost": WITH_A_FILE, "left out": LEFT_OUT}[holds]
        root = Directory(b"", 0o755, 0, 0, 0, 0, (), tree.id, bytes(32))
        message = f"{len(self.points)}"
        return encode_checkpoint(
            CheckpointObject(self.workspace, root, b"", message, "{}", 0, 0, Origin(), None, (), ())
        )[1]

    def live(self) -> list[Point]:
        return [point for point in self.points.values() if not point.deleted]

    def surviving(self, id: str) -> str:
        while id and self.points[id].deleted:
            id = self.points[id].parent
        return id

    def checkpoint(self, name: str, pinned: bool, holds: str) -> None:
        self.steps += 1
        name = name if name not in [point.name for point in self.live()] else ""
        made = self.recorded(holds)
        one = Point(named(made).hex(), self.clock.time, self.steps, holds, name, self.head, pinned)
        self.tell(
            CheckpointMade,
            b"" if holds == "lost" else made,
            id=one.id,
            step=one.step,
            name=name or f"auto-{one.step}",
            automatic=not name,
            pinned=pinned,
            parent=self.head,
        )
        self.points[one.id] = one
        self.head = one.id

    def rollback(self, target: Point, made: bool, result: str, holds: str) -> None:
        """To a checkpoint with a step; it stays open where the result is empty."""
        recorded = b""
        if made or not self.head:
            recorded = self.recorded(holds)
            safety = Point(named(recorded).hex(), self.clock.time, 0, holds, parent=self.head)
            self.points[safety.id] = safety
            serving = safety.id
        else:
            made, serving = False, self.head
        undo = (serving, self.head)
        begin = self.tell(
            RollbackBegun,
            b"" if holds == "lost" else recorded,
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
        """What a cleanup takes: what the rule says, unless only empty ones were left; then all but the newest full."""
        gone = self.ruled_out(keep, age, keep_named, spared="")
        full = [point.id for point in self.live() if point.holds in ("a file", "lost")]
        if gone.issuperset(full) and full:
            gone = self.ruled_out(keep, age, keep_named, spared=full[-1])
        return gone

    def ruled_out(self, keep: int | None, age: int | None, keep_named: bool, *, spared: str) -> set[str]:
        """The rule, as its description has it; ``spared`` stays like head."""
        needed = {*self.undo, spared}
        for _, safety, target, undo in self.open:
            needed |= {safety, target, *undo}
        steps = [point for point in reversed(self.points.values()) if point.step and not point.deleted]
        gone = set()
        for newer, point in enumerate(steps):
            if point.pinned or point.id == self.head or point.id in needed or (keep_named and point.name):
                continue
            reasons = []
            if keep is not None:
                reasons.append(newer >= keep)
            if age is not None:
                reasons.append(point is not steps[0] and self.clock.time - point.time > age)
            if reasons and all(reasons):
                gone.add(point.id)
        kept = [point.id for point in steps if point.id not in gone]
        order = list(self.points)
        for point in self.live():
            older = kept and all(order.index(point.id) < order.index(id) for id in kept)
            if not point.step and older and not point.pinned and point.id not in needed:
                gone.add(point.id)
        return gone


NAMES = st.sampled_from(["", "", "a", "b", "c"])
WHICH = st.integers(0, 30)
HOLDS = st.sampled_from(["nothing", "nothing", "nothing", "left out", "a file", "lost"])
RESULTS = st.sampled_from(["done", "done", "partial", "failed", ""])
ACTS = st.one_of(
    st.tuples(st.just("checkpoint"), NAMES, st.sampled_from([False, False, False, True]), HOLDS),
    st.tuples(st.just("checkpoint"), NAMES, st.just(False), HOLDS),
    st.tuples(st.just("rollback"), WHICH, st.booleans(), RESULTS, HOLDS),
    st.tuples(st.just("pin"), WHICH, st.booleans()),
    st.tuples(st.just("delete"), WHICH),
    st.tuples(st.just("undelete"), WHICH),
    st.tuples(st.just("rename"), WHICH, st.sampled_from(["a", "d"])),
    st.tuples(st.just("wait"), st.sampled_from([1, 5, 60, -30])),
)
AnyRule = tuple[int | None, int | None, bool]
RULES = st.tuples(st.none() | st.integers(0, 4), st.none() | st.sampled_from([0, 3, 20, 100]), st.booleans())


def play(history: History, act: tuple[object, ...]) -> None:
    match act:
        case ("checkpoint", str(name), bool(pinned), str(holds)):
            history.checkpoint(name, pinned, holds)
        case ("wait", int(seconds)):
            history.clock.time += seconds * SECOND
        case ("undelete", int(which)):
            if deleted := [point for point in history.points.values() if point.deleted]:
                history.undelete(deleted[which % len(deleted)])
        case ("rollback", int(which), bool(made), str(result), str(holds)):
            if steps := [point for point in history.live() if point.step]:
                history.rollback(steps[which % len(steps)], made, result, holds)
        case (str(verb), int(which), *more):
            if live := history.live():
                getattr(history, verb)(live[which % len(live)], *more)


MADE = st.tuples(NAMES, HOLDS)
FULL = st.tuples(NAMES, st.sampled_from(["a file", "lost"]))
EMPTIED = st.tuples(NAMES, st.sampled_from(["nothing", "left out"]))


@settings(max_examples=60)
@given(names=st.lists(MADE, min_size=1, max_size=8), acts=st.lists(ACTS, min_size=4, max_size=16), rule=RULES)
def test_a_cleanup_lets_go_what_its_rule_says_and_a_dry_run_says_the_same(
    context: Context, names: list[tuple[str, str]], acts: list[tuple[object, ...]], rule: AnyRule
) -> None:
    check(context, [*made(names), *acts], rule)


@settings(max_examples=60)
@given(
    full=st.lists(FULL, min_size=1, max_size=3),
    emptied=st.lists(EMPTIED, min_size=2, max_size=8),
    acts=st.lists(ACTS, max_size=3),
    rule=RULES,
)
def test_a_run_of_empty_trees_never_pushes_out_all_that_hold_anything(
    context: Context,
    full: list[tuple[str, str]],
    emptied: list[tuple[str, str]],
    acts: list[tuple[object, ...]],
    rule: AnyRule,
) -> None:
    check(context, [*made(full), *made(emptied), *acts], rule)


def made(points: list[tuple[str, str]]) -> list[tuple[object, ...]]:
    return [("checkpoint", name, False, holds) for name, holds in points]


def check(context: Context, acts: list[tuple[object, ...]], rule: AnyRule) -> None:
    """Play a history, clean up by the rule, and compare what went with what the rule in plain Python says."""
    keep, seconds, keep_named = rule
    age = None if seconds is None else seconds * SECOND
    store, clock = context.store, context.clock
    assert isinstance(clock, Clock)
    history = History(store, clock)
    here = WorkspaceInfo(history.workspace, "/w")
    history.tell(WorkspaceRegistered, path="/w")
    for act in acts:
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
    full = [point.id for point in history.points.values() if point.holds in ("a file", "lost") and not point.deleted]
    assert not full or any(not there[id].deleted for id in full)
    assert cleanup(context, here, wanted).deleted == ()
