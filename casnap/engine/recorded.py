"""The trees that checkpoints recorded."""

from __future__ import annotations

from collections.abc import Iterator

from casnap.engine.compare import TreeView
from casnap.engine.context import Context
from casnap.engine.history import load_object
from casnap.model.checkpoint import Checkpoint
from casnap.model.tree import AnyEntry


def tree_of(context: Context, checkpoint: Checkpoint) -> TreeView:
    """The tree that a checkpoint recorded."""
    found = load_object(context, bytes.fromhex(checkpoint.id))
    return TreeView(context.store, found.root, found.links, found.rules)


def entries(context: Context, checkpoint: Checkpoint) -> Iterator[tuple[bytes, AnyEntry]]:
    """Every entry of a checkpoint, parents before children, the root first."""
    return tree_of(context, checkpoint).walk()
