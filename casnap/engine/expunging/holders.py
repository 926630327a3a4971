"""Who holds the very same bytes as something that is taken out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from casnap.codec.trees import load_listing
from casnap.engine.context import Context
from casnap.engine.expunging.matching import Matcher
from casnap.engine.history import load_object
from casnap.errors import Damage
from casnap.model.expunge import Holder
from casnap.model.paths import ROOT, join
from casnap.model.report import WorkspaceInfo
from casnap.model.tree import Directory, File
from casnap.store.state import State

MOST_NAMED = 10
"""How many holders are named."""


class Holders:
    """Looks through all checkpoints for contents. ``scopes`` has, by workspace, what is taken out of its checkpoints.

    ``named`` are the first paths that hold one, each once for a workspace; ``held`` are the contents that any does;
    ``unread`` counts checkpoints that could not be looked through.
    """

    def __init__(self, context: Context, scopes: Mapping[str, Matcher], contents: Collection[bytes]) -> None:
        self.named: dict[tuple[str, bytes], Holder] = {}
        self.more = False
        self.held: set[bytes] = set()
        self.unread = 0
        self._context = context
        self._scopes = scopes
        self._contents = frozenset(contents)
        self._seen: set[tuple[Matcher | None, bytes, bytes]] = set()

    def look(self, state: State) -> None:
        """Look through the checkpoints of all workspaces, newest first."""
        if not self._contents:
            return
        for row in state.workspaces():
            workspace = WorkspaceInfo(row.id, row.path.decode("utf-8", "surrogateescape"))
            for checkpoint in state.history(row.id):
                if not checkpoint.freed:
                    try:
                        self._look_through(workspace, checkpoint.id)
                    except Damage:
                        self.unread += 1

    def _look_through(self, workspace: WorkspaceInfo, checkpoint: bytes) -> None:
        matcher = self._scopes.get(workspace.id)
        for path, entry in self._files(load_object(self._context, checkpoint).root, matcher):
            if entry.content not in self._contents:
                continue
            self.held.add(entry.content)
            if (workspace.id, path) in self.named:
                continue
            if len(self.named) < MOST_NAMED:
                self.named[workspace.id, path] = Holder(workspace, path, checkpoint.hex())
            else:
                self.more = True

    def _files(self, root: Directory, matcher: Matcher | None) -> Iterator[tuple[bytes, File]]:
        """The files of a tree that stay, but for subtrees that were looked through before."""
        waiting = [(ROOT, root.tree)]
        while waiting:
            path, tree = waiting.pop()
            place = matcher, path if matcher else ROOT, tree
            if place in self._seen:
                continue
            listing = load_listing(self._context.store, tree)
            self._seen.add(place)
            for entry in matcher.sift(path, listing)[0] if matcher else listing:
                if isinstance(entry, Directory):
                    waiting.append((join(path, entry.name), entry.tree))
                elif isinstance(entry, File):
                    yield join(path, entry.name), entry
