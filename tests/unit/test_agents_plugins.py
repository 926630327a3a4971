"""The plugins that run inside an agent: they tell casnap, and never harm the agent."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from casnap.agents.installing.own_files import PACKAGE

RECORDER = """#!/bin/sh
cat > "$0.said.$$"
printf '%s\\n' "$*" > "$0.words"
sleep "$(cat "$0.sleep" 2>/dev/null || echo 0)"
exit "$(cat "$0.status" 2>/dev/null || echo 0)"
"""


class Recorder:
    """Stands for casnap: it keeps what it is told."""

    def __init__(self, place: Path) -> None:
        self.program = place / "casnap program"
        self.program.write_text(RECORDER)
        self.program.chmod(0o755)

    def set(self, what: str, value: object) -> None:
        Path(f"{self.program}.{what}").write_text(str(value))

    @property
    def told(self) -> list[dict[str, Any]]:
        found = sorted(self.program.parent.glob("*.said.*"), key=lambda path: path.stat().st_mtime_ns)
        return [json.loads(path.read_text()) for path in found]

    @property
    def words(self) -> str:
        return Path(f"{self.program}.words").read_text().strip()


@pytest.fixture
def casnap(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path)


def copied(name: str, place: Path, casnap: Recorder | None) -> Path:
    """A plugin as the installer copies it."""
    target = place / name
    shutil.copytree(PACKAGE / "plugins" / name, target, ignore=shutil.ignore_patterns("__pycache__"))
    if casnap is not None:
        (target / "casnap.json").write_text(json.dumps({"command": [str(casnap.program)]}))
    return target


# -- Hermes --------------------------------------------------------------------------------------------------


Hooks = dict[str, Callable[..., Any]]


def hermes(place: Path, casnap: Recorder | None) -> tuple[types.ModuleType, Hooks]:
    """The plugin as Hermes loads it, and what it registers."""
    path = copied("hermes", place, casnap) / "__init__.py"
    spec = importlib.util.spec_from_file_location("hermes_plugin_under_test", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    hooks: Hooks = {}
    module.register(types.SimpleNamespace(register_hook=hooks.__setitem__))
    return module, hooks


def settings(monkeypatch: pytest.MonkeyPatch, entry: Any) -> None:
    """What is below plugins.entries.casnap in Hermes' configuration."""
    config = types.ModuleType("hermes_cli.config")
    config.load_config = lambda: {"plugins": {"entries": {"casnap": entry}}}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "hermes_cli", types.ModuleType("hermes_cli"))
    monkeypatch.setitem(sys.modules, "hermes_cli.config", config)


