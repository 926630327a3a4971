"""``casnap plugin``: after uninstall each byte and each directory is as it was before install, whatever stood there."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from casnap.agents.installing import apply
from casnap.agents.installing.claude_code import ClaudeCode
from casnap.agents.installing.command import HookCommand
from casnap.agents.installing.own_files import SKILL
from casnap.agents.installing.runtime import Surroundings
from casnap.errors import CasnapError
from support.cases import as_ordinary_user
from support.cli import Result, environment, run

Prepare = Callable[[Path], object]

LONG_AGO = 1_000_000_000_000_000_007


def plugin(action: str, *runtimes: str, check: int | None = 0) -> Result:
    named = [word for runtime in runtimes or ("claude-code",) for word in ("--runtime", runtime)]
    return run("plugin", action, *named, check=check, cwd="/")


def picture(home: Path) -> dict[str, Any]:
    """All that is below home: kind, mode, owner, time, attributes, and what it holds."""
    return {
        str(path.relative_to(home)): described(path)
        for path in sorted(home.rglob("*"))
        if path.relative_to(home).parts[0] != "store"
    }


def described(path: Path) -> tuple[Any, ...]:
    status = path.lstat()
    owned = (oct(status.st_mode), status.st_uid, status.st_gid)
    if path.is_symlink():
        return (*owned, os.readlink(path))
    if not path.is_file():
        return owned
    attributes = {name: os.getxattr(path, name) for name in os.listxattr(path)}
    return (*owned, path.read_bytes(), status.st_mtime_ns, attributes)


def written(path: Path, data: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    os.utime(path, ns=(LONG_AGO, LONG_AGO))
    return path


def settings(home: Path, data: bytes | str = '{"model": "x"}') -> Path:
    return written(home / ".claude" / "settings.json", data)


def acl(*, named: int) -> bytes:
    """An access control list as the kernel takes it, that lets one more user read and write."""
    entries = [(1, 6, -1), (2, 6, named), (4, 4, -1), (16, 6, -1), (32, 4, -1)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)


# -- entries that a person made -------------------------------------------------------------------------------

BY_HAND: list[dict[str, Any]] = [
    {"type": "command", "command": "casnap hook || true"},
    {"type": "command", "command": "/x/casnap", "args": ["hook", "--agent", "claude-code"]},
    {"type": "command", "command": "casnap --store X hook", "timeout": 20},
    {"type": "command", "command": "python -m casnap hook; true"},
    {"type": "command", "command": '"/my tools/casnap" hook'},
    {"type": "command", "command": "/x/casnap hook --agent claude-code"},
]


def hooks(*handlers: dict[str, Any]) -> str:
    return json.dumps({"model": "x", "hooks": {"Stop": [{"hooks": [one]} for one in handlers]}}, indent=2)


@pytest.mark.parametrize("edited", [False, True], ids=["untouched", "edited meanwhile"])
def test_hooks_of_casnap_that_a_person_had_made_stay_where_they_are(edited: bool, home: Path) -> None:
    text = hooks(*BY_HAND)
    path = settings(home, text)
    assert "entries that are not from here, too; they stay" in plugin("install").stderr
    found = json.loads(path.read_text())["hooks"]["Stop"]
    assert [group["hooks"] for group in found[:-1]] == [[one] for one in BY_HAND]
    assert found[-1]["hooks"][0]["command"].endswith("hook --agent claude-code")
    assert "nothing to do" in plugin("install").stdout
    if edited:
        path.write_text(path.read_text().replace('"x"', '"y"', 1))
    plugin("uninstall")
    assert path.read_text() == (text.replace('"x"', '"y"', 1) if edited else text)


def test_without_a_record_just_what_has_casnap_s_own_form_goes(home: Path) -> None:
    text = hooks(*BY_HAND)
    path = settings(home, text)
    plugin("install")
    shutil.rmtree(home / ".local")
    plugin("uninstall")
    assert path.read_text() == text
    assert "nothing to do" in plugin("uninstall").stdout


@pytest.mark.parametrize(
    "text",
    [
        "plugins:\n  enabled: [casnap]\n",
        "plugins:\n  enabled:\n  - casnap # mine\n  - other\n",
        "plugins: {enabled: [other, casnap]}",
        "plugins:\n  enabled: [casnap, casnap]\n",
    ],
)
@pytest.mark.parametrize("edited", [False, True], ids=["untouched", "edited meanwhile"])
def test_a_name_in_the_list_of_hermes_that_a_person_had_put_there_stays(text: str, edited: bool, home: Path) -> None:
    path = written(home / ".hermes" / "config.yaml", text)
    was = picture(home)
    plugin("install", "hermes")
    plugin("install", "hermes")
    if edited:
        path.write_text(f"a: 1\n{text}")
    plugin("uninstall", "hermes")
    if edited:
        assert path.read_text() == f"a: 1\n{text}"
        path.unlink()
        written(path, text)
    assert picture(home) == was


def test_what_is_the_person_s_stays_where_nothing_is_set_up_and_where_one_says_it_twice(home: Path) -> None:
    settings(home, hooks(*BY_HAND))
    written(home / ".hermes" / "config.yaml", "plugins:\n  enabled: [casnap]\n")
    was = picture(home)
    for action in ("uninstall", "install", "uninstall", "uninstall"):
        plugin(action, "claude-code", "hermes")
        assert (picture(home) == was) == (action == "uninstall")


def test_a_skill_just_as_casnap_s_that_was_there_stays(home: Path) -> None:
    settings(home)
    shutil.copytree(SKILL, home / ".claude" / "skills" / "casnap", ignore=shutil.ignore_patterns("__pycache__"))
    was = picture(home)
    plugin("install")
    plugin("uninstall")
    assert picture(home) == was


def test_a_file_that_was_not_there_and_holds_nothing_else_goes_however_it_was_written_since(home: Path) -> None:
    plugin("install")
    path = home / ".claude" / "settings.json"
    path.write_text(json.dumps(json.loads(path.read_text()), indent=8))
    plugin("uninstall")
    assert picture(home) == {}


# -- directories, links, attributes -----------------------------------------------------------------------------


def dangling(link: str, target: str) -> Prepare:
    def prepare(home: Path) -> None:
        (home / link).parent.mkdir(parents=True, exist_ok=True)
        (home / link).symlink_to(target)

    return prepare


def directory(*names: str) -> Prepare:
    def prepare(home: Path) -> None:
        for name in names:
            (home / name).mkdir(parents=True)

    return prepare


def with_attributes(home: Path) -> None:
    path = settings(home)
    path.chmod(0o664)
    os.setxattr(path, "user.note", b"mine")
    os.setxattr(path, "system.posix_acl_access", acl(named=7))
    os.utime(path, ns=(LONG_AGO, LONG_AGO))


def below_a_default_acl(home: Path) -> None:
    os.setxattr(settings(home).parent, "system.posix_acl_default", acl(named=7))


PLACES: dict[str, Prepare] = {
    "nothing": lambda home: None,
    "a part of the way to the record": directory(".local"),
    "an empty directory of the skill": directory(".claude/skills/casnap"),
    "empty directories of Hermes": directory(".hermes/skills", ".hermes/plugins/casnap"),
    "skills that lead nowhere": dangling(".claude/skills", "../nowhere/deep"),
    "settings that lead nowhere": dangling(".claude/settings.json", "../dotfiles/claude/settings.json"),
    "an agent that leads nowhere": dangling(".claude", "nowhere/claude"),
    "a record that leads nowhere": dangling(".local", "elsewhere/local"),
    "a plugin that leads nowhere": dangling(".hermes/plugins/casnap", "../../nowhere/casnap"),
    "attributes": with_attributes,
    "a default access control list": below_a_default_acl,
    "time and mode": lambda home: settings(home).chmod(0o600),
}


@pytest.mark.parametrize("place", PLACES)
def test_each_directory_link_and_attribute_is_as_it_was(place: str, home: Path) -> None:
    try:
        PLACES[place](home)
    except OSError as error:
        pytest.skip(f"not possible here: {error}")
    was = picture(home)
    plugin("install", "claude-code", "hermes", "openclaw")
    between = picture(home)
    assert set(between) > set(was)
    for path in [path for path in was if path.endswith(("settings.json", ".local", "skills"))]:
        assert (between[path][:3], between[path][5:]) == (was[path][:3], was[path][5:])
    plugin("install", "claude-code", "hermes", "openclaw")
    assert picture(home) == between
    plugin("uninstall", "claude-code", "hermes", "openclaw")
    assert picture(home) == was


def test_a_directory_in_which_somebody_has_put_something_stays(home: Path) -> None:
    plugin("install")
    written(home / ".claude" / "skills" / "mine" / "SKILL.md", "mine")
    plugin("uninstall")
    assert set(picture(home)) == {".claude", ".claude/skills", ".claude/skills/mine", ".claude/skills/mine/SKILL.md"}


def test_what_two_share_goes_with_the_last_of_them(home: Path) -> None:
    settings(home)
    was = picture(home)
    for order in (("user", "project"), ("project", "user")):
        words = {"user": (), "project": ("--scope", "project", "-w", home)}
        for scope in ("user", "project"):
            run("plugin", "install", "--runtime", "claude-code", *words[scope], check=0)
        run("plugin", "uninstall", "--runtime", "claude-code", *words[order[0]], check=0)
        assert (home / ".claude" / "skills" / "casnap" / "SKILL.md").is_file()
        run("plugin", "uninstall", "--runtime", "claude-code", *words[order[1]], check=0)
        assert picture(home) == was


def test_in_whatever_order_agents_go_nothing_of_any_is_left(home: Path) -> None:
    agents = ["claude-code", "hermes", "openclaw"]
    for order in (agents, agents[::-1]):
        for agent in agents:
            plugin("install", agent)
        for agent in order:
            plugin("uninstall", agent)
        assert picture(home) == {}


def test_by_whichever_way_a_home_is_named_it_is_known_again(home: Path, tmp_path: Path) -> None:
    settings(home, "{ }")
    was = picture(home)
    (tmp_path / "other").symlink_to(home)
    plugin("install", "claude-code", "hermes")
    for action in ("install", "uninstall"):
        words = ("--runtime", "claude-code", "--runtime", "hermes")
        run("plugin", action, *words, env={"HOME": str(tmp_path / "other")}, check=0)
    assert picture(home) == was


def test_two_agents_whose_skills_are_in_one_directory_share_what_is_there(home: Path) -> None:
    (home / ".claude" / "skills").mkdir(parents=True)
    dangling(".hermes/skills", "../.claude/skills")(home)
    was = picture(home)
    for order in (("claude-code", "hermes"), ("hermes", "claude-code")):
        plugin("install", "claude-code")
        plugin("install", "hermes")
        plugin("uninstall", order[0])
        assert (home / ".claude" / "skills" / "casnap" / "SKILL.md").is_file()
        plugin("uninstall", order[1])
        assert picture(home) == was


@pytest.mark.parametrize("link", [".claude/skills/casnap", ".claude/skills/casnap/SKILL.md"])
@pytest.mark.parametrize("recorded", [True, False])
def test_what_a_link_of_the_person_leads_to_is_never_removed(link: str, recorded: bool, home: Path) -> None:
    shutil.copytree(SKILL, home / "checkout" / "casnap")
    dangling(link, str(home / "checkout" / "casnap" / Path(link).relative_to(".claude/skills/casnap")))(home)
    was = picture(home)
    plugin("install")
    if not recorded:
        shutil.rmtree(home / ".local")
    plugin("uninstall")
    left = {path: one for path, one in picture(home).items() if path != ".claude/settings.json"}
    assert left == was


def test_a_plugin_of_openclaw_s_that_is_a_link_takes_nobody_s_files_along(home: Path) -> None:
    written(home / "checkout" / "mine.js", "mine")
    dangling(".local/share/casnap-plugins/openclaw", str(home / "checkout"))(home)
    was = picture(home)
    plugin("install", "openclaw")
    assert (home / "checkout" / "index.js").is_file()
    plugin("uninstall", "openclaw")
    assert picture(home) == was


# -- all or nothing -----------------------------------------------------------------------------------------------


def read_only(home: Path) -> None:
    settings(home).chmod(0o444)


def hard_link(home: Path) -> None:
    os.link(settings(home), home / "other")


REFUSED: dict[str, tuple[Prepare, str]] = {
    "read-only": (read_only, "it is read-only"),
    "hard link": (hard_link, "it has another name, a hard link"),
    "a file for a directory of the skill": (lambda home: written(home / ".claude" / "skills", "x"), "no directory"),
    "a file for a directory of the agent": (lambda home: written(home / ".claude", "x"), "no directory"),
    "a directory for the skill": (directory(".claude/skills/casnap/SKILL.md"), "it is not a regular file"),
    "a directory for the settings": (directory(".claude/settings.json"), "it is not a regular file"),
    "links in a circle": (dangling(".claude/skills", "skills"), "symbolic links"),
    "a file for the record": (lambda home: written(home / ".local", "x"), "Not a directory"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_where_one_file_cannot_be_changed_none_is(kind: str, home: Path) -> None:
    prepare, said = REFUSED[kind]
    prepare(home)
    was = picture(home)
    assert said in plugin("install", check=None).stderr
    assert picture(home) == was


def test_a_directory_that_this_user_may_not_write_in_is_told_before_anything_is_done() -> None:
    def act(home: Path) -> None:
        settings(home)
        (home / ".claude").chmod(0o555)
        was = picture(home)
        agent = ClaudeCode(Surroundings(home, {}, None, home / "own"), "user")
        plan = agent.install_plan(HookCommand(["/x/casnap"]))
        with pytest.raises(CasnapError, match=r"\.claude is read-only for this user"):
            apply.install(plan, agent.around.records, agent.key, lambda step: None)
        assert picture(home) == was
        (home / ".claude").chmod(0o755)

    as_ordinary_user(act)


TROUBLED = """
import os, sys
count, kind = int(sys.argv.pop(1)), sys.argv.pop(1)
calls = 0
def counted(act):
    def call(*arguments, **named):
        global calls
        calls += 1
        if calls == count:
            if kind == "kill":
                os.kill(os.getpid(), 9)
            print("it failed here", file=sys.stderr)
            raise OSError(28, os.strerror(28))
        return act(*arguments, **named)
    return call

