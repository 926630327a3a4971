"""``check``: look through a whole store, and say what is wrong with it and whom that hurts."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from casnap.codec.checkpoints import decode_checkpoint
from casnap.engine.checking.files import file_notes
from casnap.engine.checking.reach import Reach
from casnap.engine.checking.structure import structure_faults
from casnap.engine.context import Context
from casnap.errors import CasnapError, Damage
from casnap.model.check import CheckReport, Fault, Finding, Hit, Totals
from casnap.model.clock import Clock, Progress
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.operation import AnyOperation, PackCut, StoreChecked
from casnap.model.paths import escape
from casnap.model.report import WorkspaceInfo
from casnap.model.tree import NANOSECONDS
from casnap.store.inspection import Inspection
from casnap.store.lost_ranges import lost_ranges
from casnap.store.pack_survey import PackSurvey, Soundness, survey
from casnap.store.pack_walk import RecordFault
from casnap.store.rows import CheckpointRow
from casnap.store.state import State
from casnap.store.store import Commit
from casnap.workspace.garbage import no_collection

FINDINGS_NAMED = 1000
"""How many findings are told one by one; all are counted."""

PATHS_NAMED = 100
"""How many paths of one checkpoint a finding names."""

TRIES = 3
"""How often it is looked anew when the store went on meanwhile and something seemed to be missing."""

REPAIR = "run `casnap check --repair`"


@dataclass(frozen=True, slots=True)
class Examination:
    """A report, and what a repair needs beyond it: the objects that are lost, and whether one can be had.

    ``cuts`` are packs of which the operation log claims more than there is.
    """

    report: CheckReport
    lost: frozenset[ObjectKey]
    has: Callable[[ObjectKey], bool]
    cuts: tuple[PackCut, ...]


def check(
    open_inspection: Callable[[], Inspection], clock: Clock, progress: Progress, *, read_data: bool, processes: int = 1
) -> CheckReport:
    """Look through a store, which need not be one that can be opened; with ``read_data`` through every byte of it.

    So many ``processes`` may be at work.

    Raises:
        NoStore, Refused: there is none, or it is another user's.
        TooNew: something in it is of a newer format.
        StorageFailed: the operation log or the format file cannot be read.
    """
    for _ in range(TRIES):
        inspection = open_inspection()
        with contextlib.closing(inspection), no_collection():
            result = examine(inspection, clock, progress, read_data=read_data, processes=processes)
        if result.report or not _went_on(open_inspection, inspection):
            break
    return result.report


def _went_on(open_inspection: Callable[[], Inspection], before: Inspection) -> bool:
    """Whether something was committed since: packs may have been replaced while they were looked at."""
    with contextlib.closing(open_inspection()) as now:
        return now.log.hash != before.log.hash


def examine(
    inspection: Inspection, clock: Clock, progress: Progress, *, read_data: bool, processes: int = 1
) -> Examination:
    """The same of one inspection."""
    started = clock.now()
    if not inspection.log.whole:  # what lost lines told of is not lost with them
        inspection.add_ranges(lost_ranges(inspection))
    inspection.load_places()
    surveyed = survey(inspection, progress, read_data=read_data, processes=processes)
    soundness = Soundness(inspection, surveyed)
    reach = Reach(inspection, soundness)
    hits = _Hits(inspection, reach)
    followed = hits.collect(progress)
    damage, notes = structure_faults(inspection, surveyed, any_lost=bool(reach.lost))
    damage += _objects(inspection, surveyed, reach, hits)
    notes += _superseded(surveyed, reach)
    notes += file_notes(inspection)
    accounts = surveyed.accounts.values()
    totals = Totals(
        operations=len(inspection.log.lines),
        packs=len(inspection.packs),
        records=sum(account.records for account in accounts),
        objects=sum(account.objects for account in accounts),
        checkpoints=followed,
        bytes=sum(account.bytes for account in accounts),
    )
    report = CheckReport(
        read_data=read_data,
        totals=totals,
        found=len(damage),
        findings=tuple(damage[:FINDINGS_NAMED]),
        notes=tuple(notes[:FINDINGS_NAMED]),
        seconds=(clock.now() - started) / NANOSECONDS,
    )
    return Examination(report, frozenset(reach.lost), soundness.has, _cuts(surveyed))


def _cuts(surveyed: PackSurvey) -> tuple[PackCut, ...]:
    """What the log claims of packs that are gone or cut, and should not."""
    gone = [PackCut(pack, 0) for pack in sorted(surveyed.gone)]
    cut = [account for _, account in sorted(surveyed.accounts.items()) if account.cut]
    return (*gone, *(PackCut(account.pack, account.whole if account.records else 0) for account in cut))


class _Hits:
    """Which checkpoints, and which paths in them, need what is lost."""

    def __init__(self, inspection: Inspection, reach: Reach) -> None:
        self._inspection = inspection
        self._reach = reach
        self._paths: dict[ObjectKey, dict[bytes, list[bytes]]] = defaultdict(dict)
        self._more: dict[tuple[ObjectKey, bytes], int] = defaultdict(int)
        self._rows: dict[bytes, CheckpointRow] = {}

    def collect(self, progress: Progress) -> int:
        """Follow every checkpoint that can come back; how many there are."""
        rows = [row for row in self._inspection.checkpoints if not row.freed]
        progress.begin("following checkpoints", len(rows))
        try:
            for row in rows:
                self._rows[row.id] = row
                self._follow(row)
                progress.advance(1)
        finally:
            progress.end()
        return len(rows)

    def of(self, key: ObjectKey) -> tuple[Hit, ...]:
        """The checkpoints that need an object."""
        return tuple(
            self._hit(self._rows[id], tuple(sorted(paths)), self._more[key, id])
            for id, paths in self._paths.get(key, {}).items()
        )

    def _follow(self, row: CheckpointRow) -> None:
        key = ObjectKey(ObjectKind.CHECKPOINT, row.id)
        try:
            tree = decode_checkpoint(self._inspection.read(key)).root.tree
        except Damage as damage:
            self._reach.lost.setdefault(key, damage.message)
            self._paths[key][row.id] = []
            return
        if self._reach.follow(tree):
            return
        for lost, path in self._reach.paths(tree):
            paths = self._paths[lost].setdefault(row.id, [])
            if len(paths) < PATHS_NAMED:
                paths.append(path)
            else:
                self._more[lost, row.id] += 1

    def _hit(self, row: CheckpointRow, paths: tuple[bytes, ...], more: int) -> Hit:
        workspace = self._inspection.workspaces.get(row.workspace)
        where = "" if workspace is None else escape(workspace.path)
        return Hit(WorkspaceInfo(row.workspace, where), row.id.hex(), row.step or None, row.name or None, paths, more)


def _objects(inspection: Inspection, surveyed: PackSurvey, reach: Reach, hits: _Hits) -> list[Finding]:
    """A finding for each object that is lost: where it should lie, and who needs it."""
    places = _faulty_places(surveyed)
    findings = []
    for key, cause in sorted(reach.lost.items()):
        pack, fault = places.get(key, ("", None))
        if fault is None and surveyed.unreadable:  # it may well be in a pack that may not be read
            continue
        if fault is None and (known := inspection.places.places(key)):
            pack = known[0].pack
        file = f"packs/{pack}.pack" if pack else None
        offset = fault.offset if fault is not None else None
        message = f"{key} cannot be read: {fault.cause if fault is not None else _cause(cause)}"
        findings.append(Finding(Fault.OBJECT, message, True, file, offset, str(key), hits.of(key), REPAIR))
    return findings


def _cause(message: str) -> str:
    return message.rpartition(": ")[2]


def _faulty_places(surveyed: PackSurvey) -> dict[ObjectKey, tuple[str, RecordFault]]:
    return {
        key: (account.pack, fault)
        for account in surveyed.accounts.values()
        for fault in account.faults
        if fault.lost
        for key in fault.keys
    }


def _superseded(surveyed: PackSurvey, reach: Reach) -> list[Finding]:
    """Damaged records of objects that are found elsewhere, or that no checkpoint needs."""
    return list(islice(_superseded_records(surveyed, reach), FINDINGS_NAMED))


def _superseded_records(surveyed: PackSurvey, reach: Reach) -> Iterator[Finding]:
    for account in surveyed.accounts.values():
        for fault in account.faults:
            if fault.lost and not any(key in reach.lost for key in fault.keys):
                message = f"{fault.cause}; nothing is lost: it is elsewhere too, or no checkpoint needs it"
                file, named = f"packs/{account.pack}.pack", str(fault.keys[0])
                yield Finding(Fault.RECORD, message, False, file, fault.offset, named)


def record(context: Context, report: CheckReport) -> None:
    """Note in the operation log what was found, if the store can be written."""

    def build(_state: State, commit: Commit) -> AnyOperation:
        return StoreChecked(
            seq=commit.seq,
            time=commit.time,
            prev=commit.prev,
            by=context.by,
            result="clean" if report else "damaged",
            read_data=report.read_data,
            found=report.found,
        )

    if context.store.writable:
        with contextlib.suppress(CasnapError):  # the record is a courtesy, the answer is not
            context.store.commit(build, last=True)
