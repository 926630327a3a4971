"""What each agent says, recorded from the agents or as they document it, is understood."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from casnap.agents import turns
from casnap.agents.dialects import DIALECTS, understand
from casnap.agents.event import Moment
from casnap.agents.notes import Turn
from casnap.agents.payload import parse

EVENTS = Path(__file__).parent.parent / "support" / "events"
WORKSPACE = "/home/u/ws"

LOOKS, PASSES = True, False

EXPECTED: dict[str, list[tuple[str, str, str, bool]]] = {
    # when, the turn that is recorded, the tool, and whether the workspace is looked at
    "claude-code": [
        ("other", "", "", PASSES),
        ("prompt", "claude-prompt", "", LOOKS),
        ("before-tool", "claude-prompt", "Write", LOOKS),
        ("other", "claude-prompt", "Write", PASSES),
        ("other", "claude-prompt", "", PASSES),
        ("before-tool", "claude-prompt", "Bash", PASSES),
        ("other", "claude-prompt", "Bash", PASSES),
        ("before-tool", "claude-prompt", "Edit", PASSES),
        ("other", "claude-prompt", "Edit", PASSES),
        ("turn-end", "claude-prompt", "", LOOKS),
        ("session-end", "claude-prompt", "", LOOKS),
    ],
    "cline": [
        ("prompt", "1", "", LOOKS),
        ("before-tool", "1", "run_commands", LOOKS),
        ("other", "1", "", PASSES),
        ("before-tool", "2", "editor", LOOKS),
        ("other", "2", "", PASSES),
        ("turn-end", "3", "", LOOKS),
    ],
    "codex": [
        ("other", "", "", PASSES),
        ("prompt", "codex-turn", "", LOOKS),
        ("before-tool", "codex-turn", "Bash", LOOKS),
        ("other", "codex-turn", "Bash", PASSES),
        ("before-tool", "codex-turn", "apply_patch", PASSES),
        ("other", "codex-turn", "apply_patch", PASSES),
        ("turn-end", "codex-turn", "", LOOKS),
        ("session-end", "codex-turn", "", LOOKS),
    ],
    "gemini": [
        ("other", "", "", PASSES),
        ("prompt", "1", "", LOOKS),
        ("other", "1", "", PASSES),
        ("before-tool", "1", "write_file", LOOKS),
        ("other", "1", "write_file", PASSES),
        ("before-tool", "1", "run_shell_command", PASSES),
        ("other", "1", "run_shell_command", PASSES),
        ("before-tool", "1", "replace", PASSES),
        ("other", "1", "replace", PASSES),
        ("turn-end", "1", "", LOOKS),
        ("session-end", "1", "", LOOKS),
    ],
    "cursor": [
        ("other", "cursor-generation", "", PASSES),
        ("prompt", "cursor-generation", "", LOOKS),
        ("before-tool", "cursor-generation", "Write", LOOKS),
        ("before-tool", "cursor-generation", "", PASSES),
        ("before-tool", "cursor-generation", "Read", PASSES),
        ("other", "cursor-generation", "", PASSES),
        ("before-tool", "cursor-generation", "Edit", PASSES),
        ("turn-end", "cursor-generation", "", LOOKS),
        ("session-end", "cursor-generation", "", LOOKS),
    ],
    "opencode": [
        ("prompt", "opencode-message", "", LOOKS),
        ("prompt", "2", "", LOOKS),
        ("before-tool", "2", "write", LOOKS),
        ("before-tool", "2", "read", PASSES),
        ("turn-end", "2", "", LOOKS),
    ],
    "hermes": [
        ("other", "", "", PASSES),
        ("prompt", "hermes-turn", "", LOOKS),
        ("before-tool", "hermes-turn", "terminal", LOOKS),
        ("before-tool", "hermes-turn", "read_file", PASSES),
        ("other", "hermes-turn", "terminal", PASSES),
        ("turn-end", "hermes-turn", "", LOOKS),
        ("session-end", "hermes-turn", "", LOOKS),
    ],
    "openclaw": [
        ("before-tool", "openclaw-run", "write", LOOKS),
        ("before-tool", "openclaw-run", "exec", PASSES),
        ("after-tool", "openclaw-run", "exec", LOOKS),
        ("before-tool", "openclaw-run", "exec", PASSES),
        ("turn-end", "openclaw-run", "", LOOKS),
        ("session-end", "openclaw-run", "", LOOKS),
    ],
}

SESSIONS = {agent: f"{agent.partition('-')[0]}-session" for agent in EXPECTED} | {"cursor": "cursor-conversation"}

TOLD_ONLY = {"openclaw", "opencode"}
"""Agents whose plugin is casnap's own: it says who it is on the command line alone."""


