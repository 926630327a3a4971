"""``check --repair``: mend what can be mended, and say what cannot."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from casnap.engine.checking.check import Examination, examine
from casnap.engine.checking.files import damaged_caches
from casnap.engine.checking.heal import heal
from casnap.engine.context import GC_LOCK, Context
from casnap.errors import StorageFailed
from casnap.fs.appending import remove
from casnap.model.check import CheckReport, Fault, Finding
from casnap.model.ids import ObjectKey
from casnap.model.operation import AnyOperation, PackCut, SpaceFreed
from casnap.store.inspection import Inspection
from casnap.store.state import State
from casnap.store.store import Commit

ROUNDS = 4
"""How often it is looked anew: a tree that was healed may lead to more that is lost."""

BEYOND_HELP = (
    "put back into the workspace what it names and run `casnap check --repair` again, or let these checkpoints go with "
    "`casnap delete` and `casnap gc`"
)


def repair(context: Context, open_inspection: Callable[[], Inspection]) -> CheckReport:
    """Write anew what is lost and can be had, take damaged caches away, and look whether all is well then.

    Every byte is read for that. The store itself must be one that can be opened.

    Raises:
        Busy: a gc is running, or a workspace is in use.
        StorageFailed: a pack may not be read, or the store cannot be written.
    """
    done: list[str] = []
    healed: set[ObjectKey] = set()
    with context.store.lock(GC_LOCK, context.holder("check --repair")):
        for _ in range(ROUNDS):
            inspection = open_inspection()
            with contextlib.closing(inspection):
                result = examine(inspection, context.clock, context.progress, read_data=True)
                _require_readable(result.report)
                done += _remove_caches(inspection)
                healing = heal(context, result.lost, result.has) if result.lost else None
            if healing is None:
                break
            done += [note for note in healing.notes if note not in done]
            if not healing.healed:
                break
            healed |= healing.healed
    if healed:
        done.append(f"{len(healed)} {'object was' if len(healed) == 1 else 'objects were'} written anew")
    if result.cuts and not result.lost:
        _give_up(context, result.cuts)
        done.append("the operation log no longer claims what packs have lost: " + ", ".join(_named(result.cuts)))
    return _told(result, done, len(healed))


def _named(cuts: Sequence[PackCut]) -> list[str]:
    return [f"{cut.pack} from byte {cut.length} on" if cut.length else cut.pack for cut in cuts]


def _give_up(context: Context, cuts: tuple[PackCut, ...]) -> None:
    """Say in the log that what packs have lost is not in them any more: all of it is elsewhere, or not needed."""

    def build(_state: State, commit: Commit) -> AnyOperation:
        return SpaceFreed(seq=commit.seq, time=commit.time, prev=commit.prev, by=context.by, cuts=cuts)

    context.store.commit(build)


def _told(result: Examination, done: list[str], healed: int) -> CheckReport:
    report = result.report
    findings = tuple(_beyond_help(finding) for finding in report.findings)
    notes = tuple(note for note in report.notes if note.fault is not Fault.CACHE)
    return replace(report, findings=findings, notes=notes, repaired=True, healed=healed, done=tuple(done))


def _beyond_help(finding: Finding) -> Finding:
    return replace(finding, next_step=BEYOND_HELP) if finding.fault is Fault.OBJECT else finding


def _require_readable(report: CheckReport) -> None:
    """What may not be read is not lost: writing it anew would only hide what is wrong."""
    for finding in report.findings:
        if finding.fault is Fault.UNREADABLE:
            raise StorageFailed(
                f"cannot repair: {finding.file}: {finding.message}",
                hint="give yourself the right to read the store's files, and repair again",
            )


def _remove_caches(inspection: Inspection) -> list[str]:
    removed = damaged_caches(inspection)
    for name in removed:
        remove(inspection.layout.cache / name)
    return [f"the damaged cache {name} was removed" for name in removed]
