"""Putting what was found together: trees from the bottom up, hard-link groups, and the next stat cache."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from casnap.codec.hashing import digest
from casnap.codec.trees import build_tree
from casnap.model.paths import ROOT, split
from casnap.model.tree import Directory, Listing, is_redacted
from casnap.workspace.cache import CachedDirectory, StatCache
from casnap.workspace.found import FoundDirectory
from casnap.workspace.mounts import border_of
from casnap.workspace.outbox import Outbox
from casnap.workspace.signature import Signature

Links = tuple[tuple[bytes, ...], ...]


def build_trees(
    found: dict[bytes, FoundDirectory], outbox: Outbox, *, reuse: bool, written: int
) -> tuple[Directory, StatCache]:
    """Build the tree of every directory, the deepest first.

    With ``reuse``, the tree of a directory whose listing is as it was in the cache is not built again.

    Returns:
        The root's entry, and a cache of what was found at the time ``written``.
    """
    cached: dict[bytes, CachedDirectory] = {}
    differs = False
    for path, directory in reversed(found.items()):
        before = directory.known.cached
        now = _built(directory, outbox, reuse=reuse)
        if now == before:
            now = before
        else:
            differs = True
        cached[path] = now
        if path != ROOT:
            found[split(path)[0]].keep(now.entry, settled=False)
    return cached[ROOT].entry, StatCache(cached, written=written, differs=differs)


def _built(directory: FoundDirectory, outbox: Outbox, *, reuse: bool) -> CachedDirectory:
    listing = directory.listing()
    before = directory.known.cached
    if reuse and before is not None and listing == before.listing:
        tree, tree_digest = before.entry.tree, before.entry.digest
    else:
        tree, tree_digest = _put_tree(listing, outbox), digest(listing)
    return CachedDirectory(
        replace(directory.own, tree=tree, digest=tree_digest),
        directory.signature if directory.settled and directory.signature.storable else None,
        listing,
        _believable(directory, listing),
    )


def _put_tree(listing: Listing, outbox: Outbox) -> bytes:
    built = build_tree(listing)
    for key, data in built.objects:
        outbox.add(key, data)
    return built.id


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
