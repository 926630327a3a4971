"""``diff``: what differs between two checkpoints, or between one and the live workspace."""

from __future__ import annotations

import os
from collections.abc import Callable

from casnap.engine.compare import TreeView, plan_between
from casnap.engine.content import pieces
from casnap.engine.context import Context, workspace_row
from casnap.engine.history import tree_of
from casnap.engine.patch import TEXT_LIMIT, FilePatch, patch_of
from casnap.engine.roots import peek_root
from casnap.engine.scanning import scan_and_plan
from casnap.errors import CasnapError
from casnap.fs.directories import Directories
from casnap.model.change import Change
from casnap.model.checkpoint import Checkpoint
from casnap.model.objects import ObjectSource
from casnap.model.paths import split
from casnap.model.report import Diff, Problem, WorkspaceInfo
from casnap.model.tree import AnyEntry, File
from casnap.workspace.reader import open_file

Read = Callable[[bytes, File], bytes]
"""Gives the bytes of a file of at most TEXT_LIMIT bytes, by its path and entry."""


def diff(
    context: Context,
    workspace: WorkspaceInfo,
    old: Checkpoint,
    new: Checkpoint | None,
    *,
    paths: tuple[bytes, ...] = (),
    context_lines: int = 3,
    patch: bool = True,
) -> Diff:
    """Differences from ``old`` to ``new``, or to the live workspace (None), below ``paths`` when given.

    With ``patch``, file contents are compared too; without it only names, kinds and metadata are.
    """
    before = tree_of(context, old)
    if new is not None:
        after = tree_of(context, new)
        changes = _visible(before, after, paths)
        patches = _patches(changes, before, _stored(context.store), context_lines) if patch else []
        return _diff(old, new, changes, patches, ())
    row = workspace_row(context.store.state(), workspace)
    with peek_root(row) as directories:
        live, _, plan = scan_and_plan(
            context, row, directories, lambda live, sink: plan_between(before, live.view(sink), paths or None)
        )
        changes = plan.visible
        patches = _patches(changes, before, _live(directories), context_lines) if patch else []
    return _diff(old, None, changes, patches, live.problems)


def _visible(before: TreeView, after: TreeView, paths: tuple[bytes, ...]) -> tuple[Change, ...]:
    return plan_between(before, after, paths or None).visible


def _patches(changes: tuple[Change, ...], before: TreeView, read_new: Read, context_lines: int) -> list[FilePatch]:
    read_old = _stored(before.source)
    return [
        patch_of(
            change, _bytes(change.path, change.old, read_old), _bytes(change.path, change.new, read_new), context_lines
        )
        for change in changes
    ]


def _bytes(path: bytes, entry: AnyEntry | None, read: Read) -> bytes | None:
    """A file's bytes; None where they are too many to compare, nothing for what is no file."""
    if not isinstance(entry, File):
        return b""
    return read(path, entry) if entry.size <= TEXT_LIMIT else None


def _stored(source: ObjectSource) -> Read:
    return lambda path, file: b"".join(pieces(source, file))


def _live(directories: Directories) -> Read:
    def read(path: bytes, file: File) -> bytes:
        parent, name = split(path)
        try:
            fd = open_file(directories.fd(parent), name)
            try:
                return os.pread(fd, TEXT_LIMIT, 0)
            finally:
                os.close(fd)
        except OSError as error:
            raise CasnapError(f"cannot read {os.fsdecode(path)}: {error.strerror}") from error

    return read


def _diff(
    old: Checkpoint,
    new: Checkpoint | None,
    changes: tuple[Change, ...],
    patches: list[FilePatch],
    problems: tuple[Problem, ...],
) -> Diff:
    return Diff(
        old=old.id,
        new=new.id if new else None,
        changes=changes,
        patch="".join(found.text for found in patches),
        lines=tuple(found.count for found in patches),
        problems=problems,
    )
