"""Differences between two trees, and the plan that turns one into the other."""

from __future__ import annotations

from enum import Enum, Flag, auto

from msgspec import Struct

from casnap.model.tree import AnyEntry


class ChangeKind(Enum):
    """What happened to a path; the value is git's letter for it."""

    ADDED = "A"
    CHANGED = "M"
    REMOVED = "D"
    RETYPED = "T"
    RENAMED = "R"


class Aspect(Flag):
    """What of an entry differs."""

    NONE = 0
    CONTENT = auto()
    MODE = auto()
    OWNER = auto()
    XATTRS = auto()
    TIME = auto()
    LINKS = auto()


class Change(Struct, frozen=True):
    """One path that differs; ``old`` or ``new`` is None where it does not exist.

    ``aspects`` is empty for added and removed paths. A directory's own change never speaks of what is in it.
    Only a diff knows renames: a file that was ``renamed_from`` another path, with ``similarity`` per cent of its
    content (100: all of it) and what else differs as ``aspects``.
    """

    path: bytes
    kind: ChangeKind
    old: AnyEntry | None
    new: AnyEntry | None
    aspects: Aspect = Aspect.NONE
    renamed_from: bytes | None = None
    similarity: int = 0

    @property
    def only_times(self) -> bool:
        """Whether nothing but the time differs: such a path counts as unchanged."""
        return self.kind is ChangeKind.CHANGED and self.aspects is Aspect.TIME
