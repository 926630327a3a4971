"""What looking after a store did: every field is what happened, not what was meant."""

from __future__ import annotations

from msgspec import Struct


class FreedCheckpoint(Struct, frozen=True):
    """A deleted checkpoint that cannot come back any more; ``workspace`` is an id, ``step`` None for a safety one."""

    id: str
    workspace: str
    name: str | None
    step: int | None


class GcReport(Struct, frozen=True):
    """What a gc freed, or (``dry_run``) would. Bytes are those of packs and of files that nobody named.

    ``removed`` packs went as they were, ``rewritten`` ones after what is needed had been copied, ``repacked`` ones when
    that was compressed better. ``store_bytes`` are the bytes of packs that are left. ``done`` is false where an
    automatic one found too little to do.
    """

    checkpoints: tuple[FreedCheckpoint, ...]
    freed_bytes: int
    store_bytes: int
    removed: int
    rewritten: int
    dry_run: bool
    done: bool = True
    repacked: int = 0
    notes: tuple[str, ...] = ()


class UpkeepStatus(Struct, frozen=True):
    """How well a store is looked after; times are nanoseconds since the epoch, None for never.

    ``dead_bytes`` is at most what a gc would free: what deleted checkpoints wrote. ``clean`` is what the last check
    found. ``warnings`` are sentences for a person, each with what to do.
    """

    dead_bytes: int
    checked_ns: int | None
    clean: bool
    collected_ns: int | None
    warnings: tuple[str, ...]
