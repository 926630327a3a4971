"""``cleanup``: what goes, what never does, and what is said about it afterwards."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from casnap import CheckpointManager, NotFound, Refused, Usage
from casnap.engine.cleanup import IDS_IN_LINE, NAMES_DO_NOT_PROTECT, Rule, cleanup, rule_of
from casnap.engine.context import Context
from casnap.engine.history import load_object
from casnap.model.age import age_text, parse_age
from casnap.model.operation import AnyOperation, CheckpointMade, CheckpointsDeleted
from casnap.model.policy import Policy, Retention
from casnap.model.report import WorkspaceInfo
from casnap.settings import load_settings, open_context, resolve_workspace
from casnap.store.state import State
from casnap.store.store import Commit
from support.oracle import snapshot

DAY = 86_400 * 10**9


@pytest.fixture
def engine(workspace: Path, manager: CheckpointManager) -> Iterator[tuple[Context, WorkspaceInfo]]:
    """What the manager uses, for what it does not offer."""
    manager.create("c1")
    settings = load_settings()
    context = open_context(settings)
    yield context, resolve_workspace(settings, context, str(workspace))
    context.store.close()


def steps(manager: CheckpointManager) -> list[int | None]:
    return [checkpoint.step for checkpoint in manager.list()]


def make(manager: CheckpointManager, workspace: Path, *names: str | None) -> None:
    for name in names:
        file = workspace / "f"
        file.write_text(f"{file.read_text()}{name}\n" if file.exists() else f"{name}\n")
        manager.create(name)


def test_the_newest_that_are_kept_are_all_that_stay(workspace: Path, manager: CheckpointManager) -> None:
    make(manager, workspace, *[None] * 10)
    report = manager.clean(keep=3)
    assert [checkpoint.step for checkpoint in report.deleted] == [7, 6, 5, 4, 3, 2, 1]
    assert (report.kept, steps(manager)) == (3, [10, 9, 8])


def test_head_and_pinned_ones_count_among_the_newest_and_stay_also_where_they_are_older(
    workspace: Path, manager: CheckpointManager
) -> None:
    make(manager, workspace, None)
    manager.create("old", pin=True)
    make(manager, workspace, None, None)
    manager.create("young", pin=True)
    make(manager, workspace, None)
    report = manager.clean(keep=2)  # head and the younger pinned one are the two
    assert [checkpoint.step for checkpoint in report.deleted] == [4, 3, 1]
    assert (report.kept, report.dry_run, report.rule) == (3, False, "keep 2")
    assert steps(manager) == [6, 5, 2]
    make(manager, workspace, None, None, None)
    manager.rollback(6)  # now head is older than the newest two
    assert [checkpoint.step for checkpoint in manager.clean(keep=2).deleted] == [7]
    assert steps(manager) == [9, 8, 6, 5, 2]
    assert manager.clean(keep=0).kept == 4
    assert steps(manager) == [9, 6, 5, 2]  # undo leads to 9


def test_what_undo_leads_to_counts_among_the_newest_and_stays_also_where_it_is_older(
    workspace: Path, manager: CheckpointManager
) -> None:
    make(manager, workspace, "c1", "c2", "c3", "c4")
    here = snapshot(workspace)
    assert manager.rollback("c1").safety == manager.show("c4")
    manager.clean(keep=1)
    assert steps(manager) == [4, 1]  # c1 is head, and c4 equals the tree from before: it serves as the way back
    make(manager, workspace, "c5", "c6")
    manager.clean(keep=1)
    assert steps(manager) == [6, 4]
    manager.undo()
    assert snapshot(workspace) == here
    assert manager.show().name == "c4"


def test_safety_checkpoints_go_with_what_is_newer_than_they(workspace: Path, manager: CheckpointManager) -> None:
    make(manager, workspace, "c1")
    for text in ("dirty", "dirtier"):
        (workspace / "f").write_text(text)
        manager.rollback()
    make(manager, workspace, "c2")
    (workspace / "f").write_text("dirtiest")
    manager.rollback()
    make(manager, workspace, "c3", "c4")
    first, second, third = (found for found in reversed(manager.list(safety=True)) if found.safety)
    report = manager.clean(keep=1)
    assert [checkpoint.id for checkpoint in report.deleted] == [
        deleted_id(manager, 3),
        second.id,
        first.id,
        deleted_id(manager, 1),
    ]
    assert steps(manager) == [4, 2]  # undo leads to c2 as head, and to what is newer than c2
    assert [found.id for found in manager.list(safety=True) if found.safety] == [third.id]
    manager.undo()
    assert (workspace / "f").read_text() == "dirtiest"


def test_the_way_back_stays_also_when_all_that_is_older_was_deleted(
    workspace: Path, manager: CheckpointManager
) -> None:
    make(manager, workspace, "c1")
    (workspace / "f").write_text("dirty")
    safety = manager.rollback().safety
    assert safety is not None
    make(manager, workspace, "c2", "c3", "c4")
    manager.delete("c1")
    assert [checkpoint.step for checkpoint in manager.clean(keep=1).deleted] == [3, 2]
    manager.undo()
    assert (workspace / "f").read_text() == "dirty"


def test_the_newest_is_never_too_old_also_when_it_is_neither_head_nor_the_way_back(
    workspace: Path, manager: CheckpointManager, engine: tuple[Context, WorkspaceInfo]
) -> None:
    make(manager, workspace, "c2", "c3", "c4")
    manager.rollback("c2")
    manager.rollback("c1")
    context, here = engine
    later = replace(context, clock=Shifted(10 * DAY))
    report = cleanup(later, here, Rule(None, DAY), dry_run=True)
    assert [checkpoint.step for checkpoint in report.deleted] == [3]
    assert [checkpoint.step for checkpoint in cleanup(later, here, Rule(0, None), dry_run=True).deleted] == [4, 3]


def deleted_id(manager: CheckpointManager, step: int) -> str:
    """The id of a deleted step."""
    with pytest.raises(NotFound) as caught:
        manager.show(step)
    return str(caught.value.details["id"])


def test_age_alone_acts_alone_and_the_newest_stays_whatever_its_clock(
    workspace: Path, manager: CheckpointManager, engine: tuple[Context, WorkspaceInfo]
) -> None:
    make(manager, workspace, "c2", "c3")
    (workspace / "f").write_text("dirty")
    manager.rollback("c1")
    context, here = engine
    later = replace(context, clock=Shifted(10 * DAY))
    report = cleanup(later, here, rule_of(later, here, older_than_ns=9 * DAY), dry_run=True)
    assert [checkpoint.step for checkpoint in report.deleted] == [2]  # c1 is head, undo leads to c3, which is newest
    assert cleanup(later, here, rule_of(later, here, older_than_ns=11 * DAY), dry_run=True).deleted == ()
    both = rule_of(later, here, keep=2, older_than_ns=9 * DAY)
    assert (both.words, cleanup(later, here, both, dry_run=True).deleted) == ("keep 2 and older than 9d", ())
    for days, gone in ((9, [2]), (11, [])):  # beyond the newest are c2 and head
        both = rule_of(later, here, keep=1, older_than_ns=days * DAY)
        assert [checkpoint.step for checkpoint in cleanup(later, here, both, dry_run=True).deleted] == gone
    make(manager, workspace, "c4")
    earlier = replace(context, clock=Shifted(-10 * DAY))
    assert cleanup(earlier, here, rule_of(earlier, here, older_than_ns=0), dry_run=True).deleted == ()


class Shifted:
    """The clock of a machine that is off by so many nanoseconds."""

    def __init__(self, by: int) -> None:
        self.by = by

    def now(self) -> int:
        return time.time_ns() + self.by

    def sleep(self, seconds: float) -> None:
        raise AssertionError


@pytest.mark.parametrize(
    ("retention", "rule"),
    [
        (Retention(), Rule(20, None)),
        (Retention(keep=3), Rule(3, None)),
        (Retention(keep=None, max_age_ns=DAY), Rule(None, DAY)),
        (Retention(keep=3, max_age_ns=DAY, keep_named=True), Rule(3, DAY, keep_named=True)),
    ],
)
def test_without_a_form_of_its_own_it_follows_the_configured_one(
    engine: tuple[Context, WorkspaceInfo], retention: Retention, rule: Rule
) -> None:
    context, here = engine
    context = replace(context, policy=Policy(retention=retention), policies=None)
    assert rule_of(context, here) == rule
    assert rule_of(context, here, keep=7) == Rule(7, None, rule.keep_named)
    assert rule_of(context, here, older_than_ns=5) == Rule(None, 5, rule.keep_named)


def test_no_rule_lets_nothing_go(manager: CheckpointManager, engine: tuple[Context, WorkspaceInfo]) -> None:
    context, here = engine
    before = context.store.state().seq
    report = cleanup(context, here, Rule(None, None))
    assert (report.deleted, report.kept, report.rule) == ((), 1, "")
    assert context.store.state().seq == before


def test_what_an_interrupted_rollback_needs_stays(
    workspace: Path, manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(manager, workspace, "c1", "c2", "c3")
    want = snapshot(workspace)
    make(manager, workspace, "c4", "c5")

    def killed(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr("casnap.workspace.switching.Switch.run", killed)
        with pytest.raises(SystemExit):
            manager.rollback("c3")
    make(manager, workspace, "c6")
    manager.clean(keep=0)
    assert steps(manager) == [6, 5, 3]
    assert manager.recover().rollback is not None
    assert snapshot(workspace) == want


def test_a_cleanup_of_more_than_a_line_can_hold_takes_several(
    manager: CheckpointManager, engine: tuple[Context, WorkspaceInfo], monkeypatch: pytest.MonkeyPatch
) -> None:
    context, here = engine
    monkeypatch.setattr(os, "fdatasync", lambda _fd: None)
    monkeypatch.setattr("casnap.engine.cleanup.IDS_IN_LINE", 50)
    parent = manager.show().id
    for step in range(2, 122):
        parent = a_row(context, here, step, parent)
    before = context.store.state().seq
    report = cleanup(context, here, Rule(10, None))
    assert [checkpoint.step for checkpoint in report.deleted] == list(range(111, 0, -1))
    assert all(checkpoint.deleted and checkpoint.parent is None for checkpoint in report.deleted)
    lines = [operation for operation in context.store.operations() if operation.seq > before]
    assert [len(operation.ids) for operation in lines if isinstance(operation, CheckpointsDeleted)] == [50, 50, 11]
    order = [id for operation in lines for id in operation.ids]  # type: ignore[union-attr]
    assert order == [checkpoint.id for checkpoint in reversed(report.deleted)]


def a_row(context: Context, workspace: WorkspaceInfo, step: int, parent: str) -> str:
    def build(_state: State, commit: Commit) -> AnyOperation:
        return CheckpointMade(
            seq=commit.seq,
            time=commit.time,
            prev=commit.prev,
            workspace=workspace.id,
            id=f"{step:064x}",
            step=step,
            parent=parent,
        )

    context.store.commit(build)
    return f"{step:064x}"


def test_the_longest_line_of_a_cleanup_fits() -> None:
    from casnap.codec.lines import MAX_LINE, encode_line

    ids = tuple(f"{number:064x}" for number in range(IDS_IN_LINE))
    rule, by = "keep 1000000000 and older than 999999999s", tuple(f"{field}" * 200 for field in range(7))
    line, _ = encode_line(
        CheckpointsDeleted(seq=2**53, time=2**63 - 1, prev="f" * 64, workspace="w" * 40, ids=ids, rule=rule, by=by)
    )
    assert len(line) < MAX_LINE * 3 // 4


def test_case_042_auto_prune_manual(
    workspace: Path, manager: CheckpointManager, engine: tuple[Context, WorkspaceInfo]
) -> None:
    """Names do not protect unless that is set; pins do; and a dry run says the same as the real one."""
    context, here = engine
    make(manager, workspace, "before-refactor", *[None] * 50)
    ahead = cleanup(context, here, Rule(5, None), dry_run=True)
    assert [checkpoint.name for checkpoint in ahead.deleted][-2:] == ["before-refactor", "c1"]
    assert (len(ahead.deleted), ahead.kept) == (47, 5)
    assert ahead.notes == ("names do not protect: pin with casnap pin NAME, or set retention.keep_named",)
    named = cleanup(context, here, Rule(5, None, keep_named=True), dry_run=True)
    assert [checkpoint.step for checkpoint in named.deleted] == list(range(47, 2, -1))
    assert (named.kept, named.notes) == (7, ())
    context = replace(context, policy=Policy(retention=Retention(keep=5)), policies=None)
    done = cleanup(context, here, rule_of(context, here))
    assert [checkpoint.id for checkpoint in done.deleted] == [checkpoint.id for checkpoint in ahead.deleted]
    assert all(checkpoint.deleted for checkpoint in done.deleted)
    assert done.notes == ahead.notes


def test_a_run_of_empty_trees_never_pushes_out_the_last_full_checkpoint(
    workspace: Path, manager: CheckpointManager
) -> None:
    make(manager, workspace, "full", "fuller")
    here = snapshot(workspace)
    (workspace / "f").unlink()
    for _ in range(8):
        manager.create()
    full = manager.show("fuller")
    report = manager.clean(keep=3)
    assert [checkpoint.step for checkpoint in report.deleted] == [7, 6, 5, 4, 3, 1]
    assert (report.kept, steps(manager)) == (4, [10, 9, 8, 2])
    assert report.notes[0] == f"fuller {full.id[:12]} stays: without it only empty checkpoints would be left"
    assert manager.clean(keep=3).deleted == ()
    manager.rollback("fuller")
    assert snapshot(workspace) == here
    make(manager, workspace, None)
    assert [checkpoint.step for checkpoint in manager.clean(keep=0).deleted] == [9, 8, 2]  # undo leads to 10


def test_what_was_left_out_by_a_rule_does_not_make_a_checkpoint_full(
    workspace: Path, manager: CheckpointManager
) -> None:
    make(manager, workspace, "full")
    (workspace / "f").unlink()
    (workspace / "cache").mkdir()
    (workspace / "cache" / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55")
    (workspace / "cache" / "data").write_text("data")
    manager.create()
    manager.create()
    assert manager.show().skipped == 1
    manager.clean(keep=0)
    assert steps(manager) == [3, 1]


def test_a_safety_checkpoint_that_alone_holds_anything_stays_too(workspace: Path, manager: CheckpointManager) -> None:
    for _ in range(2):
        manager.create()
    (workspace / "f").write_text("never recorded")
    safety = manager.rollback().safety
    assert safety is not None
    manager.create()
    workspace.chmod(0o700)
    manager.rollback()  # what undo leads to is another one now, and empty
    manager.create()
    assert safety.id in {one.id for one in manager.list(safety=True)}
    report = manager.clean(keep=0)
    assert safety.id not in {one.id for one in report.deleted}
    assert report.notes == (
        f"safety checkpoint {safety.id[:12]} stays: without it only empty checkpoints would be left",
    )


def test_a_damaged_checkpoint_counts_as_full(
    workspace: Path, manager: CheckpointManager, engine: tuple[Context, WorkspaceInfo]
) -> None:
    context, here = engine
    parent = manager.show().id
    for step in (2, 3, 4):
        parent = a_row(context, here, step, parent)  # none of them has an object
    report = cleanup(context, here, Rule(1, None), dry_run=True)
    assert ([one.step for one in report.deleted], report.notes[1:]) == ([3, 2, 1], ())
    assert report.notes == (NAMES_DO_NOT_PROTECT,)  # c1, which is empty


def test_one_look_is_enough_where_the_newest_holds_something(
    workspace: Path,
    manager: CheckpointManager,
    engine: tuple[Context, WorkspaceInfo],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make(manager, workspace, *[None] * 9)
    looks: list[bytes] = []
    monkeypatch.setattr(
        "casnap.engine.cleanup.load_object", lambda context, id: (looks.append(id), load_object(context, id))[1]
    )
    context, here = engine
    assert len(cleanup(context, here, Rule(1, None)).deleted) == 9
    assert [id.hex() for id in looks] == [manager.show().id]


def test_case_043_retention_expiry(
    workspace: Path, manager: CheckpointManager, engine: tuple[Context, WorkspaceInfo]
) -> None:
    """Whoever asks for what a rule let go is told when and by which rule; so is who asks for what a person deleted."""
    context, here = engine
    make(manager, workspace, "c2", "c3", "c4")
    later = replace(context, clock=Shifted(10 * DAY))
    gone = {one.step or 0: one for one in cleanup(later, here, Rule(None, 7 * DAY)).deleted}
    assert sorted(gone) == [1, 2, 3]
    manager.undelete("c2")
    manager.delete("c2")
    for spelling, id in (
        ("c1", gone[1].id),
        ("1", gone[1].id),
        (gone[1].id[:12], gone[1].id),
        (gone[1].id, gone[1].id),
    ):
        with pytest.raises(NotFound, match=r"it was deleted at \d{4}-.*Z by a cleanup \(older than 1w\)") as caught:
            manager.rollback(spelling)
        assert caught.value.details["id"] == id
        assert caught.value.details["rule"] == "older than 1w"
        assert caught.value.hint == f"bring it back with: casnap undelete {id[:12]}"
    with pytest.raises(NotFound, match=r"no checkpoint c2 in .*: it was deleted at \d{4}-\S+Z$") as caught:
        manager.rollback("c2")
    assert caught.value.details["rule"] is None
    assert [
        operation.rule for operation in context.store.operations() if isinstance(operation, CheckpointsDeleted)
    ] == [
        "older than 1w",
        "",
    ]
    make(manager, workspace, "c5")  # the log was read to its end: it goes on
    assert manager.undelete("c1").checkpoint.name == "c1"


def test_case_126_silent_retention(workspace: Path, manager: CheckpointManager) -> None:
    """Without a rule that was asked for nothing goes, however many and old they are."""
    make(manager, workspace, *[None] * 25)
    (workspace / "f").write_text("dirty")
    manager.rollback("2")
    assert steps(manager) == list(range(25, 0, -1))


def test_names_of_what_went_are_free_and_what_came_after_keeps_them(
    workspace: Path, manager: CheckpointManager
) -> None:
    make(manager, workspace, "daily", "c2", "c3")
    manager.clean(keep=1)
    make(manager, workspace, "daily")
    report = manager.undelete(1)
    assert (report.checkpoint.name, report.name_lost) == (None, "daily")
    assert manager.show("daily").step == 4


def test_a_pin_holds_against_every_way_of_deleting(
    workspace: Path, manager: CheckpointManager, engine: tuple[Context, WorkspaceInfo]
) -> None:
    make(manager, workspace, "c2", "c3")
    manager.create("kept", pin=True)
    make(manager, workspace, "c5")
    with pytest.raises(Refused, match="it is pinned") as caught:
        manager.delete("c2", "kept")
    assert caught.value.hint == "let it go first with: casnap unpin kept"
    assert steps(manager) == [5, 4, 3, 2, 1]
    context, here = engine
    assert [one.step for one in cleanup(context, here, Rule(0, 0)).deleted] == [3, 2, 1]


@pytest.mark.parametrize("text", ["0s", "1s", "90s", "1m", "36h", "1d", "6d", "1w", "2w"])
def test_an_age_is_written_as_it_is_read(text: str) -> None:
    assert age_text(parse_age("--older-than", text)) == text


@pytest.mark.parametrize("text", ["", "7", "d", "-1d", "1.5h", "1y", "1 d", "9" * 12 + "d", "٣d"])
def test_what_is_no_age_is_refused(text: str) -> None:
    with pytest.raises(Usage, match="bad --older-than"):
        parse_age("--older-than", text)


def test_a_checkpoint_cleans_up_after_itself_where_that_is_configured(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASNAP_RETENTION_KEEP", "2")
    with CheckpointManager(workspace) as manager:
        for number in range(5):
            manager.create(f"c{number}")
        assert len(manager.list()) == 5
    monkeypatch.setenv("CASNAP_RETENTION_AUTO", "true")
    with CheckpointManager(workspace) as manager:
        manager.create("c5")
        assert [one.name for one in manager.list()] == ["c5", "c4"]
