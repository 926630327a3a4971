"""Looking at a workspace on behalf of a verb: which cache may be believed, and what becomes of it."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from casnap.engine.compare import TreeView
from casnap.engine.context import Context
from casnap.errors import Damage
from casnap.fs.directories import Directories
from casnap.model.paths import ROOT, split
from casnap.model.plan import LinkGroups, Plan
from casnap.model.report import Problem
from casnap.model.tree import AnyEntry, Directory, Listing, OmitReason
from casnap.store.state import WorkspaceRow
from casnap.workspace.cache import CachedDirectory, StatCache
from casnap.workspace.cache_file import PATCH_SUFFIX, CacheFile, Patched, load_cache
from casnap.workspace.omissions import Exclusions
from casnap.workspace.scan import Scan, Sibling, Trust, scan
from casnap.workspace.signature import Signature

if TYPE_CHECKING:
    from casnap.engine.sinks import MemorySink
    from casnap.model.objects import ObjectSink, ObjectSource
    from casnap.workspace.ahead import ReadingAhead
    from casnap.workspace.databases import Copier


class LiveScan(Struct, frozen=True):
    """A workspace as it was found, and what had to be read for that.

    ``news`` says that the saved cache does not hold all of it, ``replaced`` that another directory than the
    cache knows stands at the workspace's path. ``mirrored`` is the checkpoint that holds all that is in its file.
    """

    found: Scan
    ahead: ReadingAhead
    news: bool
    replaced: bool = False
    mirrored: bytes = b""

    @property
    def root(self) -> Directory:
        """The workspace's own entry."""
        return self.found.root

    @property
    def links(self) -> LinkGroups:
        """The hard-link groups."""
        return self.found.links

    @property
    def signatures(self) -> Mapping[bytes, Signature]:
        """How each path looked."""
        return self.found.signatures

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What went wrong with single paths."""
        return tuple(self.found.problems)

    @property
    def skipped(self) -> list[tuple[bytes, OmitReason]]:
        """What was left out, and why."""
        return self.found.skipped

    def entry(self, path: bytes) -> AnyEntry | None:
        """What was found at a path."""
        directory, name = split(path)
        found = self.found.cache.directories.get(directory)
        at = bisect_left(found.listing, name, key=attrgetter("name")) if found else 0
        return found.listing[at] if found and at < len(found.listing) and found.listing[at].name == name else None

    @property
    def left_out(self) -> dict[str, int]:
        """How many entries were left out, by the reason."""
        return dict(Counter(reason.words for _, reason in self.found.skipped))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should hear about the workspace as a whole."""
        if not self.replaced:
            return self.found.remarks
        other = "another directory stands at this path since the last look: it is taken for the workspace"
        return (other, *self.found.remarks)

    def view(self, source: ObjectSource) -> TreeView:
        """The tree, its objects being in ``source``."""
        found = self.found
        return TreeView(source, found.root, found.links, found.rules, listings=_at_hand(found.cache))


def _at_hand(cache: StatCache) -> dict[bytes, Listing]:
    """The listings that a scan has made itself, by the ids of their trees: they need not be read back."""
    known = cache.directories
    if isinstance(known, CacheFile):
        return {}
    parts = known.parts if isinstance(known, Patched) else known
    return {part.entry.tree: part.listing for part in parts.values() if type(part) is CachedDirectory}


def _copier(context: Context) -> Copier:
    from casnap.store.database_copy import copy_database  # here, since few ask for it

    return partial(copy_database, scratch=context.store.cache.path)


def scan_workspace(
    context: Context,
    row: WorkspaceRow,
    directories: Directories,
    sink: ObjectSink,
    *,
    before_reading: Callable[[int], None] = lambda total: None,
    trusted: bool = True,
    raw: bool = False,
    sibling: Sibling | None = None,
) -> LiveScan:
    """Look at a workspace, believing its saved cache unless not ``trusted``.

    ``raw`` takes every file as it stands, live databases too: before a change, what is there counts.
    ``before_reading`` gets the number of bytes that must be read, before any is; it may raise. What a ``sibling`` has
    is what new objects are written as differences to.
    """
    cache = _saved_cache(context, row)
    mirrored = cache.checkpoint if cache else b""
    sure = _is_there(context, mirrored)
    copier = None if raw or not context.policy_in(row).sqlite_consistent else _copier(context)
    trust = Trust(trusted=trusted, confirm=not sure)
    live = _scan(context, row, directories, sink, cache, before_reading, trust, copier=copier, sibling=sibling)
    return replace(live, mirrored=mirrored)


def _saved_cache(context: Context, row: WorkspaceRow) -> StatCache | None:
    """The saved cache; read anew only as far as its files are others than at the last look of this process."""
    path = context.store.cache.file(_cache_name(row))
    looks = (_look(path), _look(context.store.cache.file(_patch_name(row))))
    if looks[0] is None:
        return None
    known, cache = context.caches.get(row.id, (None, None))
    file = cache.directories if cache is not None else None
    if known != looks:
        base = file.base if isinstance(file, CacheFile) and file.origin and known and known[0] == looks[0] else None
        cache = load_cache(path, store=context.store.id, workspace=row.id, boot=context.boot, base=base)
        context.caches[row.id] = (looks, cache)
    if cache is not None and isinstance(cache.directories, CacheFile):
        cache.directories.forget()
    return cache


