"""Verbs about the history: pin, rename, --replace, cleanup, cat, manifest, log and workspace, as they are typed."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from blake3 import blake3

from casnap.engine.log import log
from casnap.model.operation import AnyOperation, PackCut, StoreCreated
from casnap.settings import load_settings, open_context
from support.cli import Result, environment

Call = Callable[..., Result]


def names(call: Call, workspace: Path) -> list[tuple[int, str | None]]:
    """Step and name of what is listed, newest first."""
    return [(one["step"], one["name"]) for one in call("list", "--format", "json", cwd=workspace, check=0).json()]


def edit(workspace: Path, text: str) -> None:
    (workspace / "README").write_text(text)


# pin, unpin


def test_a_pinned_checkpoint_is_deleted_by_nothing_until_it_is_unpinned(history: Path, call: Call) -> None:
    pinned = call("pin", "c1", "-s", "2", cwd=history, check=0).stdout
    assert re.fullmatch(r"pinned step=1 name=c1 id=\w{12}\npinned step=2 name=c2 id=\w{12}\n", pinned)
    for more in ((), ("--force",), ("--yes",)):
        assert "hint: let it go first with: casnap unpin c1" in call("rm", "c1", *more, cwd=history, check=14).stderr
    assert call("delete", "c3", "c1", "--force", "--json", cwd=history, check=14).json()["code"] == "pinned"
    call("prune", "--keep", "0", "--force", cwd=history, check=0)
    assert names(call, history) == [(3, "c3"), (2, "c2"), (1, "c1")]
    call("unpin", "c1", cwd=history, check=0)
    call("unpin", "c1", cwd=history, check=0)  # harmless
    call("clean", "--keep", "0", cwd=history, check=0)
    assert names(call, history) == [(3, "c3"), (2, "c2")]


def test_pin_needs_a_checkpoint_and_knows_the_present_ones_alone(history: Path, call: Call) -> None:
    assert "no checkpoint to pin" in call("pin", cwd=history, check=2).stderr
    call("delete", "c2", cwd=history, check=0)
    assert "it was deleted at" in call("pin", "c1", "c2", cwd=history, check=13).stderr
    assert not call("show", "c1", "--json", cwd=history, check=0).json()["checkpoint"]["pinned"]


def test_a_safety_checkpoint_can_be_pinned(history: Path, call: Call) -> None:
    edit(history, "dirty")
    safety = call("rollback", "--json", cwd=history, check=0).json()["safety"]["id"]
    call("pin", safety, cwd=history, check=0)
    call("rollback", "c1", cwd=history, check=0)
    call("rollback", "c3", cwd=history, check=0)
    edit(history, "new")
    call("checkpoint", "c4", cwd=history, check=0)
    call("delete", "c1", cwd=history, check=0)  # undo leads to it: it would stay, and what is newer with it

    def goes() -> bool:
        call("cleanup", "--keep", "0", cwd=history, check=0)
        listed = call("list", "--safety", "--format", "json", cwd=history, check=0).json()
        return safety not in [one["id"] for one in listed]

    assert not goes()
    call("unpin", safety, cwd=history, check=0)
    assert goes()


# rename


def test_rename_gives_another_name_or_none(history: Path, call: Call) -> None:
    assert re.fullmatch(
        r"renamed step=2 name=better id=\w{12} was=c2\n", call("rename", "c2", "better", cwd=history, check=0).stdout
    )
    call("rename", "better", "better", cwd=history, check=0)
    before = call("rename", "@", "--json", cwd=history, check=0).json()
    assert (before["before"], before["checkpoint"]["name"]) == ("c3", None)
    assert names(call, history) == [(3, None), (2, "better"), (1, "c1")]
    call("rename", "3", "c2", cwd=history, check=0)  # the name is free by now
    assert call("show", "c2", "--json", cwd=history, check=0).json()["checkpoint"]["step"] == 3


def test_a_renamed_automatic_checkpoint_is_automatic_no_more(protected: Path, call: Call) -> None:
    call("checkpoint", cwd=protected, check=0)
    record = call("rename", "2", "known", "--json", cwd=protected, check=0).json()["checkpoint"]
    assert (record["name"], record["automatic"]) == ("known", False)


@pytest.mark.parametrize(
    ("args", "status", "code"),
    [
        (("c1", "c2"), 14, "name-taken"),
        (("c1", "a b"), 2, "bad-name"),
        (("c1", "12"), 2, "bad-name"),
        (("c1", "HEAD"), 2, "bad-name"),
        (("c1", ""), 2, "bad-name"),
        (("nothing", "x"), 13, "no-such-checkpoint"),
        ((), 2, "usage"),
    ],
)
def test_a_bad_rename_changes_nothing(history: Path, args: tuple[str, ...], status: int, code: str, call: Call) -> None:
    before = names(call, history)
    assert call("rename", *args, "--json", cwd=history, check=status).json()["code"] == code
    assert names(call, history) == before


def test_a_safety_checkpoint_gets_no_name(history: Path, call: Call) -> None:
    edit(history, "dirty")
    safety = call("rollback", "--json", cwd=history, check=0).json()["safety"]["id"]
    assert call("rename", safety, "x", "--json", cwd=history, check=14).json()["code"] == "is-safety"


def test_a_name_is_found_and_taken_in_either_unicode_form(history: Path, call: Call) -> None:
    call("rename", "c1", "cafe\u0301", cwd=history, check=0)
    assert call("rename", "c2", "caf\u00e9", "--json", cwd=history, check=14).json()["code"] == "name-taken"
    assert call("show", "caf\u00e9", "--json", cwd=history, check=0).json()["checkpoint"]["step"] == 1


# checkpoint --pin, --replace


def test_replace_moves_a_name_in_one_operation(workspace: Path, call: Call) -> None:
    call("create", "daily-20261130", "--pin", cwd=workspace, check=0)
    edit(workspace, "later that day")
    refused = call("create", "daily-20261130", cwd=workspace, check=14).stderr
    assert "casnap checkpoint --replace moves it" in refused
    before = len(call("log", "--format", "json", cwd=workspace, check=0).json())
    moved = call("create", "daily-20261130", "--replace", cwd=workspace, check=0)
    assert "note: the name daily-20261130 was moved here from step 1\n" in moved.stderr
    assert len(call("log", "--format", "json", cwd=workspace, check=0).json()) == before + 1
    assert names(call, workspace) == [(2, "daily-20261130"), (1, None)]
    old = call("show", "1", "--json", cwd=workspace, check=0).json()["checkpoint"]
    assert (old["pinned"], old["automatic"], old["deleted"]) == (True, False, False)
    plain = call("create", "new", "--replace", cwd=workspace, check=0)
    assert "moved here" not in plain.stderr
    assert names(call, workspace)[0] == (3, "new")
    call("rollback", "1", cwd=workspace, check=0)
    assert (workspace / "README").read_text() == "read me\n"


def test_replace_without_a_name_is_refused_before_anything_is_registered(workspace: Path, call: Call) -> None:
    assert "--replace without a name" in call("checkpoint", "--replace", cwd=workspace, check=2).stderr
    call("list", cwd=workspace, check=10)


def test_an_unchanged_tree_moves_no_name(history: Path, call: Call) -> None:
    said = call("checkpoint", "c1", "--replace", "--if-changed", "--json", cwd=history, check=0)
    assert (said.json()["created"], said.json()["checkpoint"]["name"]) == (False, "c3")
    assert "unchanged since head: nothing was made, c1 stays where it was" in said.stderr
    assert names(call, history) == [(3, "c3"), (2, "c2"), (1, "c1")]
    fresh = call("checkpoint", "fresh", "--replace", "--if-changed", cwd=history, check=0)
    assert "nothing was made, fresh names nothing" in fresh.stderr


def test_what_was_deleted_under_a_name_that_moved_on_comes_back_without_it(history: Path, call: Call) -> None:
    call("delete", "c2", cwd=history, check=0)
    call("checkpoint", "c2", "--replace", cwd=history, check=0)
    back = call("undelete", "2", "--json", cwd=history, check=0).json()
    assert (back["checkpoint"]["name"], back["name_lost"]) == (None, "c2")
    assert call("show", "c2", "--json", cwd=history, check=0).json()["checkpoint"]["step"] == 4


# cleanup


def test_cleanup_says_what_it_does_and_a_dry_run_says_the_same(history: Path, call: Call) -> None:
    ahead = call("cleanup", "--keep", "2", "--dry-run", "--json", cwd=history, check=0).json()
    assert ([one["name"] for one in ahead["deleted"]], ahead["kept"], ahead["dry_run"]) == (["c1"], 2, True)
    assert "1 checkpoint would go (keep 2), 2 kept" in call("prune", "--keep=2", "--dry-run", cwd=history).stderr
    assert names(call, history) == [(3, "c3"), (2, "c2"), (1, "c1")]
    done = call("clean", "--keep", "2", cwd=history, check=0)
    assert re.fullmatch(r"deleted step=1 name=c1 id=\w{12}\n", done.stdout)
    assert done.stderr.endswith("1 checkpoint deleted (keep 2), 2 kept\n")
    assert call("undelete", "c1", "--json", cwd=history, check=0).json()["checkpoint"]["name"] == "c1"


def test_case_042_cleanup_says_what_goes_and_why_and_what_protects(history: Path, call: Call) -> None:
    note = "note: names do not protect: pin with casnap pin NAME, or set retention.keep_named\n"
    stays = "keep 1: what stays is head, pinned ones, what undo leads to, the newest; names do not protect\n"
    for more in (("--dry-run",), ()):
        told = call("cleanup", "--keep", "1", *more, cwd=history, check=0).stderr
        assert (told.count(note), told.count(stays)) == (1, 1)
    call("undelete", "1", cwd=history, check=0)
    told = call("cleanup", "--keep", "2", "--older-than", "2w", "--dry-run", cwd=history, check=0).stderr
    assert "what undo leads to, the newest 2, those not older than 2w; names do not protect\n" in told
    call("rename", "1", "again", cwd=history, check=0)
    call("config", "set", "retention.keep_named", "true", cwd=history, check=0)
    told = call("cleanup", "--keep", "0", "--older-than", "2w", cwd=history, check=0)
    assert "names do not protect" not in told.stderr
    assert "head, pinned ones, named ones, what undo leads to, the newest, those not older than 2w" in told.stderr
    call("config", "set", "retention.keep", "none", cwd=history, check=0)
    assert "no rule is set: nothing goes\n" in call("cleanup", cwd=history, check=0).stderr


def test_cleanup_says_which_checkpoint_it_spares(protected: Path, call: Call) -> None:
    full = call("show", "c1", "--json", cwd=protected, check=0).json()["checkpoint"]["id"]
    shutil.rmtree(protected / "src")
    (protected / "README").unlink()
    for _ in range(4):
        call("checkpoint", cwd=protected, check=0)
    note = f"c1 {full[:12]} stays: without it only empty checkpoints would be left"
    told = call("cleanup", "--keep", "1", "--dry-run", "--json", cwd=protected, check=0).json()
    assert ([one["step"] for one in told["deleted"]], told["notes"]) == ([4, 3, 2], [note])
    assert f"note: {note}\n" in call("cleanup", "--keep", "1", cwd=protected, check=0).stderr
    assert [step for step, _ in names(call, protected)] == [5, 1]


def test_cleanup_alone_keeps_twenty(workspace: Path, call: Call) -> None:
    for _ in range(22):
        call("checkpoint", cwd=workspace, check=0)
    done = call("cleanup", "--json", cwd=workspace, check=0).json()
    assert ([one["step"] for one in done["deleted"]], done["kept"], done["rule"]) == ([2, 1], 20, "keep 20")
    assert call("cleanup", "--older-than", "1d", "--json", cwd=workspace, check=0).json()["deleted"] == []


@pytest.mark.parametrize(
    "args",
    [("--keep", "-1"), ("--keep", "x"), ("--older-than", "7"), ("--keep", "1", "--keep", "2"), ("c1",), ("--", "a")],
)
def test_a_bad_cleanup_deletes_nothing(history: Path, args: tuple[str, ...], call: Call) -> None:
    call("cleanup", *args, cwd=history, check=2)
    assert len(names(call, history)) == 3


# cat


@pytest.fixture
def kinds(workspace: Path, call: Call) -> Path:
    """A checkpoint of entries of every kind."""
    (workspace / "empty").touch()
    (workspace / os.fsdecode(b"caf\xe9")).write_bytes(b"\xff\0\n")
    (workspace / "-odd").write_bytes(b"dash")
    (workspace / "link").symlink_to(os.fsdecode(b"to\xff"))
    os.mkfifo(workspace / "pipe")
    (workspace / "big").write_bytes(random.Random(5).randbytes(5 << 18))
    (workspace / ".casnapignore").write_text("left\n")
    (workspace / "left").write_text("out")
    call("checkpoint", "c1", cwd=workspace, check=0)
    shutil.rmtree(workspace / "src")
    return workspace


def test_cat_writes_the_bytes_and_nothing_else(kinds: Path) -> None:
    def cat(*args: str | bytes) -> bytes:
        command = [sys.executable, "-P", "-m", "casnap", "cat", *args]
        return subprocess.run(command, cwd=kinds, env=environment(), check=True, capture_output=True).stdout

    assert cat("c1", b"caf\xe9") == b"\xff\0\n"
    big = cat("@", "big", "-q")
    assert hashlib.sha256(big).digest() == hashlib.sha256((kinds / "big").read_bytes()).digest()


def test_cat_of_a_link_is_its_target_and_a_path_with_a_dash_stands_behind_two(kinds: Path, call: Call) -> None:
    (kinds / "text").symlink_to("../elsewhere")
    call("checkpoint", "c2", cwd=kinds, check=0)
    assert call("cat", "c2", "text", cwd=kinds, check=0).stdout == "../elsewhere"
    assert call("cat", "c1", "--", "-odd", cwd=kinds, check=0).stdout == "dash"
    assert call("cat", "c1", "empty", cwd=kinds, check=0).stdout == ""


def test_a_path_of_cat_is_relative_to_the_directory_or_to_the_workspace_that_is_named(kinds: Path, call: Call) -> None:
    (kinds / "sub").mkdir()
    assert call("cat", "c1", "../src/main.py", cwd=kinds / "sub", check=0).stdout == "print('one')\n"
    assert call("cat", "-w", kinds, "c1", "src/main.py", cwd=kinds / "sub", check=0).stdout == "print('one')\n"


@pytest.mark.parametrize(
    ("args", "status", "said"),
    [
        (("c1", "."), 2, "cannot cat .: it is no file"),
        (("c1", "src"), 2, "cannot cat src: it is no file"),
        (("c1", "pipe"), 2, "cannot cat pipe: it is no file"),
        (("c1", "left"), 13, "no left in checkpoint c1: it was left out, "),
        (("c1", "src/none"), 13, "no src/none in checkpoint c1"),
        (("c1", "empty/x"), 13, "no empty/x in checkpoint c1"),
        (("none", "empty"), 13, "no checkpoint 'none'"),
        (("c1", "../empty"), 2, "outside the workspace"),
        (("c1",), 2, "cat writes one file"),
        (("c1", "empty", "--", "big"), 2, "cat writes one file"),
        (("c1", "--", "empty", "big"), 2, "cat writes one file"),
        (("c1", "empty", "--json"), 2, "cat writes bytes, not JSON"),
    ],
)
def test_what_has_no_bytes_is_an_error(kinds: Path, args: tuple[str, ...], status: int, said: str, call: Call) -> None:
    result = call("cat", *args, cwd=kinds, check=status)
    assert said in result.stderr
    assert "--json" in args or result.stdout == ""


@pytest.mark.parametrize("args", [("cat", "c1", "big"), ("manifest", "--sha256")])
def test_a_reader_that_has_gone_is_no_error(kinds: Path, args: tuple[str, ...]) -> None:
    command = [sys.executable, "-P", "-m", "casnap", *args]
    with subprocess.Popen(
        command, cwd=kinds, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read().decode() in (f"workspace {kinds}\n", "")
        assert process.wait() == 0


# manifest

ODD_NAMES = [
    b"plain",
    b"-",
    b"-w",
    b" leading",
    b"  two",
    b"trailing ",
    b"*star",
    b"new\nline",
    b"\n",
    b"back\\slash",
    b"\\n",
    b"\\",
    b"return\r",
    b"caf\xe9",
    "é".encode(),
    b"\xff\\\n",
    b'"%s"',
    b"#",
    b"deep/er\\/na me",
]


@pytest.fixture
def odd(workspace: Path, call: Call) -> Path:
    """A checkpoint of files of every kind of name."""
    for number, name in enumerate(ODD_NAMES):
        path = os.path.join(os.fsencode(workspace), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(b"%d" % number)
    (workspace / "link").symlink_to("plain")
    call("checkpoint", "odd", cwd=workspace, check=0)
    return workspace


def manifest(workspace: Path, *args: str) -> bytes:
    command = [sys.executable, "-P", "-m", "casnap", "manifest", *args]
    return subprocess.run(command, cwd=workspace, env=environment(), check=True, capture_output=True).stdout


@pytest.mark.parametrize(("option", "tool"), [("--sha256", "sha256sum"), ("--b3", "b3sum")])
def test_the_tool_of_the_sum_accepts_the_manifest(odd: Path, tmp_path: Path, option: str, tool: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    sums = tmp_path / "sums"
    sums.write_bytes(manifest(odd, option))
    check = [tool, "-c", *(["--strict"] if tool == "sha256sum" else []), str(sums)]
    done = subprocess.run(check, cwd=odd, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b"\n") == len(ODD_NAMES) + 2
    (odd / "plain").write_text("changed")
    done = subprocess.run(check, cwd=odd, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode == 1
    assert b"plain: FAILED" in done.stdout


def test_a_manifest_has_the_sum_of_each_regular_file_and_of_nothing_else(odd: Path, call: Call) -> None:
    for option, kind in (("--sha256", "sha256"), ("--b3", "b3")):
        document = call("manifest", "odd", option, "--json", cwd=odd, check=0).json()
        assert (document["schema"], document["sum"], document["checkpoint"]["name"]) == (
            "casnap.manifest/1",
            kind,
            "odd",
        )
        assert len(document["files"]) == len(ODD_NAMES) + 2
        assert all(file.keys() - {"path_b64"} == {"path", kind} for file in document["files"])
    found = dict(line.split(b"  ", 1)[::-1] for line in manifest(odd).splitlines() if not line.startswith(b"\\"))
    assert found[b"README"].decode() == blake3(b"read me\n").hexdigest()
    assert found[b"./-"].decode() == blake3(b"1").hexdigest()


def test_a_manifest_is_of_one_sum_and_one_checkpoint(odd: Path, call: Call) -> None:
    assert "two sums" in call("manifest", "--sha256", "--b3", cwd=odd, check=2).stderr
    said = call("manifest", "plain", cwd=odd, check=13).stderr
    assert "casnap manifest --" not in said
    empty = odd.parent / "empty"
    empty.mkdir()
    call("checkpoint", cwd=empty, check=0)
    assert call("manifest", cwd=empty, check=0).stdout == ""


# log


def test_the_log_says_what_was_done_newest_first(history: Path, call: Call) -> None:
    call("pin", "c1", cwd=history, check=0)
    call("rename", "c2", "better", cwd=history, check=0)
    call("rename", "better", cwd=history, check=0)
    call("rollback", "c1", "--keep-git", cwd=history, check=0)
    call("undo", cwd=history, check=0)
    call("cleanup", "--keep", "0", cwd=history, check=0)
    call("checkpoint", "c1", "--replace", cwd=history, check=0)
    entries = call("log", "--format", "json", cwd=history, check=0).json()
    assert [entry["operation"] for entry in entries] == [
        "checkpoint",
        "delete",
        "rollback-end",
        "rollback-begin",
        "rollback-end",
        "rollback-begin",
        "rename",
        "rename",
        "pin",
        "checkpoint",
        "checkpoint",
        "checkpoint",
        "register",
    ]
    said = [entry["summary"] for entry in entries]
    ids = {one["step"]: one["id"][:12] for one in call("list", "--json", cwd=history).json()["checkpoints"]}
    assert said[0] == f"step=4 name=c1 id={ids[4]} +0 ~0 -0 (its name was that of {ids[1]})"
    assert said[1].endswith("(keep 0)")
    assert re.fullmatch(r"of \d+: done", said[2])
    assert said[5] == f"rollback to {ids[1]} safety={ids[3]} keep-git"
    assert [said[6].split()[1:], said[7].split()[1:]] == [["name=(none)"], ["name=better"]]
    assert said[8] == f"pinned {ids[1]}"
    assert said[-1] == str(history)
    assert [entry["seq"] for entry in entries] == sorted((entry["seq"] for entry in entries), reverse=True)
    assert all(entry["workspace"]["path"] == str(history) for entry in entries)
    document = call("log", "--json", "-n", "2", cwd=history, check=0).json()
    assert (document["schema"], document["operations"]) == ("casnap.log/1", entries[:2])


def test_the_log_of_nothing_of_one_and_of_all(history: Path, tmp_path: Path, call: Call) -> None:
    other = tmp_path / "other"
    other.mkdir()
    call("checkpoint", "o1", cwd=other, check=0)
    count = {
        args: len(call("log", *args, "--format", "json", cwd=where, check=0).json())
        for args, where in {(): history, ("-n", "0"): history, ("-w", str(other)): history, ("--all",): other}.items()
    }
    assert count == {(): 4, ("-n", "0"): 0, ("-w", str(other)): 2, ("--all",): 7}  # the store's own line too
    outside = call("log", cwd=tmp_path, check=0).stdout
    assert len(outside.splitlines()) == 1 + 7
    assert f"{other}: step=1 name=o1" in outside
    assert call("log", cwd=history, check=0).stderr == f"workspace {history}\n"
    call("log", "--limit", "-1", cwd=history, check=2)
    call("forget", cwd=other, check=0)
    assert len(call("log", "--all", "--format", "json", cwd=history, check=0).json()) == 8


@pytest.mark.parametrize(
    "kind", [kind for kind in get_args(AnyOperation) if kind is not StoreCreated], ids=lambda kind: kind.__name__
)
def test_every_operation_has_words(kind: type, monkeypatch: pytest.MonkeyPatch, protected: Path) -> None:
    facts = {
        "workspace": "w",
        "path": "/p",
        "id": "1" * 64,
        "ids": ("2" * 64,) * 9,
        "step": 7,
        "verb": "undo",
        "safety": "3" * 64,
        "target": "4" * 64,
        "undo_safety": "5" * 64,
        "nonce": "n",
        "begin": 1,
        "result": "done",
        "values": {"retention.keep": "3", "git": ""},
        "freed": ("6" * 64,),
        "cuts": (PackCut("7" * 32, 64),),
        "found": 2,
        "healed": 3,
        "lost": 4,
        "before": "8" * 64,
        "pattern": "*.key",
        "replaced": (("9" * 64, "a" * 64),),
    }
    wanted = {name: value for name, value in facts.items() if name in kind.__struct_fields__}  # type: ignore[attr-defined]
    one = kind(seq=9, time=0, prev="", **wanted)
    context = open_context(load_settings())
    monkeypatch.setattr(type(context.store), "operations", lambda _self: iter([one]))
    (entry,) = log(context)
    assert entry.summary
    assert entry.operation == one.__struct_config__.tag
    assert json.dumps(entry.facts)
    if hasattr(one, "ids"):
        assert "9 checkpoints" in entry.summary
        assert len(entry.checkpoints) == 9
    context.store.close()


def test_the_graph_shows_where_the_history_parts(history: Path, call: Call) -> None:
    call("rollback", "c1", cwd=history, check=0)
    edit(history, "another way")
    call("checkpoint", "d1", "-m", "two\nlines", cwd=history, check=0)
    call("checkpoint", "d2", cwd=history, check=0)
    call("rollback", "c3", cwd=history, check=0)
    lines = call("log", "--graph", cwd=history, check=0).stdout.splitlines()
    drawn = [re.sub(r" id=.*?( \(head\))? \d{4}-.*", r"\1", line) for line in lines]
    assert drawn == [
        "* step=5 name=d2",
        "* step=4 name=d1",
        "| * step=3 name=c3 (head)",
        "| * step=2 name=c2",
        "|/",
        "* step=1 name=c1",
    ]
    assert lines[1].endswith(r"two\nlines") or lines[1].endswith(r"two\x0alines")
    records = call("log", "--graph", "--format", "json", "-n", "2", cwd=history, check=0).json()
    assert [record["name"] for record in records] == ["d2", "d1"]
    assert call("log", "--graph", "--json", "-n", "2", cwd=history, check=0).json()["graph"] == records
    call("log", "--graph", "--all", cwd=history, check=2)
    call("log", "--graph", cwd=history.parent, check=13)
    assert call("log", "--graph", "-n", "0", cwd=history, check=0).stdout == ""


# workspace


def standing(call: Call, action: str, where: Path) -> list[tuple[str, int, bool]]:
    found = call("workspace", action, "--format", "json", cwd=where, check=0).json()
    return [(one["path"], one["checkpoints"], one["gone"]) for one in found]


def test_workspaces_are_listed_and_those_that_are_gone_are_found(history: Path, tmp_path: Path, call: Call) -> None:
    other = tmp_path / "other"
    other.mkdir()
    call("init", cwd=other, check=0)
    assert standing(call, "gone", tmp_path) == []
    assert standing(call, "list", tmp_path) == [(str(other), 0, False), (str(history), 3, False)]
    assert call("workspace", "--json", cwd=tmp_path, check=0).json()["workspaces"][0]["path"] == str(other)
    history.rename(tmp_path / "elsewhere")
    assert standing(call, "gone", tmp_path) == [(str(history), 3, True)]
    history.symlink_to(tmp_path / "elsewhere")  # nothing is captured through a link
    assert standing(call, "gone", tmp_path) == [(str(history), 3, True)]
    history.unlink()
    history.write_text("a file")
    assert standing(call, "gone", tmp_path) == [(str(history), 3, True)]
    for words in (("move",), ("move", "a"), ("gone", "x"), ("none",)):
        call("workspace", *words, cwd=tmp_path, check=2)


@pytest.mark.parametrize("leaves", ["nothing", "a file", "a link"])
def test_a_moved_workspace_goes_on_where_it_is_now(history: Path, tmp_path: Path, leaves: str, call: Call) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "near").symlink_to("far")
    new = tmp_path / "far" / "moved"
    history.rename(new)
    if leaves == "a file":
        history.write_text("in the way")
    if leaves == "a link":
        history.symlink_to(new)
    moved = call("workspace", "move", f"{history}/", "near/moved/", "--json", cwd=tmp_path, check=0).json()
    assert [(one["path"], one["checkpoints"], one["gone"]) for one in moved["workspaces"]] == [(str(new), 3, False)]
    call("verify", cwd=new, check=0)
    call("rollback", "c1", cwd=new, check=0)
    assert (new / "src" / "main.py").read_text() == "print('one')\n"
    edit(new, "more")
    assert call("checkpoint", "c4", "--json", cwd=new, check=0).json()["checkpoint"]["step"] == 4
    assert standing(call, "list", tmp_path) == [(str(new), 4, False)]


def test_what_cannot_have_been_moved_is_refused(history: Path, home: Path, tmp_path: Path, call: Call) -> None:
    other = tmp_path / "other"
    other.mkdir()
    call("init", cwd=other, check=0)

    def move(old: Path, new: Path, status: int) -> str:
        error = call("workspace", "move", old, new, "--json", cwd=tmp_path, check=status).json()
        return str(error["code"])

    shutil.copytree(history, tmp_path / "copy")
    assert move(history, tmp_path / "copy", 14) == "not-moved"
    (history / "inner").mkdir()
    assert move(history, history / "inner", 14) == "not-moved"
    assert move(tmp_path / "copy", other, 13) == "no-workspace"
    shutil.rmtree(history)
    assert move(history, history, 2) == "usage"
    assert move(history, tmp_path / "nothing", 2) == "usage"
    assert move(history, other, 14) == "taken"
    inside = home / "store" / "cache" / "ws"
    inside.mkdir()
    assert move(history, inside, 14) == "forbidden-path"
    assert move(history, home, 14) == "forbidden-path"
    assert move(history, Path("/"), 14) == "forbidden-path"
    assert standing(call, "gone", tmp_path) == [(str(history), 3, True)]


def test_case_121_moved_copied_workspace(history: Path, tmp_path: Path, call: Call) -> None:
    """A copy has a history of its own; a moved one is pointed at its own, and joined with it by a word."""
    copy = tmp_path / "copy"
    shutil.copytree(history, copy)
    call("list", cwd=copy, check=0)  # outside any: all
    assert call("list", "-w", copy, "--json", cwd=tmp_path, check=13).json()["code"] == "no-workspace"
    made = call("checkpoint", "c1", "--json", cwd=copy, check=0).json()
    assert (made["checkpoint"]["step"], made["checkpoint"]["parent"]) == (1, None)
    edit(copy, "changed in the copy")
    call("rollback", cwd=copy, check=0)
    assert call("show", "--json", cwd=history, check=0).json()["checkpoint"]["name"] == "c3"
    call("rollback", "c2", cwd=history, check=0)
    assert call("show", "--json", cwd=copy, check=0).json()["checkpoint"]["id"] == made["checkpoint"]["id"]

    moved = tmp_path / "moved"
    history.rename(moved)
    hint = call("status", "-w", moved, "--json", cwd=tmp_path, check=13).json()["hint"]
    assert hint == f"if it was moved here from {history}: casnap workspace move {history} {moved}"
    said = call("checkpoint", "m1", cwd=moved, check=0).stderr
    assert f"the workspace {history} is gone; if it was moved here, forget this one" in said
    assert call("workspace", "move", history, moved, cwd=tmp_path, check=14).stderr.count("forget -w") == 1
    call("forget", "-w", moved, cwd=tmp_path, check=0)
    call("workspace", "move", history, moved, cwd=tmp_path, check=0)
    assert names(call, moved) == [(3, "c3"), (2, "c2"), (1, "c1")]


def test_what_was_forgotten_with_its_checkpoints_can_be_attached_again(history: Path, call: Call) -> None:
    assert call("forget", "--drop", "--json", cwd=history, check=0).json()["dropped"] is True
    assert "with its checkpoints" in call("log", "--all", cwd=history, check=0).stdout
    call("init", cwd=history, check=0)
    assert len(names(call, history)) == 3


# --strict


@pytest.mark.parametrize(
    ("args", "strict", "plain"),
    [
        (("checkpoint",), 3, 0),
        (("verify",), 3, 0),
        (("rollback", "c1"), 3, 0),
        (("rollback", "c1", "--preview"), 3, 0),
        (("status",), 3, 0),
        (("list",), 0, 0),
        (("diff",), 0, 0),
    ],
)
def test_strict_minds_what_a_rule_left_out(
    workspace: Path, args: tuple[str, ...], strict: int, plain: int, call: Call
) -> None:
    (workspace / ".casnapignore").write_text("left\n")
    call("checkpoint", "c1", cwd=workspace, check=0)
    call(*args, "--strict", cwd=workspace, check=0)
    (workspace / "left").write_text("out")
    call("checkpoint", "c2", cwd=workspace, check=0)
    call(*args, cwd=workspace, check=plain)
    call(*args, "--strict", "--json", cwd=workspace, check=strict)
