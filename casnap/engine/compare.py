"""Comparing two trees: only what differs is looked at, so the cost follows the change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from casnap.model.change import Aspect, Change, ChangeKind
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.paths import ROOT, ancestors, components, is_within, join
from casnap.model.plan import LinkGroups, Plan, Protected
from casnap.model.tree import (
    AnyEntry,
    AnyNode,
    Device,
    Directory,
    File,
    Listing,
    OmitReason,
    Omitted,
    Symlink,
)
from casnap.workspace.side_files import database_of, may_be_database

AHEAD = 500
"""Directories whose trees are read together."""
if TYPE_CHECKING:
    from casnap.model.objects import ObjectSource


class TreeView:
    """A tree and where its objects are; ``root`` is None for "nothing there".

    ``rules`` are the ignore rules that a checkpoint recorded. What has been looked at is remembered: objects
    never change. ``listings``, by the ids of trees, are at hand already.
    """

    def __init__(
        self,
        source: ObjectSource,
        root: Directory | None,
        links: LinkGroups = (),
        rules: tuple[str, ...] = (),
        *,
        listings: Mapping[bytes, Listing] | None = None,
    ) -> None:
        self.source = source
        self.root = root
        self.links = links
        self.rules = rules
        self._listings = listings or {}
        self._known: dict[bytes, Mapping[bytes, AnyEntry]] = {}

    def entries(self, tree: bytes) -> Mapping[bytes, AnyEntry]:
        """The entries of one directory by name, sorted."""
        if tree not in self._known:
            listing = self._listings.get(tree) or self._load(tree)
            self._known[tree] = {entry.name: entry for entry in listing}
        return self._known[tree]

    def look_ahead(self, trees: Iterable[bytes]) -> None:
        """Remember the entries of many directories, whose objects are read together."""
        wanted = [tree for tree in dict.fromkeys(trees) if tree and not (tree in self._known or tree in self._listings)]
        read_many = getattr(self.source, "read_many", None)
        if len(wanted) < 2 or read_many is None:
            return
        for start in range(0, len(wanted), AHEAD):
            keys = [ObjectKey(ObjectKind.TREE, tree) for tree in wanted[start : start + AHEAD]]
            ahead = _Ahead(self.source, read_many(keys))
            for key in keys:
                self._known[key.id] = {entry.name: entry for entry in self._load(key.id, ahead)}

    def entry(self, path: bytes) -> AnyEntry | None:
        """The entry at a path, or None; a path below an omitted entry is the omitted entry."""
        entry: AnyEntry | None = self.root
        for name in components(path):
            if isinstance(entry, Omitted):
                return entry
            if not isinstance(entry, Directory):
                return None
            entry = self.entries(entry.tree).get(name)
        return entry

    def walk(self, path: bytes = ROOT) -> Iterator[tuple[bytes, AnyEntry]]:
        """Every entry at and below ``path``, parents before children, in order of name."""
        top = self.entry(path)
        stack: list[tuple[bytes, AnyEntry]] = [] if top is None else [(path, top)]
        while stack:
            at, entry = stack.pop()
            yield at, entry
            if isinstance(entry, Directory):
                children = self._load(entry.tree)  # remembering all of a big tree is too much
                stack.extend((join(at, child.name), child) for child in reversed(children))

    def _load(self, tree: bytes, source: ObjectSource | None = None) -> Listing:
        from casnap.codec.trees import load_listing  # here, since of what has not changed no tree is read

        return load_listing(source or self.source, tree)


class _Ahead:
    """Objects that were read together; any other is read by itself."""

    def __init__(self, source: ObjectSource, objects: Mapping[ObjectKey, bytes]) -> None:
        self._source = source
        self._objects = objects

    def read(self, key: ObjectKey) -> bytes:
        data = self._objects.get(key)
        return self._source.read(key) if data is None else data


_NO_DATABASE = frozenset({OmitReason.SOCKET, OmitReason.MOUNT_POINT, OmitReason.STORE, OmitReason.GIT_LOCK})

Guardian = Callable[[Change], Protected | None]
"""Says what is left alone instead of making a change."""


def plan_between(
    old: TreeView,
    new: TreeView,
    paths: tuple[bytes, ...] | None = None,
    guardian: Guardian | None = None,
    alone: frozenset[bytes] = frozenset(),
) -> Plan:
    """What turns ``old`` into ``new``, limited to ``paths`` and what lies below them when given.

    Of ``alone`` the paths themselves are in scope too. What the ``guardian`` protects is left out.
    Directories above a limited path are changed only where the path could not be put back otherwise.
    """
    changes, protected = _Comparison(old, new).run()
    by_path = {change.path: change for change in changes}
    protected += _take_guarded(by_path, guardian)
    spared = {item.path for item in protected}
    new_links = _without(new.links, spared)
    _add_link_changes(old, new, _limit_links(old.links, paths), _limit_links(new_links, paths), by_path)
    protected += [item for item in _take_guarded(by_path, guardian) if item.path not in spared]
    protected += _take_side_files(by_path, protected)
    _drop_unreachable(by_path, protected)
    if paths is not None:
        by_path = _limit(by_path, paths, alone)
        protected = [item for item in protected if _in_scope(item.path, paths)]
    blocked = _take_blocked(by_path, protected)
    return Plan(
        changes=tuple(by_path[path] for path in sorted(by_path)),
        protected=tuple(sorted(protected, key=lambda item: item.path)),
        blocked=blocked,
        old_links=old.links,
        new_links=_limit_links(new_links, paths),
        whole=paths is None,
    )


def _take_guarded(changes: dict[bytes, Change], guardian: Guardian | None) -> list[Protected]:
    """Take out the changes that are guarded; that times stay as they are is not worth a word."""
    guarded: dict[bytes, Protected] = {}
    if guardian is not None:
        for path in list(changes):
            item = guardian(changes[path])
            if item is not None and not changes.pop(path).only_times:
                guarded[item.path] = item
    return list(guarded.values())


def _take_side_files(changes: dict[bytes, Change], protected: list[Protected]) -> list[Protected]:
    """Take out what belongs to an SQLite database of which a file is protected: apart they are worth nothing."""
    reasons = {database_of(item.path): item for item in protected if item.reason not in _NO_DATABASE}
    found = []
    for path in [path for path in changes if database_of(path) in reasons]:
        item = reasons[database_of(path)]
        change = changes[path]
        is_file = isinstance(item.old, File) or isinstance(item.new, File)
        is_set = not is_file or may_be_database(item.old) or may_be_database(item.new)
        if item.path != path and is_set and not isinstance(change.old or change.new, Directory):
            found.append(Protected(path, item.reason, change.old, change.new))
            del changes[path]
    return found


def _drop_unreachable(changes: dict[bytes, Change], protected: list[Protected]) -> None:
    """Take out what was to come into a directory in whose place something is left alone that is none."""
    tops = {item.path for item in protected if not isinstance(item.old, Directory)}
    for path in [path for path in changes if not tops.isdisjoint(ancestors(path))] if tops else ():
        del changes[path]


def _take_blocked(changes: dict[bytes, Change], protected: list[Protected]) -> tuple[Change, ...]:
    """Take out the changes that would remove a directory above something protected."""
    above = {directory for item in protected for directory in ancestors(item.path)}
    return tuple(
        changes.pop(path)
        for path in sorted(above & changes.keys())
        if changes[path].kind in (ChangeKind.REMOVED, ChangeKind.RETYPED)
    )


def _in_scope(path: bytes, paths: Iterable[bytes]) -> bool:
    return any(is_within(path, top) for top in paths)


def _limit(changes: dict[bytes, Change], paths: tuple[bytes, ...], alone: frozenset[bytes]) -> dict[bytes, Change]:
    chosen = {path: change for path, change in changes.items() if path in alone or _in_scope(path, paths)}
    for path, change in list(chosen.items()):
        if change.new is None:
            continue
        parts = components(path)
        for depth in range(1, len(parts)):
            above = changes.get(b"/".join(parts[:depth]))
            if above is not None and above.kind in (ChangeKind.ADDED, ChangeKind.RETYPED):
                chosen[above.path] = above
                if above.kind is ChangeKind.RETYPED:  # what a retyped directory held goes with it
                    chosen.update((p, c) for p, c in changes.items() if is_within(p, above.path) and c.new is None)
    return chosen


def _limit_links(groups: LinkGroups, paths: tuple[bytes, ...] | None) -> LinkGroups:
    if paths is None:
        return groups
    limited = (tuple(path for path in group if _in_scope(path, paths)) for group in groups)
    return tuple(group for group in limited if len(group) > 1)


class _Comparison:
    """One walk through both trees, skipping what is the same object."""

    def __init__(self, old: TreeView, new: TreeView) -> None:
        self.old, self.new = old, new
        self.changes: list[Change] = []
        self.protected: list[Protected] = []
        self.stack: list[tuple[bytes, bytes, bytes]] = []

    def run(self) -> tuple[list[Change], list[Protected]]:
        self.entry(ROOT, self.old.root, self.new.root)
        while self.stack:  # level by level, so that the trees of many directories are read at once
            level, self.stack = self.stack, []
            self.old.look_ahead(old_tree for _, old_tree, _ in level)
            self.new.look_ahead(new_tree for _, _, new_tree in level)
            for path, old_tree, new_tree in level:
                self.directory(path, old_tree, new_tree)
        return self.changes, self.protected

    def directory(self, path: bytes, old_tree: bytes, new_tree: bytes) -> None:
        old = self.old.entries(old_tree) if old_tree else {}
        new = self.new.entries(new_tree) if new_tree else {}
        for name in old.keys() | new.keys():
            before, after = old.get(name), new.get(name)
            if before != after or isinstance(before, Omitted):
                self.entry(join(path, name), before, after)

    def entry(self, path: bytes, old: AnyEntry | None, new: AnyEntry | None) -> None:
        omitted = next((side for side in (old, new) if isinstance(side, Omitted)), None)
        if omitted is not None:
            if old is not None:  # what does not exist needs no protection
                self.protected.append(Protected(path, OmitReason(omitted.reason), old, new))
            return
        if change := change_of(path, old, new):
            self.changes.append(change)
        old_tree = old.tree if isinstance(old, Directory) else b""
        new_tree = new.tree if isinstance(new, Directory) else b""
        if old_tree != new_tree:
            self.stack.append((path, old_tree, new_tree))


def change_of(path: bytes, old: AnyEntry | None, new: AnyEntry | None) -> Change | None:
    """The change between two entries of one path, what is in a directory aside."""
    if old is None or new is None:
        kind = ChangeKind.ADDED if old is None else ChangeKind.REMOVED
        return None if old is new else Change(path, kind, old, new)
    if type(old) is not type(new):
        return Change(path, ChangeKind.RETYPED, old, new)
    if isinstance(old, Omitted) or isinstance(new, Omitted):
        return None
    aspects = _aspects(old, new)
    return Change(path, ChangeKind.CHANGED, old, new, aspects) if aspects else None


def _aspects(old: AnyNode, new: AnyNode) -> Aspect:
    aspects = Aspect.NONE
    if _content(old) != _content(new):
        aspects |= Aspect.CONTENT
    if old.mode != new.mode and not isinstance(old, Symlink):
        aspects |= Aspect.MODE
    if (old.uid, old.gid) != (new.uid, new.gid):
        aspects |= Aspect.OWNER
    if old.xattrs != new.xattrs:
        aspects |= Aspect.XATTRS
    if (old.mtime_s, old.mtime_frac) != (new.mtime_s, new.mtime_frac):
        aspects |= Aspect.TIME
    return aspects


def _content(node: AnyNode) -> object:
    match node:
        case File():
            return node.content
        case Symlink():
            return node.target
        case Device():
            return (node.block, node.major, node.minor)
        case _:
            return None


def _without(groups: LinkGroups, spared: set[bytes]) -> LinkGroups:
    """The groups less the names that are, or lie below, a spared path."""
    if not spared:
        return groups
    kept = (tuple(path for path in group if spared.isdisjoint((path, *ancestors(path)))) for group in groups)
    return tuple(group for group in kept if len(group) > 1)


def _add_link_changes(
    old: TreeView, new: TreeView, old_links: LinkGroups, new_links: LinkGroups, changes: dict[bytes, Change]
) -> None:
    """Mark the paths that both trees have and whose hard-link group differs."""
    before, after = set(old_links), set(new_links)
    for path in sorted({path for group in before ^ after for path in group}):
        known = changes.get(path)
        if known is not None:
            if known.kind is ChangeKind.CHANGED:
                changes[path] = Change(path, known.kind, known.old, known.new, known.aspects | Aspect.LINKS)
            continue
        pair = old.entry(path), new.entry(path)
        if not any(entry is None or isinstance(entry, Omitted) for entry in pair):
            changes[path] = Change(path, ChangeKind.CHANGED, *pair, Aspect.LINKS)
