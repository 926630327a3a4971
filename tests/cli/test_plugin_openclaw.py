"""``casnap plugin`` and OpenClaw: its own command puts the plugin into its configuration, and it asks for consent."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from support import openclaw
from support.cli import Result, run

MINE = '// mine\n{\n  "gateway": {"mode": "local"} // here\n}\n'


@pytest.fixture
def settings(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configuration of an OpenClaw whose program is at the front of PATH."""
    programs = home / "bin"
    programs.mkdir()
    program = programs / "openclaw"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{openclaw.__file__}" "{home}" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    (home / ".openclaw").mkdir(mode=0o700)
    path = home / ".openclaw" / "openclaw.json"
    path.write_text(MINE)
    return path


def plugin(action: str, *words: str, check: int | None = 0) -> Result:
    return run("plugin", action, "--runtime", "openclaw", *words, check=check, cwd="/")


def told(home: Path) -> list[str]:
    """What OpenClaw was told since somebody asked last."""
    path = home / "told"
    found = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return found


def standing() -> dict[str, object]:
    (found,) = plugin("status", "--json").json()["agents"]
    return dict(found)


def test_openclaw_is_told_by_its_own_command_and_its_configuration_ends_as_it_was(settings: Path, home: Path) -> None:
    own = home / ".local" / "share" / "casnap-plugins" / "openclaw"
    assert standing()["installed"] is False
    plugin("install", "--accept-capabilities")
    link = f"plugins install --link {own} --force --accept-capabilities"
    assert told(home) == [link, "plugins enable casnap"]
    assert (own / "index.js").is_file()
    assert json.loads((own / "casnap.json").read_text())["command"][0].startswith("/")
    assert (home / ".openclaw" / "skills" / "casnap" / "SKILL.md").is_file()
    assert (standing()["installed"], standing()["differs"]) == (True, None)
    once = settings.read_bytes()
    assert "nothing to do" in plugin("install").stdout
    assert (told(home), settings.read_bytes()) == ([], once)
    plugin("uninstall")
    assert told(home) == ["plugins uninstall casnap --force"]
    assert settings.read_text() == MINE
    assert not own.parent.exists()
    assert not (home / ".openclaw" / "skills").exists()


def test_consent_is_the_persons_and_what_was_refused_for_want_of_it_can_be_done_afterwards(
    settings: Path, home: Path
) -> None:
    result = plugin("install", check=1)
    assert "--accept-capabilities" not in told(home)[0]
    assert 'openclaw: Plugin "casnap" requires capability consent.' in result.stderr
    assert "casnap plugin install --runtime openclaw --accept-capabilities" in result.stderr
    assert settings.read_text() == MINE
    assert standing()["installed"] is False
    assert sorted(path.name for path in home.rglob("*") if "casnap" in path.name) == []
    plugin("install", "--accept-capabilities")
    assert [line.split()[1] for line in told(home)] == ["install", "enable"]
    assert standing()["differs"] is None


def test_without_consent_it_can_be_taken_back_too(settings: Path, home: Path) -> None:
    plugin("install", check=1)
    told(home)
    plugin("uninstall")
    assert told(home) == []
    assert settings.read_text() == MINE
    assert standing()["installed"] is False


def test_a_newer_plugin_needs_no_consent_once_more(settings: Path, home: Path) -> None:
    plugin("install", "--accept-capabilities")
    index = home / ".local" / "share" / "casnap-plugins" / "openclaw" / "index.js"
    new = index.read_bytes()
    index.write_bytes(b"// of an older version\n")
    told(home)
    assert f"{index} would be written anew" in str(standing()["differs"])
    plugin("install")
    assert told(home) == []
    assert index.read_bytes() == new
    plugin("uninstall")
    assert not index.parent.parent.exists()
    assert settings.read_text() == MINE


def test_one_that_was_switched_off_is_switched_on_where_somebody_asks(settings: Path, home: Path) -> None:
    plugin("install", "--accept-capabilities")
    told(home)
    settings.write_text(settings.read_text().replace('"enabled": true', '"enabled": false'))
    assert "plugins enable casnap would be run" in str(standing()["differs"])
    plugin("install")
    assert told(home) == ["plugins enable casnap"]


def test_what_others_wrote_meanwhile_stays(settings: Path, home: Path) -> None:
    plugin("install", "--accept-capabilities")
    settings.write_text(settings.read_text().replace('"local"', '"remote"'))
    plugin("uninstall")
    left = json.loads(settings.read_text())
    assert left["gateway"] == {"mode": "remote"}
    assert "load" not in left["plugins"]


def test_an_agent_that_fails_leaves_the_others_set_up(settings: Path, home: Path) -> None:
    (home / ".claude").mkdir()
    result = run("plugin", "install", check=1, cwd="/")
    assert "Claude Code: wrote" in result.stdout
    assert result.stderr.count("error: ") == 1
    assert (home / ".claude" / "settings.json").is_file()
    told = run("plugin", "install", "--json", check=1, cwd="/").json()
    assert told["code"] == "agent-failed"
    assert (told["details"]["done"], list(told["details"]["failed"])) == (["claude-code"], ["openclaw"])


def test_without_its_program_the_person_is_told_what_to_do(settings: Path, home: Path) -> None:
    (home / "bin" / "openclaw").unlink()
    result = plugin("install")
    assert "note: let OpenClaw know it: openclaw plugins install --link" in result.stderr
    assert settings.read_text() == MINE
    plugin("uninstall")


@pytest.mark.parametrize("text", ["{", "[]", '{"plugins": {"load": {"paths": 5}, "entries": []}}', ""])
def test_a_configuration_that_makes_no_sense_is_openclaws_to_judge(text: str, settings: Path, home: Path) -> None:
    settings.write_text(text)
    assert standing()["installed"] is False
    plugin("install", "--dry-run")
    assert settings.read_text() == text
