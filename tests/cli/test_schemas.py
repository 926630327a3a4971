"""The JSON Schemas in docs/reference/json: every document of every verb is one, and has no field that they lack."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from casnap.cli.app import VERBS
from support.cases import as_ordinary_user, git, make_repository, run_here
from support.cli import CHECKOUT, Result
from support.histories import Pitrrwnd

Call = Callable[..., Result]

DIRECTORY = CHECKOUT / "docs" / "reference" / "json"
SCHEMAS = {path.name: json.loads(path.read_text("utf-8")) for path in sorted(DIRECTORY.glob("*.schema.json"))}
WITHOUT = {"cat", "hook", "run"}
"""Verbs that have no document."""

ODD = [b"caf\xe9", b"\xff", b"%s", b'"quoted"', b"new\nline", "e\u0301".encode(), rb"\xff"]


def closed(schema: Any) -> Any:
    """The same schema, but nothing else may be in an object whose fields it names."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: closed(value) for key, value in schema.items()}
    return found | {"additionalProperties": False} if "properties" in schema and "type" in schema else found


def registry(schemas: dict[str, Any]) -> Registry[Any]:
    return Registry[Any]().with_resources((name, Resource.from_contents(schema)) for name, schema in schemas.items())


KNOWN = registry({name: closed(schema) for name, schema in SCHEMAS.items()})


def faults(document: Any, reference: str) -> list[str]:
    """What is wrong with a document, a field that is not described included."""
    found = Draft202012Validator({"$ref": reference}, registry=KNOWN).iter_errors(document)
    return [f"{error.json_path}: {error.message[:300]}" for error in found]


