"""Hermes, the real one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.model_server import model
from support.real_agents import Machine, configuration, require_turn

VERSION = "0.19.0"

CONFIGURATION = """# mine
model:
  default: mock
  provider: custom
  base_url: {address}/v1
  api_key: x
  context_length: 128000
"""


@pytest.fixture(scope="session")
def hermes(cache: Path) -> Path:
    """The directory of its program, in an environment of its own."""
    place = cache / f"hermes-agent-{VERSION}"
    if not (place / "bin" / "hermes").exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        subprocess.run([place / "bin" / "pip", "install", "-q", f"hermes-agent=={VERSION}"], check=True)
    return place / "bin"


def test_hermes_has_a_checkpoint_from_before_each_turn_and_one_from_after(machine: Machine, hermes: Path) -> None:
    directory = machine.home / ".hermes"
    directory.mkdir()
    env = {"PATH": f"{machine.environ['PATH']}:{hermes}"}
    script = [
        ("patch", {"mode": "replace", "path": "old.txt", "old_string": "old", "new_string": "new"}),
        ("terminal", {"command": "echo made > made.txt"}),
    ]
    with model(script) as server:
        (directory / "config.yaml").write_text(CONFIGURATION.format(address=server.address))
        before = configuration(directory, "config.yaml", "plugins/**/*", "skills/casnap/**/*")
        machine.casnap("plugin", "install", "--runtime", "hermes", env=env)
        machine.run(hermes / "hermes", "chat", "-q", "make", "--yolo", env=env)
    assert (directory / "config.yaml").read_bytes().startswith(before["config.yaml"])
    require_turn(machine, "hermes")
    machine.casnap("plugin", "uninstall", "--runtime", "hermes", env=env)
    assert configuration(directory, "config.yaml", "plugins/**/*", "skills/casnap/**/*") == before
