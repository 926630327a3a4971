"""``restore-to``: write a checkpoint, or a part of it, into another directory."""

from __future__ import annotations

import contextlib
import os
from functools import partial

from casnap.codec.hashing import digest
from casnap.codec.trees import build_tree
from casnap.engine.compare import TreeView, plan_between
from casnap.engine.content import Contents, require_contents
from casnap.engine.context import Context
from casnap.engine.recorded import tree_of
from casnap.engine.scope import with_databases
from casnap.engine.sinks import MemorySink
from casnap.errors import NotFound, Refused, StorageFailed
from casnap.fs import placing
from casnap.fs.directories import Directories
from casnap.fs.durable import sync_filesystem
from casnap.fs.paths import canonical
from casnap.model.checkpoint import Checkpoint
from casnap.model.paths import ROOT, escape
from casnap.model.report import Problem, RestoreReport, WorkspaceInfo
from casnap.model.tree import Directory, File, is_redacted
from casnap.workspace.entries import directory_entry, read_xattrs
from casnap.workspace.garbage import no_collection
from casnap.workspace.layout import lay_out
from casnap.workspace.signature import signature_of
from casnap.workspace.staging import Staging
from casnap.workspace.switching import Switch


def restore_to(
    context: Context,
    workspace: WorkspaceInfo,
    checkpoint: Checkpoint,
    directory: str | bytes,
    *,
    paths: tuple[bytes, ...] = (),
) -> RestoreReport:
    """Write a checkpoint of ``workspace`` into an empty or absent directory.

    Raises:
        Refused: the directory holds something, or lies in the store.
        NotFound: a path is not in the checkpoint.
        StorageFailed: its disk is too full.
        Damage: an object is missing or bad; nothing was written then.
    """
    place = canonical(directory)
    _require_empty(context, place)
    target = tree_of(context, checkpoint)
    _require_paths(target, checkpoint, paths)
    made = _make(place)
    try:
        with no_collection():
            return _fill(context, checkpoint, target, place, paths)
    except BaseException:
        if made:
            with contextlib.suppress(OSError):
                placing.remove_root(place)
        raise


def _fill(
    context: Context, checkpoint: Checkpoint, target: TreeView, place: bytes, paths: tuple[bytes, ...]
) -> RestoreReport:
    with Directories(place) as directories:
        status = os.fstat(directories.root_fd)
        sink = MemorySink(context.store)
        root = _empty_root(sink, status, directories.root_fd)
        plan = plan_between(TreeView(sink, root), target, with_databases(paths, target) or None)
        signatures = {ROOT: signature_of(status)}
        layout = lay_out(plan, signatures)
        staging = Staging(
            directories,
            layout,
            signatures,
            nonce=os.urandom(6).hex(),
            contents_of=partial(Contents, context.store),
            progress=context.progress,
            processes=context.processes,
        )
        require_contents(context.store, layout.staged.items())
        staging.stage()
        outcome = Switch(
            staging, late=lambda path, fd: None, before=lambda path: None, target=target.entry, whole=plan.whole
        ).run()
        sync_filesystem(directories.root_fd)
    keys_only = [
        Problem(change.path, "written without its values, which were not stored")
        for change in plan.changes
        if change.new is not None and is_redacted(change.new)
    ]
    written = [change.new for change in plan.changes if change.path != ROOT]
    return RestoreReport(
        checkpoint=checkpoint,
        directory=os.fsdecode(place),
        entries=len(written) - len(outcome.left_alone),
        bytes=sum(node.size for node in written if isinstance(node, File)),
        problems=tuple(outcome.left_alone + outcome.problems + keys_only),
    )


def _require_empty(context: Context, place: bytes) -> None:
    store = canonical(bytes(context.store.path))
    if place == store or place.startswith(store + b"/"):
        raise Refused(f"cannot restore to {escape(place)}: it lies inside the store", code="forbidden-path")
    try:
        taken = bool(os.listdir(place))
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise Refused(f"cannot restore to {escape(place)}: it is not a directory", code="not-empty") from None
    except OSError as error:
        raise StorageFailed(f"cannot restore to {escape(place)}: {error.strerror}") from error
    if taken:
        raise Refused(
            f"cannot restore to {escape(place)}: it is not empty",
            code="not-empty",
            hint="name a directory that is empty or does not exist yet",
        )


def _require_paths(target: TreeView, checkpoint: Checkpoint, paths: tuple[bytes, ...]) -> None:
    for path in paths:
        if target.entry(path) is None:
            raise NotFound(f"no {escape(path)} in checkpoint {checkpoint.label}", code="no-such-path")


def _make(place: bytes) -> bool:
    """Create the directory where there is none; whether that was so."""
    if os.path.lexists(place):
        return False
    try:
        placing.make_root(place)
    except OSError as error:
        raise StorageFailed(f"cannot create {escape(place)}: {error.strerror}") from error
    return True


def _empty_root(sink: MemorySink, status: os.stat_result, fd: int) -> Directory:
    built = build_tree(())
    for key, data in built.objects:
        sink.put(key, data)
    return directory_entry(ROOT, status, read_xattrs(fd), built.id, digest(()))
