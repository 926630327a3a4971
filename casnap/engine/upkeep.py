"""How well a store is looked after, as far as that can be seen at a glance."""

from __future__ import annotations

from collections.abc import Iterator

from casnap.engine.context import Context
from casnap.engine.gc_terms import AUTOMATIC
from casnap.model.tree import NANOSECONDS
from casnap.model.upkeep import UpkeepStatus

MANY_CHECKPOINTS = 1000
"""More than so many in a workspace make lists long."""

LONG_UNCHECKED = 30 * 24 * 3600 * NANOSECONDS
"""After so long a check is worth its time."""


def upkeep_status(context: Context, checkpoints: int) -> UpkeepStatus:
    """What the store says of itself, for a workspace with so many ``checkpoints``."""
    state, now = context.store.state(), context.clock.now()
    dead = sum(row.new_bytes for row in state.to_free(now))
    return UpkeepStatus(
        dead_bytes=dead,
        checked_ns=state.upkeep.checked_at or None,
        clean=state.upkeep.checked_clean,
        collected_ns=state.upkeep.collected_at or None,
        warnings=tuple(_warnings(context, checkpoints, dead, now)),
    )


def _warnings(context: Context, checkpoints: int, dead: int, now: int) -> Iterator[str]:
    state = context.store.state()
    if checkpoints > MANY_CHECKPOINTS:
        yield f"there are {checkpoints} checkpoints: let old ones go with casnap cleanup --keep N"
    free, size = context.store.space.free()
    if free < context.policy.reserve(size):
        kept = context.policy.reserve(size)
        yield (
            f"only {free} bytes are free on {context.store.space.disk}, and {kept} must stay free: "
            f"delete some checkpoints, then casnap gc"
        )
    total = sum(row.length for row in state.packs())
    if dead > AUTOMATIC.least_bytes and dead > AUTOMATIC.least_share * total:
        yield f"deleted checkpoints take up to {dead} of {total} bytes: give them back with casnap gc"
    if not state.upkeep.checked_clean:
        yield "the last check found damage: see it with casnap check, and mend it with casnap check --repair"
    elif _is_unchecked(context, now):
        yield "the store has not been checked for a month: casnap check --read-data reads every byte of it"


def _is_unchecked(context: Context, now: int) -> bool:
    """Whether the last check is long ago; a store that was never checked is as old as its oldest checkpoint."""
    state = context.store.state()
    since = state.upkeep.checked_at or state.first_time
    return bool(since) and now - since > LONG_UNCHECKED