def test_hermes_tells_of_each_turn(tmp_path: Path, casnap: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _, hooks = hermes(tmp_path, casnap)
    turn = {"session_id": "s", "turn_id": "t", "unheard": object()}
    assert hooks["pre_llm_call"](**turn, user_message="make", conversation_history=[{}] * 9) is None
    assert hooks["pre_tool_call"](**turn, tool_name="terminal", args={"command": "ls"}, tool_call_id="c") is None
    assert hooks["pre_tool_call"](**turn, tool_name="read_file") is None
    assert hooks["on_session_end"](**turn, completed=True) is None
    assert hooks["on_session_finalize"](session_id="s", platform="cli", reason="exit") is None
    place = {"workspaces": [str(tmp_path)]}
    assert casnap.told == [
        {"event": "prompt", **place, "session": "s", "turn": "t", "prompt": "make"},
        {"event": "before_tool", **place, "session": "s", "turn": "t", "tool": "terminal", "call": "c"},
        {"event": "turn_end", **place, "session": "s", "turn": "t"},
        {"event": "session_end", **place, "session": "s"},
    ]
    assert casnap.words == "hook --agent hermes"


@pytest.mark.parametrize(("named", "told"), [("/a", ["/a"]), (["/a", "/b"], ["/a", "/b"]), ([], None), (5, None)])
def test_hermes_takes_the_workspaces_that_are_configured(
    named: Any, told: list[str] | None, tmp_path: Path, casnap: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings(monkeypatch, {"workspace": named})
    monkeypatch.chdir(tmp_path)
    hermes(tmp_path, casnap)[1]["on_session_end"]()
    assert casnap.told[0]["workspaces"] == (told or [str(tmp_path)])


def knows(monkeypatch: pytest.MonkeyPatch, begun: Any, gone: Any) -> None:
    """What Hermes knows of the session of task ``t``: where it was begun, and where its shell is now."""
    terminal = types.ModuleType("tools.terminal_tool")
    terminal.resolve_task_overrides = lambda task: {"cwd": begun} if task == "t" else {}  # type: ignore[attr-defined]
    terminal.get_session_cwd = lambda task: gone if task == "t" else None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tools.terminal_tool", terminal)


@pytest.mark.parametrize(
    ("begun", "gone", "told"),
    [
        ("project", "project", ["project"]),
        ("project", "project/inner", ["project"]),
        ("project", "project2", ["project", "project2"]),
        ("project", "no such", ["project"]),
        (None, "project", [".", "project"]),
        ("no such", None, ["."]),
        (5, object(), ["."]),
    ],
)
def test_hermes_tells_of_the_project_of_each_session_and_of_where_its_shell_has_gone(
    begun: Any, gone: Any, told: list[str], tmp_path: Path, casnap: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("project/inner", "project2", "start"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "start")
    begun, gone = (str(tmp_path / place) if isinstance(place, str) else place for place in (begun, gone))
    knows(monkeypatch, begun, gone)
    _, hooks = hermes(tmp_path, casnap)
    hooks["pre_tool_call"](tool_name="terminal", task_id="t", session_id="s")
    hooks["on_session_finalize"](session_id="t")
    hooks["on_session_end"](task_id="another")
    monkeypatch.setenv("TERMINAL_ENV", "docker")  # paths of a container
    hooks["on_session_end"](task_id="t")
    here = str(tmp_path / "start")
    expected = [here if name == "." else str(tmp_path / name) for name in told]
    assert [one["workspaces"] for one in casnap.told] == [expected, expected, [here], [here]]


@pytest.mark.parametrize("named", [".", "auto", "cwd", "", "inner", "~"])
def test_hermes_takes_a_configured_directory_for_one_only_if_it_is(
    named: str, tmp_path: Path, casnap: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TERMINAL_CWD", named)
    hermes(tmp_path, casnap)[1]["on_session_end"]()
    assert casnap.told[0]["workspaces"] == [str(tmp_path if named == "~" else tmp_path / "inner")]


def test_another_version_of_hermes_may_keep_sessions_elsewhere(
    tmp_path: Path, casnap: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "tools.terminal_tool", types.ModuleType("tools.terminal_tool"))
    hermes(tmp_path, casnap)[1]["on_session_end"](task_id="t")
    assert casnap.told[0]["workspaces"] == [str(tmp_path)]


def test_hermes_is_left_alone_where_that_is_configured(
    tmp_path: Path, casnap: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings(monkeypatch, {"config": {"autoCheckpoint": False}})
    hermes(tmp_path, casnap)[1]["on_session_end"]()
    assert casnap.told == []


@pytest.mark.parametrize("require", [True, False])
def test_hermes_blocks_a_tool_only_where_a_checkpoint_is_required(
    require: bool, tmp_path: Path, casnap: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings(monkeypatch, {"require": require})
    casnap.set("status", 2)  # that of Python, too, which finds no casnap
    answer = hermes(tmp_path, casnap)[1]["pre_tool_call"](tool_name="terminal")
    assert casnap.words == "hook --agent hermes" + (" --require" if require else "")
    assert (answer or {}).get("action") == ("block" if require else None)


@pytest.mark.parametrize("trouble", ["missing", "fails", "slow", "no command"])
def test_whatever_happens_to_casnap_hermes_goes_on(
    trouble: str, tmp_path: Path, casnap: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, hooks = hermes(tmp_path, None if trouble == "no command" else casnap)
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    if trouble == "missing":
        casnap.program.unlink()
    elif trouble == "slow":
        casnap.set("sleep", 60)
        module.PATIENCE = 0.2  # type: ignore[attr-defined]
    casnap.set("status", 70)
    for name in hooks:
        assert hooks[name](session_id=object(), tool_name="terminal", user_message=None) is None


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        ("missing", "cannot be run"),
        ("no program", "cannot be run"),
        ("fails", "failed (70)"),
        ("killed", "failed (-9)"),
        ("slow", "in time"),
        ("no command", "failed (1)"),
    ],
)
def test_required_a_casnap_that_cannot_say_that_there_is_a_checkpoint_keeps_hermes_tools_from_running(
    trouble: str, reason: str, tmp_path: Path, casnap: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings(monkeypatch, {"require": True})
    module, hooks = hermes(tmp_path, None if trouble == "no command" else casnap)
    module.PATIENCE = 0.2 if trouble == "slow" else 60  # type: ignore[attr-defined]
    if trouble == "no command":  # and none that Python could run
        (tmp_path / "python").write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "python").chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
        monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    broken(casnap, trouble)
    answer = hooks["pre_tool_call"](session_id=object(), tool_name="terminal")
    assert answer["action"] == "block"
    assert reason in answer["message"]
    assert hooks["pre_tool_call"](tool_name="read_file") is None
    for name in ("pre_llm_call", "on_session_end", "on_session_finalize"):
        assert hooks[name]() is None


def broken(casnap: Recorder, trouble: str) -> None:
    """Let casnap be in a state in which it tells nothing."""
    match trouble:
        case "missing":
            casnap.program.unlink()
        case "no program":
            casnap.program.chmod(0o644)
        case "fails":
            casnap.set("status", 70)
        case "killed":
            casnap.program.write_text("#!/bin/sh\nkill -9 $$\n")
        case "slow":
            casnap.set("sleep", 5)


def test_hermes_finds_it_as_an_entry_point_too() -> None:
    from importlib.metadata import entry_points

    (found,) = entry_points(group="hermes_agent.plugins")
    assert found.name == "casnap"
    assert callable(found.load().register)


# -- OpenClaw ------------------------------------------------------------------------------------------------


DRIVER = """
import plugin from "./index.js"
const calls = []
const api = {
  pluginConfig: JSON.parse(process.argv[2]),
  config: {},
  runtime: { agent: { resolveAgentWorkspaceDir: (_config, agent) => `/ws/${agent}` } },
  on: (name, act, options) => calls.push([name, act, options]),
}
plugin.register(api)
plugin.register({ ...api, on: () => {} })
const answers = {}
for (const [name, act, options] of calls) {
  const event = { toolName: "exec", toolCallId: "c", params: {}, prompt: "make" }
  answers[name] = [await act(event, { sessionId: "s", runId: "r", agentId: "main" }), options ?? null]
}
await calls[0][1](undefined, undefined)
console.log(JSON.stringify(answers))
"""

node = pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")


def openclaw(place: Path, casnap: Recorder | None, config: Any = None, patience: int = 9_000) -> dict[str, Any]:
    """Load the plugin beside a stand-in of OpenClaw, fire each event; what was answered, and registered with."""
    target = copied("openclaw", place, casnap)
    source = (target / "index.js").read_text()
    assert source.count("PATIENCE_MS = 9_000") == 1
    (target / "index.js").write_text(source.replace("PATIENCE_MS = 9_000", f"PATIENCE_MS = {patience}"))
    sdk = target / "node_modules" / "openclaw"
    sdk.mkdir(parents=True)
    (sdk / "package.json").write_text(
        '{"name": "openclaw", "type": "module", "exports": {"./plugin-sdk/plugin-entry": "./entry.js"}}'
    )
    (sdk / "entry.js").write_text("export const definePluginEntry = (entry) => entry\n")
    (target / "driver.mjs").write_text(DRIVER)
    done = subprocess.run(
        ["node", "driver.mjs", json.dumps(config or {})],
        cwd=target,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


@node
def test_openclaw_tells_of_tools_and_answers_nothing(tmp_path: Path, casnap: Recorder) -> None:
    answers = openclaw(tmp_path, casnap)
    assert [answer for answer, _ in answers.values()] == [None] * 5
    for name in ("before_tool_call", "after_tool_call"):
        options = answers[name][1]
        assert options["matcher"] == ["write", "edit", "apply_patch", "exec", "process"]
        assert options["timeoutMs"] < 15_000
    told = casnap.told
    assert [one["event"] for one in told[:5]] == ["before_tool", "after_tool", "prompt", "turn_end", "session_end"]
    assert told[0] == {
        "event": "before_tool",
        "workspaces": ["/ws/main"],
        "session": "s",
        "turn": "r",
        "tool": "exec",
        "call": "c",
    }
    assert [one.get("prompt") for one in told[:5]] == [None, None, "make", None, None]
    assert answers["before_agent_run"][1]["timeoutMs"] < 15_000
    assert casnap.words == "hook --agent openclaw"


@node
@pytest.mark.parametrize(("named", "told"), [("/a", ["/a"]), (["/a", "/b"], ["/a", "/b"]), ([], ["/ws/main"])])
def test_openclaw_takes_the_workspaces_that_are_configured(
    named: Any, told: list[str], tmp_path: Path, casnap: Recorder
) -> None:
    openclaw(tmp_path, casnap, {"workspace": named})
    assert casnap.told[0]["workspaces"] == told


@node
def test_openclaw_is_left_alone_where_that_is_configured(tmp_path: Path, casnap: Recorder) -> None:
    openclaw(tmp_path, casnap, {"autoCheckpoint": False})
    assert casnap.told == []


@node
@pytest.mark.parametrize("require", [True, False])
def test_openclaw_blocks_a_tool_only_where_a_checkpoint_is_required(
    require: bool, tmp_path: Path, casnap: Recorder
) -> None:
    casnap.set("status", 2)
    answers = openclaw(tmp_path, casnap, {"require": require})
    assert [bool(answer) for answer, _ in answers.values()] == [require, False, False, False, False]
    assert not require or answers["before_tool_call"][0]["block"] is True


@node
@pytest.mark.parametrize("trouble", ["missing", "fails", "no command"])
def test_whatever_happens_to_casnap_openclaw_goes_on(trouble: str, tmp_path: Path, casnap: Recorder) -> None:
    if trouble == "missing":
        casnap.program.unlink()
    casnap.set("status", 70)
    answers = openclaw(tmp_path, None if trouble == "no command" else casnap)
    assert [answer for answer, _ in answers.values()] == [None] * 5


@node
@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        ("missing", "cannot be run"),
        ("no program", "cannot be run"),
        ("fails", "failed (70)"),
        ("killed", "failed (SIGKILL)"),
        ("slow", "in time"),
    ],
)
def test_required_a_casnap_that_cannot_say_that_there_is_a_checkpoint_keeps_openclaws_tools_from_running(
    trouble: str, reason: str, tmp_path: Path, casnap: Recorder
) -> None:
    broken(casnap, trouble)
    answers = openclaw(tmp_path, casnap, {"require": True}, patience=200 if trouble == "slow" else 9_000)
    assert answers["before_tool_call"][0]["block"] is True
    assert reason in answers["before_tool_call"][0]["blockReason"]
    assert [answer for name, (answer, _) in answers.items() if name != "before_tool_call"] == [None] * 4


@node
def test_openclaw_waits_for_casnap_no_longer_than_it_has_patience_nor_does_its_process(
    tmp_path: Path, casnap: Recorder
) -> None:
    casnap.set("sleep", 20)
    began = time.monotonic()
    answers = openclaw(tmp_path, casnap, patience=200)
    assert time.monotonic() - began < 15
    assert [answer for answer, _ in answers.values()] == [None] * 5
    assert len(casnap.told) == 6


def test_what_the_plugins_declare_is_what_they_read() -> None:
    manifest = json.loads((PACKAGE / "plugins" / "openclaw" / "openclaw.plugin.json").read_text())
    source = (PACKAGE / "plugins" / "openclaw" / "index.js").read_text()
    for name in manifest["configSchema"]["properties"]:
        assert f"pluginConfig?.{name}" in source
    package = json.loads((PACKAGE / "plugins" / "openclaw" / "package.json").read_text())
    assert package["openclaw"]["extensions"] == ["./index.js"]
