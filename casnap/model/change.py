"""Differences between two trees, and the plan that turns one into the other."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, Flag, auto

from casnap.model.tree import AnyEntry


class ChangeKind(Enum):
    """What happened to a path; the value is git's letter for it."""

    ADDED = "A"
    CHANGED = "M"
    REMOVED = "D"
    RETYPED = "T"


class Aspect(Flag):
    """What of an entry differs."""

    NONE = 0
    CONTENT = auto()
    MODE = auto()
    OWNER = auto()
    XATTRS = auto()
    TIME = auto()
    LINKS = auto()


@dataclass(frozen=True, slots=True)
class Change:
    """One path that differs; ``old`` or ``new`` is None where it does not exist.

    ``aspects`` is empty for added and removed paths. A directory's own change never speaks of what is in it.
    """

    path: bytes
    kind: ChangeKind
    old: AnyEntry | None
    new: AnyEntry | None
    aspects: Aspect = Aspect.NONE

    @property
    def only_times(self) -> bool:
        """Whether nothing but the time differs: such a path counts as unchanged."""
        return self.kind is ChangeKind.CHANGED and self.aspects is Aspect.TIME
