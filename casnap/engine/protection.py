"""What a rollback leaves alone although it could change it: by rules of either side, on demand, and mount points."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from casnap.engine.alike import MAY_BE_READ
from casnap.engine.compare import TreeView, change_of, plan_between
from casnap.engine.request import Request
from casnap.engine.scanning import LiveScan
from casnap.engine.scope import made_for, with_databases
from casnap.engine.target_rules import TargetRules
from casnap.model.change import Change, ChangeKind
from casnap.model.objects import ObjectSource
from casnap.model.paths import ancestors, components, is_within
from casnap.model.plan import Guard, Plan, Protected
from casnap.model.policy import Sensitive
from casnap.model.tree import AnyEntry, Directory, File, Omitted, is_redacted
from casnap.workspace.recording import parse_rules
from casnap.workspace.rules import GIT_DIRECTORY
from casnap.workspace.side_files import database_of, may_be_database


class Brought(Struct, frozen=True):
    """What a run that is taken back was to bring: its target, limited to ``paths`` if there are any."""

    target: TreeView
    paths: tuple[bytes, ...] = ()

    def entry(self, path: bytes) -> AnyEntry | None:
        """What the run was to have at a path, or None where it had nothing to do."""
        if self.paths and not any(is_within(path, top) or is_within(top, path) for top in self.paths):
            return None
        return self.target.entry(path)


class Past(Struct, frozen=True):
    """What was there before: ``interrupted`` runs began from these trees, and ``head`` is what head holds.

    ``brought`` is what the runs brought that are taken back now.
    """

    interrupted: tuple[TreeView, ...] = ()
    head: TreeView | None = None
    brought: tuple[Brought, ...] = ()


def plan_for(request: Request, past: Past, live: LiveScan, source: ObjectSource, target: TreeView) -> Plan:
    """What turns the workspace as ``live`` found it, its objects in ``source``, into the target of a request."""
    view = live.view(source)
    borders = live.found.borders
    protection = Protection(view, target, past, request, unsure=live.found.unsure, borders=borders)
    paths, alone = None, frozenset[bytes]()
    if request.paths is not None:
        paths = with_databases(request.paths, view, target)
        alone = made_for(paths, past.interrupted)
    plan = plan_between(view, target, paths, protection.of, alone)
    plan = replace(plan, protected=tuple(_told(item, past.brought) for item in plan.protected))
    # what is mounted has its own metadata: no checkpoint can say what the mount point should have
    return replace(plan, changes=tuple(change for change in plan.changes if change.path not in borders))


def _told(item: Protected, brought: Iterable[Brought]) -> Protected:
    """What the way back leaves because a rule hides it, although the run has put it there: that must be told.

    It was not there before; of what was and was hidden then, too, the target has an omitted entry.
    """
    if item.reason not in MAY_BE_READ or item.new is not None:
        return item
    if all(isinstance(run.entry(item.path), Omitted | None) for run in brought):
        return item
    return replace(item, reason=Guard.BROUGHT)


class Protection:
    """Decides for one comparison of the live tree with a target.

    What the present rules leave out is not in the live tree, and protected by that. Here: what the target's
    rules leave out, what lies in the live directories ``unsure`` whose rules cannot be read, files of which either
    side has only the keys, mounts (``borders`` are their points) where the target has no directory, on demand every
    git directory, and after an interruption what the rules of before it left out: the ignore files may have gone
    by now. The way back takes away what the run brought that it leads to before, and an undo what head holds: these
    bytes are in a checkpoint.
    """

    def __init__(
        self,
        live: TreeView,
        target: TreeView,
        past: Past,
        request: Request,
        *,
        unsure: frozenset[bytes],
        borders: frozenset[bytes],
    ) -> None:
        self.live = live
        self.target = target
        self.rules = TargetRules(target)
        self.before = [(tree, TargetRules(tree)) for tree in past.interrupted]
        self.brought = past.brought
        self.head = past.head if request.verb == "undo" else None
        self.unsure = unsure
        self.borders = borders
        self.redacts = any(parse_rules(side.rules).selection.sensitive is Sensitive.REDACT for side in (live, target))
        self.keep_git = request.keep_git

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
        if (path := self._left_out_before(change)) is not None:
            return self._protected(path, Guard.IGNORED_THEN)
        if change.kind is not ChangeKind.REMOVED:
            return None
        if self._is_brought(change) or _is_same(change, self.head):
            return None
        top = self._ignored_top(self.rules, change)
        if top is not None:
            return self._protected(top, Guard.IGNORED_THEN)
        if self.rules.of(change.path.rpartition(b"/")[0]).unsure:
            return self._protected(change.path, Guard.RULES_UNREAD)
        return None

    def _ignored_top(self, rules: TargetRules, change: Change) -> bytes | None:
        """What of a path the rules of a tree leave out; a log goes the way of its database, if there is one."""
        database = database_of(change.path)
        beside = self.live.entry(database)
        if database == change.path or not (isinstance(beside, Omitted) or may_be_database(beside)):
            return rules.ignored_top(change.path, change.old)
        return None if isinstance(rules.target.entry(database), File) else rules.ignored_top(database, beside)

    def _is_brought(self, change: Change) -> bool:
        """Whether a run that is taken back put there just what stands there."""
        return any(_is_same(change, run) for run in self.brought)

    def _left_out_before(self, change: Change) -> bytes | None:
        """The path, or one above it, that was left out when an interrupted run began."""
        for tree, rules in self.before:
            for place in (change.path, *ancestors(change.path)):
                if isinstance(tree.entry(place), Omitted):
                    return place
            gone = tree.entry(change.path) is None and self.target.entry(change.path) is None
            if gone and not self._is_brought(change):
                top = self._ignored_top(rules, change)
                if top is not None:
                    return top
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


def _is_same(change: Change, held: TreeView | Brought | None) -> bool:
    return held is not None and change_of(change.path, held.entry(change.path), change.old) is None
