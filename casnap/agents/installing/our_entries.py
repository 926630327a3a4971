"""Which of the hooks at an event are casnap's to take out again, and which a person has written."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from casnap.agents.installing.command import is_ours, is_standard

Place = tuple[int, int]
"""The number of a group, and of a handler in it."""


def ours(groups: Sequence[Any], first: Sequence[Any], *, written: bool) -> set[Place]:
    """The places of casnap's hooks among the groups of an event; ``first`` are those before casnap's first change.

    What was there at first stays. People also change what casnap wrote: so where casnap has ``written`` one at the
    event, and nothing there has casnap's own form, whatever else runs ``casnap hook`` is what became of it.
    """
    theirs = Counter(_identity(group, handler) for _, group, handler in recognised(first))
    later: list[tuple[Place, Any, Any]] = []
    for place, group, handler in recognised(groups):
        if theirs[identity := _identity(group, handler)] > 0:
            theirs[identity] -= 1
        else:
            later.append((place, group, handler))
    standard = {place for place, group, handler in later if is_standard(handler) and _is_own_group(group)}
    return standard if standard or not written else {place for place, _, _ in later}


def recognised(groups: Sequence[Any]) -> Iterator[tuple[Place, Any, Any]]:
    """Each handler that runs ``casnap hook``, whoever wrote it, with its place and its group."""
    for at, group in enumerate(groups):
        for number, handler in enumerate(handlers(group)):
            if is_ours(handler):
                yield (at, number), group, handler


def handlers(group: Any) -> list[Any]:
    """The handlers of a group; none where it has another form."""
    found = group.get("hooks") if isinstance(group, dict) else None
    return found if isinstance(found, list) else []


def _is_own_group(group: dict[str, Any]) -> bool:
    return set(group) <= {"matcher", "hooks"} and len(group["hooks"]) == 1


def _identity(group: dict[str, Any], handler: Any) -> str:
    return json.dumps([group.get("matcher"), handler], sort_keys=True, default=str)
