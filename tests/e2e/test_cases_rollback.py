"""Field cases, group A: where going back loses data, or does not bring it back."""

from __future__ import annotations

import os
import random
import re
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from casnap import CheckpointManager, Damage
from support.cases import as_ordinary_user, flip, git, kill_after, make_repository, restores_to, start
from support.cases import run_here as run
from support.oracle import Snapshot, difference, inodes, snapshot
from support.trees import make_tree, mutate

ROUNDS = int(os.environ.get("CASNAP_CRASH_ROUNDS", "3"))

MIB = 1 << 20


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "ws"
    directory.mkdir()
    return directory


@pytest.fixture
def manager(workspace: Path) -> Iterator[CheckpointManager]:
    with CheckpointManager(workspace) as found:
        yield found


def ignore_by(source: str, workspace: Path, patterns: str) -> dict[str, str]:
    """Write the patterns to where rules of this kind stand; the environment that they need."""
    if source == "CASNAP_EXCLUDE":
        return {"CASNAP_EXCLUDE": patterns}
    if source.startswith(".git/") and not patterns:
        make_repository(workspace, commits=1)
    (workspace / source).parent.mkdir(exist_ok=True)
    (workspace / source).write_text(patterns)
    return {} if source.endswith(".casnapignore") else {"CASNAP_USE_GITIGNORE": "true"}


SOURCES = [".gitignore", ".casnapignore", "sub/.casnapignore", ".git/info/exclude", "CASNAP_EXCLUDE"]


@pytest.mark.parametrize("source", SOURCES)
def test_case_001_what_only_newer_rules_protect_survives_going_back_to_older_rules(
    workspace: Path, source: str
) -> None:
    env = ignore_by(source, workspace, "")
    place = workspace / "sub"
    place.mkdir(exist_ok=True)
    (place / "f").write_text("one")
    run("checkpoint", "-w", workspace, "one", env=env, check=0)
    env = ignore_by(source, workspace, "data/\n.env\n")
    (place / "data").mkdir()
    (place / "data" / "big.bin").write_bytes(random.Random(1).randbytes(MIB))
    (place / ".env").write_text("SECRET=1")
    (place / "f").write_text("two")
    run("checkpoint", "-w", workspace, "two", env=env, check=0)
    kept = {name: record for name, record in snapshot(place).items() if name not in (b".", b"f", b".casnapignore")}
    done = run("rollback", "-w", workspace, "one", env=env, check=0)
    after = snapshot(place)
    assert {name: after.get(name) for name in kept} == kept
    assert (place / "f").read_text() == "one"
    assert {"kept: sub/data", "kept: sub/.env"} <= set(done.stderr.splitlines())


def test_case_001_what_the_older_rules_ignored_is_protected_although_the_newer_do_not(workspace: Path) -> None:
    (workspace / ".casnapignore").write_text("data/\n")
    (workspace / "data").mkdir()
    (workspace / "data" / "big.bin").write_text("never captured by one")
    run("checkpoint", "-w", workspace, "one", check=0)
    (workspace / ".casnapignore").write_text("")
    (workspace / "data" / "big.bin").write_text("captured by two")
    run("checkpoint", "-w", workspace, "two", check=0)
    (workspace / "data" / "new").write_text("in none")
    done = run("rollback", "-w", workspace, "one", check=0)
    assert (workspace / ".casnapignore").read_text() == "data/\n"
    assert (workspace / "data" / "big.bin").read_text() == "captured by two"
    assert (workspace / "data" / "new").read_text() == "in none"
    assert "kept: data" in done.stderr.splitlines()


def test_case_002_what_others_wrote_is_counted_and_comes_back(workspace: Path) -> None:
    (workspace / "f").write_text("one")
    run("checkpoint", "-w", workspace, "one", check=0)
    writer = "import os\nos.mkdir('output')\nfor n in range(1, 51): open(f'output/{n}.jsonl', 'w').write(f'{n}\\n' * n)"
    subprocess.run([sys.executable, "-c", writer], cwd=workspace, check=True)
    full = snapshot(workspace)
    line = run("rollback", "-w", workspace, "one", check=0).stdout
    assert re.search(r" safety=[0-9a-f]{12} \+0 ~0 -51 ", line), line
    assert not (workspace / "output").exists()
    safety = re.findall(r"safety=([0-9a-f]+)", line)[0]
    run("rollback", "-w", workspace, safety, check=0)
    assert difference(full, snapshot(workspace)) == []


