"""``--json``: exactly one document on stdout, whatever happens, with keys that stay."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from casnap import __version__
from support.cli import Result, run

Call = Callable[..., Result]

CHECKPOINT_KEYS = {
    "id",
    "name",
    "step",
    "parent",
    "created",
    "message",
    "metadata",
    "pinned",
    "head",
    "safety",
    "automatic",
    "deleted",
    "digest",
    "origin",
    "git",
    "counts",
    "skipped",
    "new_bytes",
    "damaged",
    "good",
}
COMMON = {"schema", "casnap", "store", "workspace"}
ROLLBACK_KEYS = {
    "verb",
    "target",
    "preview",
    "complete",
    "counts",
    "changes",
    "safety",
    "head",
    "left_alone",
    "kept",
    "git",
    "notes",
    "problems",
    "seconds",
}
EXPUNGE_KEYS = {
    "replaced",
    "paths",
    "checkpoints",
    "holders",
    "more_held",
    "dry_run",
    "freed_bytes",
    "left",
    "notes",
}
STATUS_KEYS = {
    "protected",
    "reason",
    "head",
    "checkpoints",
    "safety_points",
    "last_safety",
    "changes",
    "interrupted",
    "store_bytes",
    "store_free",
    "dead_bytes",
    "last_check",
    "last_check_clean",
    "last_gc",
    "warnings",
    "left_out",
    "problems",
    "notes",
    "hooks",
}


@pytest.mark.parametrize(
    ("args", "verb", "keys"),
    [
        (("init",), "init", {"new", "notes"}),
        (
            ("checkpoint",),
            "checkpoint",
            {"checkpoint", "created", "seconds", "problems", "notes", "first_look", "left_out"},
        ),
        (("list",), "list", {"checkpoints", "safety_not_shown"}),
        (("show",), "show", {"checkpoint", "skipped"}),
        (("show", "--files"), "show", {"checkpoint", "skipped", "files"}),
        (("status",), "status", STATUS_KEYS),
        ((), "status", STATUS_KEYS),
        (("diff", "c1"), "diff", {"from", "to", "changes", "problems", "cut", "notes", "patch"}),
        (("diff", "c1", "--stat"), "diff", {"from", "to", "changes", "problems", "cut", "notes"}),
        (("rollback", "c1"), "rollback", ROLLBACK_KEYS),
        (("rollback", "c1", "--preview"), "rollback", ROLLBACK_KEYS),
        (("verify",), "verify", {"checkpoint", "equal", "digest", "changes", "omitted", "problems"}),
        (("restore-to", "../out"), "restore-to", {"checkpoint", "directory", "entries", "bytes", "problems"}),
        (("delete", "c1"), "delete", {"deleted", "head"}),
        (("cleanup", "--keep", "1"), "cleanup", {"deleted", "kept", "dry_run", "rule", "notes"}),
        (("expunge", "README"), "expunge", EXPUNGE_KEYS),
        (("expunge", "README", "--dry-run"), "expunge", EXPUNGE_KEYS),
        (("pin", "c1"), "pin", {"checkpoints"}),
        (("unpin", "c1"), "unpin", {"checkpoints"}),
        (("rename", "1", "one"), "rename", {"checkpoint", "before"}),
        (("manifest",), "manifest", {"checkpoint", "sum", "files"}),
        (("log",), "log", {"operations"}),
        (("log", "--graph"), "log", {"graph"}),
        (("du",), "du", {"by", "checkpoint", "bytes", "files", "directories", "problems"}),
        (("du", "--by", "checkpoint"), "du", {"by", "checkpoints", "stored", "deleted", "problems"}),
        (("workspace", "gone"), "workspace", {"workspaces"}),
        (("recover",), "recover", {"recovered", "failed"}),
        (("recover", "--all"), "recover", {"recovered", "failed"}),
        (("config",), "config", {"settings", "notes", "problems"}),
        (("config", "set", "git", "exclude"), "config", {"settings", "notes", "problems"}),
        (("completion", "bash"), "completion", {"shell", "script"}),
        (("forget",), "forget", {"dropped"}),
        (
            ("bench", "mark"),
            "bench",
            {"directory", "place", "entries", "bytes", "stored", "steps", "clean", "problems"},
        ),
    ],
)
def test_each_verb_answers_with_one_document(
    history: Path, args: tuple[str, ...], verb: str, keys: set[str], call: Call
) -> None:
    for form in (["--json"], ["--format", "json"]):
        once = ("list", "log", "workspace", "forget", "delete", "restore-to")
        if form[0] == "--format" and (verb in once or args == ("config",)):
            continue  # a bare array, or gone already
        result = call(*args, *form, cwd=history, check=0)
        assert result.stdout.count("\n") == 1
        document = result.json()
        assert document.keys() == COMMON | keys
        assert document["schema"] == f"casnap.{verb}/1"
        assert document["casnap"] == __version__


def test_undo_and_undelete_answer_with_documents_of_their_own(history: Path, call: Call) -> None:
    call("rollback", "c1", cwd=history, check=0)
    undone = call("undo", "--json", cwd=history, check=0).json()
    assert undone.keys() == COMMON | ROLLBACK_KEYS
    assert (undone["schema"], undone["verb"], undone["complete"]) == ("casnap.undo/1", "undo", True)
    call("delete", "c2", cwd=history, check=0)
    undeleted = call("undelete", "2", "--json", cwd=history, check=0).json()
    assert undeleted.keys() == COMMON | {"checkpoint", "name_lost"}
    assert (undeleted["checkpoint"]["name"], undeleted["name_lost"]) == ("c2", None)


def test_a_checkpoint_has_every_key(workspace: Path, home: Path, call: Call) -> None:
    facts = '{"ticket": 7, "ünï": [null, "x"]}'
    document = call("checkpoint", "c1", "-m", "première", "--metadata", facts, "--json", cwd=workspace, check=0).json()
    record = document["checkpoint"]
    assert document["store"] == str(home / "store")
    assert document["workspace"].keys() == {"id", "path"}
    assert document["workspace"]["path"] == str(workspace)
    assert record.keys() == CHECKPOINT_KEYS
    assert re.fullmatch(r"[0-9a-f]{64}", record["id"])
    assert re.fullmatch(r"[0-9a-f]{64}", record["digest"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z", record["created"])
    assert (record["name"], record["step"], record["parent"]) == ("c1", 1, None)
    assert (record["message"], record["metadata"]) == ("première", json.loads(facts))
    assert record["head"] is True
    assert [record[key] for key in ("pinned", "safety", "automatic", "deleted")] == [False] * 4
    assert record["origin"].keys() == {"user", "host", "process", "agent", "session", "turn", "tool"}
    assert record["git"] is None
    assert record["counts"] == {"added": 3, "changed": 0, "removed": 0}
    assert record["skipped"] == 0
    assert record["new_bytes"] > 0


def test_list_says_the_same_as_checkpoint_and_show(history: Path, call: Call) -> None:
    listed: list[dict[str, Any]] = call("list", "--json", cwd=history, check=0).json()["checkpoints"]
    assert [one["name"] for one in listed] == ["c3", "c2", "c1"]
    assert [one["parent"] for one in listed] == [listed[1]["id"], listed[2]["id"], None]
    for one in listed:
        place = one.pop("workspace")
        assert place["path"] == str(history)
        assert call("show", one["name"], "--json", cwd=history, check=0).json()["checkpoint"] == one


def test_the_bare_array_holds_the_same_records(history: Path, call: Call) -> None:
    document = call("list", "--json", cwd=history, check=0).json()
    assert call("list", "--format", "json", cwd=history, check=0).json() == document["checkpoints"]


def test_an_empty_list_is_an_empty_array(workspace: Path, call: Call) -> None:
    call("init", cwd=workspace, check=0)
    assert call("list", "--json", cwd=workspace, check=0).json()["checkpoints"] == []
    assert call("list", "--format", "json", cwd=workspace, check=0).stdout == "[]\n"


@pytest.mark.parametrize(
    ("args", "code", "status"),
    [
        (("show", "nonsense"), "no-such-checkpoint", 13),
        (("checkpoint", "a b"), "bad-name", 2),
        (("checkpoint", "c1"), "name-taken", 14),
        (("checkpoint", "--metadata", "1"), "bad-metadata", 2),
        (("list", "--no-such-option"), "usage", 2),
        (("no-such-verb",), "usage", 2),
        (("init", "-w", "/"), "forbidden-path", 14),
        (("list", "--store", "nowhere"), "no-store", 10),
    ],
)
def test_an_error_is_a_document_too_and_text_on_stderr(
    history: Path, args: tuple[str, ...], code: str, status: int, call: Call
) -> None:
    result = call(*args, "--json", cwd=history, check=status)
    document = result.json()
    assert document.keys() == {"schema", "casnap", "code", "exit", "message", "hint", "details"}
    assert (document["schema"], document["code"], document["exit"]) == ("casnap.error/1", code, status)
    assert f"error: {document['message']}\n" in result.stderr


@pytest.mark.parametrize("args", [("status",), (), ("list", "--all")])
def test_outside_any_workspace_the_document_is_about_all(
    history: Path, tmp_path: Path, args: tuple[str, ...], call: Call
) -> None:
    document = call(*args, "--json", cwd=tmp_path, check=0).json()
    assert document["workspace"] is None


def test_without_a_store_status_says_so(workspace: Path, call: Call) -> None:
    for args in (("status",), ()):
        document = call(*args, "--json", cwd=workspace, check=0).json()
        assert (document["schema"], document["protected"]) == ("casnap.status/1", False)
        assert "store" in document["reason"]


@pytest.mark.parametrize("locale", [{}, {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}, {"LC_ALL": "POSIX"}])
def test_paths_that_are_not_utf_8_come_escaped_and_in_base_64(workspace: Path, locale: dict[str, str]) -> None:
    odd = [b"\xfe", b"\xff", b"caf\xe9", rb"\xff", b"new\nline", "é".encode(), "e\u0301".encode(), b'"%s"']
    run("checkpoint", cwd=workspace, env=locale, check=0)
    for name in odd:
        (workspace / os.fsdecode(name)).write_bytes(name)
    changes = run("diff", "--json", cwd=workspace, env=locale, check=0).json()["changes"]
    added = [one for one in changes if one["kind"] == "A"]
    paths = [base64.b64decode(one["path_b64"]) if "path_b64" in one else one["path"].encode() for one in added]
    assert sorted(paths) == sorted(odd)
    assert {one["path"] for one in added if "path_b64" in one} == {r"\xfe", r"\xff", r"caf\xe9"}
    assert len({(one["path"], "path_b64" in one) for one in added}) == len(odd)


def test_a_patch_that_is_not_utf_8_comes_in_base_64_too(protected: Path, call: Call) -> None:
    (protected / "README").write_bytes(b"caf\xe9\n")
    document = call("diff", "--json", cwd=protected, check=0).json()
    assert "+caf\ufffd\n" in document["patch"]
    assert b"+caf\xe9\n" in base64.b64decode(document["patch_b64"])
    assert document["changes"][-1]["lines"] == {"added": 1, "removed": 1, "shown": True}


def test_an_entry_has_the_fields_of_its_kind(workspace: Path, call: Call) -> None:
    (workspace / "link").symlink_to(b"caf\xe9")
    os.mkfifo(workspace / "pipe", 0o640)
    os.chmod(workspace / "README", 0o4711)
    os.utime(workspace / "README", ns=(0, -1))
    call("checkpoint", cwd=workspace, check=0)
    files = {one["path"]: one for one in call("show", "--files", "--json", cwd=workspace, check=0).json()["files"]}
    assert list(files) == ["", "README", "link", "pipe", "src", "src/main.py"]
    readme = files["README"]
    assert (readme["type"], readme["mode"], readme["size"], readme["mtime_ns"]) == ("file", "4711", 8, -1)
    assert (files["link"]["type"], base64.b64decode(files["link"]["target_b64"])) == ("symlink", b"caf\xe9")
    assert (files["pipe"]["type"], files["pipe"]["mode"]) == ("fifo", "0640")
    assert (files["src"]["type"], files[""]["type"]) == ("directory", "directory")
