"""``bench mark``: how long casnap takes with somebody's own directory, in a store that is made for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

from casnap.engine.checking.check import check
from casnap.engine.checkpoint import make_checkpoint
from casnap.engine.context import Context
from casnap.engine.restore_to import restore_to
from casnap.engine.workspaces import register
from casnap.model.mark import MarkReport, MarkStep
from casnap.model.report import CheckpointReport
from casnap.model.tree import NANOSECONDS
from casnap.store import signals
from casnap.store.inspection import Inspection

REPEATS = 5
"""How often the directory is looked at again: the median is told, since it is done in no time."""

Outcome = TypeVar("Outcome")


def mark(context: Context, directory: bytes, target: bytes) -> MarkReport:
    """Make a first checkpoint of ``directory``, and again without a change; restore to ``target``; check all.

    ``context`` is of a new store that nobody else uses; it and ``target`` are the caller's to remove.

    Raises:
        Usage, Refused: there is no such directory, or it cannot be a workspace.
        StorageFailed: the disk is too full, or refuses.
    """
    workspace, _, _ = register(context, directory, home=None)

    def checkpoint() -> CheckpointReport:
        with signals.reported():  # nothing that lasts is committed: whoever interrupts need not wait for the rest
            return make_checkpoint(context, workspace)

    first, made = _timed(context, checkpoint)
    again = tuple(_timed(context, checkpoint)[0] for _ in range(REPEATS))
    restoring, restored = _timed(context, lambda: restore_to(context, workspace, made.checkpoint, target))
    path = context.store.path
    checking, checked = _timed(
        context,
        lambda: check(
            lambda: Inspection(path), context.clock, context.progress, read_data=True, processes=context.processes
        ),
    )
    return MarkReport(
        directory=directory,
        place=os.path.dirname(os.path.dirname(bytes(path))),
        entries=restored.entries,
        bytes=restored.bytes,
        stored=made.checkpoint.new_bytes,
        steps=(
            MarkStep("first checkpoint", (first,), restored.bytes),
            MarkStep("checkpoint, nothing changed", again),
            MarkStep("restore", (restoring,), restored.bytes),
            MarkStep("check --read-data", (checking,), checked.totals.bytes),
        ),
        clean=bool(checked),
        problems=made.problems + restored.problems,
    )


def _timed(context: Context, act: Callable[[], Outcome]) -> tuple[float, Outcome]:
    """The seconds that ``act`` takes, and what it gives."""
    began = context.clock.now()
    outcome = act()
    return (context.clock.now() - began) / NANOSECONDS, outcome
