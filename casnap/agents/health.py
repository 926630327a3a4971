"""Whether hooks of agents fire and do their work, for ``casnap doctor``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from casnap.agents.notes import Notes
from casnap.model.checkpoint import format_instant
from casnap.model.health import Diagnosis, bad, good, note


def hook_health(remembered: Iterable[Notes]) -> Iterator[Diagnosis]:
    """What hooks remember: the newest event of each agent, and where no checkpoint was taken."""
    newest: dict[str, int] = {}
    for notes in remembered:
        for agent, fired in notes.agents.items():
            newest[agent] = max(fired.time, newest.get(agent, 0))
        if (failure := notes.failure) is not None:
            told = note if failure.refused else bad
            said = f"took no checkpoint at {format_instant(failure.time)}: {failure.message}"
            yield told(f"hook in {notes.directory}", said, failure.hint or "see casnap status in that directory")
    for agent, time in newest.items():
        yield good(f"hook of {agent}", f"fired last at {format_instant(time)}")
    if not newest:
        yield note("hooks", "no agent has run one", "set one up with: casnap plugin install")