from casnap.cli import main
for name in ("replace", "write", "fdatasync", "fchmod", "mkdir", "setxattr", "utime", "unlink", "rmdir"):
    setattr(os, name, counted(getattr(os, name)))
main()
"""


def troubled(kind: str, count: int, action: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-c", TROUBLED, str(count), kind, "plugin", action]
    words = ["--runtime", "hermes", "--runtime", "claude-code"]
    return subprocess.run([*command, *words], env=environment(), capture_output=True, text=True, check=False)


def of(agent: str, found: dict[str, Any]) -> dict[str, Any]:
    """What is in the directory of an agent, but for times."""
    return {path: one[:4] for path, one in found.items() if path.split("/")[0] == agent}


def test_whichever_call_fails_everything_is_done_for_an_agent_or_nothing(home: Path) -> None:
    os.setxattr(settings(home), "user.note", b"mine")
    was = picture(home)
    plugin("install", "claude-code", "hermes")
    full = picture(home)
    plugin("uninstall", "claude-code", "hermes")
    for count in range(1, 200):
        done = troubled("fail", count, "install")
        assert "Traceback" not in done.stderr
        between = picture(home)
        for agent in (".claude", ".hermes"):
            assert of(agent, between) in (of(agent, was), of(agent, full))
        if done.returncode != 0 and between.keys() == was.keys():
            assert between == was
        plugin("uninstall", "claude-code", "hermes")
        assert picture(home) == was
        if "it failed here" not in done.stderr:
            assert done.returncode == 0
            break
    else:
        pytest.fail("it never came to its end")


@pytest.mark.parametrize("action", ["install", "uninstall"])
def test_killed_at_any_moment_uninstall_leaves_nothing(action: str, home: Path) -> None:
    settings(home, hooks(*BY_HAND))
    was = picture(home)
    for count in range(1, 200):
        if action == "uninstall":
            plugin("install", "claude-code", "hermes")
        done = troubled("kill", count, action)
        if action == "install" and count % 4 == 1:  # who tries again has everything, and nothing that was left halfway
            plugin("install", "claude-code", "hermes")
            assert [path for path in picture(home) if path.endswith(".tmp")] == []
        plugin("uninstall", "claude-code", "hermes")
        left = {path: one for path, one in picture(home).items() if not re.fullmatch(r"\.local(/share)?", path)}
        assert left == was
        if done.returncode != -signal.SIGKILL:
            break
    else:
        pytest.fail("it never came to its end")


# -- what is told -------------------------------------------------------------------------------------------------


def test_it_is_told_that_claude_code_reads_no_settings_with_comments(home: Path) -> None:
    path = settings(home, "{} // mine\n")
    assert f"note: Claude Code reads nothing of {path}" in plugin("install").stderr
    assert path.read_text().endswith(" // mine\n")
    assert f"Claude Code reads nothing of {path}" in plugin("status").stderr


def test_modes_of_files_that_are_made_anew_are_those_of_settings_and_of_what_anybody_may_read(home: Path) -> None:
    plugin("install")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (home / ".claude").rglob("*.*")}
    assert modes == {"settings.json": 0o600, "SKILL.md": 0o644}
