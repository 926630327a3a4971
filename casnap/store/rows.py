"""What the operation log amounts to: rows of workspaces, checkpoints and packs, and places of objects."""

# Annotations are evaluated here, once: as texts they would be compiled when the decoders are made, which takes longer.

from typing import NamedTuple

from msgspec import Struct

from casnap.codec.hashing import NO_PREVIOUS


class UndoTarget(Struct, frozen=True):
    """What an undo puts back: the tree of a safety checkpoint, and head (empty: none).

    What it takes back is a run towards ``target``, limited to ``paths`` if there are any.
    """

    safety: bytes
    head: bytes
    target: bytes = b""
    paths: tuple[bytes, ...] = ()


class OpenRollback(Struct, frozen=True):
    """A rollback that began and has no outcome yet; ``begin`` is the seq of its line, ``time`` that line's time.

    ``head_after`` and ``undo`` are what head and undo become when the outcome is good; ``paths`` and ``keep_git``
    limit it.
    """

    begin: int
    time: int
    verb: str
    safety: bytes
    target: bytes
    nonce: str
    head_after: bytes
    undo: UndoTarget
    paths: tuple[bytes, ...]
    keep_git: bool = False


class WorkspaceRow(Struct, frozen=True):
    """A workspace. ``head`` is empty without one; ``last_operation`` is the seq of its newest line.

    ``settings`` are its own, as JSON texts by key, sorted.
    """

    id: str
    path: bytes
    forgotten: bool
    dropped: bool
    head: bytes
    last_step: int
    undo: UndoTarget | None
    open: tuple[OpenRollback, ...]
    last_operation: int
    settings: tuple[tuple[str, str], ...] = ()


class CheckpointRow(Struct, frozen=True):
    """A checkpoint. ``step`` is 0 for a safety checkpoint, ``seq`` its line, ``parent`` the one at creation.

    ``counts`` are paths added, changed and removed since ``parent``; ``deleted_at`` is nanoseconds since the
    epoch, 0 while it is not deleted; ``freed``: its bytes may be gone, and it cannot come back; ``time`` is that of
    its line; ``good``: what it holds was found good.
    """

    id: bytes
    workspace: str
    seq: int
    step: int
    name: str
    automatic: bool
    safety: bool
    parent: bytes
    counts: tuple[int, int, int]
    skipped: int
    new_bytes: int
    pinned: bool
    deleted: bool
    deleted_at: int
    time: int
    freed: bool = False
    good: bool = False


class PackRow(Struct, frozen=True):
    """A pack: its first ``length`` bytes are committed; it holds at most ``objects`` objects.

    ``repacked``: a gc wrote all of it, in the form for what is at rest.
    """

    id: str
    length: int
    objects: int
    repacked: bool = False


class Upkeep(Struct, frozen=True):
    """When the store was last looked after, as times of lines (0: never).

    ``collected`` is the seq of the newest line that freed space; ``checked_clean`` what the newest check found.
    """

    collected: int = 0
    collected_at: int = 0
    checked_at: int = 0
    checked_clean: bool = True


class Place(NamedTuple):
    """Where an object lies: the byte at which its record begins, its slot in a group, the line that said so."""

    pack: str
    offset: int
    slot: int
    seq: int


class Mark(Struct, frozen=True):
    """A place in the operation log: behind the line ``seq``, whose hash is ``hash``."""

    seq: int
    hash: str
    segment: int
    offset: int


START = Mark(0, NO_PREVIOUS, 1, 0)
"""Before the first line."""
