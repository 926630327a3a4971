"""What a command imports: it is run before every step of an agent, and most of its time is importing.

A list here is what the command needs. Whoever makes one longer says by that what each run pays for.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.cli import environment, run
from support.source import CHECKOUT

STANDARD = {*sys.stdlib_module_names, "__main__"}

HEAVY = {"asyncio", "difflib", "email", "json", "logging", "secrets", "subprocess", "tempfile", "tomllib", "traceback"}
"""Modules of Python itself that are worth keeping out: each takes a millisecond, or many."""

THIRD_PARTY = {"blake3", "msgspec", "zstandard"}
"""What is needed to read a store. msgspec and blake3 bring typing_extensions along where it is installed."""

BROUGHT_ALONG = {"_distutils_hack", "sitecustomize", "usercustomize", "typing_extensions"}

ROOMS = {
    "cli": "errors foreign grammar output progress running session spellings text",
    "codec": "canonical checkpoints chunking compression entries hashing lines metadata operations packs paths records",
    "engine": "context history workspaces",
    "fs": "appending durable locks",
    "model": "age change checkpoint clock config ids operation paths policy report revision tree upkeep",
    "settings": "background environment layers resolution whole_file",
}
"""What every command imports that opens a store; for the rooms ``store`` and ``workspace`` see below."""

LOOKING = {
    "codec": "chunk_lists paging trees",
    "engine": "compare content scanning sinks target_rules",
    "fs": "directories",
    "model": "objects plan",
}
"""What looking at a workspace takes beside that."""

MAKING = {
    "engine": "checkpoint gc_terms git",
}
"""What making a checkpoint takes beside that; whether a gc is due is asked last."""

CHANGING = {
    "cli": "outcome revisions rollback",
    "engine": "alike checkpoint git git_moves late protection recorded request restoring rollback roots safety scope",
    "fs": "placing",
}
"""What changing a workspace takes beside that."""

COMMANDS = {
    "list": (["list"], [ROOMS, {"cli": "list table"}]),
    "list as JSON": (["list", "--json"], [ROOMS, {"cli": "as_json list table"}]),
    "status": (
        ["status"],
        [
            ROOMS,
            LOOKING,
            {"cli": "status", "engine": "gc_terms recorded roots status upkeep", "fs": "placing"},
        ],
    ),
    "checkpoint of what has not changed": (
        ["checkpoint", "--if-changed"],
        [ROOMS, LOOKING, MAKING, {"cli": "checkpoint"}],
    ),
    "checkpoint": (["save", "-m", "why"], [ROOMS, LOOKING, MAKING, {"cli": "checkpoint"}]),
    "rollback": (["rollback"], [ROOMS, LOOKING, CHANGING]),
    "checkpoint as JSON": (["checkpoint", "--json"], [ROOMS, LOOKING, MAKING, {"cli": "as_json checkpoint"}]),
}

WRITING = "adoption collection compaction deltas marks orphans reach session writer"
"""Of the store: what who only reads does without."""

SELDOM = {
    "casnap.store": "catalog_audit catalog_memory inspection mending lost_ranges new_lines pack_survey pack_walk sizes",
    "casnap.workspace": "holders layout staging switching",
}
"""Of the rooms below the engine: what only other verbs need."""


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


def imported(*words: str, cwd: Path) -> set[str]:
    """The modules that a command imports."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, *words],
        cwd=cwd,
        env=environment(),
        stdin=subprocess.DEVNULL,
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


def is_below(module: str) -> bool:
    return module.startswith(("casnap.store", "casnap.workspace"))


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
    modules = imported(*words, cwd=workspace)
    ours = {module for module in modules if module.startswith("casnap") and not is_below(module)}
    wanted = expected(rooms)
    assert not ours - wanted, f"`casnap {' '.join(words)}` imports more: {sorted(ours - wanted)}"
    assert not wanted - ours, f"good news, take them off the list: {sorted(wanted - ours)}"
    foreign = third_party(modules)
    assert not foreign - THIRD_PARTY, f"`casnap {' '.join(words)}` imports {sorted(foreign - THIRD_PARTY)}"
    heavy = HEAVY - {"json"} if "--json" in words else HEAVY
    assert not modules & heavy, f"`casnap {' '.join(words)}` imports {sorted(modules & heavy)}"
    seldom = {f"{room}.{name}" for room, names in SELDOM.items() for name in names.split()}
    assert command == "rollback" or not modules & seldom, (
        f"`casnap {' '.join(words)}` imports {sorted(modules & seldom)}"
    )
    if words[0] == "list":
        assert not {module for module in modules if module.startswith("casnap.workspace")}
        assert not modules & {f"casnap.store.{name}" for name in WRITING.split()}


def test_every_module_that_is_named_exists() -> None:
    named = expected([modules for _, rooms in COMMANDS.values() for modules in rooms])
    named |= {f"{room}.{name}" for room, names in SELDOM.items() for name in names.split()}
    paths = [CHECKOUT / name.replace(".", "/") for name in named]
    assert [path for path in paths if not path.with_suffix(".py").exists() and not path.is_dir()] == []
