"""The benchmark: the same work each time, and verdicts that say what was measured."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bench.goals import GOALS, WORDS, verdicts
from bench.page import BEGIN, END, PAGE, RESULTS, update
from bench.peers import PEERS
from bench.places import Place
from bench.process import Failed, Run, environment, run
from bench.results import Result, Results, load
from bench.tables import goals, tables
from bench.tree_rows import TreeRows
from bench.turns import SLOW, Turns
from bench.workloads import BIG, Agent, edit_big, edited, make_big, make_copies, make_tree
from support.oracle import difference, snapshot


def results(*found: Result) -> Results:
    made = Results({"processor": "a", "cores": "2", "memory": "1 GiB", "kernel": "6", "python": "3"}, {"git": "git 2"})
    for one in found:
        made.put(one)
    return made


def timed(row: str, peer: str, *seconds: float, size: int = 10_000, **more: int) -> Result:
    return Result(row, size, peer, list(seconds), list(seconds), dict(more), "memory", "2026-11-30", 0.5)


def test_the_same_seed_makes_the_same_tree_and_the_same_edits(tmp_path: Path) -> None:
    states = []
    for name in ("one", "other"):
        root = tmp_path / name
        files = make_tree(root, 120)
        assert len(files) == len(set(files)) == 120
        before = snapshot(root)
        agent = Agent(root, files, "seed")
        for _ in range(10):
            agent.step()
        agent.change()
        assert sorted(agent.files) == sorted(
            path.decode() for path, record in snapshot(root, times=False).items() if record.kind == "file"
        )
        states.append((before, snapshot(root, times=False)))
    assert difference(states[0][0], states[1][0]) == []
    assert difference(states[0][1], states[1][1]) == []


def test_a_change_is_eight_files_edited_one_added_one_deleted(tmp_path: Path) -> None:
    files = make_tree(tmp_path / "tree", 100)
    before = snapshot(tmp_path / "tree", times=False)
    Agent(tmp_path / "tree", files, "seed").change()
    after = snapshot(tmp_path / "tree", times=False)
    edited_files = {path for path in before.keys() & after.keys() if before[path] != after[path]}
    assert (len(after.keys() - before.keys()), len(before.keys() - after.keys())) == (1, 1)
    assert len(edited_files) in (7, 8)  # the deleted file may have been edited before


def test_an_edit_changes_a_few_lines(tmp_path: Path) -> None:
    text = b"".join(b"line %d\n" % number for number in range(1_000))
    for seed in range(50):
        lines = set(edited(text, random.Random(seed)).splitlines())
        assert len(set(text.splitlines()) - lines) <= 4
        assert lines != set(text.splitlines())


def test_the_edit_of_the_big_file_inserts_and_overwrites_new_bytes(tmp_path: Path) -> None:
    make_big(tmp_path / "big", 4 << 20)
    before = (tmp_path / "big" / BIG).read_bytes()
    assert len(before) == 4 << 20
    edit_big(tmp_path / "big", "seed")
    after = (tmp_path / "big" / BIG).read_bytes()
    assert len(after) == len(before) + 1024
    start = next(at for at, (old, new) in enumerate(zip(before, after, strict=False)) if old != new)
    assert before[start + (64 << 10) : 2 << 20] == after[start + (64 << 10) : 2 << 20]
    assert before[-(1 << 20) :] == after[-(1 << 20) :]


def test_near_copies_differ_in_one_file_of_a_hundred(tmp_path: Path) -> None:
    files = make_tree(tmp_path / "tree", 200)
    first, second, third = make_copies(tmp_path / "copies", tmp_path / "tree", files, 3)
    assert difference(snapshot(tmp_path / "tree"), snapshot(first)) == []
    assert 4 <= len(difference(snapshot(first, times=False), snapshot(second, times=False))) <= 6
    assert difference(snapshot(second, times=False), snapshot(third, times=False)) != []


def test_a_verdict_is_about_medians_and_the_best_of_the_others() -> None:
    found = results(
        timed("changed", "casnap", 3.0, 1.0, 2.0),
        timed("changed", "git", 4.0, 4.0, 4.0),
        timed("changed", "jj", 2.5),
        timed("changed", "restic", 0.1),
    )
    (verdict,) = verdicts(found, 10_000)
    assert (verdict.ours, verdict.other, verdict.theirs, verdict.ratio, verdict.met) == (2.0, "jj", 2.5, 0.8, True)
    found.put(timed("changed", "jj", 2.0))
    (verdict,) = verdicts(found, 10_000)
    assert (verdict.ratio, verdict.met) == (1.0, False)
    assert "| 1.00 | 1.00 | **missed by 11 %** |" in goals([verdict])


def test_a_goal_in_bytes_needs_nobody_else_and_an_error_is_no_figure() -> None:
    found = results(
        timed("big-changed", "casnap", growth=2 << 20),
        Result("unchanged", 10_000, "casnap", [1.0]),
        Result("unchanged", 10_000, "git", [0.5], error="git add: exit 1"),
    )
    (verdict,) = verdicts(found, 10_000)
    assert (verdict.goal.figure, verdict.ratio, verdict.met) == ("growth", 2.0, False)
    assert "- git failed: checkpoint, nothing changed" in tables(found, 10_000)


def test_each_goal_is_about_a_row_and_programs_that_there_are() -> None:
    beside = {"lstat", "python", "a tenth", "10 checkpoints"}
    assert {goal.row for goal in GOALS} == WORDS.keys()
    assert {other for goal in GOALS for other in goal.others} - beside <= {peer.name for peer in PEERS}


def test_rows_that_were_not_measured_anew_stay_as_long_as_the_machine_is_the_same(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    earlier = results(timed("first", "casnap", 1.0), timed("first", "git", 2.0), timed("list", "casnap", 4.0))
    earlier.save(file)
    now = results(timed("first", "casnap", 3.0))
    kept = {(one.row, one.peer): one.seconds for one in now.with_earlier(file).all()}
    assert kept == {("first", "casnap"): [3.0], ("list", "casnap"): [4.0]}
    assert Results({**now.machine, "cores": "4"}, {}).with_earlier(file).all() == []
    assert load(file).document() == earlier.document()


def test_the_page_has_the_figures_that_are_kept_beside_it() -> None:
    page = PAGE.read_text("utf-8")
    assert page.count(BEGIN) == page.count(END) == 1
    assert update(page, load(RESULTS)) == page


class Clockwork:
    """What stands for a program whose turns are written down."""

    def __init__(self, name: str, seconds: list[float]) -> None:
        self.name, self.seconds = name, seconds


def test_programs_take_turns_and_the_slow_are_run_once(tmp_path: Path) -> None:
    found = results()
    order = []
    peers = [
        Clockwork("quick", [9.0, 1.0, 2.0, 3.0]),
        Clockwork("slow", [SLOW + 1]),
        Clockwork("failing", [9.0, 1.0]),
    ]

    def act(peer: Clockwork, turn: int) -> Run:
        order.append((peer.name, turn))
        if not peer.seconds[turn:]:
            raise Failed("no more")
        return Run(peer.seconds[turn], 0.5, "")

    going = Turns(found, 10, "memory").measure("row", peers, act, repeats=3)
    assert [peer.name for peer in going] == ["quick", "slow"]
    assert order[:3] == [("quick", 0), ("slow", 0), ("failing", 0)]
    assert order[3:7] == [("quick", 1), ("failing", 1), ("quick", 2), ("failing", 2)]
    assert {one.peer: one.figure("time") for one in found.all()} == {"quick": 2.0, "slow": SLOW + 1, "failing": None}
    assert {one.peer: one.error for one in found.all()} == {"quick": "", "slow": "", "failing": "no more"}
    assert [len(one.seconds) for one in found.all()] == [3, 1, 1]


def test_a_command_that_fails_says_so_and_inherits_no_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("CASNAP_STORE", "/nowhere")
    env = environment(tmp_path, {"MORE": "1"})
    assert run('echo "$HOME$GIT_DIR$CASNAP_STORE$MORE"', cwd=tmp_path, env=env).output == f"{tmp_path}1\n"
    with pytest.raises(Failed, match="exit 3: because"):
        run("echo because; exit 3", cwd=tmp_path, env=env)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [peer for peer in PEERS if peer.installed() and peer.name != "btrfs"])
def test_each_program_that_is_installed_does_all_that_is_asked_of_it(kind: type, tmp_path: Path) -> None:
    files = make_tree(tmp_path / "tree", 100)
    found = results()
    peers = [kind(Place(tmp_path, "memory"), "room")]
    TreeRows(Turns(found, 100, "memory"), peers, tmp_path / "tree", files, 1).measure(list(WORDS))
    assert [one.error for one in found.all()] == [""] * len(found.all())
    assert {"first", "unchanged", "changed", "rollback", "restore"} <= {one.row for one in found.all()}