def recorded(agent: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads((EVENTS / f"{agent}.json").read_text("utf-8"))
    return events


@pytest.mark.parametrize("agent", EXPECTED)
@pytest.mark.parametrize("named", [True, False], ids=["named", "by its events alone"])
def test_what_an_agent_was_seen_to_send_gives_agent_workspace_session_turn_and_decision(
    agent: str, named: bool
) -> None:
    found, turn = [], Turn()
    for payload in recorded(agent):
        event = understand(parse(json.dumps(payload).encode()), agent if named else "", {})
        turn, due = turns.after(event, turn)
        found.append((event.moment.value, event.turn or turn.id, event.tool, due))
        if named or agent not in TOLD_ONLY:
            assert event.agent == agent
        assert event.session == SESSIONS[agent]
        assert event.places == ((WORKSPACE, "/home/u/other") if agent == "cursor" else (WORKSPACE,))
        assert (event.prompt != "") == (event.moment is Moment.PROMPT and agent != "cline")
    assert found == EXPECTED[agent]


def test_each_agent_has_a_recording() -> None:
    assert {path.stem for path in EVENTS.iterdir()} == set(DIALECTS) == set(EXPECTED)


def test_cursor_is_known_when_it_runs_the_hook_of_another_agent() -> None:
    payload = {"hook_event_name": "PreToolUse", "cursor_version": "3", "workspace_roots": [WORKSPACE]}
    event = understand(parse(json.dumps(payload).encode()), "claude-code", {})
    assert (event.agent, event.moment) == ("cursor", Moment.BEFORE_TOOL)


def test_the_project_that_an_agent_sets_for_its_hooks_goes_before_the_directory_it_is_in() -> None:
    payload = {"hook_event_name": "Stop", "cwd": f"{WORKSPACE}/src/deep"}
    told = parse(json.dumps(payload).encode())
    assert understand(told, "claude", {"CLAUDE_PROJECT_DIR": WORKSPACE}).places == (WORKSPACE,)
    assert understand(told, "claude", {"CLAUDE_PROJECT_DIR": "relative"}).places == (f"{WORKSPACE}/src/deep",)


def test_a_work_tree_elsewhere_that_the_agent_is_in_counts_beside_its_project() -> None:
    payload = {"hook_event_name": "Stop", "cwd": "/home/u/ws-other"}
    event = understand(parse(json.dumps(payload).encode()), "claude", {"CLAUDE_PROJECT_DIR": WORKSPACE})
    assert event.places == (WORKSPACE, "/home/u/ws-other")


@pytest.mark.parametrize("agent", DIALECTS)
def test_a_tool_that_nobody_knows_may_change_files(agent: str) -> None:
    moments = DIALECTS[agent].moments
    name = next(name for name, moment in moments.items() if moment is Moment.BEFORE_TOOL)
    payload = {DIALECTS[agent].event[0]: name, "tool_name": "mcp__x", "tool": "mcp__x", "preToolUse": {"toolName": "y"}}
    event = understand(parse(json.dumps(payload).encode()), agent, {})
    assert (event.moment, event.changes) == (Moment.BEFORE_TOOL, True)


@pytest.mark.parametrize("agent", [*DIALECTS, "", "something-new"])
@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"hook_event_name": 5, "session_id": ["x"], "cwd": {"a": 1}, "tool_name": None},
        {"hook_event_name": "Unheard", "event": "unheard", "hookName": "unheard", "cwd": "/"},
        {"extra": "text", "hook_event_name": "pre_tool_call", "workspaceRoots": [1, None, "relative"]},
    ],
)
def test_whatever_else_comes_is_understood_as_nothing(agent: str, payload: dict[str, Any]) -> None:
    event = understand(parse(json.dumps(payload).encode()), agent, {})
    assert event.session == event.turn == ""
    assert event.places in ((), ("/",))
