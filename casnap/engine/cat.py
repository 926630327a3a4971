"""``cat`` and ``manifest``: bytes of a checkpoint's files, and sums of them all."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from casnap.engine.content import pieces
from casnap.engine.context import Context
from casnap.engine.recorded import tree_of
from casnap.errors import NotFound, Usage
from casnap.model.checkpoint import Checkpoint
from casnap.model.paths import escape
from casnap.model.tree import File, OmitReason, Omitted, Symlink

SUMS = ("b3", "sha256")
"""The sums that a manifest can have; ``b3`` is known without reading a byte."""


def cat(context: Context, checkpoint: Checkpoint, path: bytes) -> Iterator[bytes]:
    """The bytes of a file in a checkpoint, in pieces; of a symbolic link, its target.

    Raises:
        NotFound: the checkpoint does not hold the path.
        Usage: it is a directory or something else without bytes.
        Damage: an object is missing or bad.
    """
    entry = tree_of(context, checkpoint).entry(path)
    match entry:
        case File():
            return pieces(context.store, entry)
        case Symlink():
            return iter((entry.target,))
        case None:
            raise NotFound(f"no {escape(path)} in checkpoint {checkpoint.label}", code="no-such-path")
        case Omitted():
            raise NotFound(
                f"no {escape(path)} in checkpoint {checkpoint.label}: it was left out, "
                f"{OmitReason(entry.reason).words}",
                code="no-such-path",
            )
        case _:
            raise Usage(
                f"cannot cat {escape(path) or '.'}: it is no file", hint="see what there is: casnap show --files"
            )


def manifest(context: Context, checkpoint: Checkpoint, kind: str) -> Iterator[tuple[bytes, str]]:
    """Every regular file of a checkpoint, in order of path, with its sum in hexadecimal digits."""
    for path, entry in tree_of(context, checkpoint).walk():
        if isinstance(entry, File):
            yield path, entry.content.hex() if kind == "b3" else _sha256(context, entry)


def _sha256(context: Context, file: File) -> str:
    hasher = hashlib.sha256()
    for piece in pieces(context.store, file):
        hasher.update(piece)
    return hasher.hexdigest()
