"""What a line of the operation log may say, beyond the types of its fields (docs/format/oplog.md).

Whoever applies a line must never have to refuse it: so everything that can be checked from the line alone is
checked here, before it is written and after it is read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from casnap.codec.hashing import NO_PREVIOUS
from casnap.codec.packs import MAX_PACK_SIZE
from casnap.codec.paths import is_path
from casnap.codec.records import ALIGNMENT
from casnap.model.operation import (
    AnyOperation,
    CheckpointMade,
    CheckpointRenamed,
    CheckpointsDeleted,
    CheckpointsFoundGood,
    CheckpointsPinned,
    CheckpointUndeleted,
    OfStore,
    PackCut,
    PackRange,
    PathsExpunged,
    RollbackBegun,
    RollbackEnded,
    SpaceFreed,
    StoreChecked,
    StoreRepaired,
    Verified,
    WorkspaceRegistered,
)
from casnap.model.paths import unescape

_INT64 = 1 << 63
_HASH = re.compile(r"[0-9a-f]{64}")
_PACK = re.compile(r"[0-9a-f]{32}")
_NONCE = re.compile(r"[0-9a-z]{1,32}")

_RESULTS = {
    RollbackEnded: ("done", "partial", "failed"),
    Verified: ("equal", "differs"),
    StoreChecked: ("clean", "damaged"),
}


def is_known_result(operation: AnyOperation) -> bool:
    """Whether ``operation`` has no result, or one that this version knows how to apply."""
    if not isinstance(operation, RollbackEnded | Verified | StoreChecked):
        return True
    return operation.result in _RESULTS[type(operation)]


def find_fault(operation: AnyOperation) -> str | None:
    """What is wrong with an operation, in words; None when nothing is."""
    return _chain_fault(operation) or _workspace_fault(operation) or _fault(operation)


def _chain_fault(operation: AnyOperation) -> str | None:
    if not 0 < operation.seq < _INT64 or not -_INT64 <= operation.time < _INT64:
        return "its seq or time is out of range"
    if not _HASH.fullmatch(operation.prev) or (operation.seq == 1) != (operation.prev == NO_PREVIOUS):
        return "its prev is not the hash of a line before it"
    return None


def _workspace_fault(operation: AnyOperation) -> str | None:
    if isinstance(operation, OfStore) or operation.workspace:
        return None
    return "it names no workspace"


def _fault(operation: AnyOperation) -> str | None:
    match operation:
        case WorkspaceRegistered(path=path):
            unescaped = _unescaped(path)
            absolute = unescaped is not None and unescaped.startswith(b"/") and b"\0" not in unescaped
            return None if absolute else "its path is not the escaped text of an absolute path"
        case CheckpointMade():
            if operation.step < 1 or operation.step >= _INT64:
                return "its step is out of range"
            return _ids_fault([operation.id], [operation.parent, operation.replaced]) or _made_fault(operation)
        case RollbackBegun():
            return _begun_fault(operation)
        case RollbackEnded():
            if not 0 < operation.begin < operation.seq:
                return "its begin is not a line before it"
            return _result_fault(operation) or _ids_fault([], [operation.late]) or _made_fault(operation)
        case CheckpointsDeleted(ids=ids) | CheckpointsPinned(ids=ids) | CheckpointsFoundGood(ids=ids):
            return _ids_fault(ids, [])
        case CheckpointUndeleted(id=id) | CheckpointRenamed(id=id):
            return _ids_fault([id], [])
        case Verified(id=id):
            return _result_fault(operation) or _ids_fault([id], [])
        case SpaceFreed() | StoreChecked() | StoreRepaired() | PathsExpunged():
            return _upkeep_fault(operation)
    return None


def _upkeep_fault(operation: SpaceFreed | StoreChecked | StoreRepaired | PathsExpunged) -> str | None:
    match operation:
        case SpaceFreed(freed=freed, cuts=cuts, packs=packs):
            return _ids_fault(freed, []) or _cuts_fault(cuts) or _ranges_fault(packs)
        case StoreChecked(found=found):
            return _result_fault(operation) or _counts_fault(found)
        case StoreRepaired(healed=healed, lost=lost, before=before, packs=packs):
            return _counts_fault(healed, lost) or _ids_fault([], [before]) or _ranges_fault(packs)
        case PathsExpunged(replaced=replaced, packs=packs):
            ids = [id for pair in replaced for id in pair]
            if len(set(ids)) != len(ids):
                return "a checkpoint takes two places, or is replaced and takes a place"
            return _ids_fault(ids, []) or _ranges_fault(packs)


def _cuts_fault(cuts: Collection[PackCut]) -> str | None:
    if len({cut.pack for cut in cuts}) != len(cuts):
        return "a pack is cut twice"
    if all(_PACK.fullmatch(cut.pack) and 0 <= cut.length <= MAX_PACK_SIZE for cut in cuts):
        return "no record can end where a pack is cut" if any(cut.length % ALIGNMENT for cut in cuts) else None
    return "a pack is cut that cannot be, or at a length that it cannot have"


def _result_fault(operation: RollbackEnded | Verified | StoreChecked) -> str | None:
    return None if is_known_result(operation) else "its result is none that is known"


def _begun_fault(operation: RollbackBegun) -> str | None:
    if not _NONCE.fullmatch(operation.nonce):
        return "its nonce is not 1 to 32 digits and lower-case letters"
    paths = map(_unescaped, operation.paths)
    if not all(path is not None and is_path(path) for path in paths):
        return "one of its paths is not the escaped text of a path that can exist"
    optional = (operation.head, operation.head_after, operation.undo_head)
    needed = (operation.safety, operation.target, operation.undo_safety)
    return _ids_fault(needed, optional) or _made_fault(operation)


def _ids_fault(needed: Iterable[str], optional: Iterable[str]) -> str | None:
    if all(map(_HASH.fullmatch, needed)) and all(map(_HASH.fullmatch, filter(None, optional))):
        return None
    return "an id is not 64 lower-case hexadecimal digits"


def _made_fault(operation: CheckpointMade | RollbackBegun | RollbackEnded) -> str | None:
    fault = _counts_fault(*operation.counts, operation.skipped, operation.new_bytes)
    return fault or _ranges_fault(operation.packs)


def _counts_fault(*counts: int) -> str | None:
    return None if all(0 <= count < _INT64 for count in counts) else "a count is out of range"


def _ranges_fault(packs: Iterable[PackRange]) -> str | None:
    return next(filter(None, map(_range_fault, packs)), None)


def _range_fault(written: PackRange) -> str | None:
    if not _PACK.fullmatch(written.pack):
        return "the id of a pack is not 32 lower-case hexadecimal digits"
    if any(place % ALIGNMENT for place in (written.start, written.index, written.end)):
        return "no record can begin or end where a pack range says"
    if not 0 <= written.start <= written.index < written.end <= MAX_PACK_SIZE:
        return "the index of a pack range lies outside it"
    return None


def _unescaped(text: str) -> bytes | None:
    """The path that ``text`` stands for, None when it stands for none.

    Whether another text stands for it too is not asked: what is printable, and so not escaped, differs between
    versions of Unicode, and a line must read the same under all of them.
    """
    try:
        return unescape(text)
    except ValueError:
        return None
