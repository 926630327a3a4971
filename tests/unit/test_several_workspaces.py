"""``-w`` several times on checkpoint and rollback: one name over several workspaces."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from casnap.cli.running import run as run_here
from casnap.engine import safety
from casnap.errors import StorageFailed
from casnap.fs import placing
from casnap.model.operation import AnyOperation, RollbackBegun, RollbackEnded
from casnap.settings import load_settings, open_context
from support.cli import Result, environment
from support.oracle import difference, snapshot

Call = Callable[..., Result]


@pytest.fixture
def call(capfdbinary: pytest.CaptureFixture[bytes]) -> Call:
    """The command line in this process; ``check`` is the exit status that is expected."""

    def call(*args: str | Path, check: int = 0) -> Result:
        capfdbinary.readouterr()
        words = [os.fspath(word) for word in args]
        status = run_here(words)
        captured = capfdbinary.readouterr()
        result = Result(tuple(words), status, captured.out.decode(), captured.err.decode())
        assert status == check, f"{words}: exit {status}\n{result.stdout}\n{result.stderr}"
        return result

    return call


@pytest.fixture
def places(tmp_path: Path) -> list[Path]:
    """Three directories with a file each; none is registered."""
    found = []
    for name in "abc":
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(f"{name} one")
        found.append(tmp_path / name)
    return found


def each(places: list[Path]) -> list[str]:
    return [word for place in places for word in ("-w", str(place))]


def edit(places: list[Path], text: str) -> None:
    for place in places:
        (place / "file").write_text(f"{place.name} {text}")


def texts(places: list[Path]) -> list[str]:
    return [(place / "file").read_text() for place in places]


def operations() -> list[AnyOperation]:
    context = open_context(load_settings())
    found = list(context.store.operations())
    context.store.close()
    return found


def test_one_name_is_given_in_each_and_led_back_to_in_each(places: list[Path], call: Call) -> None:
    made = call("checkpoint", "one", *each(places), "-m", "all")
    assert [line.split()[:3] for line in made.stdout.splitlines()] == [["checkpoint", "step=1", "name=one"]] * 3
    before = [snapshot(place) for place in places]
    edit(places, "two")
    dirty = [snapshot(place) for place in places]
    done = call("rollback", "one", *each(places))
    assert done.stdout.splitlines()[::2] == [f"workspace {place}" for place in places]
    assert [difference(was, snapshot(place)) for was, place in zip(before, places, strict=True)] == [[], [], []]
    for was, place in zip(dirty, places, strict=True):
        call("undo", "-w", place)
        assert difference(was, snapshot(place)) == []


def test_all_safety_checkpoints_are_taken_before_the_first_change(places: list[Path], call: Call) -> None:
    call("checkpoint", "one", *each(places))
    edit(places, "two")
    call("rollback", *each(places))
    kinds = [type(one) for one in operations() if isinstance(one, RollbackBegun | RollbackEnded)]
    assert kinds == [RollbackBegun] * 3 + [RollbackEnded] * 3
    assert texts(places) == ["a one", "b one", "c one"]


def test_a_document_holds_what_became_of_each(places: list[Path], call: Call) -> None:
    made = call("checkpoint", "one", *each(places), "--json").json()
    assert (made["schema"], made["workspace"], made["failed"]) == ("casnap.checkpoint/1", None, [])
    assert [one["workspace"]["path"] for one in made["workspaces"]] == [str(place) for place in places]
    assert [one["checkpoint"]["name"] for one in made["workspaces"]] == ["one"] * 3
    edit(places[1:], "two")
    for more, changed in (("--preview",), [0, 1, 1]), ((), [0, 1, 1]), ((), [0, 0, 0]):
        done = call("rollback", "one", *each(places), *more, "--format", "json").json()
        assert (done["schema"], done["workspace"], done["failed"]) == ("casnap.rollback/1", None, [])
        assert [one["counts"]["changed"] for one in done["workspaces"]] == changed
        assert {one["preview"] for one in done["workspaces"]} == {bool(more)}


def test_a_name_that_is_taken_in_one_is_given_in_none(places: list[Path], call: Call) -> None:
    call("checkpoint", "one", "-w", places[1])
    count = len(operations())
    assert call("checkpoint", "one", *each(places), "--json", check=14).json()["code"] == "name-taken"
    assert call("checkpoint", "a b", *each(places), "--json", check=2).json()["code"] == "bad-name"
    made = [one for one in operations()[count:] if one.__struct_config__.tag != "register"]
    assert made == []
    edit(places, "two")
    moved = call("checkpoint", "one", *each(places), "--replace", "--json").json()["workspaces"]
    assert [one["checkpoint"]["step"] for one in moved] == [1, 2, 1]


def test_when_one_cannot_be_protected_none_is(places: list[Path], tmp_path: Path, call: Call) -> None:
    for wrong, status in ((tmp_path / "none", 2), (places[0] / "file", 2), (Path("/"), 14)):
        call("checkpoint", *each([places[0], wrong]), check=status)
        call("list", "--all", check=10)  # not even a store was made


def test_two_spellings_of_one_workspace_are_one(places: list[Path], tmp_path: Path, call: Call) -> None:
    (tmp_path / "link").symlink_to("a")
    twice = ["-w", str(places[0]), "-w", f"{places[0]}/", "-w", str(tmp_path / "link")]
    assert call("checkpoint", "one", *twice).stdout.count("step=1 name=one") == 1
    edit(places, "two")
    assert call("rollback", "one", *twice, "--json").json()["workspace"]["path"] == str(places[0])
    assert texts(places) == ["a one", "b two", "c two"]


def test_one_within_another_is_captured_with_it_but_not_rolled_back_with_it(places: list[Path], call: Call) -> None:
    inner = places[0] / "inner"
    inner.mkdir()
    both = each([places[0], inner])
    call("checkpoint", "one", *both)
    edit([places[0]], "two")
    said = call("rollback", "one", *both, check=2).stderr
    assert f"{inner} lies within {places[0]}" in said
    assert texts([places[0]]) == ["a two"]


def test_other_verbs_take_one(places: list[Path], call: Call) -> None:
    call("checkpoint", "one", *each(places))
    for words in (("list",), ("status",), ("diff",), ("verify",), ("undo",), ("log",), ("pin", "one"), ("cleanup",)):
        assert "-w was given twice" in call(*words, *each(places), check=2).stderr
    said = call("rollback", "one", *each(places), "--", "file", check=2).stderr
    assert "bad arguments: paths of several workspaces" in said
    assert "--target goes with one -w" in call("restore", *each(places), "--target", "x", check=2).stderr


def test_a_revision_that_one_lacks_changes_none(places: list[Path], call: Call) -> None:
    call("checkpoint", "one", *each(places))
    call("checkpoint", "two", *each(places[:2]))
    edit(places, "three")
    call("rollback", "two", *each(places), check=13)
    assert texts(places) == ["a three", "b three", "c three"]
    assert not any(isinstance(one, RollbackBegun) for one in operations())


def test_a_checkpoint_that_fails_in_one_is_made_in_the_others_and_told(places: list[Path], call: Call) -> None:
    call("checkpoint", "one", *each(places))
    shutil.rmtree(places[1])
    edit([places[0], places[2]], "two")
    made = call("checkpoint", "two", *each(places), "--json", check=13)
    document = made.json()
    assert [one["workspace"]["path"] for one in document["workspaces"]] == [str(places[0]), str(places[2])]
    (failed,) = document["failed"]
    assert (failed["workspace"]["path"], failed["error"]["exit"]) == (str(places[1]), 13)
    assert f"error: {places[1]}: " in made.stderr
    said = call("checkpoint", "three", *each(places), check=13)
    assert said.stdout.count("name=three") == 2
    assert f"error: {places[1]}: " in said.stderr


def fail_in(monkeypatch: pytest.MonkeyPatch, directory: Path, act: str) -> None:
    """Let the disk refuse an act below a directory."""
    real = getattr(placing, act)

    def refusing(parent: int, *args: object, **options: object) -> object:
        if Path(os.readlink(f"/proc/self/fd/{parent}")).is_relative_to(directory):
            raise OSError(28, "No space left on device")
        return real(parent, *args, **options)

    monkeypatch.setattr(placing, act, refusing)


def test_a_rollback_that_fails_while_it_stages_the_second_has_told_of_the_first(
    places: list[Path], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("checkpoint", "one", *each(places))
    edit(places, "two")
    with monkeypatch.context() as patch:
        fail_in(patch, places[1], "create_file")
        done = call("rollback", "one", *each(places), "--json", check=17)
    document = done.json()
    assert [one["workspace"]["path"] for one in document["workspaces"]] == [str(places[0])]
    (failed,) = document["failed"]
    assert (failed["workspace"]["path"], failed["error"]["exit"]) == (str(places[1]), 17)
    assert f"note: {places[2]} is as it was" in done.stderr
    assert texts(places) == ["a one", "b two", "c two"]
    ends = [one.result for one in operations() if isinstance(one, RollbackEnded)]
    assert ends == ["done", "failed", "failed"]
    for place in places:
        assert call("status", "-w", place, "--json").json()["interrupted"] is None
    call("undo", "-w", places[1], check=13)
    call("undo", "-w", places[0])
    call("rollback", "one", *each(places))
    assert texts(places) == ["a one", "b one", "c one"]


def test_a_rollback_that_fails_in_the_first_fails(
    places: list[Path], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("checkpoint", "one", *each(places))
    edit(places, "two")
    with monkeypatch.context() as patch:
        fail_in(patch, places[0], "create_file")
        assert call("rollback", "one", *each(places), "--json", check=17).json()["schema"] == "casnap.error/1"
    assert texts(places) == ["a two", "b two", "c two"]
    assert [one.result for one in operations() if isinstance(one, RollbackEnded)] == ["failed"] * 3


def test_a_safety_checkpoint_that_cannot_be_taken_leaves_no_intent_open(
    places: list[Path], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("checkpoint", "one", *each(places))
    edit(places, "two")
    begun: list[str] = []
    real = safety.begin

    def begin(*args: object) -> object:
        begun.append("begin")
        if len(begun) == 2:
            raise StorageFailed("the store is full")
        return real(*args)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr("casnap.engine.rollback.begin", begin)
        call("rollback", "one", *each(places), check=17)
    assert texts(places) == ["a two", "b two", "c two"]
    assert [one.result for one in operations() if isinstance(one, RollbackEnded)] == ["failed"]
    assert call("recover", "--all", "--json").json()["failed"] == []
    assert texts(places) == ["a two", "b two", "c two"]


def test_two_rollbacks_of_the_same_in_either_order_wait_for_each_other(places: list[Path], call: Call) -> None:
    call("checkpoint", "one", *each(places))
    edit(places, "two")
    call("checkpoint", "two", *each(places))
    command = [sys.executable, "-P", "-m", "casnap", "rollback", "--wait", "60"]
    running = [
        subprocess.Popen(
            [*command, *words],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for words in (["one", *each(places)], ["two", *each(places[::-1])])
    ]
    for process in running:
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said.decode()
    assert len({text.split()[1] for text in texts(places)}) == 1


def test_users_of_two_stores_take_the_directories_in_one_order(
    places: list[Path], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    from casnap.fs.directories import Directories

    call("checkpoint", "one", *each(places))
    taken: list[bytes] = []
    real = Directories.lock

    def lock(self: Directories, wait: float) -> bool:
        taken.append(self.root_path)
        return real(self, wait)

    monkeypatch.setattr(Directories, "lock", lock)
    call("rollback", *each(places[::-1]))
    assert taken == [os.fsencode(place) for place in places]
