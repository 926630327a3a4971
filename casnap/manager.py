"""``CheckpointManager``: casnap for programs. It opens, calls an engine function and returns its report."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from casnap.engine.checkpoint import described, make_checkpoint
from casnap.engine.cleanup import cleanup, rule_of
from casnap.engine.context import Context
from casnap.engine.delete import delete, undelete
from casnap.engine.diff import diff
from casnap.engine.history import list_checkpoints, resolve
from casnap.engine.recover import recover
from casnap.engine.restore_to import restore_to
from casnap.engine.rollback import rollback
from casnap.engine.status import status
from casnap.engine.undo import undo
from casnap.engine.verify import verify
from casnap.engine.workspaces import forget
from casnap.errors import NoStore, NotFound, Usage
from casnap.model.checkpoint import Checkpoint
from casnap.model.policy import DEFAULT_KEEP
from casnap.model.report import (
    CleanupReport,
    DeleteReport,
    Diff,
    RecoverReport,
    RestoreReport,
    RollbackReport,
    Status,
    UndeleteReport,
    VerifyReport,
    WorkspaceInfo,
)
from casnap.model.revision import HEAD, Head, Revision, Step, normalise_name, parse_revision
from casnap.settings import (
    AnyPath,
    free_space_if_due,
    load_settings,
    open_context,
    paths_within,
    protect,
    resolve_workspace,
)

_managers: weakref.WeakSet[CheckpointManager] = weakref.WeakSet()

_left_to_parents: list[Context] = []
"""Stores that were open when this process was forked: closing their SQLite connections is the parent's to do."""


