"""What a rollback leaves alone although it could change it: by rules of either side, on demand, and mount points."""

from __future__ import annotations

from dataclasses import replace

from casnap.engine.compare import TreeView, plan_between
from casnap.engine.request import Request
from casnap.engine.scanning import LiveScan
from casnap.engine.scope import with_databases
from casnap.engine.target_rules import TargetRules
from casnap.model.change import Change, ChangeKind
from casnap.model.objects import ObjectSource
from casnap.model.paths import ancestors, components
from casnap.model.plan import Guard, Plan, Protected
from casnap.model.policy import Sensitive
from casnap.model.tree import Directory, is_redacted
from casnap.workspace.recording import parse_rules
from casnap.workspace.rules import GIT_DIRECTORY


def plan_for(request: Request, live: LiveScan, source: ObjectSource, target: TreeView) -> Plan:
    """What turns the workspace as ``live`` found it, its objects in ``source``, into the target of a request."""
    view = live.view(source)
    borders = live.found.borders
    protection = Protection(view, target, unsure=live.found.unsure, borders=borders, keep_git=request.keep_git)
    paths = None if request.paths is None else with_databases(request.paths, view, target)
    plan = plan_between(view, target, paths, protection.of)
    # what is mounted has its own metadata: no checkpoint can say what the mount point should have
    return replace(plan, changes=tuple(change for change in plan.changes if change.path not in borders))


class Protection:
    """Decides for one comparison of the live tree with a target.

    What the present rules leave out is not in the live tree, and protected by that. Here: what the target's
    rules leave out, what lies in the live directories ``unsure`` whose rules cannot be read, files of which either
    side has only the keys, mounts (``borders`` are their points) where the target has no directory, and with
    ``keep_git`` every git directory.
    """

    def __init__(
        self,
        live: TreeView,
        target: TreeView,
        *,
        unsure: frozenset[bytes],
        borders: frozenset[bytes] = frozenset(),
        keep_git: bool,
    ) -> None:
        self.live = live
        self.target = target
        self.rules = TargetRules(target)
        self.unsure = unsure
        self.borders = borders
        self.redacts = any(parse_rules(side.rules).selection.sensitive is Sensitive.REDACT for side in (live, target))
        self.keep_git = keep_git

    def of(self, change: Change) -> Protected | None:
        """What is left alone instead of making a change: the path, or a directory above it."""
        if self.keep_git and (directory := self._git_directory(change.path)) is not None:
            return self._protected(directory, Guard.GIT_KEPT)
        if self.redacts and (path := self._redacted(change.path)) is not None:
            return self._protected(path, Guard.REDACTED)
        if self.borders and (path := self._mounted(change.path)) is not None:
            return self._protected(path, Guard.MOUNTED)
        if change.old is None:  # nothing is there that could be lost
            return None
        if self.unsure and not self.unsure.isdisjoint(ancestors(change.path)):
            return self._protected(change.path, Guard.RULES_UNREAD)
        if change.kind is not ChangeKind.REMOVED:
            return None
        top = self.rules.ignored_top(change.path, change.old)
        if top is not None:
            return self._protected(top, Guard.IGNORED_THEN)
        if self.rules.of(change.path.rpartition(b"/")[0]).unsure:
            return self._protected(change.path, Guard.RULES_UNREAD)
        return None

    def _redacted(self, path: bytes) -> bytes | None:
        """The path, or one above it, where a file stands or is to stand of which only the keys are known."""
        for place in (path, *ancestors(path)):
            if is_redacted(self.live.entry(place)) or is_redacted(self.target.entry(place)):
                return place
        return None

    def _mounted(self, path: bytes) -> bytes | None:
        """The path, or one above it, where something is mounted for which the target has no directory."""
        for place in (path, *ancestors(path)):
            if place in self.borders and not isinstance(self.target.entry(place), Directory):
                return place
        return None

    def _git_directory(self, path: bytes) -> bytes | None:
        """The outermost git directory that is there and holds, or is, ``path``."""
        parts = components(path)
        if GIT_DIRECTORY not in parts:
            return None
        top = b"/".join(parts[: parts.index(GIT_DIRECTORY) + 1])
        return top if self.live.entry(top) is not None else None

    def _protected(self, path: bytes, guard: Guard) -> Protected:
        return Protected(path, guard, self.live.entry(path), self.target.entry(path))
