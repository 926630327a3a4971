"""What a command imports: it is run before every step of an agent, and most of its time is importing.

A list here is what the command needs. Whoever makes one longer says by that what each run pays for.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from casnap.store.follower import MANY_ROWS
from support.cli import environment, run
from support.source import CHECKOUT

STANDARD = {*sys.stdlib_module_names, "__main__"}

HEAVY = {
    "asyncio",
    "difflib",
    "email",
    "json",
    "logging",
    "queue",
    "secrets",
    "subprocess",
    "tempfile",
    "tomllib",
    "traceback",
}
"""Modules of Python itself that are worth keeping out: each takes a millisecond, or many."""

THIRD_PARTY = {"blake3", "msgspec", "zstandard"}
"""What is needed to read a store. msgspec and blake3 bring typing_extensions along where it is installed."""

BROUGHT_ALONG = {"_distutils_hack", "sitecustomize", "usercustomize", "typing_extensions"}

STOOD_IN_FOR = {
    "datetime",
    "decimal",
    "ipaddress",
    "msgspec.inspect",
    "msgspec.toml",
    "msgspec.yaml",
    "platform",
    "signal",
    "textwrap",
    "threading",
    "urllib.parse",
    "uuid",
    "weakref",
}
"""What others and casnap itself import, and these commands use little or nothing of (casnap.cli.foreign)."""

ROOMS = {
    "cli": "errors foreign grammar output progress running session spellings text",
    "codec": "canonical checkpoints chunking compression entries hashing metadata paths records",
    "engine": "context history workspaces",
    "fs": "appending durable locks paths",
    "model": "checkpoint clock config ids paths policy report tree",
    "settings": "environment layers resolution",
    "store": "cache_directory catalog creation follower format groups identity index layout media objects oplog packs"
    " parts rows schema signals space state store tables",
}
"""What every command imports that opens a store."""

FOLDING = {
    "codec": "lines operations packs",
    "model": "operation",
    "store": "apply",
}
"""What it takes to read lines of the operation log that the catalog does not have yet, and to write one."""

LOOKING = {
    "engine": "compare scanning target_rules",
    "fs": "directories",
    "model": "change plan",
    "workspace": "ahead belief cache cache_file found garbage mounts omissions proof recording rules scan side_files"
    " signature stats",
}
"""What looking at a workspace takes beside that, as long as nothing in it has changed."""

MAKING = {
    "engine": "checkpoint gc_terms",
    "settings": "background",
    "store": "compressing deltas gathering session",
}
"""What making a checkpoint takes beside that, if there is anything to be made; whether a gc is due is asked last."""

WRITING = {
    "codec": "chunk_lists paging",
    "engine": "content git",
    "store": "adoption writer",
}
"""What it takes when there is."""

READING = {
    "codec": "trees",
    "model": "objects",
    "workspace": "assembly cache_saving confirmation databases entries git_directories ignore_files lister naming"
    " outbox provability reader redaction rounds survey temporaries toml_excludes walk",
}
"""What it takes to find what has changed, to read it, and to know it the next time."""

CHANGING = {
    "cli": "outcome revisions rollback",
    "codec": "chunk_lists paging trees",
    "engine": "alike checkpoint content git_moves late protection recorded request restoring rollback roots safety"
    " scope sinks",
    "fs": "making placing",
    "model": "objects revision",
    "store": "compressing deltas gathering session",
    "workspace": "building entries holders homes inodes layout naming outbox reader redaction staging switching"
    " temporaries",
}
"""What changing a workspace takes beside looking at it."""

HOOKED = {
    "agents": "dialects event hook notes payload turns",
    "cli": "errors foreign grammar hook output running session spellings",
    "codec": "hashing",
    "fs": "durable locks paths",
    "model": "checkpoint config ids paths policy tree",
    "settings": "detaching environment layers",
    "store": "signals",
}
"""What a hook takes that has nothing to do: it need not open the store."""

COMMANDS = {
    "hook that has nothing to do": (["hook"], [HOOKED]),
    "list": (["list"], [ROOMS, FOLDING, {"cli": "list table"}]),
    "list as JSON": (["list", "--json"], [ROOMS, FOLDING, {"cli": "as_json list table", "model": "change"}]),
    "status": (
        ["status"],
        [
            ROOMS,
            FOLDING,
            LOOKING,
            {
                "agents": "failures notes",
                "cli": "hook_notes status",
                "engine": "gc_terms recorded roots sinks status upkeep",
                "fs": "placing",
                "model": "upkeep",
            },
        ],
    ),
    "checkpoint of what has not changed": (
        ["checkpoint", "--if-changed"],
        [ROOMS, FOLDING, LOOKING, MAKING, {"cli": "checkpoint"}],
    ),
    "checkpoint": (["save", "-m", "why"], [ROOMS, FOLDING, LOOKING, MAKING, WRITING, READING, {"cli": "checkpoint"}]),
    "rollback": (["rollback"], [ROOMS, FOLDING, LOOKING, CHANGING]),
    "checkpoint as JSON": (
        ["checkpoint", "--json"],
        [ROOMS, FOLDING, LOOKING, MAKING, WRITING, {"cli": "as_json checkpoint"}],
    ),
}


PROGRAM = """
import os, sys
from casnap.cli import main

