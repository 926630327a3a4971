"""Claude Code, the real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.model_server import model
from support.real_agents import Machine, configuration, fetched, require_turn

VERSION = "2.1.332"

SETTINGS = '{\n  "cleanupPeriodDays": 7\n}\n'


@pytest.fixture(scope="session")
def claude(cache: Path) -> Path:
    return fetched(cache, "@anthropic-ai/claude-code-linux-x64", VERSION) / "claude"


def test_claude_code_has_a_checkpoint_from_before_each_turn_and_one_from_after(machine: Machine, claude: Path) -> None:
    directory = machine.home / ".claude"
    directory.mkdir()
    (directory / "settings.json").write_text(SETTINGS)
    machine.casnap("plugin", "install", "--runtime", "claude-code")
    old = str(machine.workspace / "old.txt")
    script = [
        ("Read", {"file_path": old}),
        ("Edit", {"file_path": old, "old_string": "old", "new_string": "new"}),
        ("Bash", {"command": "echo made > made.txt", "description": "make a file"}),
    ]
    with model(script) as server:
        env = {
            "ANTHROPIC_BASE_URL": server.address,
            "ANTHROPIC_API_KEY": "dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
        words = ["-p", "make", "--allowedTools", "Write,Edit,Bash,Read", "--model", "claude-sonnet-4-5"]
        machine.run(claude, *words, "--output-format", "json", env=env)
    require_turn(machine, "claude-code")
    machine.casnap("plugin", "uninstall", "--runtime", "claude-code")
    assert configuration(directory, "settings*.json", "skills/**/*") == {"settings.json": SETTINGS.encode()}
