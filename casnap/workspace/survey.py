"""The survey: a workspace looked through, everything in it that is new read into objects."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from casnap.codec.chunking import ChunkerParameters
from casnap.fs.directories import Directories
from casnap.model.clock import Clock, Progress
from casnap.model.objects import ObjectSink, ObjectSource
from casnap.model.paths import ROOT
from casnap.model.report import Problem
from casnap.workspace.ahead import ReadingAhead, reading_ahead
from casnap.workspace.assembly import build_trees, link_groups
from casnap.workspace.belief import Belief
from casnap.workspace.cache import StatCache, Whole
from casnap.workspace.confirmation import unconfirmed
from casnap.workspace.databases import Copier
from casnap.workspace.found import Signatures
from casnap.workspace.lister import Lister
from casnap.workspace.mounts import Mounts
from casnap.workspace.omissions import Omissions
from casnap.workspace.outbox import Outbox
from casnap.workspace.proof import Proof
from casnap.workspace.provability import note_unprovable
from casnap.workspace.reader import Reader
from casnap.workspace.recording import recorded_rules
from casnap.workspace.rounds import Rounds
from casnap.workspace.scan import Scan, Sibling, Trust
from casnap.workspace.signature import Settling
from casnap.workspace.walk import Walk


class Survey:
    """Looks at every entry of a workspace that no proof vouches for; see :func:`casnap.workspace.scan.scan`."""

    def __init__(
        self,
        directories: Directories,
        omissions: Omissions,
        mounts: Mounts,
        nonces: frozenset[str],
        context: int,
        clock: Clock,
        progress: Progress,
    ) -> None:
        """``context`` stands for all that decides about entries beside what is in the workspace."""
        self._directories = directories
        self._omissions = omissions
        self._borders = frozenset(mounts.inside)
        self._nonces = nonces
        self._context = context
        self._clock = clock
        self._progress = progress
        self._settling = Settling(clock, mounts.file_system, *mounts.inside.values())

    def walk(self, cache: StatCache | None, proof: Proof | None, belief: Belief) -> None:
        """Find out what is there, and which files must be read.

        Raises:
            CasnapError: the root cannot be listed, or no descriptors are left.
        """
        lister = Lister(self._omissions, self._nonces, self._settling, belief, self._context)
        self._proof = proof
        self._walk = Walk(self._directories, lister, self._progress, cache, proof)
        with _shown(self._progress, "scanning", 0):
            self._walk.run()

    def read(
        self,
        started: int,
        sink: ObjectSink,
        source: ObjectSource | None,
        parameters: ChunkerParameters,
        before_reading: Callable[[ReadingAhead], None],
        copier: Copier | None,
        trust: Trust,
        sibling: Sibling | None,
    ) -> Scan:
        """Read the files and build the trees; what was found, the scan having ``started`` then.

        Raises:
            CasnapError: no descriptors are left, or what ``before_reading`` and ``sink`` raise.
        """
        walk = self._walk
        looked = {path: directory for path, directory in walk.found.items() if not directory.is_whole}
        jobs = [*(unconfirmed(looked, sink, source) if trust.confirm else ()), *walk.take_jobs()]
        before_reading(ahead := reading_ahead(jobs, walk.found))
        outbox = Outbox(sink)
        reader = Reader(outbox, parameters, self._progress)
        rounds = Rounds(self._directories, walk, reader, self._settling, copier, sibling)
        with _shown(self._progress, "reading", ahead.total_bytes):
            rounds.run(jobs)
        note_unprovable(walk)
        ended = self._clock.now()
        root, cache = build_trees(walk, outbox, source, reuse=trust.reuses, written=ended, sibling=sibling)
        outbox.flush()
        found = Scan(
            root=root,
            links=link_groups(walk.found, walk.findings.linked, self._borders),
            signatures=Signatures(walk.found, cache.directories, walk.look),
            problems=[Problem(path, message) for path, message in sorted(walk.findings.problems.items())],
            skipped=sorted(walk.findings.omitted.items()),
            leftovers=sorted(walk.findings.leftovers),
            rules=recorded_rules(walk.found, walk.entry),
            unsure=frozenset(path for path, directory in walk.found.items() if None in directory.texts.values()),
            remarks=walk.found[ROOT].remarks + reader.remarks,
            borders=self._borders,
            started=started,
            ended=ended,
            entries=walk.count - len(walk.findings.omitted),
            files_read=rounds.files_read,
            bytes_read=rounds.bytes_read,
            cache=cache,
            proof=self._proof,
        )
        self._note_whole(found)
        return found

    def _note_whole(self, found: Scan) -> None:
        """Let the next scan take all of it, if nothing was wrong and nothing has changed by then."""
        if not (found.problems or found.leftovers or found.unsure):
            skipped = tuple((path, int(reason)) for path, reason in found.skipped)
            links, rules, remarks = found.links, found.rules, self._walk.found[ROOT].remarks
            found.cache.whole = Whole(self._context, links, rules, skipped, remarks, found.entries)


@contextlib.contextmanager
def _shown(progress: Progress, doing: str, total: int) -> Iterator[None]:
    progress.begin(doing, total)
    try:
        yield
    finally:
        progress.end()