def leave(status):
    print(*sys.modules, file=sys.stderr, flush=True)
    end(status)

os._exit, end = leave, os._exit
try:
    main()
except SystemExit as ending:
    leave(ending.code)
"""
"""Runs the command line, and says at the end on the last line what has been imported."""


TOLD = {"hook": '{"hook_event_name": "PreToolUse", "tool_name": "Read", "cwd": "/"}'}
"""What a verb reads from its standard input."""


def imported(*words: str, cwd: Path, said: str = "") -> set[str]:
    """The modules that a command imports, which reads ``said``."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, *words],
        cwd=cwd,
        env=environment(),
        input=said,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


def expected(rooms: list[dict[str, str]]) -> set[str]:
    found = {"casnap", "casnap.errors"}
    for modules in rooms:
        for room, names in modules.items():
            found |= {f"casnap.{room}", *(f"casnap.{room}.{name}" for name in names.split())}
    return found


def third_party(modules: set[str]) -> set[str]:
    return {module.partition(".")[0] for module in modules} - STANDARD - BROUGHT_ALONG - {"casnap"}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("workspace")
    (place / "file").write_text("content\n")
    return place


@pytest.fixture(autouse=True)
def first_checkpoint(workspace: Path) -> None:
    run("checkpoint", cwd=workspace, check=0)


def test_the_version_is_told_before_anything_is_imported(tmp_path: Path) -> None:
    modules = imported("--version", cwd=tmp_path)
    assert {module for module in modules if module.startswith("casnap")} == {"casnap", "casnap.cli"}
    assert third_party(modules) == set()
    assert not modules & {"contextlib", "enum", "importlib", "re", "typing"}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_imports_what_it_needs_and_no_more(command: str, workspace: Path) -> None:
    words, rooms = COMMANDS[command]
    if command == "checkpoint":
        (workspace / "file").write_text(f"content {os.getpid()}\n")
    modules = imported(*words, cwd=workspace, said=TOLD.get(words[0], ""))
    ours = {module for module in modules if module.partition(".")[0] == "casnap"}
    wanted = expected(rooms)
    assert not ours - wanted, f"`casnap {' '.join(words)}` imports more: {sorted(ours - wanted)}"
    assert not wanted - ours, f"good news, take them off the list: {sorted(wanted - ours)}"
    foreign = third_party(modules)
    assert not foreign - THIRD_PARTY, f"`casnap {' '.join(words)}` imports {sorted(foreign - THIRD_PARTY)}"
    heavy = HEAVY - {"json"} if "--json" in words else HEAVY
    assert not modules & heavy, f"`casnap {' '.join(words)}` imports {sorted(modules & heavy)}"
    brought = modules & STOOD_IN_FOR
    assert not brought, f"`casnap {' '.join(words)}` imports {sorted(brought)}, which nobody needs"


@pytest.mark.parametrize("words", [["list"], ["status"], ["checkpoint", "--if-changed"]], ids=" ".join)
def test_who_finds_all_in_the_catalog_imports_nothing_to_read_lines_with(words: list[str], tmp_path: Path) -> None:
    for number in range(MANY_ROWS + 1):  # so many that the catalog takes them at once
        (tmp_path / f"file{number}").write_text(f"content {number}\n")
    run("checkpoint", cwd=tmp_path, check=0)
    assert not imported(*words, cwd=tmp_path) & (expected([FOLDING]) - expected([ROOMS]))


def test_every_module_that_is_named_exists() -> None:
    named = expected([modules for _, rooms in COMMANDS.values() for modules in rooms])
    paths = [CHECKOUT / name.replace(".", "/") for name in named]
    assert [path for path in paths if not path.with_suffix(".py").exists() and not path.is_dir()] == []


def test_the_process_that_takes_a_hooks_checkpoint_does_without_what_is_heavy(workspace: Path) -> None:
    (workspace / "file").write_text(f"told {os.getpid()}\n")
    program = """
import sys
from casnap.agents.event import Event, Moment
from casnap.agents.notes import Turn
from casnap.agents.taking import take
from casnap.settings import load_settings
take(load_settings(), Event("codex", Moment.PROMPT, "s", "t"), sys.argv[1], Turn())
print(*sys.modules)
"""
    words = [sys.executable, "-P", "-c", program, str(workspace)]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, check=True)
    assert run("list", "--json", cwd=workspace, check=0).json()["checkpoints"][0]["message"] == "before the turn"
    assert not {"click", "rich", "sqlite_utils", "json5", "casnap.cli"} & set(done.stdout.split())
