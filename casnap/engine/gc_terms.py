"""When a gc acts, and when one begins by itself: looked at after every checkpoint, so it takes little to import."""

from __future__ import annotations

from msgspec import Struct

from casnap.engine.context import Context
from casnap.model.tree import NANOSECONDS

GRACE = 24 * 3600 * NANOSECONDS
"""How long a deleted checkpoint is spared by a gc that nobody asked for."""

PAUSE = 3600 * NANOSECONDS
"""How long the next automatic gc waits."""

_TRIED = "gc-tried"
"""The file that says when one was last begun."""


class Terms(Struct, frozen=True):
    """When a gc acts: packs are rewritten above ``share``, and nothing is done at all below ``least`` dead bytes.

    ``grace`` is in nanoseconds. With ``repack`` all that is needed is brought into the form for what is at rest; with
    ``parts`` nothing stays only because something that is needed is a difference to it.
    """

    grace: int
    share: float
    least_bytes: int = 0
    least_share: float = 0.0
    automatic: bool = False
    repack: bool = False
    parts: bool = False


ASKED_FOR = Terms(grace=0, share=0.05)
REPACKING = Terms(grace=0, share=0.05, repack=True)
AUTOMATIC = Terms(grace=GRACE, share=0.25, least_bytes=256 << 20, least_share=0.25, automatic=True)


def is_due(context: Context) -> bool:
    """Whether an automatic gc may find enough to do; true at most once an hour. It looks at what is cheap to see.

    What deleted checkpoints wrote may be needed by others: the gc itself finds out.
    """
    store, now = context.store, context.clock.now()
    if not context.policy.auto_gc or not store.writable:
        return False
    if abs(now - _last_tried(context)) < PAUSE:
        return False
    dead = sum(row.new_bytes for row in store.state().to_free(now - GRACE))
    if dead <= AUTOMATIC.least_bytes:
        return False
    total = sum(row.length for row in store.state().packs())
    if dead <= AUTOMATIC.least_share * total:
        return False
    store.cache.keep(_TRIED, str(now).encode())
    return True


def _last_tried(context: Context) -> int:
    try:
        tried = int(context.store.cache.file(_TRIED).read_bytes())
    except (OSError, ValueError):
        tried = 0
    return max(tried, context.store.state().upkeep.collected_at)