class CheckpointManager:
    """The checkpoints of one workspace.

    ``path`` None finds the workspace as the command line does without ``-w``; a given path is exact.
    :meth:`create` registers the workspace, and makes the store where there is none; every other method
    raises :class:`~casnap.errors.NotFound` as long as the workspace is not registered. A revision is a
    string as on the command line, or an int: a step.

    One lock guards every call, so that threads may share a manager; a forked child may go on with its copy.
    It is a context manager.
    """

    def __init__(self, path: AnyPath | None = None, *, store: str | os.PathLike[str] | None = None) -> None:
        self._given = None if path is None else os.fsdecode(path)
        self._explicit_store = store
        self._settings = load_settings(store=store)
        self._lock = threading.RLock()
        self._context: Context | None = None
        self._closed = False
        _managers.add(self)

    def create(
        self,
        name: str | None = None,
        description: str = "",
        *,
        metadata: dict[str, Any] | None = None,
        if_changed: bool = False,
        pin: bool = False,
    ) -> Checkpoint:
        """Make a checkpoint; with ``if_changed`` and an unchanged tree, return head. ``pin`` keeps it from deletion.

        Raises:
            Usage: a bad name or bad metadata, or the path is no directory.
            Refused: the name is taken, or the path is one that must not be a workspace.
        """
        if name is not None:  # what is wrong with the request is said before anything is registered
            normalise_name(name)
        described(metadata)
        with self._lock:
            context, workspace = self._protect()
            report = make_checkpoint(
                context, workspace, name=name, message=description, metadata=metadata, if_changed=if_changed, pin=pin
            )
            free_space_if_due(self._settings, context)
            return report.checkpoint

    def list(self, *, limit: int | None = None, safety: bool = False) -> list[Checkpoint]:
        """The checkpoints, newest first; safety checkpoints only when asked for."""
        with self._lock:
            return list_checkpoints(*self._find(), limit=limit, safety=safety)

    def show(self, rev: str | int = "@") -> Checkpoint:
        """One checkpoint."""
        with self._lock:
            return resolve(*self._find(), _revision(rev))

    def diff(self, a: str | int = "@", b: str | int | None = None) -> Diff:
        """What differs between ``a`` and ``b``, or the workspace as it is now when ``b`` is None."""
        with self._lock:
            context, workspace = self._find()
            old = resolve(context, workspace, _revision(a))
            new = None if b is None else resolve(context, workspace, _revision(b))
            return diff(context, workspace, old, new)

    def rollback(
        self,
        rev: str | int | None = None,
        *,
        n: int | None = None,
        paths: Iterable[AnyPath] | None = None,
        preview: bool = False,
        keep_git: bool = False,
    ) -> RollbackReport:
        """Put the workspace, or ``paths`` in it, back to head, to ``rev``, or to the ``n``-th ancestor of head.

        ``preview`` only tells what would be done; ``keep_git`` leaves every git directory as it is.
        Paths are relative to the workspace when its path was given, else to the current directory.

        Raises:
            Usage: both ``rev`` and ``n`` are given, ``n`` is negative, or ``paths`` is empty.
        """
        wanted = _ancestor(rev, n) if n is not None else HEAD if rev is None else _revision(rev)
        with self._lock:
            context, workspace = self._find()
            target = resolve(context, workspace, wanted)
            limit = None if paths is None else self._paths(workspace, paths)
            return rollback(context, workspace, target, paths=limit, preview=preview, keep_git=keep_git)

    def undo(self) -> RollbackReport:
        """Take the newest rollback back, files and head; once more does it again."""
        with self._lock:
            return undo(*self._find())

    def verify(self, rev: str | int = "@") -> VerifyReport:
        """Compare the workspace with a checkpoint, reading every file; true when equal."""
        with self._lock:
            context, workspace = self._find()
            return verify(context, workspace, resolve(context, workspace, _revision(rev)))

    def delete(self, *revs: str | int) -> DeleteReport:
        """Delete checkpoints; the files in the workspace stay."""
        with self._lock:
            context, workspace = self._find()
            return delete(context, workspace, [resolve(context, workspace, _revision(rev)) for rev in revs])

    def undelete(self, rev: str | int) -> UndeleteReport:
        """Bring a deleted checkpoint back."""
        with self._lock:
            context, workspace = self._find()
            return undelete(context, workspace, resolve(context, workspace, _revision(rev), deleted=True))

    def clean(self, keep: int = DEFAULT_KEEP) -> CleanupReport:
        """Delete all but the newest ``keep`` checkpoints; head and pinned ones stay also where they are older."""
        with self._lock:
            context, workspace = self._find()
            return cleanup(context, workspace, rule_of(context, workspace, keep))

    def recover(self, *, back: bool = False) -> RecoverReport:
        """Finish a rollback that was interrupted, or go ``back`` to before it; nothing to do is no error."""
        with self._lock:
            return recover(*self._find(), back=back)

    def restore_to(self, directory: AnyPath, rev: str | int = "@") -> RestoreReport:
        """Write a checkpoint into another directory, which is empty or does not exist."""
        with self._lock:
            context, workspace = self._find()
            return restore_to(context, workspace, resolve(context, workspace, _revision(rev)), os.fsencode(directory))

    def forget(self) -> None:
        """Protect the workspace no longer; its checkpoints stay, and :meth:`create` takes it up again."""
        with self._lock:
            forget(*self._find())

    def status(self) -> Status:
        """How the workspace stands."""
        with self._lock:
            return status(*self._find())

    def close(self) -> None:
        """Let the store go; the manager is of no use afterwards. Harmless when done already."""
        with self._lock:
            self._closed = True
            if self._context is not None:
                self._context.store.close()
                self._context = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _protect(self) -> tuple[Context, WorkspaceInfo]:
        self._require_open()
        self._let_go_of_another_store()
        protected = protect(self._settings, self._given, context=self._context)
        self._context = protected.context
        return protected.context, protected.workspace

    def _find(self) -> tuple[Context, WorkspaceInfo]:
        self._require_open()
        self._let_go_of_another_store()
        if self._context is None:
            try:
                self._context = open_context(self._settings)
            except NoStore as error:  # to a program it is one and the same: nothing is registered
                raise NotFound(error.message, code=error.code, hint=error.hint) from error
        return self._context, resolve_workspace(self._settings, self._context, self._given)

    def _let_go_of_another_store(self) -> None:
        """Begin anew if somebody has removed the store, or made another one in its place."""
        if self._context is not None and not self._context.store.identity.holds():
            self._context.store.close()
            self._context = None

    def _start_over(self) -> None:
        """After a fork: no thread of the parent will ever release its lock, and the store must be opened anew."""
        self._lock = threading.RLock()
        if self._context is not None:
            _left_to_parents.append(self._context)
            self._context = None
        self._settings = load_settings(self._settings.environ, store=self._explicit_store)

    def _require_open(self) -> None:
        if self._closed:
            raise Usage("cannot use the manager: it is closed", hint="make a new CheckpointManager")

    def _paths(self, workspace: WorkspaceInfo, paths: Iterable[AnyPath]) -> tuple[bytes, ...]:
        limit = paths_within(self._settings, workspace, paths, exact=self._given is not None)
        if not limit:
            raise Usage("bad paths: none is given", hint="leave paths out for the whole workspace")
        return limit


def _revision(rev: str | int) -> Revision:
    return Revision(Step(rev)) if isinstance(rev, int) else parse_revision(rev)


def _ancestor(rev: str | int | None, n: int) -> Revision:
    if rev is not None:
        raise Usage("bad arguments: rev and n each name a checkpoint", hint="give one of them")
    if n < 0:
        raise Usage(f"bad n {n}: it is negative", hint="0 is head, 1 its parent")
    return Revision(Head(), n)


def _after_fork() -> None:
    for manager in list(_managers):
        manager._start_over()


os.register_at_fork(after_in_child=_after_fork)
