"""The plan: the frozen list of what a destructive verb will do, from two trees."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct

from casnap.model.tree import AnyEntry, OmitReason, Omitted, is_redacted

if TYPE_CHECKING:
    from casnap.model.change import Change

LinkGroups = tuple[tuple[bytes, ...], ...]
"""Hard-link groups: sorted paths of one file, groups sorted."""


class Guard(Enum):
    """Why a rollback leaves alone what both sides could tell it about; the value is for a person."""

    IGNORED_THEN = "ignored by the rules of the checkpoint"
    RULES_UNREAD = "the ignore rules that may protect it cannot be read"
    GIT_KEPT = "git directories are kept"
    REDACTED = "its values were not stored"
    BROUGHT = "the run that is taken back brought it, and a rule of the workspace hides it now"
    MOUNTED = "a file system is mounted there"

    @property
    def words(self) -> str:
        """The reason for a person."""
        return self.value


class Protected(Struct, frozen=True):
    """A path that a rollback leaves alone: it was not captured on one side or both, or something guards it."""

    path: bytes
    reason: OmitReason | Guard
    old: AnyEntry | None
    new: AnyEntry | None

    @property
    def is_left_alone(self) -> bool:
        """Whether the target would have something else here: what it holds cannot be put in place, or what
        stands here and cannot be read would be gone."""
        if isinstance(self.reason, Guard):
            return self.reason in (Guard.RULES_UNREAD, Guard.BROUGHT) or self._is_lost
        if not isinstance(self.old, Omitted):
            return False
        if self.new is None:
            return self.reason is OmitReason.UNREADABLE
        return not isinstance(self.new, Omitted)

    @property
    def _is_lost(self) -> bool:
        """Whether the target has something that cannot be put in place.

        Of a file whose values it has not, only its absence is told: a live one is what is wanted.
        """
        if self.reason is Guard.MOUNTED:
            return self.new is not None
        wanted = self.new is not None and not (self.old is not None and is_redacted(self.new))
        return self.reason is Guard.REDACTED and wanted


class Plan(Struct, frozen=True):
    """What turns the old tree into the new one.

    ``changes`` is sorted by path, changes of times alone included. ``blocked`` are changes that would take
    away a directory above something protected: they are not made. ``old_links`` are all hard-link groups of
    the old tree, ``new_links`` those of the new one within the scope; ``whole`` says that nothing limits it.
    """

    changes: tuple[Change, ...]
    protected: tuple[Protected, ...]
    blocked: tuple[Change, ...]
    old_links: LinkGroups
    new_links: LinkGroups
    whole: bool = True

    @property
    def visible(self) -> tuple[Change, ...]:
        """The changes that count: those of more than times."""
        return tuple(change for change in self.changes if not change.only_times)
