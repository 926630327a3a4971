"""OpenClaw: a plugin of casnap's own, which OpenClaw's own command puts into its configuration, and the skill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct

from casnap.agents.installing.command import HookCommand
from casnap.agents.installing.files import read
from casnap.agents.installing.json_text import values
from casnap.agents.installing.own_files import plugin_in, skill_in, without_own, without_skill_in
from casnap.agents.installing.plan import CommandRun, FileChange, Plan
from casnap.agents.installing.runtime import Runtime


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
    def _settings(self) -> Path:
        return self.around.directory("OPENCLAW_CONFIG_PATH", str(self.configuration / "openclaw.json"))

    def install_plan(self, command: HookCommand) -> Plan:
        """The plugin, linked and enabled; what it is capable of is for the person to accept."""
        files = [*plugin_in(self._target, self.name, command), *skill_in(self.configuration / "skills")]
        if (program := self.around.program(self.program)) is None:
            link = ("openclaw", *self._link())
            return Plan(self.name, tuple(files), (f"let OpenClaw know it: {' '.join(link)}",))
        known = read_configuration(self._settings)
        steps: list[FileChange | CommandRun] = list(files)
        if not known.links(self._target):
            steps.append(CommandRun((program, *self._link()), (self._settings,), self._about_consent()))
        if not known.links(self._target) or known.is_off:
            steps.append(CommandRun((program, "plugins", "enable", "casnap"), (self._settings,)))
        return Plan(self.name, tuple(steps), _OPENCLAW_TODO)

    def _link(self) -> tuple[str, ...]:
        consent = ("--accept-capabilities",) if self.accept_capabilities else ()
        return ("plugins", "install", "--link", str(self._target), "--force", *consent)

    def _about_consent(self) -> str | None:
        if self.accept_capabilities:
            return None
        return "if OpenClaw wants consent: casnap plugin install --runtime openclaw --accept-capabilities gives yours"

    def uninstall_plan(self) -> Plan:
        """Taken out by OpenClaw itself, and everything of casnap's gone."""
        files = [
            *without_own(self._target, self.name, self.record),
            *without_skill_in(self.configuration / "skills", self.record, in_use=self.in_use),
        ]
        if not read_configuration(self._settings).links(self._target):
            return Plan(self.name, tuple(files))
        if (program := self.around.program(self.program)) is None:
            return Plan(self.name, tuple(files), ("take it out: openclaw plugins uninstall casnap --force",))
        words = (program, "plugins", "uninstall", "casnap", "--force")
        return Plan(self.name, (CommandRun(words, (self._settings,)), *files))


class Configuration(Struct, frozen=True):
    """What OpenClaw's configuration says of plugins: directories that it loads; whether casnap's is off."""

    directories: tuple[str, ...] = ()
    is_off: bool = False

    def links(self, directory: Path) -> bool:
        """Whether it loads a plugin from there."""
        return str(directory) in self.directories


def read_configuration(path: Path) -> Configuration:
    """What the file says; of one that cannot be understood, nothing: OpenClaw's own commands tell what is wrong."""
    from json5.utils import JSON5DecodeError

    try:
        found = values((read(path) or b"").decode("utf-8"))
    except (JSON5DecodeError, UnicodeDecodeError, RecursionError):
        return Configuration()
    paths = _inner(found, "plugins", "load", "paths")
    named = [name for name in paths if isinstance(name, str)] if isinstance(paths, list) else []
    return Configuration(tuple(named), _inner(found, "plugins", "entries", "casnap", "enabled") is False)


def _inner(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


_OPENCLAW_TODO = (
    "for checkpoints at each prompt and at the end of each turn, too, allow it to see conversations: set "
    "plugins.entries.casnap.hooks.allowConversationAccess to true in openclaw.json",
)
