"""``casnap plugin`` sets agents up and takes that back; configurations are other people's."""

from __future__ import annotations

import base64
import json
import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from casnap.agents.installing.command import HookCommand
from casnap.agents.installing.files import put
from casnap.agents.installing.own_files import PACKAGE, SKILL
from casnap.agents.installing.plan import FileChange
from casnap.agents.installing.records import alone
from casnap.codec.hashing import checksum
from support.cli import CHECKOUT, Result, environment, run

EVENTS = ["UserPromptSubmit", "PreToolUse", "Stop", "SessionEnd"]

MINE = b"""{
  // comments are mine
  "model": "opus",   "zork": {"unknown": [1, 2.50, "\\u00e9"]},
  "hooks": {
    "Stop": [{"hooks": [{"type": "command", "command": "make lint"}]}]
  }
}
"""


@pytest.fixture
def claude(home: Path) -> Path:
    """The directory of an agent that is there."""
    place = home / ".claude"
    place.mkdir(mode=0o755)
    return place


def plugin(action: str, *words: str, check: int | None = 0, env: dict[str, str] | None = None) -> Result:
    return run("plugin", action, *words, check=check, env=env, cwd="/")


def picture(home: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below home that is not casnap's, with its mode and what it holds; directories, too."""
    return {
        str(path.relative_to(home)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in sorted(home.rglob("*"))
        if ".local" not in path.parts and "store" not in path.parts
    }


def commands(settings: Path) -> dict[str, list[str]]:
    """The command lines at each event, as any reader of JSON finds them."""
    lines = [line.partition("//")[0] for line in settings.read_text("utf-8").splitlines()]
    hooks = json.loads("\n".join(lines))["hooks"]
    return {event: [one["command"] for group in groups for one in group["hooks"]] for event, groups in hooks.items()}


@pytest.mark.parametrize("before", [None, b"", b"{}", b"{}\n", MINE, b'\xef\xbb\xbf{\r\n\t"a": 1\r\n}'])
def test_after_uninstall_each_byte_is_as_it_was(before: bytes | None, claude: Path, home: Path) -> None:
    settings = claude / "settings.json"
    if before is not None:
        settings.write_bytes(before)
        settings.chmod(0o640)
    was = picture(home)
    plugin("install")
    assert picture(home) != was
    plugin("uninstall")
    assert picture(home) == was
    assert not (home / ".local" / "share" / "casnap-plugins").exists()


def test_hooks_run_this_casnap_by_an_absolute_path_in_a_form_that_all_agents_read(claude: Path) -> None:
    (claude / "settings.json").write_bytes(MINE)
    plugin("install")
    found = commands(claude / "settings.json")
    assert found["Stop"][0] == "make lint"
    for event in EVENTS:
        words = shlex.split(found[event][-1])
        assert words[-3:] == ["hook", "--agent", "claude-code"]
        assert os.path.isabs(words[0])
    done = subprocess.run(
        ["sh", "-c", found["Stop"][-1]], input=b"{}", env=environment(), capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"")


def test_twice_is_once(claude: Path, home: Path) -> None:
    (claude / "settings.json").write_bytes(MINE)
    plugin("install")
    once = picture(home)
    assert "nothing to do" in plugin("install").stdout
    assert picture(home) == once
    plugin("uninstall")
    assert (claude / "settings.json").read_bytes() == MINE
    assert plugin("uninstall", check=13).stderr.startswith("error: nothing to do")
    assert plugin("uninstall", "--runtime", "claude-code").stdout.startswith("Claude Code: nothing to do")


def test_what_others_write_meanwhile_stays(claude: Path) -> None:
    settings = claude / "settings.json"
    settings.write_bytes(MINE)
    plugin("install")
    settings.write_bytes(settings.read_bytes().replace(b'"opus"', b'"sonnet", "more": true'))
    plugin("uninstall")
    assert settings.read_bytes() == MINE.replace(b'"opus"', b'"sonnet", "more": true')


def test_a_settings_file_that_is_a_link_stays_one(claude: Path, home: Path) -> None:
    (home / "dotfiles").mkdir()
    (home / "dotfiles" / "claude.json").write_bytes(MINE)
    (claude / "settings.json").symlink_to("../dotfiles/claude.json")
    plugin("install")
    assert (claude / "settings.json").readlink() == Path("../dotfiles/claude.json")
    assert b"casnap" in (home / "dotfiles" / "claude.json").read_bytes()
    plugin("uninstall")
    assert (claude / "settings.json").is_symlink()
    assert (home / "dotfiles" / "claude.json").read_bytes() == MINE


def test_a_read_only_file_is_refused_and_left_alone(claude: Path, home: Path) -> None:
    (claude / "settings.json").write_bytes(MINE)
    (claude / "settings.json").chmod(0o444)
    result = plugin("install", check=1)
    assert "it is read-only" in result.stderr
    assert "chmod u+w" in result.stderr
    assert (claude / "settings.json").read_bytes() == MINE


@pytest.mark.parametrize("text", [b"{", b'{"hooks": []}', b"[]", b"\xff"])
def test_a_file_that_does_not_parse_is_refused_before_anything_is_written(
    text: bytes, claude: Path, home: Path
) -> None:
    (claude / "settings.json").write_bytes(text)
    was = picture(home)
    for action in ("install", "uninstall"):
        result = plugin(action, "--runtime", "claude-code", check=2)
        assert f"cannot change {claude / 'settings.json'}" in result.stderr
    assert "cannot change" in plugin("status").stdout
    assert picture(home) == was


def test_a_dry_run_shows_what_would_change_and_changes_nothing(claude: Path, home: Path) -> None:
    (claude / "settings.json").write_bytes(MINE)
    was = picture(home)
    shown = plugin("install", "--dry-run").stdout
    assert f"would change {claude / 'settings.json'}" in shown
    assert '+    "SessionEnd": [' in shown
    assert picture(home) == was
    steps = plugin("install", "--dry-run", "--json")
    assert [step["what"] for step in steps.json()["plugins"][0]["steps"]] == ["write", "change"]
    assert picture(home) == was


def test_another_casnap_takes_the_place_of_the_one_before(claude: Path) -> None:
    settings = claude / "settings.json"
    settings.write_bytes(MINE)
    plugin("install")
    text = settings.read_text()
    line = commands(settings)["Stop"][-1]
    settings.write_text(text.replace(json.dumps(line), json.dumps("/old/casnap hook --agent claude-code")))
    assert "would be written anew" in plugin("status").stdout
    plugin("install")
    assert commands(settings) == {
        event: (["make lint", line] if event == "Stop" else [line]) for event in commands(settings)
    }
    assert settings.read_text() == text
    plugin("uninstall")
    assert settings.read_bytes() == MINE


def test_of_a_project_the_settings_are_changed_that_are_not_shared(home: Path, claude: Path) -> None:
    project = home / "project"
    (project / ".git").mkdir(parents=True)
    (project / "src").mkdir()
    was = picture(home)
    run("plugin", "install", "--runtime", "claude-code", "--scope", "project", cwd=project / "src", check=0)
    assert list(commands(project / ".claude" / "settings.local.json")) == EVENTS
    assert (project / ".claude" / "skills" / "casnap" / "SKILL.md").is_file()
    assert not (claude / "settings.json").exists()
    run("plugin", "uninstall", "--runtime", "claude-code", "--scope", "project", "-w", project, cwd="/", check=0)
    assert picture(home) == was


def test_for_a_project_without_a_name_those_are_meant_that_know_projects(home: Path) -> None:
    (home / ".claude").mkdir()
    (home / ".openclaw").mkdir()
    (home / "project" / ".claude").mkdir(parents=True)
    run("plugin", "install", "--scope", "project", cwd=home / "project", check=0)
    assert (home / "project" / ".claude" / "settings.local.json").is_file()
    result = run("plugin", "install", "--scope", "project", "--runtime", "openclaw", cwd=home / "project", check=2)
    assert "hooks for the user only" in result.stderr


def test_without_any_agent_there_is_nothing_to_do(home: Path) -> None:
    for action in ("install", "uninstall"):
        assert "--runtime claude-code" in plugin(action, check=13).stderr
    assert [line.split()[1:] for line in plugin("detect").stdout.splitlines()] == [["not", "found"]] * 3
    assert [one["found"] for one in plugin("status", "--json").json()["agents"]] == [False] * 4


@pytest.mark.parametrize("words", [("frobnicate",), ("install", "--runtime", "zork"), ("install", "--scope", "zork")])
def test_a_mistake_is_told(words: tuple[str, ...], home: Path) -> None:
    assert plugin(*words, check=2).stderr.startswith("error: ")


KILLED = """
import os, sys
from casnap.fs import durable

count = int(sys.argv.pop(1))
calls = 0
def counted(act):
    def call(*arguments, **named):
        global calls
        calls += 1
        if calls == count:
            os.kill(os.getpid(), 9)
        return act(*arguments, **named)
    return call

for name in ("open", "write", "replace", "fdatasync", "fsync", "fchmod", "fchown", "mkdir", "unlink", "rmdir"):
    setattr(os, name, counted(getattr(os, name)))
from casnap.cli import main
main()
"""


@pytest.mark.parametrize("action", ["install", "uninstall"])
def test_killed_at_any_moment_the_file_is_the_old_one_or_the_new_one(action: str, claude: Path) -> None:
    """And afterwards uninstall still brings back the first one."""
    settings = claude / "settings.json"
    settings.write_bytes(MINE)
    plugin("install")
    new = settings.read_bytes()
    plugin("uninstall")
    seen = set()
    for count in range(1, 400, 1 if action == "install" else 3):
        settings.write_bytes(MINE)
        if action == "uninstall":
            plugin("install")
        command = [sys.executable, "-P", "-c", KILLED, str(count), "plugin", action]
        status = subprocess.run(command, env=environment(), capture_output=True, check=False).returncode
        now = settings.read_bytes()
        assert now in (MINE, new)
        seen.add(now)
        run("plugin", "uninstall", "--runtime", "claude-code", check=0)
        assert settings.read_bytes() == MINE
        if status != -signal.SIGKILL:
            break
    else:
        pytest.fail("it never came to its end")
    assert seen == {MINE, new}


def test_who_wants_no_tool_without_a_checkpoint_is_not_overruled(claude: Path) -> None:
    settings = claude / "settings.json"
    settings.write_bytes(MINE)
    plugin("install")
    line = commands(settings)["PreToolUse"][0]
    settings.write_text(settings.read_text().replace(line, f"{line} --require").replace("/casnap", "/older/casnap"))
    plugin("install")
    assert {command for event in EVENTS for command in commands(settings)[event]} == {f"{line} --require", "make lint"}
    assert "set up, but" not in plugin("status").stdout


def test_what_was_empty_before_and_in_use_meanwhile_stays(claude: Path) -> None:
    settings = claude / "settings.json"
    settings.write_text('{"hooks": {"Stop": []}, "model": "a"}')
    plugin("install")
    settings.write_text(settings.read_text().replace('"a"', '"b"'))
    plugin("uninstall")
    assert json.loads(settings.read_text()) == {"hooks": {"Stop": []}, "model": "b"}


def test_it_is_told_that_the_agent_runs_no_hooks_at_all(claude: Path) -> None:
    (claude / "settings.json").write_text('{"disableAllHooks": true}')
    assert "note: Claude Code runs no hooks while disableAllHooks is true in" in plugin("install").stderr


def test_status_tells_of_each_scope_and_detect_of_each_agent_with_its_version(
    claude: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = home / ".local" / "share" / "claude" / "versions" / "2.1.332"
    node = home / "node" / "lib" / "node_modules" / "openclaw"
    python = home / "python"
    for path in (program, node / "dist" / "openclaw.mjs", python / "bin" / "hermes"):
        path.parent.mkdir(parents=True)
        path.write_text("#!/bin/false\n")
        path.chmod(0o755)
    (node / "package.json").write_text('{"name": "openclaw", "version": "2026.9.6"}')
    (python / "lib" / "python3.11" / "site-packages" / "hermes_agent-0.19.0.dist-info").mkdir(parents=True)
    programs = home / "bin"
    programs.mkdir()
    (programs / "claude").symlink_to(program)
    (programs / "openclaw").symlink_to(node / "dist" / "openclaw.mjs")
    (programs / "hermes").symlink_to(python / "bin" / "hermes")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    detected = plugin("detect").stdout.splitlines()
    assert [line.split()[:2] for line in detected] == [
        ["claude-code", "2.1.332,"],
        ["openclaw", "2026.9.6,"],
        ["hermes", "0.19.0,"],
    ]
    plugin("install", "--runtime", "claude-code")
    (home / "project").mkdir()
    told = run("plugin", "status", "--json", cwd=home / "project", check=0).json()["agents"]
    assert [(one["runtime"], one["scope"], one["installed"], one["version"]) for one in told] == [
        ("claude-code", "user", True, "2.1.332"),
        ("openclaw", "user", False, "2026.9.6"),
        ("hermes", "user", False, "0.19.0"),
        ("claude-code", "project", False, "2.1.332"),
    ]


def test_somebody_who_writes_between_plan_and_act_is_not_overwritten(claude: Path) -> None:
    (claude / "settings.json").write_bytes(b"theirs")
    with pytest.raises(Exception, match="changed it meanwhile"):
        put(FileChange(claude / "settings.json", b"before", b"after", shared=True))
    assert (claude / "settings.json").read_bytes() == b"theirs"


@pytest.mark.parametrize(
    ("path", "passing"),
    [
        ("/home/u/.local/bin/casnap", False),
        ("/home/u/.cache/uv/archive-v0/abc/bin/casnap", True),
        ("/home/u/.local/pipx/.cache/1234/bin/casnap", True),
        ("/somewhere/archive-v0/abc/bin/casnap", True),
        ("/usr/bin/casnap", False),
    ],
)
def test_a_program_that_will_be_gone_is_known(path: str, passing: bool) -> None:
    assert HookCommand([path]).is_passing == passing


def test_the_skill_passes_the_rules_for_skills() -> None:
    text = (SKILL / "SKILL.md").read_text("utf-8")
    _, head, body = text.split("---\n", 2)
    yaml = pytest.importorskip("yaml")
    fields = yaml.safe_load(head)
    assert pytest.importorskip("skills_ref").validate(SKILL) == []
    assert fields["name"] == "casnap"
    assert 1 <= len(fields["description"]) <= 1024
    assert set(fields) <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    for phrase in (
        "保存工作区",
        "开始前先做个快照",
        "撤销所有修改",
        "恢复到上一个好的状态",
        "显示所有保存的状态",
        "列出我的检查点",
        "上次保存后改了什么？",
    ):
        assert phrase in fields["description"]
        assert phrase in body
    assert len(body.splitlines()) < 150


def test_the_wheel_holds_whatever_agents_get(tmp_path: Path) -> None:
    build = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", build, tmp_path], cwd=CHECKOUT, capture_output=True, check=True)
    with zipfile.ZipFile(tmp_path / done.stdout.decode().split()[-1]) as wheel:
        held = {name for name in wheel.namelist() if name.startswith("casnap/agents/")}
    for directory in (PACKAGE / "plugins", PACKAGE / "skill"):
        files = [path for path in directory.rglob("*") if path.is_file() and path.suffix != ".pyc"]
        assert {path.relative_to(PACKAGE.parent.parent).as_posix() for path in files} <= held


# -- files of casnap's own -----------------------------------------------------------------------------------


def test_a_skill_of_somebody_elses_by_the_same_name_comes_back(claude: Path, home: Path) -> None:
    theirs = claude / "skills" / "casnap"
    theirs.mkdir(parents=True)
    (theirs / "SKILL.md").write_text("theirs")
    (theirs / "more.md").write_text("theirs, too")
    was = picture(home)
    assert plugin("status", "--json").json()["agents"][0]["installed"] is False
    plugin("install")
    assert (theirs / "SKILL.md").read_text() != "theirs"
    plugin("uninstall")
    assert picture(home) == was


def test_what_somebody_put_beside_the_skill_or_wrote_into_it_stays(claude: Path) -> None:
    plugin("install")
    skill = claude / "skills" / "casnap"
    (skill / "mine.md").write_text("mine")
    plugin("uninstall")
    assert [path.name for path in skill.iterdir()] == ["mine.md"]
    plugin("install")
    (skill / "SKILL.md").write_text("mine, too")
    assert "would be written anew" in plugin("status").stdout
    plugin("uninstall")
    assert (skill / "SKILL.md").read_text() == "mine, too"
    assert plugin("status", "--json").json()["agents"][0]["installed"] is False


def test_a_skill_of_an_older_casnap_is_replaced_and_leaves_nothing(claude: Path, home: Path) -> None:
    was = picture(home)
    plugin("install")
    skill = claude / "skills" / "casnap" / "SKILL.md"
    new = skill.read_bytes()
    records = next((home / ".local" / "share" / "casnap-plugins" / "records").iterdir())
    known = json.loads(records.read_text())
    for kept in known["files"]:
        if kept["path"] == str(skill):
            kept["after"] = base64.b64encode(checksum(b"older")).decode()
    records.write_text(json.dumps(known))
    skill.write_bytes(b"older")
    plugin("install")
    assert skill.read_bytes() == new
    plugin("uninstall")
    assert picture(home) == was


def test_where_the_record_is_lost_all_of_casnaps_goes_nevertheless(claude: Path, home: Path) -> None:
    (claude / "settings.json").write_bytes(MINE)
    was = picture(home)
    plugin("install")
    shutil.rmtree(home / ".local" / "share" / "casnap-plugins")
    plugin("uninstall")
    assert {name for name in picture(home) if name.count("/") > 1} == set()
    assert picture(home)[".claude/settings.json"] == was[".claude/settings.json"]


def test_two_at_once_do_not_mix(claude: Path, home: Path) -> None:
    with alone(home, 0):
        result = plugin("install", "--wait", "0", check=11)
    assert "another casnap does" in result.stderr
    plugin("install")


@pytest.mark.parametrize("kind", ["pipe", "device", "directory", "loop", "link to a device"])
def test_what_is_no_file_is_neither_waited_for_nor_replaced(kind: str, claude: Path, home: Path) -> None:
    settings = claude / "settings.json"
    match kind:
        case "pipe":
            os.mkfifo(settings)
        case "device":
            if os.geteuid() != 0:
                pytest.skip("only root can make a device")
            os.mknod(settings, stat.S_IFCHR | 0o600, os.makedev(1, 3))
        case "directory":
            settings.mkdir()
        case "loop":
            settings.symlink_to("settings.json")
        case _:
            settings.symlink_to(os.devnull)
    before = settings.lstat()
    for action in ("install", "uninstall"):
        result = plugin(action, "--runtime", "claude-code", check=2)
        assert f"cannot change {settings}" in result.stderr
    assert "cannot change" in plugin("status").stdout
    assert "cannot change" in run("doctor", check=1).stdout
    assert (settings.lstat().st_mode, settings.lstat().st_ino) == (before.st_mode, before.st_ino)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_a_number_of_too_many_digits_is_refused_like_anything_that_cannot_be_read(claude: Path) -> None:
    (claude / "settings.json").write_text('{"a": ' + "1" * 5000 + "}")
    assert "it is no JSON" in plugin("install", check=2).stderr
    assert "it is no JSON" in run("doctor", check=1).stdout


def test_what_is_set_up_for_the_user_is_none_of_a_project_s_in_the_same_directory(home: Path, claude: Path) -> None:
    plugin("install")
    was = picture(home)
    run("plugin", "uninstall", "--runtime", "claude-code", "--scope", "project", "-w", home, cwd="/", check=0)
    assert picture(home) == was
