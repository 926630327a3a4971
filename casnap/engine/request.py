"""What a destructive verb is asked to restore."""

from __future__ import annotations

from msgspec import Struct

from casnap.model.checkpoint import Checkpoint
from casnap.store.state import UndoTarget


class Request(Struct, frozen=True):
    """The target, and what becomes of head and undo when it is restored.

    ``paths`` limits it (None: everything); ``keep_git`` leaves git directories alone. ``undo`` is None for "the
    safety checkpoint of this very run". ``back`` says that it leads to before a run, and takes away what that brought.
    """

    verb: str
    target: Checkpoint
    head_after: bytes
    paths: tuple[bytes, ...] | None = None
    undo: UndoTarget | None = None
    keep_git: bool = False
    back: bool = False
