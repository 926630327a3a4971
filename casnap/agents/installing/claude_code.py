"""Claude Code: hooks in its settings, and the skill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from casnap.agents.installing.apply import read
from casnap.agents.installing.command import HookCommand, requires
from casnap.agents.installing.json_hooks import hooks_are_off, our_commands, with_hooks, without_hooks
from casnap.agents.installing.own_files import skill_in, without_skill_in
from casnap.agents.installing.plan import FileChange, Plan
from casnap.agents.installing.runtime import Runtime

MAY_CHANGE = "Bash|PowerShell|Edit|MultiEdit|Write|NotebookEdit|mcp__.*"
"""A pattern of its tools that may change files."""

_TODO = "start Claude Code anew, or look at /hooks in it: running sessions go on without"

PATIENCE, PATIENCE_AT_THE_END = 20, 5
"""Seconds after which Claude Code ends a hook: more than the hook takes by itself."""


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
        present = [] if before is None else our_commands(before, where)
        line = command.line(self.name, require=any(map(requires, present)))
        wanted = {
            "UserPromptSubmit": _group(line, PATIENCE),
            "PreToolUse": {"matcher": MAY_CHANGE, **_group(line, PATIENCE)},
            "Stop": _group(line, PATIENCE),
            "SessionEnd": _group(line, PATIENCE_AT_THE_END),
        }
        after = with_hooks(before or b"", wanted, where)
        without = None if before is None else without_hooks(before, where, self.first(self._settings))
        settings = FileChange(self._settings, before, after, shared=True, without=without)
        off = (f"Claude Code runs no hooks while disableAllHooks is true in {where}",) if hooks_are_off(after) else ()
        return Plan(self.name, (*skill_in(self.configuration / "skills"), settings), (*off, _TODO))

    def uninstall_plan(self) -> Plan:
        """The settings without casnap, and the skill gone."""
        where, first = str(self._settings), self.first(self._settings)
        steps = self.given_back(self._settings, lambda data: without_hooks(data, where, first))
        # where there are no hooks, a skill that is alike belongs to another scope, or to those who share the project
        alike = any(step.needed for step in steps)
        return Plan(self.name, (*steps, *without_skill_in(self.configuration / "skills", self.record, alike=alike)))


def _group(line: str, seconds: int) -> dict[str, Any]:
    return {"hooks": [{"type": "command", "command": line, "timeout": seconds}]}
