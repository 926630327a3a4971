"""Field cases, group B: git repositories within the workspace, and git's rules."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from casnap import CheckpointManager
from support import cli
from support.cases import beside, git, kill_after, make_repository, names_that_change, remove
from support.cases import run_here as run
from support.oracle import Record, difference, inodes, snapshot

ROUNDS = int(os.environ.get("CASNAP_CRASH_ROUNDS", "3"))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "ws"
    directory.mkdir()
    return directory


@pytest.fixture
def manager(workspace: Path) -> Iterator[CheckpointManager]:
    with CheckpointManager(workspace) as found:
        yield found


def test_case_028_nested_repositories_are_captured_whole_and_never_renamed(workspace: Path, tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "origin")
    make_repository(workspace)
    sub = make_repository(workspace / "sub")
    git(workspace, "submodule", "--quiet", "add", str(origin), "mod")
    git(sub, "worktree", "add", "-q", str(workspace / "tree"))
    git(workspace, "commit", "-q", "-m", "a submodule", "--", "mod", ".gitmodules")
    assert (workspace / "mod" / ".git").is_file()
    assert (workspace / "tree" / ".git").is_file()
    looks = [(sub, "status", "--porcelain"), (workspace, "submodule", "status"), (workspace / "tree", "log", "-1")]
    told = [git(*look) for look in looks]
    first = snapshot(workspace)
    with names_that_change(workspace, sub, workspace / "mod", workspace / "tree") as names:
        for number in range(ROUNDS):
            kill_after(random.Random(number).uniform(0.15, 0.4), "checkpoint", "-w", workspace)
        cli.run("checkpoint", "-w", workspace, "one", check=0)
    assert names == []
    assert difference(first, snapshot(workspace)) == []
    for name in ("sub", "mod", "tree", ".git/modules"):
        remove(workspace / name)
    (workspace / "sub").mkdir()
    with names_that_change(workspace) as names:
        cli.run("rollback", "-w", workspace, "one", check=0)
    assert [name for name in names if name.startswith(b".git")] == []
    assert difference(first, snapshot(workspace)) == []
    git(sub, "fsck", "--strict")
    assert [git(*look) for look in looks] == told


def three_changes(workspace: Path) -> None:
    """A repository with a stash, and one staged, one unstaged, one untracked change."""
    make_repository(workspace, commits=3)
    (workspace / "f0").write_text("stashed\n")
    git(workspace, "stash", "-q")
    (workspace / "f0").write_text("staged\n")
    git(workspace, "add", "f0")
    (workspace / "f1").write_text("unstaged\n")
    (workspace / "untracked").write_text("untracked\n")


def state_of(workspace: Path) -> list[str]:
    looks = (
        ["status", "--porcelain"],
        ["log", "--oneline", "--all"],
        ["stash", "list"],
        ["diff", "--cached"],
        ["diff"],
    )
    return [git(workspace, *look) for look in looks]


def move_on(workspace: Path) -> None:
    """A commit, a branch and an edit."""
    git(workspace, "commit", "-q", "-a", "-m", "of the agent")
    git(workspace, "checkout", "-q", "-b", "other")
    git(workspace, "stash", "drop", "-q")
    (workspace / "f2").write_text("edited\n")


def test_case_030_index_head_objects_and_files_go_back_as_one(workspace: Path) -> None:
    three_changes(workspace)
    run("checkpoint", "-w", workspace, "one", check=0)
    first, told = snapshot(workspace), state_of(workspace)
    first = snapshot(workspace)  # git's look may have refreshed the index
    run("checkpoint", "-w", workspace, "two", check=0)
    move_on(workspace)
    run("rollback", "-w", workspace, "two", check=0)
    assert difference(first, snapshot(workspace)) == []
    assert state_of(workspace) == told
    git(workspace, "fsck", "--strict")


def test_case_030_what_goes_back_in_git_is_said_first(workspace: Path) -> None:
    three_changes(workspace)
    run("checkpoint", "-w", workspace, "one", check=0)
    move_on(workspace)
    for args in (["rollback", "one", "--preview"], ["rollback", "one"], ["undo"]):
        line = run(*args, "-w", workspace, check=0).stdout.splitlines()[0]
        assert line.startswith("git")
        assert "commit" in line
        assert "ref" in line
    (workspace / "untracked").write_text("nothing of git\n")
    run("checkpoint", "-w", workspace, "two", check=0)
    (workspace / "untracked").write_text("again\n")
    assert not run("rollback", "-w", workspace, "two", check=0).stdout.startswith("git")


@pytest.mark.parametrize("how", ["--keep-git", "CASNAP_EXCLUDE"])
def test_case_030_not_a_byte_of_a_git_directory_changes_when_it_is_kept(workspace: Path, how: str) -> None:
    env, options = ({"CASNAP_EXCLUDE": ".git"}, []) if how == "CASNAP_EXCLUDE" else ({}, ["--keep-git"])
    make_repository(workspace / "sub")
    three_changes(workspace)
    run("checkpoint", "-w", workspace, "one", env=env, check=0)
    move_on(workspace)
    (workspace / "sub" / "f0").write_text("two\n")
    git(workspace / "sub", "commit", "-q", "-a", "-m", "of the agent")
    before, now = snapshot(workspace), inodes(workspace)
    done = run("rollback", "-w", workspace, "one", *options, env=env, check=0)
    assert not done.stdout.startswith("git")
    after, later = snapshot(workspace), inodes(workspace)
    inside = {path for path in before.keys() | after.keys() if b".git" in path.split(b"/")}
    assert {b".git", b"sub/.git", b".git/HEAD", b"sub/.git/index"} <= inside
    assert {path: (after.get(path), later.get(path)) for path in inside} == {
        path: (before.get(path), now.get(path)) for path in inside
    }
    texts = [(workspace / name).read_text() for name in ("f0", "f1", "f2", "sub/f0")]
    assert texts == ["staged\n", "unstaged\n", "ws 2\n", "sub 0\n"]


def test_case_030_a_lock_of_git_is_neither_captured_nor_brought_back(workspace: Path) -> None:
    three_changes(workspace)
    lock = workspace / ".git" / "index.lock"
    lock.write_text("in the middle of something")
    assert run("checkpoint", "-w", workspace, "one", check=0).status == 0
    lock.unlink()
    move_on(workspace)
    run("rollback", "-w", workspace, "one", check=0)
    assert not lock.exists()
    git(workspace, "fsck", "--strict")


@pytest.mark.parametrize("place", [".git/index.lock", ".git/refs/heads/main.lock", "sub/.git/HEAD.lock"])
def test_case_030_a_rollback_under_a_young_lock_of_git_is_refused(workspace: Path, place: str) -> None:
    make_repository(workspace / "sub")
    three_changes(workspace)
    run("checkpoint", "-w", workspace, "one", check=0)
    move_on(workspace)
    git(workspace / "sub", "commit", "-q", "--allow-empty", "-m", "of the agent")
    lock = workspace / place
    lock.write_text("at work")
    before = snapshot(workspace)
    assert place.split("/")[-1] in run("rollback", "-w", workspace, "one", check=14).stderr
    assert difference(before, snapshot(workspace)) == []
    run("rollback", "-w", workspace, "one", "--", "f2", check=0)  # no git directory changes
    long_ago = time.time() - 660
    os.utime(lock, (long_ago, long_ago))
    run("rollback", "-w", workspace, "one", check=0)
    assert lock.read_text() == "at work"
    assert git(workspace, "log", "--format=%s", "-1") == "commit 2\n"


def test_case_030_a_checkpoint_during_a_gc_of_git_holds_a_whole_repository_or_is_flagged(
    workspace: Path, tmp_path: Path
) -> None:
    make_repository(workspace, commits=3)
    number = iter(range(10_000))

    def collect() -> None:
        (workspace / "f0").write_text(f"{next(number)}\n")
        git(workspace, "commit", "-q", "-a", "-m", "next")
        git(workspace, "gc", "-q", "--prune=now")

    with beside(collect):
        documents = [run("checkpoint", "-w", workspace, "--json").json() for _ in range(ROUNDS * 4)]
    assert not all(document["problems"] for document in documents)
    for document in documents:
        run("restore-to", "-w", workspace, tmp_path / "whole", document["checkpoint"]["id"], check=0)
        assert list((tmp_path / "whole").rglob("*.lock")) == []
        if not document["problems"]:
            git(tmp_path / "whole", "fsck", "--full", "--strict")
        remove(tmp_path / "whole")


def test_case_031_variables_of_git_lead_nowhere(workspace: Path, tmp_path: Path) -> None:
    make_repository(workspace)
    trap = make_repository(tmp_path / "trap")
    (tmp_path / "config").write_text("[core]\n\thooksPath = /nowhere\n")
    variables = {
        "GIT_DIR": str(trap / ".git"),
        "GIT_WORK_TREE": str(trap),
        "GIT_INDEX_FILE": str(trap / ".git" / "index"),
        "GIT_OBJECT_DIRECTORY": str(trap / ".git" / "objects"),
        "GIT_CONFIG_GLOBAL": str(tmp_path / "config"),
    }
    before, first = (snapshot(trap), inodes(trap)), snapshot(workspace)
    here = cli.run("checkpoint", "one", "--json", cwd=workspace, env=variables, check=0).json()
    assert here["workspace"]["path"] == str(workspace)
    assert here["checkpoint"]["git"]["commit"] == git(workspace, "rev-parse", "HEAD").strip()
    (workspace / "f0").write_text("two\n")
    (workspace / "new").write_text("new\n")
    cli.run("rollback", "one", cwd=workspace, env=variables, check=0)
    assert difference(first, snapshot(workspace)) == []
    assert (snapshot(trap), inodes(trap)) == before


def test_case_032_commands_that_only_look_leave_no_trace(workspace: Path) -> None:
    make_repository(workspace)
    (workspace / "new").write_text("untracked\n")
    before, touched = snapshot(workspace), inodes(workspace)
    read = {path: os.lstat(os.path.join(os.fsencode(workspace), path)).st_atime_ns for path in before}
    for _ in range(5):
        run("checkpoint", "-w", workspace, check=0)
    for args in (["list"], ["diff", "1"], ["verify"], ["status"], ["show", "--files"], ["rollback", "--preview"]):
        run(*args, "-w", workspace, check=0)
    again = {path: os.lstat(os.path.join(os.fsencode(workspace), path)).st_atime_ns for path in before}
    assert inodes(workspace) == touched
    assert again == read
    assert difference(before, snapshot(workspace)) == []


def test_case_033_neither_git_nor_a_home_is_needed(workspace: Path) -> None:
    make_repository(workspace)
    (workspace / ".git" / "config").write_text("[commit]\n\tgpgsign = true\n[core]\n\texcludesFile = /nowhere\n[broken")
    first = snapshot(workspace)
    env = {"PATH": "/nonexistent", "HOME": ""}
    cli.run("checkpoint", "-w", workspace, "one", env=env, check=0)
    (workspace / "f0").write_text("two\n")
    cli.run("rollback", "-w", workspace, "one", env=env, check=0)
    assert difference(first, snapshot(workspace)) == []


Rules = dict[str, bytes]

TABLE: dict[str, tuple[Rules, list[str]]] = {
    "negated below": ({".gitignore": b"build\n!/foo/build\n"}, ["build/x", "foo/build/x", "bar/build", "foo/y"]),
    "nothing inside an ignored directory": ({".gitignore": b"d/\n!d/keep\n"}, ["d/keep", "d/x", "e/d", "e/keep"]),
    "inside a directory that is not": ({".gitignore": b"d/*\n!d/keep\n"}, ["d/keep", "d/x", "d/keep2", "e/d/x"]),
    "directories again": ({".gitignore": b"X/**\n!X/**/\n!X/**/*.c\n"}, ["X/a", "X/b.c", "X/s/t/c.c", "X/s/t/d"]),
    "an escaped space": ({".gitignore": b"a\\ \nb \n"}, ["a ", "a", "b ", "b", "s/a ", "s/b"]),
    "a tab behind": ({".gitignore": b"a\t\n"}, ["a", "a\t"]),
    "anchored": ({".gitignore": b"/anchored\na/b\n"}, ["anchored", "s/anchored", "a/b", "s/a/b", "a/c"]),
    "escaped marks": ({".gitignore": b"\\!x\n\\#x\n#c\n"}, ["!x", "#x", "#c", "x", "c"]),
    "classes": ({".gitignore": b"[a-c].t\n[!x].u\n[]-]z\n"}, ["a.t", "d.t", "x.u", "y.u", "]z", "-z", "[z"]),
    "named classes": ({".gitignore": b"[[:digit:]]x\n[[:upper:]y]x\n"}, ["1x", "Ax", "ax", "yx"]),
    "suffixes": ({".gitignore": b"*.[oa]\n"}, ["x.o", "x.a", "x.c", "s/x.o", ".o"]),
    "stars in the middle": ({".gitignore": b"foo/**/bar\n"}, ["foo/bar", "foo/a/bar", "foo/a/b/bar", "x/foo/bar"]),
    "stars in front": ({".gitignore": b"**/bar\n**/a/b\n"}, ["bar", "s/bar/x", "a/b", "s/a/b", "a/c"]),
    "stars that are not between slashes": ({".gitignore": b"a**b\nc/**d\n"}, ["axb", "a/b", "c/xd", "c/x/d"]),
    "nested": (
        {".gitignore": b"*.log\n", "s/.gitignore": b"!keep.log\n*.txt\n", "s/t/.gitignore": b"!*.txt\n"},
        ["a.log", "keep.log", "s/a.log", "s/keep.log", "s/a.txt", "s/t/a.txt", "s/t/keep.log"],
    ),
    "carriage returns": ({".gitignore": b"a\r\nb\n*.c\r\n"}, ["a", "a\r", "b", "x.c", "x.c\r"]),
    "a byte order mark": ({".gitignore": b"\xef\xbb\xbfa\nb\n"}, ["a", "b", "\ufeffa"]),
    "info/exclude": ({".git/info/exclude": b"a\n*.x\n", ".gitignore": b"!b.x\n"}, ["a", "a.x", "b.x", "s/b.x"]),
    "bytes that are no UTF-8": (
        {".gitignore": b"caf\xe9\n\xff*\n?t\n"},
        ["caf\udce9", "café", "\udcff1", "\udcfet", "ét"],
    ),
    "no newline at the end": ({".gitignore": b"a\nb"}, ["a", "b", "c"]),
    "case counts": ({".gitignore": b"Abc\n"}, ["Abc", "abc", "s/ABC"]),
    "a backslash at the end": ({".gitignore": b"a\\\nb\\\\\n"}, ["a", "a\\", "b\\", "b"]),
    "only marks": ({".gitignore": b"/\n!\n\n \n//\n"}, ["a", "s/b"]),
    "everything but": ({".gitignore": b"/*\n!/s\n/s/*\n!/s/t\n"}, ["a", "s/a", "s/t/a", "u/s/t"]),
    "a slash at the end of a file": ({".gitignore": b"a/\n"}, ["a", "s/a/x"]),
}


def captured(manager: CheckpointManager, place: Path) -> list[bytes]:
    """The files that a checkpoint holds, seen by restoring it."""
    manager.restore_to(place, manager.create().id)
    return files_of(snapshot(place))


def files_of(tree: dict[bytes, Record]) -> list[bytes]:
    return sorted(path for path, record in tree.items() if record.kind != "directory" and path[:5] != b".git/")


def taken_by_git(workspace: Path) -> list[bytes]:
    """The files that ``git add -A`` would take."""
    git(workspace, "add", "-A")
    listed = git(workspace, "ls-files", "-z").encode("utf-8", "surrogateescape")
    return sorted(set(listed.split(b"\0")) - {b""})


def write(workspace: Path, path: str, content: bytes) -> None:
    (workspace / path).parent.mkdir(parents=True, exist_ok=True)
    (workspace / path).write_bytes(content)


@pytest.mark.parametrize("case", TABLE)
def test_case_035_rules_of_git_mean_what_they_mean_to_git(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.setenv("CASNAP_USE_GITIGNORE", "true")
    rules, files = TABLE[case]
    git(workspace, "init", "-q")
    for path, text in rules.items():
        write(workspace, path, text)
    for path in files:
        write(workspace, path, b"x")
    with CheckpointManager(workspace) as manager:
        found = captured(manager, tmp_path / "restored")
    assert found == taken_by_git(workspace)


@pytest.mark.parametrize("case", [case for case in TABLE if ".git/info/exclude" not in TABLE[case][0]])
def test_case_035_casnapignore_follows_the_same_rules(workspace: Path, tmp_path: Path, case: str) -> None:
    rules, files = TABLE[case]
    for path in files:
        write(workspace, path, b"x")
    shutil.copytree(workspace, tmp_path / "of git")
    git(tmp_path / "of git", "init", "-q")
    for path, text in rules.items():
        write(workspace, path.replace(".gitignore", ".casnapignore"), text)
        write(tmp_path / "of git", path, text)
    with CheckpointManager(workspace) as manager:
        found = captured(manager, tmp_path / "restored")
    assert [path.replace(b".casnapignore", b".gitignore") for path in found] == taken_by_git(tmp_path / "of git")


@pytest.mark.parametrize("kind", ["a link", "a directory"])
def test_case_035_an_ignore_file_of_another_kind_rules_nothing(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("CASNAP_USE_GITIGNORE", "true")
    git(workspace, "init", "-q")
    for path in ("a", "s/a", "s/b"):
        write(workspace, path, b"x")
    if kind == "a link":
        write(workspace, "rules", b"a\n")
        (workspace / ".gitignore").symlink_to("rules")
    else:
        write(workspace, ".gitignore/inside", b"a\n")
    with CheckpointManager(workspace) as manager:
        found = captured(manager, tmp_path / "restored")
    assert found == taken_by_git(workspace)


def test_case_035_the_exclude_list_outranks_all_files(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in ("a.log", "keep.log", "secret", "s/secret", "s/other"):
        write(workspace, path, b"x")
    write(workspace, ".casnapignore", b"*.log\n!secret\n")
    monkeypatch.setenv("CASNAP_EXCLUDE", "secret\n!keep.log\n")
    with CheckpointManager(workspace) as manager:
        assert captured(manager, tmp_path / "restored") == [b".casnapignore", b"keep.log", b"s/other"]


TAG = b"Signature: 8a477f597d28d172789f06886806bc55\n# made by a tool\n"


@pytest.mark.parametrize("excluded", ["true", "false"])
def test_case_035_directories_that_are_marked_as_caches_are_left_out_unless_wanted(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, excluded: str
) -> None:
    monkeypatch.setenv("CASNAP_EXCLUDE_CACHES", excluded)
    write(workspace, "cache/CACHEDIR.TAG", TAG)
    write(workspace, "cache/x", b"x")
    write(workspace, "other/CACHEDIR.TAG", b"Signature: of something else\n")
    write(workspace, "other/x", b"x")
    with CheckpointManager(workspace) as manager:
        found = captured(manager, tmp_path / "restored")
    assert (b"cache/x" in found) == (excluded == "false")
    assert {b"other/CACHEDIR.TAG", b"other/x"} <= set(found)


def test_case_036_what_is_ignored_is_counted_and_no_warning(workspace: Path) -> None:
    write(workspace, ".gitignore", b"node_modules/\n")
    write(workspace, "f", b"x")
    for number in range(300):
        write(workspace, f"node_modules/m{number % 20}/f{number}", b"x" * 100)
    env = {"CASNAP_USE_GITIGNORE": "true"}
    for _ in range(3):
        done = run("checkpoint", "-w", workspace, env=env, check=0)
        talk = [line for line in done.stderr.splitlines() if "node_modules" in line or "problem" in line]
        assert talk == []
    document = run("checkpoint", "-w", workspace, "--json", env=env, check=0).json()
    assert (document["checkpoint"]["skipped"], document["problems"]) == (1, [])
