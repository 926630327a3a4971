"""Work that nobody waits for: a process of its own, which outlives the one that begins it."""

from __future__ import annotations

import contextlib
import os
import sys

from casnap.engine.context import Context
from casnap.errors import CasnapError
from casnap.settings.layers import Settings


def free_space_if_due(settings: Settings, context: Context) -> bool:
    """Begin an automatic gc where one is due; whether it was begun. Nothing here depends on what comes of it."""
    from casnap.engine.gc_terms import is_due  # here, since of all verbs only checkpoints ask

    with contextlib.suppress(CasnapError, OSError):
        if is_due(context):
            _begin(settings, "gc", "--automatic")
            return True
    return False


def _begin(settings: Settings, *words: str) -> None:
    """Run casnap in a session of its own, so that neither a closed terminal nor a signal to its group ends it.

    It begins with the signals blocked that are blocked here, and lets them in by itself (:mod:`casnap.cli.gc`).
    """
    import subprocess  # here, since it is hardly ever due

    store = os.fspath(settings.store)
    subprocess.Popen(
        [sys.executable, "-m", "casnap", "--store", store, "--wait", "0", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
        env=dict(settings.environ),
    )
