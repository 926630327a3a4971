"""Which agents are here, whether their hooks are in place, fire and do their work; for ``casnap doctor``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from casnap.agents.failures import News
from casnap.agents.installing.plan import Standing
from casnap.agents.notes import Failure, Notes, shortened
from casnap.model.checkpoint import format_instant
from casnap.model.health import Diagnosis, bad, good, note


def agent_health(
    standings: Iterable[Standing], remembered: Iterable[Notes], registered: Iterable[str], now: int
) -> Iterator[Diagnosis]:
    """Each agent that is here or has run a hook, and what hooks could not do; ``registered`` are the workspaces."""
    notes = list(remembered)
    fired = _newest(notes)
    known = {one.runtime: one for one in standings}
    for one in known.values():
        if one.found or one.installed:
            yield _standing(one, fired.get(one.runtime))
    for agent in sorted(fired.keys() - known.keys()):
        yield good(f"agent {agent}", f"its hook fired last at {format_instant(fired[agent])}")
    if not fired and not any(one.found or one.installed for one in known.values()):
        yield note("agents", "none is found here that casnap can be set up for", "see casnap plugin --help")
    news = News(notes, registered, now)
    for told in notes:
        if (failure := news.failure(told)) is not None:
            yield _failure(told.directory, failure)


def _newest(remembered: Iterable[Notes]) -> dict[str, int]:
    """When each agent ran a hook last, in nanoseconds since the epoch."""
    newest: dict[str, int] = {}
    for notes in remembered:
        for agent, fired in notes.agents.items():
            newest[agent] = max(fired.time, newest.get(agent, 0))
    return newest


def _standing(one: Standing, fired: int | None) -> Diagnosis:
    subject, setting_up = f"agent {one.runtime}", f"set it up with: casnap plugin install --runtime {one.runtime}"
    if one.differs and not one.installed:
        return bad(subject, one.differs, "repair the file, and set it up then")
    if one.differs:
        return bad(subject, f"it is not set up as it would be today: {one.differs}", setting_up)
    if fired is not None:
        return good(subject, f"its hook fired last at {format_instant(fired)}")
    if one.installed:
        return note(subject, "it is set up, and has run no hook yet", "; ".join(one.todo) or "work with it")
    return note(subject, f"it is here ({one.where[0]}), and takes no checkpoints", setting_up)


def _failure(directory: str, failure: Failure) -> Diagnosis:
    subject = f"hook in {shortened(directory)}" if directory else "hooks"
    at, message = format_instant(failure.time), shortened(failure.message)
    if failure.refused:
        return note(subject, f"was refused at {at}: {message}", shortened(failure.hint))
    hint = shortened(failure.hint) or "see casnap status in that directory"
    return bad(subject, f"took no checkpoint at {at}: {message}", hint)