def verb_of(result: Result) -> str:
    """The verb of the only document on stdout, after it was found right."""
    assert result.stdout.endswith("\n")
    assert result.stdout.count("\n") == 1
    document = result.json()
    _, _, rest = document["schema"].partition("casnap.")
    verb, _, version = rest.partition("/")
    assert version == "1"
    assert faults(document, f"{verb}.schema.json") == [], result.args
    if verb == "error":
        assert document["exit"] == result.status
    return str(verb)


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_one(name: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[name])
    assert SCHEMAS[name]["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    if name != "definitions.schema.json":
        assert SCHEMAS[name]["properties"]["schema"] == {"const": f"casnap.{name.partition('.')[0]}/1"}


def test_there_is_one_for_each_verb_and_for_errors() -> None:
    expected = {f"{verb}.schema.json" for verb in (*VERBS, "error", "definitions")}
    assert set(SCHEMAS) == expected - {f"{verb}.schema.json" for verb in WITHOUT}


def test_the_reference_links_to_each_schema_and_describes_the_document_of_each_verb() -> None:
    text = (DIRECTORY.parent / "json.md").read_text("utf-8")
    linked = re.findall(r"\[([\w-]+)\]\(json/([\w-]+)\.schema\.json\)", text)
    assert sorted(f"{name}.schema.json" for name, _ in linked) == sorted(SCHEMAS)
    assert all(name == target for name, target in linked)
    rows = {verb for row in re.findall(r"^\| (`.+?) \|", text, re.MULTILINE) for verb in re.findall(r"`([\w-]+)`", row)}
    assert set(VERBS) - WITHOUT <= rows


def test_a_document_that_lacks_a_field_or_has_a_strange_one_is_found_out(workspace: Path, call: Call) -> None:
    document = call("checkpoint", "--json", cwd=workspace, check=0).json()
    assert faults(document, "checkpoint.schema.json") == []
    assert faults(document | {"more": 1}, "checkpoint.schema.json") != []
    document["checkpoint"].pop("digest")
    assert faults(document, "checkpoint.schema.json") != []


def test_a_reader_may_meet_fields_that_it_does_not_know(workspace: Path, call: Call) -> None:
    document = call("checkpoint", "--json", cwd=workspace, check=0).json() | {"more": 1}
    validator = Draft202012Validator({"$ref": "checkpoint.schema.json"}, registry=registry(SCHEMAS))
    assert list(validator.iter_errors(document)) == []


@pytest.fixture
def odd(workspace: Path, tmp_path: Path, call: Call) -> Path:
    """A workspace whose own path is not UTF-8, with every kind of entry, two checkpoints and a further change."""
    directory = workspace.rename(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    for name in ODD:
        (directory / os.fsdecode(name)).write_bytes(name)
    (directory / "link").symlink_to(b"caf\xe9")
    os.mkfifo(directory / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"/proc/self/fd/{os.open(directory, os.O_PATH)}/socket")
    os.setxattr(directory / "README", "user.odd", b"\xff")
    call("checkpoint", "c1", "-m", "prémier", "--metadata", '{"a": [null]}', cwd=directory, check=0)
    (directory / os.fsdecode(b"caf\xe9")).rename(directory / os.fsdecode(b"caf\xe8"))
    (directory / "README").write_bytes(b"caf\xe9\n")
    (directory / "link").unlink()
    (directory / "link").mkdir()
    call("checkpoint", "c2", cwd=directory, check=0)
    (directory / "README").unlink()
    (directory / "src" / "main.py").write_text("print('more')\n")
    return directory


ARRAYS = {"list": "checkpoints", "log": "operations", "workspace": "workspaces", "config": "settings"}
"""What ``--format json`` prints alone."""

READING = [
    ("list", "--safety"),
    ("show",),
    ("show", "--files"),
    ("status",),
    (),
    ("diff",),
    ("diff", "c1", "c2"),
    ("diff", "c1", "--binary"),
    ("diff", "--name-status"),
    ("diff", "--stat", "--no-renames"),
    ("verify",),
    ("manifest",),
    ("manifest", "--sha256"),
    ("log",),
    ("log", "--all"),
    ("log", "--graph"),
    ("du",),
    ("du", "c1", "-n", "1"),
    ("du", "--by", "checkpoint"),
    ("du", "--by", "workspace"),
    ("workspace",),
    ("workspace", "gone"),
    ("config",),
    ("config", "get", "exclude"),
    ("completion", "fish"),
    ("doctor",),
    ("plugin", "status"),
    ("plugin", "detect"),
    ("plugin", "install", "--runtime", "claude-code", "--dry-run"),
    ("rollback", "c1", "--preview"),
    ("cleanup", "--keep", "1", "--dry-run"),
    ("expunge", "caf*", "README", "--dry-run"),
]


def test_verbs_that_only_look(odd: Path, call: Call) -> None:
    for args in READING:
        result = call(*args, "--json", cwd=odd)
        assert result.status == (4 if args == ("verify",) else 0), result
        assert verb_of(result) == (args[0] if args else "status")


def test_verbs_that_do_something(odd: Path, tmp_path: Path, call: Call) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "file").write_text("file\n")
    Pitrrwnd(other).savepoint("one")
    pair = ("-w", odd, "-w", other)
    for args in (
        ("init",),
        ("checkpoint", "c3", "--pin"),
        ("checkpoint", "--if-changed"),
        ("checkpoint", "--replace", "c3", *pair),
        ("rename", "c3", "third"),
        ("rename", "third"),
        ("pin", "c2"),
        ("unpin", "c2"),
        ("rollback", "c1"),
        ("undo",),
        ("rollback", "latest", *pair),
        ("rollback", "c1", "--", "README"),
        ("restore-to", os.fsencode(tmp_path) + b"/out\xe9", "c1"),
        ("restore", "c1", "--target", tmp_path / "out"),
        ("delete", "c1"),
        ("undelete", "1"),
        ("cleanup", "--keep", "1"),
        ("gc", "--dry-run"),
        ("gc",),
        ("bench", "mark"),
        ("gc", "--repack"),
        ("expunge", "caf*", "README"),
        ("expunge", "--all", "nothing"),
        ("config", "set", "retention.keep", "5"),
        ("config", "set", "exclude", "*.o", "*.a"),
        ("config", "list"),
        ("config", "unset", "retention.keep"),
        ("import", other),
        ("import", other),
        ("recover",),
        ("recover", "--all"),
        ("forget",),
    ):
        expected = "restore-to" if args[0] == "restore" else args[0]
        assert verb_of(call("--json", *args, cwd=odd, check=0)) == expected


def test_one_of_several_workspaces_is_gone_and_followed(protected: Path, tmp_path: Path, call: Call) -> None:
    other = tmp_path / "other"
    other.mkdir()
    call("checkpoint", "-w", other, check=0)
    other.rename(tmp_path / "moved")
    result = call("checkpoint", "--json", "-w", protected, "-w", other, check=13)
    assert verb_of(result) == "checkpoint"
    assert (len(result.json()["workspaces"]), len(result.json()["failed"])) == (1, 1)
    assert verb_of(call("workspace", "gone", "--json", check=0)) == "workspace"
    assert verb_of(call("workspace", "move", other, tmp_path / "moved", "--json", check=0)) == "workspace"


def test_the_other_way_to_ask_and_the_bare_arrays(odd: Path, call: Call) -> None:
    for args in READING:
        result = call(*args, "--format", "json", cwd=odd)
        if not result.stdout.startswith("["):
            assert verb_of(result) == (args[0] if args else "status")
            continue
        assert result.stdout.count("\n") == 1
        field = "graph" if "--graph" in args else ARRAYS[args[0]]
        assert faults(result.json(), f"{args[0]}.schema.json#/properties/{field}") == []
        assert result.json() == call(*args, "--json", cwd=odd).json()[field]


def test_outside_any_workspace_and_without_a_store(odd: Path, tmp_path: Path, call: Call) -> None:
    for args in (("status",), (), ("list",), ("list", "--all"), ("log",)):
        assert verb_of(call(*args, "--json", cwd=tmp_path, check=0)) == (args[0] if args else "status")
    for args in (("status",), ()):
        assert verb_of(call(*args, "--json", "--store", tmp_path / "none", cwd=odd, check=0)) == "status"


@pytest.mark.parametrize("form", [("--json",), ("--format", "json"), ("--format=json",)])
def test_every_verb_fails_with_the_document_of_an_error(form: tuple[str, ...], odd: Path, call: Call) -> None:
    for verb in VERBS:
        for args in (("--nonsense",), ("-w", b"/nowhere/caf\xe9", "-w", "/nowhere/else")):
            result = call(verb, *args, *form, cwd=odd)
            if verb == "hook":  # it never fails, and what it writes there is for a model to read
                assert (result.status, result.stdout) == (0, "")
            elif (verb, args[0]) != ("workspace", "-w"):  # it is about all of them
                assert result.status != 0, result
                assert verb_of(result) == "error"
    for args in (
        ("show", os.fsdecode(b"caf\xe9")),
        ("show", "%s"),
        ("cat", "c1", "README"),
        ("checkpoint", "a b"),
        ("checkpoint", "c1"),
        ("rollback", "-n", "99"),
        ("import", "/nowhere"),
        ("list", "--store", "/nowhere/at/all"),
        ("nonsense",),
    ):
        assert verb_of(call(*args, *form, cwd=odd)) == "error"


def test_results_that_are_not_whole(tmp_path: Path) -> None:
    def act(place: Path) -> None:
        workspace = place / "workspace"
        workspace.mkdir()
        (workspace / "file").write_text("one\n")
        secret = workspace / os.fsdecode(b"caf\xe9")
        secret.write_text("secret\n")
        options = ("--store", place / "store", "-w", workspace, "--json")

        def answer(*args: str | Path, status: int) -> Any:
            result = run_here(*args, *options)
            assert (verb_of(result), result.status) == (args[0], status), result
            return result.json()

        answer("checkpoint", "whole", status=0)
        secret.chmod(0)
        (workspace / "file").write_text("two\n")
        assert answer("checkpoint", "partial", status=3)["problems"] != []
        assert answer("show", status=0)["skipped"][0]["reason"] == "unreadable"
        answer("status", status=0)
        assert answer("verify", "whole", status=4)["omitted"] != []
        assert answer("rollback", "whole", status=3)["left_alone"] != []
        answer("diff", "partial", status=3)
        answer("undo", status=3)
        answer("recover", status=0)

    as_ordinary_user(act)


def test_a_checkpoint_tells_where_git_stands(workspace: Path, call: Call) -> None:
    make_repository(workspace)
    assert verb_of(call("checkpoint", "--json", cwd=workspace, check=0)) == "checkpoint"
    (workspace / "f0").write_text("changed\n")
    git(workspace, "checkout", "-q", "--detach")
    result = call("checkpoint", "--json", cwd=workspace, check=0)
    assert verb_of(result) == "checkpoint"
    assert result.json()["checkpoint"]["git"]["detached"] is True
    (workspace / "f2").write_text("new\n")
    git(workspace, "add", "-A")
    git(workspace, "commit", "-q", "-m", "another")
    rolled = call("rollback", "1", "--json", cwd=workspace, check=0)
    assert verb_of(rolled) == "rollback"
    assert rolled.json()["git"] != []
