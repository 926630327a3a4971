"""Hermes, the real one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.acp import Editor
from support.model_server import Call, model
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
    """The directory of its programs, in an environment of its own; editors' way to it is an extra."""
    place = cache / f"hermes-agent-{VERSION}-acp"
    if not (place / "done").exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        subprocess.run([place / "bin" / "pip", "install", "-q", f"hermes-agent[acp]=={VERSION}"], check=True)
        (place / "done").touch()
    return place / "bin"


def script(machine: Machine) -> list[Call]:
    old = str(machine.workspace / "old.txt")
    return [
        ("patch", {"mode": "replace", "path": old, "old_string": "old", "new_string": "new"}),
        ("terminal", {"command": "echo made > made.txt"}),
    ]


def files(machine: Machine) -> dict[str, bytes]:
    return configuration(machine.home / ".hermes", "config.yaml", "plugins/**/*", "skills/casnap/**/*")


@contextmanager
def set_up(machine: Machine, hermes: Path) -> Iterator[dict[str, str]]:
    """Hermes with casnap in it, which a model tells what to do; afterwards casnap must leave nothing behind."""
    settings = machine.home / ".hermes" / "config.yaml"
    settings.parent.mkdir()
    env = {"PATH": f"{machine.environ['PATH']}:{hermes}"}
    with model(script(machine)) as server:
        settings.write_text(CONFIGURATION.format(address=server.address))
        before = files(machine)
        machine.casnap("plugin", "install", "--runtime", "hermes", env=env)
        yield env
    assert settings.read_bytes().startswith(before["config.yaml"])
    require_turn(machine, "hermes")
    machine.casnap("plugin", "uninstall", "--runtime", "hermes", env=env)
    assert files(machine) == before


def test_hermes_has_a_checkpoint_from_before_each_turn_and_one_from_after(machine: Machine, hermes: Path) -> None:
    with set_up(machine, hermes) as env:
        machine.run(hermes / "hermes", "chat", "-q", "make", "--yolo", env=env)


def test_hermes_in_an_editor_has_them_in_the_project_of_the_session(machine: Machine, hermes: Path) -> None:
    with set_up(machine, hermes) as env:
        elsewhere = machine.home  # where an editor happens to start it
        with Editor([str(hermes / "hermes-acp")], cwd=elsewhere, env={**machine.environ, **env}) as editor:
            editor.turn(machine.workspace, "make")
