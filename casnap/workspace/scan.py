"""The scan: one look at a whole workspace, and everything in it that is new read into objects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from casnap.fs.directories import Directories
from casnap.model.paths import ROOT
from casnap.model.policy import Selection
from casnap.model.report import Problem
from casnap.model.tree import AnyEntry, Directory, OmitReason
from casnap.workspace.ahead import ReadingAhead
from casnap.workspace.belief import Belief
from casnap.workspace.cache import StatCache, context_of
from casnap.workspace.cache_file import CacheFile, Patched
from casnap.workspace.found import Signatures
from casnap.workspace.mounts import Mounts, find_mounts
from casnap.workspace.omissions import Exclusions, Omissions
from casnap.workspace.proof import KEEP_TIMES, Proof, prove
from casnap.workspace.rules import Rules
from casnap.workspace.signature import Signature, looker

if TYPE_CHECKING:
    from casnap.codec.chunking import ChunkerParameters
    from casnap.model.clock import Clock, Progress
    from casnap.model.objects import ObjectSink, ObjectSource
    from casnap.workspace.databases import Copier

Links = tuple[tuple[bytes, ...], ...]
"""Hard-link groups: the paths of each, in order."""


class Scan(Struct, frozen=True):
    """A workspace as it was found between ``started`` and ``ended`` (nanoseconds since the epoch).

    ``root`` is the workspace's own entry, under the empty name. ``links`` are hard-link groups, ``skipped``
    what was left out and why, ``leftovers`` temporary entries of rollbacks that never ended. ``rules`` is what a
    checkpoint records of the ignore rules, ``unsure`` names directories whose rules could not all be read.
    ``remarks`` on them are for a person. ``borders`` are the points of mounts that were looked into.
    ``entries`` counts what was captured. ``signatures`` knows every path that was seen but mount points, which
    are not touched. ``cache`` may be saved once a checkpoint holds the scan; ``proof`` says what of the one that it
    began with was as it was.
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
    proof: Proof | None


Sibling = Callable[[bytes], "AnyEntry | None"]
"""What stands at a path in a workspace that is like this one: what is new here may differ little from it."""


class Trust(Struct, frozen=True):
    """How far a scan believes its cache: not at all unless ``trusted``, and never at or below paths in ``only``.

    With ``confirm`` (what the cache says may not be in the store) what is believed is looked up, and read again if
    missing; but for what is as it is in the cache's file, where that is ``vouched`` for by a checkpoint. What an
    ``earlier`` scan, whose cache this is, proved to be as it was is not looked at again, but for directories that were
    ``touched`` since, or have something in them that was.
    """

    trusted: bool = True
    only: Collection[bytes] = ()
    confirm: bool = False
    vouched: bool = False
    earlier: Scan | None = None
    touched: Collection[bytes] = ()

    @property
    def reuses(self) -> bool:
        """Whether trees that the cache names are in the store."""
        return self.trusted and not self.confirm

    @property
    def proves(self) -> bool:
        """Whether stats alone can show that something is as it was, and in the store."""
        return self.trusted and (self.vouched or not self.confirm)


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
    trust: Trust = Trust(),  # noqa: B008 — it is frozen
    source: ObjectSource | None = None,
    aside: frozenset[bytes] = frozenset(),
    copier: Copier | None = None,
    processes: int = 1,
    sibling: Sibling | None = None,
) -> Scan:
    """Look at every entry of a workspace, read what is not known from ``cache``, and put objects into ``sink``.

    What is in ``aside`` is left out unseen. ``before_reading`` is told what is ahead, and may raise: nothing is put
    then. Temporary entries of a rollback are left out while its nonce is in ``nonces``. A ``copier`` takes SQLite
    databases that are in use. What is new may be like what a ``sibling`` has there. So many ``processes`` may be at
    work.

    Raises:
        CasnapError: the root cannot be listed, no descriptors are left, or /proc is missing.
    """
    started = clock.now()
    directories.forget(ROOT)
    mounts = find_mounts(directories, one_file_system=selection.one_file_system)
    inside = frozenset(mounts.inside)
    omissions = Omissions(directories.root_path, exclusions, mounts.points, Rules.of(selection), aside, inside)
    context = _context(omissions, mounts, nonces)
    proof = _proof(cache, source, directories, mounts, trust, processes)
    if proof is not None:
        proof.doubt([*trust.only, *aside])
        proof.note_touched(trust.touched)
    if cache is not None and proof is not None and _is_as_before(cache, proof, context):
        before_reading(ReadingAhead(0, 0, {}))
        return _as_before(cache, proof, directories, inside, started, clock.now())
    from casnap.workspace.survey import Survey  # here, since most scans find nothing to look through

    survey = Survey(directories, omissions, mounts, nonces, context, clock, progress)
    survey.walk(cache, proof, Belief(cache, trusted=trust.trusted, only=trust.only))
    return survey.read(started, sink, source, parameters, before_reading, copier, trust, sibling)


def _proof(
    cache: StatCache | None,
    source: ObjectSource | None,
    directories: Directories,
    mounts: Mounts,
    trust: Trust,
    processes: int,
) -> Proof | None:
    """What of a cache that comes from a file still holds; None where it cannot be told, or counts for nothing."""
    known = None if cache is None else cache.directories
    if not isinstance(known, CacheFile | Patched) or source is None:
        return None
    (known.file if isinstance(known, Patched) else known).source = source
    if not trust.proves or not KEEP_TIMES.issuperset((mounts.file_system, *mounts.inside.values())):
        return None
    before = trust.earlier.proof if trust.earlier is not None else None
    later = before.later(known) if before is not None else None
    return later or prove(known, directories.root_fd, processes=processes)


def _context(omissions: Omissions, mounts: Mounts, nonces: frozenset[str]) -> int:
    """A number for all that decides about entries beside what is in the workspace."""
    excluded = (sorted(omissions.exclusions.paths), sorted(omissions.exclusions.identities))
    mounted = (sorted(mounts.points), sorted(mounts.inside.items()))
    return context_of(repr((omissions.root_path, omissions.rules.selection, excluded, mounted, sorted(nonces))))


def _is_as_before(cache: StatCache, proof: Proof, context: int) -> bool:
    """Whether nothing at all has changed, and the same rules hold."""
    return proof.holds_all and cache.whole is not None and cache.whole.context == context


def _as_before(
    cache: StatCache, proof: Proof, directories: Directories, borders: frozenset[bytes], started: int, ended: int
) -> Scan:
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
        proof=proof,
    )