def test_case_003_a_rollback_is_undone_and_later_checkpoints_stay(workspace: Path, manager: CheckpointManager) -> None:
    for name in ("one", "two"):
        for number in range(6):
            (workspace / f"f{number}").write_text(f"{name} {number}")
        manager.create(name)
    second = snapshot(workspace)
    for number in range(3):
        (workspace / f"f{number}").write_text("edited")
    (workspace / "new").write_text("new")
    (workspace / "f5").unlink()
    dirty = snapshot(workspace)
    manager.rollback("one")
    manager.undo()
    assert difference(dirty, snapshot(workspace)) == []
    assert [checkpoint.name for checkpoint in manager.list()] == ["two", "one"]
    assert manager.show().name == "two"
    manager.rollback("two")
    assert difference(second, snapshot(workspace)) == []


def test_case_004_no_rollback_costs_a_checkpoint(workspace: Path, manager: CheckpointManager, tmp_path: Path) -> None:
    trees: dict[str, Snapshot] = {}
    for number in range(30):
        (workspace / f"f{number % 4}").write_text(f"{number}")
        name = f"c{number}"
        manager.create(name)
        trees[name] = snapshot(workspace)
    safety = set()
    for name in ("c0", "c7", "c0", "c29"):
        (workspace / "dirty").write_text(f"before {name}")
        point = manager.rollback(name).safety
        assert point is not None
        safety.add(point.id)
        assert difference(trees[name], snapshot(workspace)) == []
    assert [checkpoint.name for checkpoint in manager.list()] == list(reversed(trees))
    assert safety <= {checkpoint.id for checkpoint in manager.list(safety=True)}
    assert restores_to(manager, tmp_path / "scratch", trees) == 30 + len(safety)


def test_case_005_a_file_above_the_limit_is_neither_changed_nor_removed_nor_counted(workspace: Path) -> None:
    env = {"CASNAP_MAX_FILE_SIZE": "1M"}
    big, exact = workspace / "big.bin", workspace / "exact.bin"
    big.write_bytes(b"x" * (2 * MIB))
    exact.write_bytes(b"e" * MIB)
    (workspace / "f").write_text("one")
    run("checkpoint", "-w", workspace, "one", env=env, check=0)
    with big.open("ab") as file:
        file.write(b"+")
    (workspace / "new.bin").write_bytes(b"n" * (MIB + 1))
    (workspace / "f").write_text("two")
    exact.unlink()
    before = snapshot(workspace)
    done = run("rollback", "-w", workspace, "one", "--json", env=env, check=0)
    after, document = snapshot(workspace), done.json()
    for name in (b"big.bin", b"new.bin"):
        assert after[name] == before[name]
    assert document["counts"] == {"added": 1, "changed": 1, "removed": 0}
    assert sorted(item["path"] for item in document["kept"]) == ["big.bin", "new.bin"]
    assert exact.stat().st_size == MIB


def test_case_005_a_file_that_grew_above_the_limit_is_left_alone_and_reported(workspace: Path) -> None:
    env = {"CASNAP_MAX_FILE_SIZE": "1M"}
    (workspace / "grown.bin").write_text("small")
    (workspace / "f").write_text("one")
    run("checkpoint", "-w", workspace, "one", env=env, check=0)
    (workspace / "grown.bin").write_bytes(b"g" * (2 * MIB))
    (workspace / "f").write_text("two")
    done = run("rollback", "-w", workspace, "one", "--json", env=env, check=3)
    assert (workspace / "grown.bin").read_bytes() == b"g" * (2 * MIB)
    assert [item["path"] for item in done.json()["left_alone"]] == ["grown.bin"]
    assert done.json()["counts"]["changed"] == 1
    assert (workspace / "f").read_text() == "one"


@pytest.mark.parametrize("harm", ["a byte", "the object", "the pack"])
def test_case_007_a_damaged_object_is_found_before_anything_is_changed(workspace: Path, home: Path, harm: str) -> None:
    rng = random.Random(7)
    contents = [rng.randbytes(50_000) for _ in range(20)]
    for number, content in enumerate(contents):
        (workspace / f"f{number}").write_bytes(content)
    run("checkpoint", "-w", workspace, "one", check=0)
    for number in range(20):
        (workspace / f"f{number}").write_text(f"two {number}")
    for number in range(5):
        (workspace / f"extra{number}").write_text("extra")
    before = snapshot(workspace)
    match harm:
        case "a byte":
            flip(home / "store", contents[7][:64], 40_000)
        case "the object":
            flip(home / "store", contents[7][:64], -30)  # in the record's header
        case "the pack":
            for pack in (home / "store" / "packs").iterdir():
                pack.unlink()
    done = run("rollback", "-w", workspace, "one", check=15)
    assert "Traceback" not in done.stderr
    if harm != "the pack":
        assert re.search(r"^error: .*\bf7\b", done.stderr, re.M), done.stderr
    assert difference(before, snapshot(workspace)) == []


