"""What others write into files while a rollback replaces them: kept in a further safety checkpoint."""

from __future__ import annotations

import os

from msgspec import Struct

from casnap.codec.checkpoints import encode_checkpoint
from casnap.codec.hashing import digest
from casnap.codec.trees import build_tree
from casnap.engine.checkpoint import described
from casnap.engine.compare import TreeView
from casnap.engine.context import Context
from casnap.engine.history import load_object
from casnap.engine.safety import SafetyPoint
from casnap.errors import CasnapError
from casnap.fs.directories import Directories
from casnap.model.checkpoint import CheckpointObject
from casnap.model.objects import ObjectSink
from casnap.model.paths import ROOT, ancestors, join, split
from casnap.model.tree import AnyEntry, Directory, File, FileFlag
from casnap.store.session import WriteSession
from casnap.store.state import WorkspaceRow
from casnap.workspace.reader import store_file


class _Found(Struct, frozen=True):
    path: bytes
    fd: int


class LateWrites:
    """Holds the replaced files that were written to, until their bytes are in the store."""

    def __init__(self, context: Context, directories: Directories) -> None:
        self.context = context
        self.directories = directories
        self.found: list[_Found] = []

    def take(self, path: bytes, fd: int) -> None:
        """Hold on to a file that is about to lose its name."""
        self.found.append(_Found(path, os.dup(fd)))

    def close(self) -> None:
        """Let go of the files: their bytes are committed."""
        for found in self.found:
            os.close(found.fd)
        self.found.clear()

    def checkpoint(self, row: WorkspaceRow, point: SafetyPoint, session: WriteSession) -> bytes:
        """Put a checkpoint into ``session``: the safety checkpoint's tree with the late bytes in it."""
        recorded = load_object(self.context, point.safety)
        view = TreeView(self.context.store, recorded.root, recorded.links)
        replaced: dict[bytes, AnyEntry] = {}
        for found in self.found:
            entry = view.entry(found.path)
            if isinstance(entry, File):
                replaced[found.path] = self._stored(entry, found.fd, session)
        root = with_entries(view, replaced, session)
        late = CheckpointObject(
            workspace=row.id,
            root=root,
            parent=row.head,
            message="written by others while the rollback ran",
            metadata=described(None),
            scan_started=recorded.scan_ended,
            scan_ended=self.context.clock.now(),
            origin=self.context.origin,
            git=None,
            rules=recorded.rules,
            links=recorded.links,
        )
        key, data = encode_checkpoint(late)
        session.put(key, data)
        return key.id

    def _stored(self, entry: File, fd: int, sink: ObjectSink) -> File:
        size, content, chunk_list = store_file(fd, sink, self.context.store.format.parameters)
        return File(
            entry.name,
            entry.mode,
            entry.uid,
            entry.gid,
            entry.mtime_s,
            entry.mtime_frac,
            entry.xattrs,
            size,
            int(FileFlag.CHANGED_WHILE_READ),
            content,
            chunk_list,
        )


def with_entries(view: TreeView, replaced: dict[bytes, AnyEntry], sink: ObjectSink) -> Directory:
    """The root of a tree in which some entries are replaced; new trees go into ``sink``.

    Raises:
        CasnapError: there is no tree to begin with.
    """
    if view.root is None:
        raise CasnapError("cannot replace entries: there is no tree")
    pending = dict(replaced)
    above = {directory for path in replaced for directory in ancestors(path)}
    for path in sorted(above, key=lambda path: (path.count(b"/"), path != ROOT), reverse=True):
        directory = view.entry(path)
        if not isinstance(directory, Directory):
            continue
        entries = view.entries(directory.tree)
        listing = tuple(pending.get(join(path, name), entry) for name, entry in entries.items())
        built = build_tree(listing)
        for key, data in built.objects:
            sink.put(key, data)
        pending[path] = Directory(
            split(path)[1],
            directory.mode,
            directory.uid,
            directory.gid,
            directory.mtime_s,
            directory.mtime_frac,
            directory.xattrs,
            built.id,
            digest(listing),
        )
    root = pending.get(ROOT, view.root)
    assert isinstance(root, Directory)
    return root
