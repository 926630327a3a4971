"""Ignore rules in use: what a scan leaves out, what a checkpoint records of it, what a rollback leaves alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from casnap import CheckpointManager
from casnap.engine.history import load_object
from casnap.model.policy import Selection
from casnap.model.tree import OmitReason
from casnap.settings import load_settings, open_context
from casnap.workspace.recording import MAX_RECORDED, parse_rules
from casnap.workspace.rules import MAX_IGNORE_FILE
from support.oracle import difference, snapshot
from support.scanning import take

TAG = b"Signature: 8a477f597d28d172789f06886806bc55"


def write(root: Path, files: dict[str, str | bytes]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)


def left_out(root: Path, **selection: object) -> set[str]:
    scan = take(root, selection=Selection(**selection))  # type: ignore[arg-type]
    assert {reason for _, reason in scan.skipped} <= {OmitReason.IGNORED}
    return {os.fsdecode(path) for path, _ in scan.skipped}


def test_a_deeper_ignore_file_has_the_last_word_and_an_ignored_directory_is_one_entry(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            ".casnapignore": "*.log\nbuild/\n!build/kept\n",
            "sub/.casnapignore": "!keep.log\n/only-here\n",
            "a.log": "",
            "sub/a.log": "",
            "sub/keep.log": "",
            "sub/only-here": "",
            "sub/deep/only-here": "",
            "build/kept": "",
            "build/x/y": "",
        },
    )
    assert left_out(tmp_path) == {"a.log", "sub/a.log", "sub/only-here", "build"}


def test_settings_outrank_casnapignore_which_outranks_gitignore(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            ".casnapignore": "!one.log\ntwo.txt\n!three.tmp\n",
            "sub/.gitignore": "*.log\n!two.txt\nfour.c\n",
            "sub/one.log": "",
            "sub/two.txt": "",
            "sub/three.tmp": "",
            "sub/four.c": "",
            "sub/five.log": "",
        },
    )
    ignored = left_out(tmp_path, exclude=b"*.tmp\n", use_gitignore=True)
    assert ignored == {"sub/two.txt", "sub/three.tmp", "sub/four.c", "sub/five.log"}


def test_gitignore_counts_only_when_asked_for_and_a_nested_repository_has_its_own(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            ".gitignore": "*.o\n",
            "a.o": "",
            ".git/info/exclude": "local\n",
            "local": "",
            "nested/.git/info/exclude": "inner\n",
            "nested/.gitignore": "*.x\n",
            "nested/a.o": "",
            "nested/a.x": "",
            "nested/inner": "",
            "nested/local": "",
        },
    )
    assert left_out(tmp_path) == set()
    assert left_out(tmp_path, use_gitignore=True) == {"a.o", "local", "nested/a.x", "nested/inner"}


def test_a_git_directory_is_captured_whole_or_not_at_all(tmp_path: Path) -> None:
    write(tmp_path, {".casnapignore": "logs/\n*.pack\nHEAD\n", ".git/HEAD": "", ".git/logs/HEAD": "", "logs/x": ""})
    (tmp_path / ".git" / "big.pack").write_bytes(bytes(3000))
    assert take(tmp_path, selection=Selection(max_file_size=1000)).skipped == [(b"logs", OmitReason.IGNORED)]
    assert left_out(tmp_path, exclude=b".git") == {".git", "logs"}


@pytest.mark.parametrize("kind", ["link", "directory", "fifo", "socket-like device"])
def test_only_a_regular_file_holds_rules(tmp_path: Path, kind: str) -> None:
    write(tmp_path, {"rules": "*.log\n", "a.log": "", "sub/b.log": ""})
    special = tmp_path / ".casnapignore"
    if kind == "link":
        special.symlink_to("rules")
    elif kind == "directory":
        special.mkdir()
    elif kind == "fifo":
        os.mkfifo(special)
    elif os.geteuid() == 0:
        os.mknod(special, 0o020600, os.makedev(1, 3))
    assert left_out(tmp_path) == set()


def test_a_directory_with_a_valid_cache_tag_is_left_out_unless_that_is_switched_off(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "CACHEDIR.TAG": TAG,
            "cache/CACHEDIR.TAG": TAG + b"\n# made by a test",
            "cache/deep/x": "",
            "fake/CACHEDIR.TAG": TAG[:-1],
            "other/CACHEDIR.TAG": "",
        },
    )
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "CACHEDIR.TAG").symlink_to("../cache/CACHEDIR.TAG")
    assert left_out(tmp_path) == {"cache"}
    assert left_out(tmp_path, exclude_caches=False) == set()


def test_a_file_above_the_size_limit_is_left_out_and_one_of_just_that_size_is_not(tmp_path: Path) -> None:
    write(tmp_path, {"just": bytes(1000), "above": bytes(1001)})
    assert take(tmp_path, selection=Selection(max_file_size=1000)).skipped == [(b"above", OmitReason.TOO_LARGE)]


def test_rules_hold_again_for_what_is_believed_from_the_cache(tmp_path: Path) -> None:
    write(tmp_path, {"a.log": "x", "sub/b.log": "y"})
    first = take(tmp_path)
    write(tmp_path, {".casnapignore": "*.log\n"})
    second = take(tmp_path, cache=first.cache)
    assert [path for path, _ in second.skipped] == [b"a.log", b"sub/b.log"]
    (tmp_path / ".casnapignore").unlink()
    assert take(tmp_path, cache=second.cache).skipped == []


def test_what_a_checkpoint_records_is_what_its_tree_does_not_tell(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            ".casnapignore": "*.log\n",
            ".gitignore": "",
            "tools/.gitignore": "*\n",
            "huge/.gitignore": "*\n" + "#" * MAX_RECORDED,
            "long/.casnapignore": "#" * MAX_IGNORE_FILE + "\nx",
        },
    )
    selection = Selection(b"a b\n\n# \\x\nc\xe9", use_gitignore=True, max_file_size=1 << 30)
    scan = take(tmp_path, selection=selection)
    assert scan.rules == (
        "exclude a b",
        "exclude # \\\\x",
        "exclude c\\xe9",
        "use-gitignore",
        "exclude-caches",
        f"max-file-size {1 << 30}",
        "unread huge/.gitignore",
        "file tools/.gitignore\t*\\n",
    )
    assert scan.unsure == {b"long"}
    recorded = parse_rules(scan.rules)
    assert recorded.selection == Selection(b"a b\n# \\x\nc\xe9\n", True, True, 1 << 30)
    assert recorded.texts == {b"huge/.gitignore": None, b"tools/.gitignore": b"*\n"}


@pytest.mark.parametrize("line", ["surprise", "exclude \\q", "file a\t\\q", "max-file-size many", "unread \\"])
def test_a_recorded_rule_that_cannot_be_understood_may_protect_anything(line: str) -> None:
    assert parse_rules([line]).texts == {b".casnapignore": None}


def test_what_the_newer_rules_leave_out_survives_a_rollback_and_is_named(
    workspace: Path, manager: CheckpointManager
) -> None:
    write(workspace, {"a": "1", ".casnapignore": ""})
    manager.create("c1")
    write(workspace, {".casnapignore": "data/\n.env\n", "data/big.bin": b"\0" * 99, ".env": "KEY=1", "new": "x"})
    manager.create("c2")
    report = manager.rollback("c1")
    assert (workspace / "data/big.bin").read_bytes() == b"\0" * 99
    assert (workspace / ".env").read_text() == "KEY=1"
    assert not (workspace / "new").exists()
    assert report.kept == (b".env", b"data")
    assert report.complete


def test_what_the_older_rules_leave_out_survives_a_rollback_too(workspace: Path, manager: CheckpointManager) -> None:
    write(workspace, {".casnapignore": "*.log\n/cache/\n", "a": "1", "sub/b": "1"})
    manager.create("c1")
    (workspace / ".casnapignore").unlink()
    write(workspace, {"x.log": "x", "sub/y.log": "y", "cache/deep/z": "z", "other": "o", "newdir/n.log": "n"})
    manager.create("c2")
    report = manager.rollback("c1")
    assert report.kept == (b"cache", b"newdir/n.log", b"sub/y.log", b"x.log")
    assert report.complete
    assert (workspace / "cache/deep/z").read_text() == "z"
    assert not (workspace / "other").exists()
    assert [change.path for change in manager.verify("c1").changes] == [b"newdir"]  # it holds what must stay


def test_rules_that_the_older_tree_does_not_hold_are_known_from_its_record(workspace: Path) -> None:
    write(workspace, {".casnapignore": ".casnapignore\n*.log\n", "a": "1"})
    with CheckpointManager(workspace) as manager:
        manager.create("c1")
        (workspace / ".casnapignore").unlink()
        write(workspace, {"x.log": "x"})
        manager.create("c2")
        assert manager.rollback("c1").kept == (b"x.log",)


def test_settings_of_then_protect_as_well(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(workspace, {"a": "1"})
    monkeypatch.setenv("CASNAP_EXCLUDE", "*.log\n")
    monkeypatch.setenv("CASNAP_MAX_FILE_SIZE", "1K")
    with CheckpointManager(workspace) as manager:
        manager.create("c1")
    monkeypatch.delenv("CASNAP_EXCLUDE")
    monkeypatch.delenv("CASNAP_MAX_FILE_SIZE")
    write(workspace, {"x.log": "x", "big": bytes(1025), "small": bytes(1024)})
    with CheckpointManager(workspace) as manager:
        manager.create("c2")
        assert manager.rollback("c1").kept == (b"big", b"x.log")
        assert not (workspace / "small").exists()


def test_an_ignored_file_that_is_gone_comes_back_from_a_checkpoint_that_had_it(
    workspace: Path, manager: CheckpointManager
) -> None:
    write(workspace, {".env": "KEY=1"})
    manager.create("c1")
    write(workspace, {".casnapignore": ".env\n"})
    (workspace / ".env").unlink()
    manager.create("c2")
    manager.rollback("c1")
    assert (workspace / ".env").read_text() == "KEY=1"


def test_what_rules_hide_on_both_sides_is_not_read_when_the_rules_come_and_go(
    workspace: Path, manager: CheckpointManager
) -> None:
    write(workspace, {"a": "1"})
    manager.create("c1")
    write(workspace, {".casnapignore": "data/\n", "data/x": "x"})
    manager.create("c2")
    before = snapshot(workspace)
    manager.rollback("c1")
    manager.undo()
    assert difference(before, snapshot(workspace)) == []


def test_where_the_present_rules_cannot_be_read_what_exists_is_left_alone(
    workspace: Path, manager: CheckpointManager
) -> None:
    write(workspace, {"sub/.casnapignore": "x\n", "sub/f": "1", "sub/gone": "1", "g": "1"})
    manager.create("c1")
    write(workspace, {"sub/.casnapignore": "#" * (MAX_IGNORE_FILE + 1), "sub/f": "2", "sub/deep/new": "n", "g": "2"})
    (workspace / "sub/gone").unlink()
    report = manager.rollback("c1")
    assert {problem.path for problem in report.left_alone} == {
        b"sub/.casnapignore",
        b"sub/deep",
        b"sub/deep/new",
        b"sub/f",
    }
    assert (workspace / "sub/f").read_text() == "2"
    assert (workspace / "sub/deep/new").read_text() == "n"
    assert (workspace / "sub/gone").read_text() == "1"
    assert (workspace / "g").read_text() == "1"


def test_where_the_rules_of_then_cannot_be_read_nothing_is_removed(workspace: Path, manager: CheckpointManager) -> None:
    write(workspace, {"sub/.casnapignore": "#" * (MAX_IGNORE_FILE + 1), "sub/f": "1"})
    manager.create("c1")
    write(workspace, {"sub/.casnapignore": "", "sub/f": "2", "sub/new": "n", "other": "o"})
    report = manager.rollback("c1")
    assert {problem.path for problem in report.left_alone} == {b"sub/new"}
    assert (workspace / "sub/f").read_text() == "1"
    assert not (workspace / "other").exists()


def test_a_change_of_rules_is_said_by_checkpoint_and_status(workspace: Path, manager: CheckpointManager) -> None:
    write(workspace, {"a": "1"})
    manager.create("c1")
    assert manager.status().notes == ()
    write(workspace, {".casnapignore": "a\n"})
    status = manager.status()
    assert status.notes == ("the ignore rules have changed since head",)
    assert status.left_out == {"ignored": 1}


def test_the_record_of_plain_settings_is_short(workspace: Path, manager: CheckpointManager) -> None:
    write(workspace, {".casnapignore": "*.log\n"})
    made = manager.create("c1")
    context = open_context(load_settings())
    assert load_object(context, bytes.fromhex(made.id)).rules == ("exclude-caches",)
    context.store.close()
