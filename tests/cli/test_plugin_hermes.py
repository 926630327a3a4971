"""``casnap plugin`` and Hermes: a plugin is copied, and enabled in its configuration, where each comment stays."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from support.cli import Result, run

MINE = """# mine
model:
    default: x   # the model
plugins:
    # those that I trust
    enabled:
    - 'other'   # good
    disabled: []
terminal: {cwd: /x}
"""


@pytest.fixture
def settings(home: Path) -> Path:
    """The configuration of a Hermes whose program is somewhere else."""
    (home / ".hermes").mkdir(mode=0o700)
    path = home / ".hermes" / "config.yaml"
    path.write_text(MINE)
    return path


@pytest.fixture
def program(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that only notes what it is told, and says what it must."""
    programs = home / "bin"
    programs.mkdir()
    path = programs / "hermes"
    path.write_text('#!/bin/sh\necho "$*" >> "$HOME/told"\nexit "$(cat "$HOME/status" 2>/dev/null || echo 0)"\n')
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return path


def plugin(action: str, *words: str, check: int | None = 0) -> Result:
    return run("plugin", action, "--runtime", "hermes", *words, check=check, cwd="/")


def standing() -> dict[str, object]:
    (found,) = plugin("status", "--json").json()["agents"]
    return dict(found)


def test_hermes_gets_a_plugin_a_skill_and_a_name_in_its_configuration_and_ends_as_it_was(
    settings: Path, program: Path, home: Path
) -> None:
    directory = home / ".hermes"
    was = sorted(directory.rglob("*"))
    plugin("install")
    assert settings.read_text() == MINE.replace("    - 'other'", "    - casnap\n    - 'other'")
    assert {path.name for path in (directory / "plugins" / "casnap").iterdir()} == {
        "__init__.py",
        "casnap.json",
        "plugin.yaml",
    }
    assert json.loads((directory / "plugins" / "casnap" / "casnap.json").read_text())["command"][0].startswith("/")
    assert (directory / "skills" / "casnap" / "SKILL.md").is_file()
    assert (standing()["installed"], standing()["differs"]) == (True, None)
    assert "nothing to do" in plugin("install").stdout
    (directory / "plugins" / "casnap" / "__pycache__").mkdir()
    (directory / "plugins" / "casnap" / "__pycache__" / "__init__.cpython-311.pyc").write_bytes(b"made by Hermes")
    plugin("uninstall")
    assert settings.read_text() == MINE
    assert sorted(directory.rglob("*")) == was
    assert not (home / "told").exists()


def test_without_a_configuration_one_is_made_and_taken_away(home: Path) -> None:
    plugin("install")
    assert (home / ".hermes" / "config.yaml").read_text() == "plugins:\n  enabled:\n    - casnap\n"
    plugin("uninstall")
    assert not (home / ".hermes").exists()


def test_what_others_wrote_meanwhile_stays(settings: Path) -> None:
    plugin("install")
    settings.write_text(settings.read_text().replace("default: x", "default: y"))
    plugin("uninstall")
    assert settings.read_text() == MINE.replace("default: x", "default: y")


def test_a_list_that_was_made_for_it_goes_with_it(settings: Path) -> None:
    settings.write_text("a: 1\n")
    plugin("install")
    settings.write_text(settings.read_text() + "b: 2\n")
    plugin("uninstall")
    assert settings.read_text() == "a: 1\nb: 2\n"


def test_one_that_was_taken_out_of_the_list_is_put_in_again(settings: Path) -> None:
    plugin("install")
    settings.write_text(MINE)
    assert "config.yaml would be written anew" in str(standing()["differs"])
    plugin("install")
    assert "- casnap" in settings.read_text()
    plugin("uninstall")
    assert settings.read_text() == MINE


def test_who_switched_it_off_in_hermes_is_told_how_to_switch_it_on(settings: Path) -> None:
    settings.write_text("plugins:\n  disabled: [casnap]\n")
    result = plugin("install")
    assert "note: casnap is in plugins.disabled" in result.stderr
    assert "disabled: [casnap]" in settings.read_text()


def test_a_form_that_cannot_be_changed_in_place_is_hermes_to_change_and_no_tool_of_its_own_is_replaced(
    settings: Path, program: Path, home: Path
) -> None:
    settings.write_text("plugins: null # none\n")
    plugin("install")
    assert (home / "told").read_text() == "plugins enable casnap --no-allow-tool-override\n"
    settings.write_text("{mine: &all [casnap], plugins: {enabled: *all }}\n")
    plugin("uninstall")
    assert (home / "told").read_text().splitlines()[1:] == ["plugins disable casnap"]


def test_where_hermes_is_somewhere_else_the_person_is_told_to_do_that(settings: Path) -> None:
    settings.write_text("plugins: null\n")
    assert "note: enable it in Hermes' environment: hermes plugins enable casnap" in plugin("install").stderr


def test_a_command_of_the_agent_that_fails_is_told_and_can_be_tried_again(
    settings: Path, program: Path, home: Path
) -> None:
    settings.write_text("plugins: null\n")
    (home / "status").write_text("3")
    result = plugin("install", check=1)
    assert "failed with 3" in result.stderr
    (home / "status").unlink()
    plugin("install")
    assert len((home / "told").read_text().splitlines()) == 2


@pytest.mark.parametrize("text", ["a: [", "\tb: 1", "a: 1\n---\nb: 1\n"])
def test_a_configuration_that_is_no_yaml_is_refused_before_anything_is_written(text: str, settings: Path) -> None:
    settings.write_text(text)
    for action in ("install", "uninstall"):
        assert f"cannot change {settings}: it is no YAML" in plugin(action, check=2).stderr
    assert settings.read_text() == text
    assert not (settings.parent / "plugins").exists()


def test_a_link_and_a_mode_stay(settings: Path, home: Path) -> None:
    (home / "dotfiles").mkdir()
    settings.rename(home / "dotfiles" / "hermes.yaml")
    (home / "dotfiles" / "hermes.yaml").chmod(0o640)
    settings.symlink_to(home / "dotfiles" / "hermes.yaml")
    plugin("install")
    assert settings.is_symlink()
    assert "- casnap" in settings.read_text()
    assert settings.stat().st_mode & 0o777 == 0o640
    plugin("uninstall")
    assert settings.read_text() == MINE
