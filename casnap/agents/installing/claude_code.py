"""Claude Code: hooks in its settings, and the skill."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from casnap.agents.installing.command import PATIENCE, PATIENCE_AT_THE_END, HookCommand, requires
from casnap.agents.installing.files import read
from casnap.agents.installing.json_hooks import all_hooks, hooks_are_off, is_strict, with_hooks, without_hooks
from casnap.agents.installing.own_files import skill_in, without_skill_in
from casnap.agents.installing.plan import FileChange, Plan
from casnap.agents.installing.runtime import Runtime

MAY_CHANGE = "Bash|PowerShell|Edit|MultiEdit|Write|NotebookEdit|mcp__.*"
"""A pattern of its tools that may change files."""

EVENTS = ("UserPromptSubmit", "PreToolUse", "Stop", "SessionEnd")
"""At the prompt, before tools that may change files, at the end of a turn and of the session."""

_TODO = "start Claude Code anew, or look at /hooks in it: running sessions go on without"


class ClaudeCode(Runtime):
    """Of a project, the settings that are not shared: the command names a path of this machine."""

    name = "claude-code"
    title = "Claude Code"
    program = "claude"
    scopes = ("user", "project")

    @property
    def configuration(self) -> Path:
        """``~/.claude``, or that of the project."""
        if self.scope == "project":
            assert self.around.project is not None
            return self.around.project / ".claude"
        return self.around.directory("CLAUDE_CONFIG_DIR", ".claude")

    @property
    def _settings(self) -> Path:
        return self.configuration / ("settings.json" if self.scope == "user" else "settings.local.json")

    def install_plan(self, command: HookCommand) -> Plan:
        """Hooks at the prompt, before tools that may change files, at the end of a turn and of the session."""
        before, where = read(self._settings), str(self._settings)
        first = self.first(self._settings)
        present = [] if before is None else all_hooks(before, where)
        line = command.line(self.name, require=any(map(requires, present)))
        wanted = {event: _group(event, line) for event in EVENTS}
        after = with_hooks(before or b"", wanted, where, first)
        without = None if before is None else without_hooks(before, where, first, EVENTS)
        settings = FileChange(self._settings, before, after, shared=True, without=without)
        todo = (*_obstacles(after, where), *_beside(without, where), _TODO)
        return Plan(self.name, (*skill_in(self.configuration / "skills"), settings), todo)

    def uninstall_plan(self) -> Plan:
        """The settings without casnap, and the skill gone."""
        where, first = str(self._settings), self.first(self._settings)
        steps = self.given_back(self._settings, lambda data: without_hooks(data, where, first, EVENTS))
        # where there are no hooks, a skill that is alike belongs to another scope, or to those who share the project
        alike = any(step.needed for step in steps)
        skill = without_skill_in(self.configuration / "skills", self.record, alike=alike, in_use=self.in_use)
        return Plan(self.name, (*steps, *skill))


def _obstacles(after: bytes, where: str) -> Iterator[str]:
    """Why Claude Code would not run what is set up."""
    if hooks_are_off(after):
        yield f"Claude Code runs no hooks while disableAllHooks is true in {where}"
    if not is_strict(after):
        yield f"Claude Code reads nothing of {where}: it takes no comments, commas at the end or other JSON5"


def _beside(without: bytes | None, where: str) -> Iterator[str]:
    if without is not None and all_hooks(without, where):
        yield f"{where} runs casnap hook in entries that are not from here, too; they stay"


def _group(event: str, line: str) -> dict[str, Any]:
    matcher = {"matcher": MAY_CHANGE} if event == "PreToolUse" else {}
    patience = PATIENCE_AT_THE_END if event == "SessionEnd" else PATIENCE
    return {**matcher, "hooks": [{"type": "command", "command": line, "timeout": patience}]}