def _look(path: Path) -> tuple[int, ...] | None:
    """What tells a file from others; None where none is."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _is_there(context: Context, mirrored: bytes) -> bool:
    """Whether the checkpoint is there that a cache mirrors: all that it says is in the store then."""
    row = context.store.state().checkpoint(mirrored) if mirrored else None
    return row is not None and not row.deleted


def scan_and_plan(
    context: Context,
    row: WorkspaceRow,
    directories: Directories,
    planned: Callable[[LiveScan, MemorySink], Plan],
    *,
    raw: bool = False,
) -> tuple[LiveScan, MemorySink, Plan]:
    """Look without writing, and plan by what was found; ``raw`` as in :func:`scan_workspace`.

    Where trees that the cache vouches for are damaged in the store, everything is read anew.
    """
    from casnap.engine.sinks import MemorySink  # here, since a checkpoint has a sink

    sink = MemorySink(context.store)
    live = scan_workspace(context, row, directories, sink, raw=raw)
    try:
        return live, sink, planned(live, sink)
    except Damage:
        sink = MemorySink(context.store)
        live = scan_workspace(context, row, directories, sink, trusted=False, raw=raw)
        return live, sink, planned(live, sink)


def scan_again(
    context: Context,
    row: WorkspaceRow,
    directories: Directories,
    sink: ObjectSink,
    earlier: LiveScan,
    *,
    doubted: Collection[bytes] = (),
    touched: Collection[bytes] = (),
    stored: bool = False,
    aside: frozenset[bytes] = frozenset(),
) -> LiveScan:
    """Look once more, believing what ``earlier`` found but for ``doubted`` paths, and not at those ``aside``.

    What was as it was then is not looked at again, unless it has to do with a path that was ``touched`` since.

    ``stored`` says that the store holds all that the earlier look found; otherwise that is looked up, and
    what is missing is read again.
    """
    vouched = _is_there(context, earlier.mirrored)
    trust = Trust(only=doubted, confirm=not stored, vouched=vouched, earlier=earlier.found, touched=touched)
    live = _scan(context, row, directories, sink, earlier.found.cache, lambda total: None, trust, aside=aside)
    return replace(live, mirrored=earlier.mirrored)


def _scan(
    context: Context,
    row: WorkspaceRow,
    directories: Directories,
    sink: ObjectSink,
    cache: StatCache | None,
    before_reading: Callable[[int], None],
    trust: Trust,
    *,
    aside: frozenset[bytes] = frozenset(),
    copier: Copier | None = None,
    sibling: Sibling | None = None,
) -> LiveScan:
    told: list[ReadingAhead] = []

    def tell(ahead: ReadingAhead) -> None:
        told.append(ahead)
        before_reading(ahead.total_bytes)

    found = scan(
        directories,
        sink=sink,
        cache=cache,
        clock=context.clock,
        progress=context.progress,
        exclusions=Exclusions.of(context.store.path),
        selection=context.policy_in(row).selection,
        nonces=frozenset(begun.nonce for begun in row.open),
        parameters=context.store.format.parameters,
        before_reading=tell,
        trust=trust,
        source=context.store,
        aside=aside,
        copier=copier,
        processes=context.processes,
        sibling=sibling,
    )
    news = found.cache.differs or trust.confirm or (cache is not None and not cache.checkpoint)
    return LiveScan(found, told[0], news, replaced=_is_replaced(cache, directories))


def _is_replaced(cache: StatCache | None, directories: Directories) -> bool:
    """Whether the root is another inode than the cache knows; inodes are reused, so this can miss, never err."""
    known = cache.directories.get(ROOT) if cache else None
    if known is None or known.signature is None:
        return False
    return known.signature.inode != os.fstat(directories.root_fd).st_ino


def save_cache(context: Context, row: WorkspaceRow, live: LiveScan, *, mirrors: bytes) -> None:
    """Keep what was found for the next scan; ``mirrors`` is a committed checkpoint that holds all of it.

    A cache that cannot be written costs time and nothing else.
    """
    _remember_path(context, row)
    if not live.news:
        return
    from casnap.workspace.cache_saving import encode_cache, encode_patch  # here, since who finds nothing new saves none

    names = {"store": context.store.id, "workspace": row.id, "boot": context.boot}
    patch = encode_patch(live.found.cache, **names, checkpoint=mirrors)
    if patch is not None:
        context.store.cache.keep(_patch_name(row), patch)
    elif context.store.cache.keep(_cache_name(row), encode_cache(live.found.cache, **names, checkpoint=mirrors)):
        context.store.cache.drop(_patch_name(row))  # it is to another file, and counts for nothing


def _remember_path(context: Context, row: WorkspaceRow) -> None:
    """Keep where the workspace is beside the operation log too: should that be lost, nothing else would know."""
    name = f"{row.id}.path"
    try:
        known = context.store.cache.file(name).read_bytes()
    except OSError:
        known = b""
    if known != row.path:
        context.store.cache.keep(name, row.path)


def _cache_name(row: WorkspaceRow) -> str:
    return f"{row.id}.stat"


def _patch_name(row: WorkspaceRow) -> str:
    return f"{row.id}{PATCH_SUFFIX}"
