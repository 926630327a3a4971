"""Agents that run a plugin of casnap's own: OpenClaw and Hermes. Their own commands put it into their configuration."""

from __future__ import annotations

import json
from pathlib import Path

from casnap.agents.installing.command import HookCommand
from casnap.agents.installing.plan import CommandRun, FileChange, Plan
from casnap.agents.installing.runtime import PACKAGE, Runtime, cleared, placed, skill_in

COMMAND = "casnap.json"
"""The file beside a plugin that says how casnap is run."""


def _plugin(name: str, target: Path, command: HookCommand) -> list[FileChange]:
    said = json.dumps({"command": list(command.words)}, indent=2, ensure_ascii=False) + "\n"
    return placed(PACKAGE / "plugins" / name, target, {COMMAND: said.encode("utf-8", "surrogateescape")})


class Hermes(Runtime):
    """A plugin in its directory of plugins, a copy of the skill, and ``hermes plugins enable``."""

    name = "hermes"
    title = "Hermes"
    program = "hermes"

    @property
    def configuration(self) -> Path:
        """``~/.hermes``."""
        return self.around.directory("HERMES_HOME", ".hermes")

    @property
    def _target(self) -> Path:
        return self.configuration / "plugins" / "casnap"

    def install_plan(self, command: HookCommand) -> Plan:
        """The plugin and the skill, enabled."""
        files = [*_plugin(self.name, self._target, command), *skill_in(self.configuration / "skills")]
        if (program := self.around.program(self.program)) is None:
            return Plan(self.name, tuple(files), ("enable it in Hermes' environment: hermes plugins enable casnap",))
        return Plan(self.name, (*files, *self._asked(program, "enable", any(file.needed for file in files))))

    def uninstall_plan(self) -> Plan:
        """Disabled, and everything of casnap's gone."""
        files = [*cleared(self._target), *cleared(self.configuration / "skills" / "casnap")]
        program = self.around.program(self.program)
        if program is None:
            todo = ("disable it in Hermes' environment: hermes plugins disable casnap",) if files else ()
            return Plan(self.name, tuple(files), todo)
        return Plan(self.name, (*self._asked(program, "disable", bool(files)), *files))

    def _asked(self, program: str, what: str, needed: bool) -> list[CommandRun]:
        words = (program, "plugins", what, "casnap")
        return [CommandRun(words, (self.configuration / "config.yaml",))] if needed else []


class OpenClaw(Runtime):
    """A native plugin in a directory of casnap's own, which OpenClaw links to, and the skill."""

    name = "openclaw"
    title = "OpenClaw"
    program = "openclaw"
    accept_capabilities = False

    @property
    def configuration(self) -> Path:
        """``~/.openclaw``."""
        return self.around.directory("OPENCLAW_STATE_DIR", ".openclaw")

    @property
    def _target(self) -> Path:
        return self.around.own / "openclaw"

    @property
    def _configured_in(self) -> tuple[Path, ...]:
        return (self.around.directory("OPENCLAW_CONFIG_PATH", str(self.configuration / "openclaw.json")),)

    def install_plan(self, command: HookCommand) -> Plan:
        """The plugin, linked and enabled; what it is capable of is for the person to accept."""
        files = [*_plugin(self.name, self._target, command), *skill_in(self.configuration / "skills")]
        program = self.around.program(self.program)
        consent = ("--accept-capabilities",) if self.accept_capabilities else ()
        link = ("plugins", "install", "--link", str(self._target), "--force", *consent)
        if program is None:
            return Plan(self.name, tuple(files), (f"let OpenClaw know it: openclaw {' '.join(link)}",))
        steps: list[FileChange | CommandRun] = list(files)
        if any(file.needed for file in files):
            steps += [
                CommandRun((program, *link), self._configured_in),
                CommandRun((program, "plugins", "enable", "casnap"), self._configured_in),
            ]
        return Plan(self.name, tuple(steps), _OPENCLAW_TODO)

    def uninstall_plan(self) -> Plan:
        """Taken out by OpenClaw itself, and everything of casnap's gone."""
        files = [*cleared(self._target), *cleared(self.configuration / "skills" / "casnap")]
        program = self.around.program(self.program)
        if not files or program is None:
            todo = ("take it out: openclaw plugins uninstall casnap --force",) if files else ()
            return Plan(self.name, tuple(files), todo)
        words = (program, "plugins", "uninstall", "casnap", "--force")
        return Plan(self.name, (CommandRun(words, self._configured_in), *files))


_OPENCLAW_TODO = (
    "for a checkpoint at the end of each turn, too, allow it to see conversations: set "
    "plugins.entries.casnap.hooks.allowConversationAccess to true in openclaw.json",
)
