"""When a checkpoint is due: at the prompt, before the first tool of a turn that may change files, and at its end.

Of agents that do not tell of that end, after each such tool.
"""

from __future__ import annotations

from msgspec.structs import replace

from casnap.agents.event import Event, Moment
from casnap.agents.notes import Turn


def after(event: Event, known: Turn) -> tuple[Turn, bool]:
    """Where the session is once an event has been seen to, and whether there is anything to see to.

    Agents that give turns no name get numbers for them.
    """
    match event.moment:
        case Moment.PROMPT:
            if known.begun and event.turn and event.turn == known.id:
                return known, False  # told once more, or once for each request to the model
            return _next(event, known), True
        case Moment.BEFORE_TOOL if event.changes:
            is_new = bool(event.turn) and event.turn != known.id
            turn = _next(event, known) if is_new or not known.id else known
            return replace(turn, begun=True, covered=True), not turn.covered
        case Moment.AFTER_TOOL if event.changes:
            return known if event.turn in ("", known.id) else _next(event, known), True
        case Moment.TURN_END:
            turn = known if known.id and event.turn in ("", known.id) else _next(event, known)
            return replace(turn, begun=False, covered=False), True
        case Moment.SESSION_END:
            return known, True
    return known, False


def _next(event: Event, known: Turn) -> Turn:
    number = known.number + 1
    return Turn(event.turn or str(number), number, begun=True)