def test_case_008_new_files_and_their_directories_go(workspace: Path, manager: CheckpointManager) -> None:
    (workspace / "f").write_text("one")
    manager.create("one")
    first = snapshot(workspace)
    (workspace / "nd" / "sub").mkdir(parents=True)
    for name in ("new.txt", "nd/sub/x", ".hidden"):
        (workspace / name).write_text("new")
    manager.rollback("one")
    assert difference(first, snapshot(workspace)) == []


def test_case_009_empty_directories_are_captured_and_come_back(workspace: Path, manager: CheckpointManager) -> None:
    (workspace / "e").mkdir(mode=0o700)
    (workspace / "a" / "b" / "c").mkdir(parents=True)
    for name in ("a/b/c", "a/b", "a", "e"):
        os.utime(workspace / name, ns=(1, 1_600_000_000_123_456_789))
    manager.create("one")
    first = snapshot(workspace)
    for name in ("a/b/c", "a/b", "a", "e"):
        (workspace / name).rmdir()
    (workspace / "junk").mkdir()
    changed = {(change.path, change.kind.value) for change in manager.diff("one")}
    assert changed == {(b"a", "D"), (b"a/b", "D"), (b"a/b/c", "D"), (b"e", "D"), (b"junk", "A")}
    manager.rollback("one")
    assert difference(first, snapshot(workspace)) == []


def test_case_010_excluded_trees_keep_their_empty_directories(workspace: Path) -> None:
    env = {"CASNAP_EXCLUDE": ".git\nnode_modules/\n"}
    make_repository(workspace, commits=1)
    (workspace / "node_modules" / "x" / "empty").mkdir(parents=True)
    run("checkpoint", "-w", workspace, "one", env=env, check=0)
    (workspace / "new").write_text("new")
    (workspace / "node_modules" / "y" / "empty").mkdir(parents=True)
    before = inodes(workspace)
    run("rollback", "-w", workspace, "one", env=env, check=0)
    after = inodes(workspace)
    assert not (workspace / "new").exists()
    excluded = {path for path in before if path.split(b"/")[0] in (b".git", b"node_modules")}
    assert {path: after.get(path) for path in excluded} == {path: before[path] for path in excluded}
    assert {b".git/refs/tags", b".git/objects/info", b"node_modules/x/empty"} <= excluded
    git(workspace, "fsck", "--strict")
    assert git(workspace, "status", "--porcelain") == ""


ODD_NAMES = [
    *(
        name.encode()
        for name in ("公共.txt", "🙂.md", "a\nb", "t\tb", 'q"x', "back\\slash", " lead", "trail ", "\x01ctl")
    ),
    *(name.encode() for name in ("it's", "a\\nb", "-dash", "\x7f", "\u202egnp.exe", "\u2028", "*")),
]


LETTERS = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}


def unescape(text: str) -> bytes:
    """The bytes of a path as it is shown: by casnap's own words, or between the quotation marks of git."""
    shown = text.encode()
    if shown.startswith(b'"') and shown.endswith(b'"') and b'\\"' not in shown[-2:]:
        shown = shown[1:-1]
    escape = re.compile(rb"\\(?:x([0-9a-f]{2})|([0-7]{3})|(.))")

    def byte(found: re.Match[bytes]) -> bytes:
        if found[1]:
            return bytes.fromhex(found[1].decode())
        return bytes([int(found[2], 8)]) if found[2] else LETTERS.get(found[3], found[3])

    return escape.sub(byte, shown)


