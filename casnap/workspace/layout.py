"""From a plan to the acts that carry it out: what to remove, stage, link and repair (no input or output)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from msgspec import Struct

from casnap.model.change import Aspect, Change, ChangeKind
from casnap.model.paths import ROOT, components, split
from casnap.model.plan import Plan
from casnap.model.tree import AnyNode, Directory, Omitted
from casnap.workspace.side_files import LOGS
from casnap.workspace.signature import Signature

Unit = tuple[bytes, ...]
"""Paths that are to share one inode: a hard-link group of the target, or a single path."""


class Layout(Struct, frozen=True):
    """The acts of a plan, each in its order.

    ``removals`` are names to take away, deepest first; ``directories`` are to be created, highest first;
    ``staged`` are new inodes, those of one directory after each other;
    ``linked`` are names that join another path's inode (path, that path);
    ``repaired`` are entries of which only metadata is set.
    """

    removals: tuple[Change, ...]
    directories: Mapping[bytes, Directory]
    staged: Mapping[bytes, AnyNode]
    linked: tuple[tuple[bytes, bytes], ...]
    repaired: Mapping[bytes, AnyNode]

    def parents(self) -> set[bytes]:
        """The directories whose names change."""
        paths = [change.path for change in self.removals]
        paths += [*self.directories, *self.staged, *(path for path, _ in self.linked)]
        return {split(path)[0] for path in paths if path != ROOT}


def lay_out(plan: Plan, signatures: Mapping[bytes, Signature]) -> Layout:
    """Decide how each change is made; ``signatures`` is the live tree as the safety checkpoint saw it."""
    changes = {change.path: change for change in plan.changes}
    wanted = {path: c.new for path, c in changes.items() if c.new is not None and not isinstance(c.new, Omitted)}
    fresh = {path for path in wanted if _is_new_inode(changes[path])}
    linked = _Links(plan, changes, signatures, fresh).join()
    joined = {path for path, _ in linked}
    return Layout(
        removals=tuple(sorted(filter(_is_removed_first, plan.changes), key=_depth, reverse=True)),
        directories={
            change.path: change.new
            for change in sorted(filter(_is_created_directory, plan.changes), key=_depth)
            if isinstance(change.new, Directory)
        },
        staged={path: wanted[path] for path in sorted(fresh - joined, key=split)},
        linked=tuple(linked),
        repaired={
            path: node
            for path, node in wanted.items()
            if path not in fresh and path not in joined and _is_repaired(changes[path])
        },
    )


def _depth(change: Change) -> tuple[int, bytes]:
    return len(components(change.path)), change.path


def _is_new_inode(change: Change) -> bool:
    if isinstance(change.new, Directory):
        return False
    return change.kind is not ChangeKind.CHANGED or Aspect.CONTENT in change.aspects


def _is_removed_first(change: Change) -> bool:
    """Whether the name must be free before anything is put there, or is to be gone."""
    if change.kind is ChangeKind.RETYPED:
        return isinstance(change.old, Directory) or isinstance(change.new, Directory)
    return change.kind is ChangeKind.REMOVED or _is_stale_log(change)


def _is_stale_log(change: Change) -> bool:
    """Whether a database's log is to be another: whoever opens the restored database must not meet the old one."""
    return change.path.endswith(LOGS) and Aspect.CONTENT in change.aspects


def _is_created_directory(change: Change) -> bool:
    return change.kind is not ChangeKind.CHANGED and isinstance(change.new, Directory)


def _is_repaired(change: Change) -> bool:
    return isinstance(change.new, Directory) or bool(change.aspects & ~Aspect.LINKS)


class _Links:
    """Which names keep their inode, and which join another's.

    Names that are not changed at all always keep theirs. ``fresh`` grows by the names that must leave a
    shared inode, since what is repaired through it would show elsewhere.
    """

    def __init__(
        self,
        plan: Plan,
        changes: Mapping[bytes, Change],
        signatures: Mapping[bytes, Signature],
        fresh: set[bytes],
    ) -> None:
        self.changes = changes
        self.signatures = signatures
        self.fresh = fresh
        self.units: dict[bytes, Unit] = {path: group for group in plan.new_links for path in group}
        self.names: dict[bytes, Unit] = {path: group for group in plan.old_links for path in group}

    def unit(self, path: bytes) -> Unit:
        return self.units.get(path, (path,))

    def join(self) -> list[tuple[bytes, bytes]]:
        """Split what is to be apart, then say which names join which."""
        for names in {self.names.get(path, (path,)) for path in self._kept()}:
            self._split(names)
        groups = {self.unit(path) for path in self.changes if len(self.unit(path)) > 1}
        return [pair for group in sorted(groups) for pair in self._join_group(group)]

    def _kept(self) -> list[bytes]:
        """Changed names whose inode would stay."""
        return [
            path
            for path, change in self.changes.items()
            if change.new is not None
            and change.kind is ChangeKind.CHANGED
            and not isinstance(change.new, Directory)
            and path not in self.fresh
        ]

    def _split(self, names: Unit) -> None:
        """Of the names of one inode, let one unit keep it, and none when it is to be repaired but known outside."""
        claims: dict[Unit, list[bytes]] = defaultdict(list)
        for name in names:
            change = self.changes.get(name)
            stays = change is None or (change.new is not None and not isinstance(change.new, Directory))
            if name not in self.fresh and stays:
                claims[self.unit(name)].append(name)
        if not claims:
            return
        winner = max(claims, key=lambda unit: (self._untouched(claims[unit]), len(claims[unit]), unit))
        known_outside = self.signatures[names[0]].nlink > len(names)
        for unit, members in claims.items():
            repaired = any(path in self.changes and _is_repaired(self.changes[path]) for path in members)
            if unit is not winner or (known_outside and repaired):
                self.fresh.update(path for path in members if path in self.changes)

    def _untouched(self, members: list[bytes]) -> int:
        return sum(path not in self.changes for path in members)

    def _join_group(self, group: Unit) -> list[tuple[bytes, bytes]]:
        inodes: dict[tuple[int, int], list[bytes]] = defaultdict(list)
        for path in group:
            if path not in self.fresh and path in self.signatures:
                signature = self.signatures[path]
                inodes[signature.device, signature.inode].append(path)
        keepers = max(
            inodes.values(), key=lambda members: (self._untouched(members), len(members), members), default=[]
        )
        base = keepers[0] if keepers else group[0]
        return [(path, base) for path in group if path != base and path not in keepers and path in self.changes]
