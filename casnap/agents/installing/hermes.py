"""Hermes: a copy of casnap's plugin and of the skill, and its name in the list of those that are enabled."""

from __future__ import annotations

from pathlib import Path

from casnap.agents.installing.command import HookCommand
from casnap.agents.installing.files import read
from casnap.agents.installing.own_files import plugin_in, skill_in, without_plugin_in, without_skill_in
from casnap.agents.installing.plan import CommandRun, FileChange, Plan
from casnap.agents.installing.runtime import Runtime
from casnap.agents.installing.yaml_names import Unsuitable, names, with_name, without_name

NAME = "casnap"

_TODO = "start Hermes anew: running sessions go on without"
_OFF = "casnap is in plugins.disabled, which counts more than that it is enabled; say: hermes plugins enable casnap"


class Hermes(Runtime):
    """Its configuration is changed in place: ``hermes plugins enable`` writes it anew, without anybody's comments.

    That command is run only where the file has a form that cannot be changed in place.
    """

    name = "hermes"
    title = "Hermes"
    program = "hermes"
    distribution = "hermes_agent"

    @property
    def configuration(self) -> Path:
        """``~/.hermes``."""
        return self.around.directory("HERMES_HOME", ".hermes")

    @property
    def _settings(self) -> Path:
        return self.configuration / "config.yaml"

    @property
    def _target(self) -> Path:
        return self.configuration / "plugins" / NAME

    def install_plan(self, command: HookCommand) -> Plan:
        """The plugin and the skill, enabled."""
        files = [*plugin_in(self._target, self.name, command), *skill_in(self.configuration / "skills")]
        before, where = read(self._settings), str(self._settings)
        try:
            after = with_name(before or b"", NAME, where)
        except Unsuitable:
            return self._by_command("enable", files)
        first = self.first(self._settings)
        # where nobody knows better, a name that is in the list already is the person's
        without = before if before is None or first is None else without_name(before, NAME, where, first)
        settings = FileChange(self._settings, before, after, shared=True, without=without)
        off = (_OFF,) if NAME in names(after, where, "disabled") else ()
        return Plan(self.name, (*files, settings), (*off, _TODO))

    def uninstall_plan(self) -> Plan:
        """No longer enabled, and everything of casnap's gone."""
        plugin = without_plugin_in(self._target, self.name, self.record)
        files = [*plugin, *without_skill_in(self.configuration / "skills", self.record, in_use=self.in_use)]
        where, first = str(self._settings), self.first(self._settings)
        if first is None and not plugin:  # the name alone is the person's
            first = read(self._settings)
        try:
            steps = self.given_back(self._settings, lambda data: without_name(data, NAME, where, first))
        except Unsuitable:
            return self._by_command("disable", files)
        return Plan(self.name, (*steps, *files))

    def _by_command(self, what: str, files: list[FileChange]) -> Plan:
        """Let Hermes do it, and ask nobody whether the plugin may replace tools of Hermes: it has none."""
        refusal = ("--no-allow-tool-override",) if what == "enable" else ()
        words = ("plugins", what, NAME, *refusal)
        if (program := self.around.program(self.program)) is None:
            return Plan(self.name, tuple(files), (f"{what} it in Hermes' environment: hermes {' '.join(words)}",))
        run = CommandRun((program, *words), (self._settings,))
        return Plan(self.name, (*files, run) if what == "enable" else (run, *files), (_TODO,))