def test_case_011_any_name_is_captured_shown_on_one_line_and_restored(workspace: Path) -> None:
    root = os.fsencode(workspace)
    directories = [b"in " + name for name in ODD_NAMES]
    files = [*ODD_NAMES, *(b"%s/%s" % pair for pair in zip(directories, ODD_NAMES, strict=True))]
    for directory in directories:
        os.mkdir(os.path.join(root, directory))
    for name in files:
        Path(os.fsdecode(os.path.join(root, name))).write_bytes(b"one " + name)
    run("checkpoint", "-w", workspace, "one", check=0)
    first = snapshot(workspace)
    for number, name in enumerate(files):
        path = Path(os.fsdecode(os.path.join(root, name)))
        path.unlink() if number in (2, len(files) - 3) else path.write_bytes(b"two " + name)
    for args in (["diff", "--name-status"], ["rollback", "one", "--preview"]):
        lines = run(*args, "-w", workspace, check=0).stdout.split("\n")[:-1]
        assert sorted(unescape(line[2:]) for line in lines) == sorted(files)
        letters = [line[0] for line in lines]
        assert (letters.count("M"), len(letters)) == (len(files) - 2, len(files))
    document = run("show", "-w", workspace, "one", "--files", "--json", check=0).json()
    shown = {unescape(entry["path"]) if "path_b64" in entry else entry["path"].encode() for entry in document["files"]}
    assert shown - {b""} == {*files, *directories}
    run("rollback", "-w", workspace, "one", check=0)
    assert difference(first, snapshot(workspace)) == []


@pytest.mark.parametrize("place", ["", "sub/"])
@pytest.mark.parametrize("name", [".casnapignore", ".gitignore"])
def test_case_012_rules_that_cannot_be_read_protect_everything_below_them(
    monkeypatch: pytest.MonkeyPatch, name: str, place: str
) -> None:
    monkeypatch.setenv("CASNAP_USE_GITIGNORE", "true")

    def act(user: Path) -> None:
        workspace = user / "ws"
        (workspace / "sub" / "deep").mkdir(parents=True)
        rules = workspace / f"{place}{name}"
        rules.write_text("secret\n")
        for path in ("f", "sub/f", "sub/deep/f"):
            (workspace / path).write_text("one")
        options = ("--store", user / "store", "-w", workspace)
        assert run("checkpoint", *options, "one").status == 0
        for path in ("f", "sub/f", "sub/deep/f"):
            (workspace / path).write_text("two")
        for path in ("secret", "sub/secret", "sub/deep/secret", "sub/deep/new"):
            (workspace / path).write_text("precious")
        rules.chmod(0)
        before = snapshot_of_what_can_be_read(workspace)
        done = run("rollback", *options, "one")
        assert done.status == 3, done.stderr
        after = snapshot_of_what_can_be_read(workspace)
        below = place.rstrip("/").encode()
        protected = {path for path in before if not below or path.startswith(below + b"/")}
        assert {path: after.get(path) for path in protected} == {path: before[path] for path in protected}
        assert stat.S_IMODE(rules.lstat().st_mode) == 0
        if place:
            assert (workspace / "f").read_text() == "one"

    as_ordinary_user(act)


def snapshot_of_what_can_be_read(root: Path) -> dict[bytes, bytes]:
    """The content of each file below ``root`` that its modes let everybody read."""
    found = {}
    for directory, _, names in os.walk(os.fsencode(root)):
        for path in (os.path.join(directory, name) for name in names):
            if os.lstat(path).st_mode & 0o400:
                found[os.path.relpath(path, os.fsencode(root))] = Path(os.fsdecode(path)).read_bytes()
    return found


def test_case_012_an_unreadable_checkpoint_costs_no_other_anything(
    workspace: Path, manager: CheckpointManager, home: Path, tmp_path: Path
) -> None:
    trees = {}
    for name in ("one", "two", "three"):
        (workspace / "f").write_text(name * 1000)
        manager.create(name)
        trees[name] = snapshot(workspace)
    unreadable = bytes.fromhex(manager.show("two").id)
    manager.close()
    flip(home / "store", unreadable[:8], 40)
    manager = CheckpointManager(workspace)
    manager.delete("three")
    with pytest.raises(Damage):
        manager.restore_to(tmp_path / "two", "two")
    (workspace / "f").write_text("four" * 1000)
    manager.create("four")
    manager.undelete(3)
    for name in ("one", "three"):
        manager.restore_to(tmp_path / name, name)
        assert difference(trees[name], snapshot(tmp_path / name)) == []


def test_case_014_a_subdirectory_finds_its_workspace_and_limits_paths_to_itself(workspace: Path) -> None:
    for path in ("backend/x", "frontend/y"):
        (workspace / path).parent.mkdir()
        (workspace / path).write_text("one")
    run("init", "-w", workspace, check=0)
    here = workspace / "frontend"
    assert str(workspace) in run("checkpoint", "one", cwd=here, check=0).stderr
    first = snapshot(workspace)
    for paths, restored in (([], {"backend/x", "frontend/y"}), (["--", "."], {"frontend/y"})):
        for path in ("backend/x", "frontend/y"):
            (workspace / path).write_text("two")
        assert str(workspace) in run("rollback", "one", *paths, cwd=here, check=0).stderr
        found = {path for path in ("backend/x", "frontend/y") if (workspace / path).read_text() == "one"}
        assert found == restored
        if not paths:
            assert difference(first, snapshot(workspace)) == []


