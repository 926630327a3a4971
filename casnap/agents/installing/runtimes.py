"""The agents that casnap can be set up for, by their names."""

from __future__ import annotations

from casnap.agents.installing.claude_code import ClaudeCode
from casnap.agents.installing.hermes import Hermes
from casnap.agents.installing.openclaw import OpenClaw
from casnap.agents.installing.runtime import Runtime

RUNTIMES: dict[str, type[Runtime]] = {one.name: one for one in (ClaudeCode, OpenClaw, Hermes)}
