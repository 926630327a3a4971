"""Which directories the next scan must look at again, whatever stats say."""

from __future__ import annotations

from casnap.model.paths import ROOT, join, split
from casnap.model.tree import Directory, File
from casnap.workspace.cache import Trait
from casnap.workspace.signature import Signature
from casnap.workspace.walk import Walk


def note_unprovable(walk: Walk) -> None:
    """Mark those that something is wrong with, and those that are ruled by files whose changes nobody would see."""
    for path in walk.findings.problems.keys() | walk.findings.leftovers:
        for directory in (path, split(path)[0]):
            if (found := walk.found.get(directory)) is not None:
                found.traits |= Trait.UNPROVABLE
    for path, found in walk.found.items():
        if not all(_is_seen(walk, join(path, name), read) for name, read in found.read.items()):
            found.traits |= Trait.UNPROVABLE


def _is_seen(walk: Walk, path: bytes, read: Signature | None) -> bool:
    """Whether the next scan is bound to see a change of a file that decided about entries, as it was ``read``.

    It is, if the file is captured as it was then; where there was none, if the directory is in which it would be.
    """
    if read is not None:
        parent, name = split(path)
        found = walk.found.get(parent)
        now = walk.look(path) if found is None else found.signatures.get(name)
        return now == read and isinstance(walk.entry(path), File)
    while path != ROOT and (entry := walk.entry(path)) is None:
        path = split(path)[0]
    return path == ROOT or isinstance(entry, Directory)