def test_case_015_one_agents_path_goes_back_without_the_others_work(workspace: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (workspace / name).write_text("one")
    run("checkpoint", "-w", workspace, "one", check=0)
    (workspace / "a").write_text("of agent A")
    (workspace / "b").write_text("of agent B")
    (workspace / "notes.md").write_text("of a person")
    before = snapshot(workspace)
    run("rollback", "-w", workspace, "one", "--", "a", check=0)
    after = snapshot(workspace)
    assert (workspace / "a").read_text() == "one"
    for path in (b"a", b"."):  # a directory's time moves with its names
        after[path] = before[path]
    assert difference(before, after) == []
    after = snapshot(workspace)
    preview = run("rollback", "-w", workspace, "one", "--preview", check=0).stdout
    assert preview.splitlines() == ["M b", "D notes.md"]
    safety = run("rollback", "-w", workspace, "one", "--json", check=0).json()["safety"]["id"]
    run("restore-to", "-w", workspace, tmp_path / "kept", safety, check=0)
    assert difference(after, snapshot(tmp_path / "kept")) == []


def test_case_016_a_checkpoint_of_another_workspace_is_refused(tmp_path: Path) -> None:
    for name in ("A", "B"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text(name)
        run("checkpoint", "-w", tmp_path / name, "one", check=0)
    of_a = run("show", "-w", tmp_path / "A", "one", "--json", check=0).json()["checkpoint"]["id"]
    (tmp_path / "B" / "f").write_text("dirty")
    before = snapshot(tmp_path / "B")
    for revision in (of_a, of_a[:12]):
        done = run("rollback", "-w", tmp_path / "B", revision, check=13)
        assert str(tmp_path / "B") in done.stderr
        assert str(tmp_path / "A") in done.stderr
    assert difference(before, snapshot(tmp_path / "B")) == []


def test_case_017_a_workspace_that_was_made_anew_is_really_restored(workspace: Path) -> None:
    (workspace / "f").write_text("zero")
    run("checkpoint", "-w", workspace, "zero", check=0)
    shutil.rmtree(workspace)
    workspace.mkdir()
    (workspace / "f").write_text("v1")
    run("checkpoint", "-w", workspace, "one", check=0)
    first = snapshot(workspace)
    (workspace / "f").write_text("v2")
    run("rollback", "-w", workspace, "one", check=0)
    assert difference(first, snapshot(workspace)) == []


WRITERS = """
import os, sys, time
root = sys.argv[1]
number = 0
while not os.path.exists(root + ".stop"):
    number += 1
    with open(root + "/f", "a") as file:
        file.write(f"{number}\\n")
    with open(f"{root}/n{number}", "w") as file:
        file.write(str(number))
    with open(root + ".written", "w") as file:
        file.write(str(number))
    time.sleep(0.001)
"""


def test_case_020_what_others_write_during_a_rollback_is_never_lost(workspace: Path, tmp_path: Path) -> None:
    (workspace / "f").write_text("")
    for number in range(200):
        (workspace / f"old{number}").write_text("one")
    run("checkpoint", "-w", workspace, "one", check=0)
    for number in range(200):
        (workspace / f"old{number}").write_text("two")
    writer = subprocess.Popen([sys.executable, "-c", WRITERS, workspace])
    try:
        time.sleep(0.1)
        running, other = start("rollback", "-w", workspace, "one"), start("checkpoint", "-w", workspace)
        for child, statuses in ((running, {0, 3}), (other, {0, 3, 11})):
            out, err = child.communicate(timeout=60)
            assert b"Traceback" not in out + err, err
            assert child.returncode in statuses, err
            if child is running and child.returncode == 3:
                assert b"left alone: " in err
    finally:
        Path(f"{workspace}.stop").touch()
        assert writer.wait() == 0
    numbers = {str(number) for number in range(1, int(Path(f"{workspace}.written").read_text()) + 1)}
    assert len(numbers) > 10
    lines, files = set(), set()
    with CheckpointManager(workspace) as manager:
        places = [workspace]
        for checkpoint in manager.list(safety=True):
            places.append(tmp_path / checkpoint.id)
            manager.restore_to(places[-1], checkpoint.id)
    for place in places:
        lines |= set((place / "f").read_text().split())
        files |= {path.read_text() for path in place.glob("n*")}
    assert numbers - lines == set()
    assert numbers - files == set()
    assert {(workspace / f"old{number}").read_text() for number in range(200)} == {"one"}


def test_case_022_a_rollback_restores_the_whole_tree_and_cuts_nothing(
    workspace: Path, manager: CheckpointManager
) -> None:
    trees = {}
    for number, name in enumerate(("f1", "f2", "f1", "f3"), start=1):
        (workspace / name).write_text(f"of c{number}")
        manager.create(f"c{number}")
        trees[f"c{number}"] = snapshot(workspace)
    for name in ("c2", "c3", "c1", "c4"):
        manager.rollback(name)
        assert difference(trees[name], snapshot(workspace)) == []
    assert [checkpoint.name for checkpoint in manager.list()] == ["c4", "c3", "c2", "c1"]


def test_case_023_changes_by_any_program_are_undone(
    workspace: Path, manager: CheckpointManager, tmp_path: Path
) -> None:
    make_repository(workspace, commits=2)
    for name in ("sed", "python", "moved", "copied", "heredoc"):
        (workspace / name).write_text(f"{name} one\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "sed").write_text("of an archive\n")
    subprocess.run(["tar", "-C", tmp_path / "other", "-cf", tmp_path / "a.tar", "sed"], check=True)
    manager.create("one")
    first = snapshot(workspace)
    changes = [
        "sed -i s/one/two/ sed",
        "python3 -c \"open('python', 'r+').write('TWO')\"",
        "mv moved elsewhere",
        "cp -p sed copied",
        f"tar xf {tmp_path}/a.tar",
        "cat > heredoc <<END\ntwo\nEND",
        "git -c advice.detachedHead=false checkout -q HEAD~1",
        "rm f0",
    ]
    for change in changes:
        subprocess.run(["sh", "-ec", change], cwd=workspace, check=True)
    manager.rollback("one")
    assert difference(first, snapshot(workspace)) == []


def test_case_024_it_works_without_git_and_says_so_where_it_cannot(workspace: Path, tmp_path: Path) -> None:
    (workspace / "f").write_text("one")
    assert run("checkpoint", "-w", workspace, "one", check=0).stdout.startswith("checkpoint step=1 ")
    (tmp_path / "file").touch()
    env = {"CASNAP_STORE": str(tmp_path / "file" / "store")}
    done = run("checkpoint", "-w", workspace, env=env)
    assert done.status not in (0, 3)
    assert done.stderr.startswith("error: ") or "\nerror: " in done.stderr
    assert "Traceback" not in done.stderr
    assert run("status", "-w", workspace, "--json", env=env).json().get("protected") is not True


def test_case_025_an_interrupted_checkpoint_is_never_shown(workspace: Path, home: Path, tmp_path: Path) -> None:
    rng = random.Random(25)
    make_tree(workspace, rng, files=150)
    run("checkpoint", "-w", workspace, "base", check=0)
    trees = {"base": snapshot(workspace)}
    killed = 0
    with CheckpointManager(workspace) as manager:
        for number in range(ROUNDS):
            mutate(workspace, rng, 40)
            trees[f"k{number}"] = snapshot(workspace)
            killed += kill_after(
                0.02 * number, "checkpoint", "-w", workspace, f"k{number}", written=home / "store" / "packs"
            )
            newest = manager.list()[0]
            manager.rollback(newest.id)
            assert difference(trees[str(newest.name)], snapshot(workspace)) == []
        restores_to(manager, tmp_path / "scratch", trees)
    assert killed


WIPES = {
    "everything in it": "rm -rf ws/* ws/.[!.]*",
    "the directory": "rm -rf ws",
    "every content": "find ws -type f -exec truncate -s0 {} + || true",
}


@pytest.mark.parametrize("wipe", WIPES)
def test_case_027_a_wiped_workspace_comes_back_at_its_path(workspace: Path, tmp_path: Path, wipe: str) -> None:
    make_tree(workspace, random.Random(27), files=60)
    (workspace / ".hidden").write_text("hidden")
    run("checkpoint", "-w", workspace, "one", check=0)
    first = snapshot(workspace)
    subprocess.run(["sh", "-ec", WIPES[wipe]], cwd=tmp_path, check=True)
    run("rollback", "-w", workspace, cwd=tmp_path, check=0)
    assert difference(first, snapshot(workspace)) == []
