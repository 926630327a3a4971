"""Looking through a store that perhaps cannot be opened."""

from __future__ import annotations

import contextlib

from msgspec.structs import replace

from casnap.engine.checking.check import check, record
from casnap.engine.context import by_of
from casnap.errors import CasnapError
from casnap.model.check import CheckReport, Fault
from casnap.model.clock import Progress
from casnap.settings.environment import SystemClock
from casnap.settings.layers import Settings
from casnap.settings.resolution import open_context
from casnap.store.inspection import Inspection

_KEEP_FROM_OPENING = {Fault.FORMAT, Fault.LOG, Fault.CATALOG}
"""What opening the store would change, or founder on."""


def check_store(settings: Settings, progress: Progress, *, read_data: bool, repair: bool) -> CheckReport:
    """Look through the store, and with ``repair`` mend it.

    Raises:
        NoStore, Refused: there is none, or it is another user's.
        TooNew: something in it is of a newer format.
        StorageFailed: the operation log or the format file cannot be read, or (``repair``) the disk refuses.
        Busy: (``repair``) somebody else works on it.
    """
    if repair:
        return _repair(settings, progress)
    processes = settings.processes
    report = check(lambda: _inspect(settings), SystemClock(), progress, read_data=read_data, processes=processes)
    if not _KEEP_FROM_OPENING & {finding.fault for finding in report.findings}:
        with contextlib.suppress(CasnapError):
            context = open_context(settings)
            with contextlib.closing(context.store):
                record(context, report)
    return report


def _repair(settings: Settings, progress: Progress) -> CheckReport:
    """Mend the store so far that it can be opened, and then what is in it."""
    from casnap.store.mending import Mender  # here, since most checks mend nothing

    origin = settings.origin
    mender = Mender(
        settings.store,
        explicit=settings.explicit,
        clock=SystemClock(),
        wait=settings.policy.wait,
        by=by_of(origin),
        holder=f"casnap check --repair (process {origin.process or 'unknown'} of {origin.user or 'unknown'})",
    )
    mender.run()
    report = _repair_objects(settings, progress)
    if wrong := [finding.file for finding in report.findings if finding.fault is Fault.CATALOG and finding.file]:
        mender.set_aside(wrong)
        report = _repair_objects(settings, progress)
    return replace(report, done=(*mender.done, *report.done))


def _repair_objects(settings: Settings, progress: Progress) -> CheckReport:
    from casnap.engine.checking.repair import repair

    context = open_context(settings, progress=progress)
    with contextlib.closing(context.store):
        report = repair(context, lambda: _inspect(settings))
        record(context, report)
    return report


def _inspect(settings: Settings) -> Inspection:
    return Inspection(settings.store, explicit=settings.explicit)
