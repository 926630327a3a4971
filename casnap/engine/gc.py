"""``gc``: give back the space of what was deleted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from casnap.engine.cleanup import led_to
from casnap.engine.context import GC_LOCK, Context
from casnap.engine.gc_terms import ASKED_FOR, Terms
from casnap.errors import CasnapError, Damage, StorageFailed
from casnap.model.operation import AnyOperation, PackCut, SpaceFreed
from casnap.model.upkeep import FreedCheckpoint, GcReport
from casnap.store.adoption import held_packs_limit
from casnap.store.collection import collection_of
from casnap.store.neighbours import Neighbours
from casnap.store.orphans import find_orphans
from casnap.store.state import CheckpointRow, State
from casnap.store.store import Commit

MOST_TOGETHER = 16
"""Packs that are repacked together: a gibibyte. What resembles each other is found within them."""

MOST_FREED = 10_000
"""Checkpoints in one line: it may have a mebibyte, 67 bytes an id."""


def collect(context: Context, terms: Terms = ASKED_FOR, *, dry_run: bool = False) -> GcReport:
    """Free what no checkpoint needs that is listed, younger than the grace, or led to by undo or recover.

    Others may go on meanwhile; it can be interrupted at any moment, and run again. With ``dry_run`` it only tells.

    Raises:
        Busy: another gc is running.
        Damage: something that is needed cannot be read; nothing was freed.
        TooNew: the store uses what this version does not know.
    """
    if dry_run:
        return _Run(context, terms, dry=True).report()
    context.store.space.make_room()
    with context.store.lock(GC_LOCK, context.holder("gc")):
        run = _Run(context, terms, dry=False)
        report = run.report()
        if run.collection.compaction.parted:  # what these built on is needed no more
            report = _summed(report, _Run(context, terms, dry=False).report())
    context.store.space.keep_reserve()
    return report


def _summed(first: GcReport, second: GcReport) -> GcReport:
    """Two runs as one."""
    return replace(
        second,
        checkpoints=first.checkpoints + second.checkpoints,
        freed_bytes=first.freed_bytes + second.freed_bytes,
        removed=first.removed + second.removed,
        rewritten=first.rewritten + second.rewritten,
        done=first.done or second.done,
    )


class _NothingToSay(CasnapError):
    """There is nothing to put into a line."""


class _Run:
    """One run of gc."""

    def __init__(self, context: Context, terms: Terms, *, dry: bool) -> None:
        self.context = context
        self.store = context.store
        self.terms = terms
        self.dry = dry
        self.now = context.clock.now()
        self.freed: dict[bytes, FreedCheckpoint] = {}
        self.gone: set[str] = set()
        self.notes: list[str] = []
        self.removed = self.rewritten = self.repacked = self.swept = 0
        self.collection = collection_of(self.store, dry=dry, parts=terms.parts)

    def report(self) -> GcReport:
        """Do it, and say what was done."""
        done = self._look()
        if done and not self.dry:
            self._sweep()  # before all else: it takes no room
        try:
            if done:
                self._remove_dead()
                if self.terms.repack:
                    self._repack()
                self._rewrite_loose()
        finally:
            self.collection.release()
        if done:
            self._sweep()
        if self.collection.in_use:
            self.notes.append(f"{self.collection.in_use} packs are being written to, and were left for the next gc")
        return GcReport(
            checkpoints=tuple(self.freed.values()),
            freed_bytes=self.collection.freed_bytes - self.collection.compaction.written + self.swept,
            store_bytes=self.collection.total_bytes,
            removed=self.removed,
            rewritten=self.rewritten,
            dry_run=self.dry,
            done=done,
            repacked=self.repacked,
            notes=tuple(self.notes),
        )

    def _look(self) -> bool:
        """Find out what is needed; whether there is enough to do."""
        self.context.progress.begin("looking for what is needed", 0)
        try:
            self._mark(self.store.state())
        except Damage as damage:
            raise _stopped(damage) from damage
        finally:
            self.context.progress.end()
        dead, total = self.collection.dead_bytes, self.collection.total_bytes
        return dead >= self.terms.least_bytes and dead >= self.terms.least_share * total

    def _mark(self, state: State) -> list[CheckpointRow]:
        """Mark what is needed; the checkpoints that are to be freed."""
        stays, goes = self._split(state)
        self.collection.mark(row.id for row in stays)
        return goes

    def _split(self, state: State) -> tuple[list[CheckpointRow], list[CheckpointRow]]:
        before = self.now - self.terms.grace
        return split_rows(state, state.all_checkpoints(), before, automatic=self.terms.automatic)

    def _remove_dead(self) -> None:
        """Packs that nobody needs go first: that takes no space."""
        waiting = self.collection.dead()
        while True:
            some, waiting = waiting[: held_packs_limit()], waiting[held_packs_limit() :]
            held = self.collection.hold(some)
            cuts = self._commit([PackCut(pack, 0) for pack in held])
            self.removed += len(cuts)
            if not waiting and not self._has_more_to_free():
                return

    def _has_more_to_free(self) -> bool:
        """Whether there are more checkpoints to be freed than fitted into one line."""
        if self.dry:
            return False
        return bool(self._split(self.store.state())[1])

    def _rewrite_loose(self) -> None:
        group: list[PackCut] = []
        loose = self.collection.loose(self.terms.share)
        with self._working("rewriting", "rewritten", len(loose)):
            for pack in loose:
                self.context.progress.advance(1)
                if not self.collection.hold([pack]):
                    continue
                if not self.collection.fits(pack):
                    group = self._commit_group(group)
                if not self.collection.fits(pack):
                    self._cut_back(pack)
                    continue
                group.append(self.collection.copy(pack))
                if self.collection.compaction.is_full or len(group) >= held_packs_limit() // 2:
                    group = self._commit_group(group)
            self._commit_group(group)

    def _repack(self) -> None:
        """Bring packs into the form for what is at rest, as many together as there is room for."""
        waiting = self.collection.unrested(self.terms.share)
        if not waiting:
            return
        with self._working("repacking", "repacked", len(waiting)):
            neighbours = self._neighbours()
            while waiting:
                together = self.collection.fitting(waiting[:MOST_TOGETHER])
                if not together:
                    self.notes.append("not all packs were repacked: the disk has no room for a copy of one")
                    return
                waiting = waiting[len(together) :]
                if held := self.collection.hold(together):
                    self.repacked += len(self._commit(self.collection.repack(held, neighbours)))
                self.context.progress.advance(len(together))

    @contextlib.contextmanager
    def _working(self, doing: str, done: str, total: int) -> Iterator[None]:
        """Work on packs until the disk refuses: that is noted, and what was begun is given up."""
        self.context.progress.begin(f"{doing} packs", total)
        try:
            yield
        except StorageFailed as error:
            self.collection.release()
            self.notes.append(f"not all packs were {done}: {error.message}")
        except Damage as damage:
            raise _stopped(damage) from damage
        finally:
            self.context.progress.end()

    def _neighbours(self) -> Neighbours:
        """What is alike, by the newest checkpoints first."""
        state = self.store.state()
        found = Neighbours(self.collection.marks, state, self.store)
        stays, _ = self._split(state)
        found.follow(row.id for row in reversed(stays))
        return found

    def _commit_group(self, cuts: list[PackCut]) -> list[PackCut]:
        if cuts:
            self.rewritten += len(self._commit(cuts))
        return []

    def _cut_back(self, pack: str) -> None:
        """On a disk without room for a copy a pack is taken over from its end, bit by bit."""
        while cut := self.collection.cut_back(pack):
            if not self._commit([cut]):
                return
            if not cut.length:
                self.rewritten += 1
                return
        self.notes.append("not all packs were rewritten: the disk has no room for a copy of a single record")

    def _commit(self, cuts: Sequence[PackCut]) -> tuple[PackCut, ...]:
        """Say in a line which checkpoints and packs go, and let the packs go; those that went."""
        ranges = self.collection.finish()
        if self.dry:
            self._note(self._mark(self.store.state()))
            self.gone |= {cut.pack for cut in cuts}
            self.collection.carry_out(cuts)
            return tuple(cuts)
        told: list[PackCut] = []
        named: list[CheckpointRow] = []

        def build(state: State, commit: Commit) -> AnyOperation:
            goes = self._mark(state)[:MOST_FREED]
            told[:], named[:] = self.collection.still_free(cuts), goes
            if not told and not goes:
                raise _NothingToSay("nothing is to be freed")
            return SpaceFreed(
                seq=commit.seq,
                time=commit.time,
                prev=commit.prev,
                by=self.context.by,
                freed=tuple(row.id.hex() for row in goes),
                cuts=tuple(told),
                automatic=self.terms.automatic,
                repacked=self.terms.repack and bool(ranges),
                packs=ranges,
            )

        self.collection.hand_over()
        try:
            self.store.commit(build, packs=ranges)
        except _NothingToSay:
            self.collection.take_back()
            return ()
        self._note(named)
        self.collection.carry_out(told)
        return tuple(told)

    def _note(self, rows: Iterable[CheckpointRow]) -> None:
        for row in rows:
            self.freed[row.id] = FreedCheckpoint(row.id.hex(), row.workspace, row.name or None, row.step or None)

    def _sweep(self) -> None:
        """What killed commands left behind goes too, and the catalog forgets what went."""
        if self.dry:
            left = [orphan for orphan in find_orphans(self.store.parts) if orphan.path.stem not in self.gone]
            self.swept = sum(orphan.size - orphan.length for orphan in left)
            return
        with contextlib.suppress(CasnapError):
            self.swept += self.store.sweep()


def split_rows(
    state: State, rows: Iterable[CheckpointRow], before: int, *, automatic: bool
) -> tuple[list[CheckpointRow], list[CheckpointRow]]:
    """Checkpoints that must be whole, and those that may be freed now: deleted before an instant.

    Those of a workspace that was dropped go with a gc that was asked for: when they were is not known.
    """
    workspaces = {row.id: row for row in state.workspaces()}
    needed = {id for row in workspaces.values() if not row.dropped for id in led_to(row)}
    stays: list[CheckpointRow] = []
    goes: list[CheckpointRow] = []
    for row in rows:
        if row.freed:
            continue
        workspace = workspaces.get(row.workspace)
        dropped = workspace is not None and workspace.dropped and not automatic
        gone = dropped or (row.deleted and row.deleted_at <= before)
        (goes if gone and row.id not in needed else stays).append(row)
    return stays, goes


def _stopped(damage: Damage) -> Damage:
    return Damage(
        f"nothing was freed, since it is not known what is needed: {damage.message}",
        code=damage.code,
        hint="look what is damaged with: casnap check, and mend it with: casnap check --repair",
        details=damage.details,
    )
