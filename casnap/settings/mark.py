"""Measuring a directory in a store that lasts no longer than that."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from msgspec.structs import replace

from casnap.engine.mark import mark
from casnap.errors import Refused, Usage
from casnap.fs.paths import canonical
from casnap.fs.scratch import scratch_directory
from casnap.model.clock import Progress
from casnap.model.mark import MarkReport
from casnap.model.paths import escape, is_within
from casnap.settings.layers import Settings
from casnap.settings.resolution import open_context
from casnap.store.layout import Layout

PREFIX = "casnap-mark-"
"""How the name of the temporary directory begins."""


def mark_directory(settings: Settings, given: str | None, progress: Progress) -> MarkReport:
    """Measure a directory, the current one by default, on the disk that the store is on or would be on.

    The store itself is neither opened nor made, and nothing is written into the directory.

    Raises:
        Usage: there is no such directory.
        Refused: it cannot be a workspace, or there is no place outside of it on that disk.
        StorageFailed: the disk is too full, or refuses.
    """
    directory = _directory(settings, given)
    place = _beside(settings.store)
    if is_within(os.fsencode(place), directory):
        raise Refused(
            f"cannot measure {escape(directory)}: the temporary store would lie in it",
            code="forbidden-path",
            hint="name a place outside of it with --store DIR",
        )
    with scratch_directory(place, PREFIX) as scratch:
        own = replace(settings, store=scratch / "store", explicit=False)
        context = open_context(own, create=True, progress=progress)
        with contextlib.closing(context.store):
            return mark(context, directory, os.fsencode(scratch / "restored"))


def _directory(settings: Settings, given: str | None) -> bytes:
    wanted = given if given is not None else settings.workspace
    if wanted == "":
        raise Usage("no directory: its name is empty", hint="name a directory")
    if settings.cwd is None and (wanted is None or not os.path.isabs(wanted)):
        raise Usage("cannot tell the current directory: it was removed", hint="name the directory")
    return canonical(os.path.join(settings.cwd or b"", os.fsencode(wanted or "")))


def _beside(store: Path) -> Path:
    """A directory on the disk of the store but not within it; what was named and is no store is itself the place."""
    named = Path(os.fsdecode(canonical(bytes(store))))
    place = named.parent if Layout(named).format.exists() else named
    while not place.is_dir():
        place = place.parent
    if named.is_dir() and named.stat().st_dev != place.stat().st_dev:
        raise Refused(
            f"cannot measure on the disk of {escape(bytes(store))}: the store has it for itself",
            code="forbidden-path",
            hint="name a directory on another disk with --store DIR",
        )
    return place
