"""The scan: one look at a whole workspace, and everything in it that is new read into objects."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping

from msgspec import Struct

from casnap.codec.chunking import ChunkerParameters
from casnap.fs.directories import Directories
from casnap.model.clock import Clock, Progress
from casnap.model.objects import ObjectSink, ObjectSource
from casnap.model.paths import ROOT
from casnap.model.policy import Selection
from casnap.model.report import Problem
from casnap.model.tree import Directory, OmitReason
from casnap.workspace.ahead import ReadingAhead, reading_ahead
from casnap.workspace.assembly import Links, build_trees, link_groups
from casnap.workspace.belief import Belief
from casnap.workspace.cache import StatCache, Whole
from casnap.workspace.cache_file import CacheFile
from casnap.workspace.confirmation import unconfirmed
from casnap.workspace.databases import Copier
from casnap.workspace.found import ReadJob, Signatures
from casnap.workspace.lister import Lister, context_of
from casnap.workspace.mounts import Mounts, find_mounts
from casnap.workspace.omissions import Exclusions, Omissions
from casnap.workspace.outbox import Outbox
from casnap.workspace.proof import KEEP_TIMES, Proof
from casnap.workspace.reader import Reader
from casnap.workspace.recording import recorded_rules
from casnap.workspace.rounds import Rounds
from casnap.workspace.rules import Rules
from casnap.workspace.signature import Settling, Signature, looker
from casnap.workspace.walk import Walk


class Scan(Struct, frozen=True):
    """A workspace as it was found between ``started`` and ``ended`` (nanoseconds since the epoch).

    ``root`` is the workspace's own entry, under the empty name. ``links`` are hard-link groups, ``skipped``
    what was left out and why, ``leftovers`` temporary entries of rollbacks that never ended. ``rules`` is what a
    checkpoint records of the ignore rules, ``unsure`` names directories whose rules could not all be read.
    ``remarks`` on them are for a person. ``borders`` are the points of mounts that were looked into.
    ``entries`` counts what was captured. ``signatures`` knows every path that was seen but mount points, which
    are not touched. ``cache`` may be saved once a checkpoint holds the scan.
    """

    root: Directory
    links: Links
    signatures: Mapping[bytes, Signature]
    problems: list[Problem]
    skipped: list[tuple[bytes, OmitReason]]
    leftovers: list[bytes]
    rules: tuple[str, ...]
    unsure: frozenset[bytes]
    remarks: tuple[str, ...]
    borders: frozenset[bytes]
    started: int
    ended: int
    entries: int
    files_read: int
    bytes_read: int
    cache: StatCache


def scan(
    directories: Directories,
    *,
    sink: ObjectSink,
    cache: StatCache | None,
    clock: Clock,
    progress: Progress,
    exclusions: Exclusions,
    selection: Selection,
    nonces: frozenset[str],
    parameters: ChunkerParameters,
    before_reading: Callable[[ReadingAhead], None],
    trusted: bool = True,
    only: Collection[bytes] | None = None,
    confirm: bool = False,
    source: ObjectSource | None = None,
    aside: frozenset[bytes] = frozenset(),
    copier: Copier | None = None,
) -> Scan:
    """Look at every entry of a workspace, read what is not known from ``cache``, and put objects into ``sink``.

    What is in ``aside`` is left out unseen. ``before_reading`` is told what is ahead, and may raise: nothing is put
    then. Temporary entries of a rollback are left out while its nonce is in ``nonces``. Unless ``trusted``, nothing is
    believed from the cache; paths at and below ``only`` never are. With ``confirm`` (its checkpoint may be gone) what
    is believed is looked up, and read again if missing. A ``copier`` takes SQLite databases that are in use.

    Raises:
        CasnapError: the root cannot be listed, no descriptors are left, or /proc is missing.
    """
    started = clock.now()
    directories.forget(ROOT)
    mounts = find_mounts(directories, one_file_system=selection.one_file_system)
    inside, rules = frozenset(mounts.inside), Rules.of(selection)
    omissions = Omissions(directories.root_path, exclusions, mounts.points, rules, aside, inside)
    context = _context(omissions, mounts, nonces)
    proof = _proof(cache, source, directories, mounts, wanted=trusted and not confirm and not only)
    if cache is not None and proof is not None and _is_as_before(cache, proof, context):
        before_reading(ReadingAhead(0, 0, {}))
        return _as_before(cache, directories, inside, started, clock.now())
    settling = Settling(clock, mounts.file_system, *mounts.inside.values())
    lister = Lister(omissions, nonces, settling, Belief(cache, trusted=trusted, only=only), context)
    walk = _walked(Walk(directories, lister, progress, cache, proof), progress)
    jobs = [*(unconfirmed(walk.found, sink, source) if confirm else ()), *walk.take_jobs()]
    before_reading(ahead := reading_ahead(jobs, walk.found))
    outbox = Outbox(sink)
    rounds = Rounds(directories, walk, Reader(outbox, parameters, progress), settling, copier)
    _run(rounds, jobs, ahead, progress)
    return _put_together(walk, rounds, outbox, source, inside, trusted and not confirm, started, clock.now(), context)


def _run(rounds: Rounds, jobs: list[ReadJob], ahead: ReadingAhead, progress: Progress) -> None:
    with _shown(progress, "reading", ahead.total_bytes):
        rounds.run(jobs)


def _walked(walk: Walk, progress: Progress) -> Walk:
    with _shown(progress, "scanning", 0):
        walk.run()
    return walk


def _proof(
    cache: StatCache | None, source: ObjectSource | None, directories: Directories, mounts: Mounts, *, wanted: bool
) -> Proof | None:
    """What of a cache that comes from a file still holds; None where it cannot be told, or is not ``wanted``."""
    file = None if cache is None else cache.directories
    if not isinstance(file, CacheFile) or source is None:
        return None
    file.source = source
    if not wanted or not KEEP_TIMES.issuperset((mounts.file_system, *mounts.inside.values())):
        return None
    return Proof(file, directories.root_fd)


def _context(omissions: Omissions, mounts: Mounts, nonces: frozenset[str]) -> int:
    """A number for all that decides about entries beside what is in the workspace."""
    excluded = (sorted(omissions.exclusions.paths), sorted(omissions.exclusions.identities))
    mounted = (sorted(mounts.points), sorted(mounts.inside.items()))
    return context_of(
        repr(
            (omissions.root_path, omissions.rules.selection, excluded, mounted, sorted(omissions.aside), sorted(nonces))
        )
    )


def _is_as_before(cache: StatCache, proof: Proof, context: int) -> bool:
    """Whether nothing at all has changed, and the same rules hold."""
    return proof.holds_all and cache.whole is not None and cache.whole.context == context


def _as_before(cache: StatCache, directories: Directories, borders: frozenset[bytes], started: int, ended: int) -> Scan:
    """A scan that found nothing new at all."""
    whole = cache.whole
    assert whole is not None
    return Scan(
        root=cache.directories[ROOT].entry,
        links=whole.links,
        signatures=Signatures({}, cache.directories, looker(directories)),
        problems=[],
        skipped=[(path, OmitReason(reason)) for path, reason in whole.skipped],
        leftovers=[],
        rules=whole.rules,
        unsure=frozenset(),
        remarks=whole.remarks,
        borders=borders,
        started=started,
        ended=ended,
        entries=whole.entries,
        files_read=0,
        bytes_read=0,
        cache=cache,
    )


def _put_together(
    walk: Walk,
    rounds: Rounds,
    outbox: Outbox,
    source: ObjectSource | None,
    borders: frozenset[bytes],
    reuse: bool,
    started: int,
    ended: int,
    context: int,
) -> Scan:
    findings = walk.findings
    walk.note_unprovable()
    root, cache = build_trees(walk, outbox, source, reuse=reuse, written=ended)
    outbox.flush()
    found = Scan(
        root=root,
        links=link_groups(walk.found, findings.linked, borders),
        signatures=Signatures(walk.found, cache.directories, walk.look),
        problems=[Problem(path, message) for path, message in sorted(findings.problems.items())],
        skipped=sorted(findings.omitted.items()),
        leftovers=sorted(findings.leftovers),
        rules=recorded_rules(walk.found, walk.entry),
        unsure=frozenset(path for path, found in walk.found.items() if None in found.texts.values()),
        remarks=walk.found[ROOT].remarks,
        borders=borders,
        started=started,
        ended=ended,
        entries=walk.count - len(findings.omitted),
        files_read=rounds.files_read,
        bytes_read=rounds.bytes_read,
        cache=cache,
    )
    if not (found.problems or found.leftovers or found.unsure):
        skipped = tuple((path, int(reason)) for path, reason in found.skipped)
        cache.whole = Whole(context, found.links, found.rules, skipped, found.remarks, found.entries)
    return found


@contextlib.contextmanager
def _shown(progress: Progress, doing: str, total: int) -> Iterator[None]:
    progress.begin(doing, total)
    try:
        yield
    finally:
        progress.end()
