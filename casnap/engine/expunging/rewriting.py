"""Checkpoint objects without some of their paths: what is above these is built anew, everything else stays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from casnap.codec.hashing import digest
from casnap.codec.trees import build_tree, load_listing
from casnap.engine.compare import TreeView
from casnap.engine.expunging.matching import Matcher
from casnap.model.checkpoint import CheckpointObject
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.objects import ObjectSource
from casnap.model.paths import ROOT, components, join
from casnap.model.tree import AnyEntry, Directory, File, Listing

Put = Callable[[ObjectKey, bytes], None]
"""Takes the objects of trees that are built."""

_Place = tuple[bytes, bytes]
"""A path and the tree there: what a pattern says of a tree hangs on where it is."""


class Rewriter:
    """Rewrites the checkpoints of one workspace, each tree at each path once.

    ``paths`` are those that were taken out so far; ``contents`` the objects that have the bytes of files among them,
    by content id.
    """

    def __init__(self, source: ObjectSource, matcher: Matcher, put: Put) -> None:
        self.paths: set[bytes] = set()
        self.contents: dict[bytes, ObjectKey] = {}
        self._source = source
        self._matcher = matcher
        self._put = put
        self._rebuilt: dict[_Place, tuple[bytes, bytes]] = {}
        self._gone: dict[_Place, frozenset[bytes]] = {}

    def without(self, found: CheckpointObject) -> CheckpointObject:
        """A checkpoint without what matches; itself where nothing does.

        Raises:
            Damage: one of its trees cannot be read.
        """
        self._rebuild(found.root)
        root = self._directory(ROOT, found.root)
        if root is found.root:
            return found
        view = TreeView(self._source, found.root)
        groups = (tuple(path for path in group if self._stays(view, path)) for group in found.links)
        return replace(found, root=root, links=tuple(sorted(group for group in groups if len(group) > 1)))

    def _rebuild(self, root: Directory) -> None:
        """Rebuild what is below ``root``, deepest first; without recursion, for trees may be deep."""
        waiting = [(ROOT, root)]
        opened: dict[_Place, tuple[Listing, Listing]] = {}
        while waiting:
            path, entry = waiting[-1]
            place = path, entry.tree
            if place in self._rebuilt:
                waiting.pop()
            elif place in opened:
                self._rebuilt[place] = self._build(path, entry, *opened.pop(place))
            else:
                opened[place] = self._matcher.sift(path, load_listing(self._source, entry.tree))
                waiting += [(join(path, child.name), child) for child in _directories(opened[place][0])]

    def _build(self, path: bytes, entry: Directory, stays: Listing, goes: Listing) -> tuple[bytes, bytes]:
        """The tree and the digest of a directory whose subdirectories are rebuilt."""
        listing = tuple(self._as_rebuilt(join(path, child.name), child) for child in stays)
        if not goes and listing == stays:
            return entry.tree, entry.digest
        self._gone[path, entry.tree] = frozenset(child.name for child in goes)
        self._note(path, goes)
        built = build_tree(listing)
        for key, data in built.objects:
            self._put(key, data)
        return built.id, digest(listing)

    def _as_rebuilt(self, path: bytes, entry: AnyEntry) -> AnyEntry:
        return self._directory(path, entry) if isinstance(entry, Directory) else entry

    def _directory(self, path: bytes, entry: Directory) -> Directory:
        tree, tree_digest = self._rebuilt[path, entry.tree]
        return entry if tree == entry.tree else replace(entry, tree=tree, digest=tree_digest)

    def _stays(self, view: TreeView, path: bytes) -> bool:
        """Whether an entry of a tree that was rebuilt is in it still."""
        at = ROOT
        entry: AnyEntry | None = view.root
        for name in components(path):
            if not isinstance(entry, Directory):
                break
            if name in self._gone.get((at, entry.tree), ()):
                return False
            entry = view.entries(entry.tree).get(name)
            at = join(at, name)
        return True

    def _note(self, directory: bytes, goes: Listing) -> None:
        """Remember what goes, and all that is below it."""
        waiting = [(join(directory, entry.name), entry) for entry in goes]
        while waiting:
            path, entry = waiting.pop()
            self.paths.add(path)
            if isinstance(entry, File) and entry.size:
                self.contents[entry.content] = content_key(entry)
            elif isinstance(entry, Directory):
                below = load_listing(self._source, entry.tree)
                waiting += [(join(path, child.name), child) for child in below]


def content_key(entry: File) -> ObjectKey:
    """The object that a file's bytes are found by."""
    if entry.chunk_list:
        return ObjectKey(ObjectKind.CHUNK_LIST, entry.chunk_list)
    return ObjectKey(ObjectKind.CHUNK, entry.content)


def _directories(listing: Iterable[AnyEntry]) -> Iterator[Directory]:
    return (entry for entry in listing if isinstance(entry, Directory))
