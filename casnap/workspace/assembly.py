"""Putting what was found together: trees from the bottom up, hard-link groups, and the next stat cache."""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections.abc import Callable, Mapping
from functools import cache, partial

from msgspec.structs import replace

from casnap.codec.hashing import digest
from casnap.codec.trees import BuiltTree, Leaf, build_tree, decode_tree, pages_of
from casnap.errors import Damage
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.objects import ObjectSource
from casnap.model.paths import ROOT, split
from casnap.model.tree import Directory, Listing, OmitReason, Omitted, is_redacted
from casnap.workspace.cache import CachedDirectory, Guards, StatCache, Trait, is_same, traits_of
from casnap.workspace.cache_file import Patched
from casnap.workspace.found import FoundDirectory
from casnap.workspace.mounts import border_of
from casnap.workspace.outbox import Outbox
from casnap.workspace.scan import Links, Sibling
from casnap.workspace.side_files import SIDE_FILES
from casnap.workspace.signature import Signature
from casnap.workspace.walk import Walk


def build_trees(
    walk: Walk,
    outbox: Outbox,
    source: ObjectSource | None,
    *,
    reuse: bool,
    written: int,
    sibling: Sibling | None = None,
) -> tuple[Directory, StatCache]:
    """Build the tree of every directory that was found, the deepest first. ``source`` has the trees of the cache.

    With ``reuse``, the tree of a directory whose listing is as it was in the cache is not built again. What the cache
    does not know may be like what a ``sibling`` has.

    Returns:
        The root's entry, and a cache of what was found at the time ``written``.
    """
    found = walk.found
    for path in walk.passed:
        found[split(path)[0]].take(walk.cached(path).entry)
    built: dict[bytes, CachedDirectory] = {}
    differs = False
    for path, directory in reversed(found.items()):
        built[path], is_new = _built(directory, outbox, source, sibling, reuse=reuse)
        differs = differs or is_new
        if path != ROOT:
            above = found[split(path)[0]]
            if is_new:
                above.keep(built[path].entry, settled=False)
            else:
                above.take(built[path].entry)
    return built[ROOT].entry, StatCache(_in_order(walk, built), written=written, differs=differs)


def _in_order(walk: Walk, built: Mapping[bytes, CachedDirectory]) -> Mapping[bytes, CachedDirectory]:
    """All directories as the next cache has them, in the order of the walk."""
    if not walk.passed:
        return {path: built[path] for path in walk.order}
    file = walk.file
    assert file is not None
    return Patched(file, {path: walk.passed.get(path) or built[path] for path in walk.order})


def _built(
    directory: FoundDirectory, outbox: Outbox, source: ObjectSource | None, sibling: Sibling | None, *, reuse: bool
) -> tuple[CachedDirectory, bool]:
    """A directory as the next cache has it, and whether that is another than before."""
    before = directory.before
    if directory.is_whole and before is not None:
        return before, False
    listing = directory.listing()
    signatures = _believable(directory, listing)
    if reuse and before is not None and listing == before.listing:
        tree, tree_digest = before.entry.tree, before.entry.digest
    else:
        tree = _put_tree(listing, outbox, lambda: _tree_before(directory, sibling), source)
        tree_digest = digest(listing)
    now = CachedDirectory(
        replace(directory.own, tree=tree, digest=tree_digest),
        directory.signature if directory.settled and directory.signature.storable else None,
        listing,
        signatures,
        traits=_traits(directory, listing, signatures),
        guards=_guards(directory, listing),
        context=directory.context,
        device=directory.signature.device,
    )
    return (before, False) if before is not None and is_same(now, before) else (now, True)


def _traits(directory: FoundDirectory, listing: Listing, signatures: tuple[Signature | None, ...]) -> int:
    traits = directory.traits | traits_of(listing, signatures)
    if directory.is_git_root:
        traits |= Trait.GIT_ROOT
    if any(name.endswith(SIDE_FILES) for name in directory.signatures):
        traits |= Trait.SIDE_FILES
    return traits


def _guards(directory: FoundDirectory, listing: Listing) -> Guards:
    """Files that are left out for what they are now, and tags of caches: as long as they look so, nothing changes."""
    by_look = {entry.name for entry in listing if isinstance(entry, Omitted) and entry.reason in _BY_LOOK}
    looks = [(name, directory.signatures[name]) for name in sorted(by_look & directory.signatures.keys())]
    return (*looks, *sorted(directory.guards.items()))


_BY_LOOK = frozenset({int(OmitReason.TOO_LARGE), int(OmitReason.SENSITIVE)})


def _tree_before(directory: FoundDirectory, sibling: Sibling | None) -> bytes:
    """The tree that a directory was, or is perhaps like; empty where none is known."""
    if directory.before is not None:
        return directory.before.entry.tree
    like = None if sibling is None else sibling(directory.path)
    return like.tree if isinstance(like, Directory) else b""


def _put_tree(listing: Listing, outbox: Outbox, before: Callable[[], bytes], source: ObjectSource | None) -> bytes:
    built = build_tree(listing)
    bases = cache(lambda: _bases(built, before(), source))
    for key, data in built.objects:
        outbox.add(key, data, partial(_base_of, bases, key))
    return built.id


def _base_of(bases: Callable[[], Mapping[ObjectKey, ObjectKey]], key: ObjectKey) -> ObjectKey | None:
    return bases().get(key)


def _bases(built: BuiltTree, before: bytes, source: ObjectSource | None) -> dict[ObjectKey, ObjectKey]:
    """What each object of a tree replaces: the tree as it was; a page the one that began where it begins, or before."""
    if not before:
        return {}
    bases = {ObjectKey(ObjectKind.TREE, built.id): ObjectKey(ObjectKind.TREE, before)}
    if len(built.objects) == 1 or source is None:
        return bases
    with contextlib.suppress(Damage):  # it is only a hint
        pages = pages_of(source, before)
        firsts = [page.first for page in pages]
        for key, data in built.objects:
            node = decode_tree(data)
            if isinstance(node, Leaf) and node.entries and pages:
                page = pages[max(0, bisect_right(firsts, node.entries[0].name) - 1)]
                bases[key] = ObjectKey(ObjectKind.TREE, page.id)
    return bases


def _believable(directory: FoundDirectory, listing: Listing) -> tuple[Signature | None, ...]:
    signatures, unsettled = directory.signatures, directory.unsettled
    return tuple(
        [
            signature if (signature := signatures.get(name)) and name not in unsettled and signature.storable else None
            for name in [entry.name for entry in listing]
        ]
    )


def link_groups(
    found: Mapping[bytes, FoundDirectory], linked: set[bytes], borders: frozenset[bytes] = frozenset()
) -> Links:
    """The captured paths that are names of one file, where there are two or more, sorted.

    Names in different mounts (``borders`` are their points) could not be made to share a file again, and a redacted
    file has not the content of its other names.
    """
    names: dict[tuple[int, int, bytes], list[bytes]] = {}
    for path in sorted(linked):
        parent, name = split(path)
        directory = found[parent]
        if name in directory.entries and not is_redacted(directory.entries[name]):
            signature = directory.signatures[name]
            names.setdefault((signature.device, signature.inode, border_of(path, borders)), []).append(path)
    return tuple(sorted(tuple(paths) for paths in names.values() if len(paths) > 1))
