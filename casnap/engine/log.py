"""``log``: what has been done, from the operation log itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from msgspec import to_builtins
from msgspec.structs import asdict

from casnap.engine.context import Context
from casnap.model.ids import SHORT_ID
from casnap.model.operation import (
    AnyOperation,
    CheckpointMade,
    CheckpointRenamed,
    CheckpointsDeleted,
    CheckpointsFoundGood,
    CheckpointsPinned,
    CheckpointUndeleted,
    OfStore,
    PathsExpunged,
    RollbackBegun,
    RollbackEnded,
    SpaceFreed,
    StoreChecked,
    StoreCreated,
    StoreRepaired,
    Verified,
    WorkspaceConfigured,
    WorkspaceForgotten,
    WorkspaceRegistered,
)
from casnap.model.report import LogEntry, WorkspaceInfo

NAMED = 8
"""Up to how many checkpoints or paths of one operation are named to a person."""

_HIDDEN = {"seq", "time", "prev", "by", "version", "workspace", "packs", "nonce"}


def log(context: Context, workspace: WorkspaceInfo | None = None, *, limit: int | None = None) -> list[LogEntry]:
    """The operations of a workspace, or all of them, newest first, at most ``limit``."""
    paths = {row.id: row.path for row in context.store.state().workspaces()}
    chosen: deque[LogEntry] = deque(maxlen=limit)
    for operation in context.store.operations():
        id = "" if isinstance(operation, OfStore) else operation.workspace
        if workspace is None or id == workspace.id:
            chosen.append(_entry(operation, id, paths.get(id, b"")))
    return list(reversed(chosen))


def _entry(operation: AnyOperation, id: str, path: bytes) -> LogEntry:
    facts = {key: to_builtins(value) for key, value in asdict(operation).items() if key not in _HIDDEN}
    if isinstance(operation, StoreCreated):
        facts = {}
    return LogEntry(
        seq=operation.seq,
        time_ns=operation.time,
        operation=str(operation.__struct_config__.tag),
        workspace=None if not id else WorkspaceInfo(id, path.decode("utf-8", "surrogateescape")),
        by=operation.by,
        checkpoints=tuple(_checkpoints(operation)),
        summary=" ".join(_words(operation)),
        facts=facts,
    )


def _checkpoints(operation: AnyOperation) -> Iterator[str]:
    match operation:
        case CheckpointMade(id=id) | CheckpointUndeleted(id=id) | CheckpointRenamed(id=id) | Verified(id=id):
            yield id
        case CheckpointsDeleted(ids=ids) | CheckpointsPinned(ids=ids) | CheckpointsFoundGood(ids=ids):
            yield from ids
        case RollbackBegun(safety=safety, target=target):
            yield from (target, safety)
        case RollbackEnded(late=late) if late:
            yield late
        case SpaceFreed(freed=freed):
            yield from freed
        case PathsExpunged(replaced=replaced):
            yield from (new for _, new in replaced)


def _words(operation: AnyOperation) -> Iterator[str]:
    """The operation for a person, in a few words."""
    match operation:
        case CheckpointMade():
            yield f"step={operation.step}" + (f" name={operation.name}" if operation.name else "")
            yield f"id={operation.id[:SHORT_ID]}" + (" pinned" if operation.pinned else "")
            yield "+{} ~{} -{}".format(*operation.counts)
            if operation.replaced:
                yield f"(its name was that of {operation.replaced[:SHORT_ID]})"
        case RollbackBegun():
            yield f"{operation.verb} to {operation.target[:SHORT_ID]} safety={operation.safety[:SHORT_ID]}"
            yield from ("keep-git",) if operation.keep_git else ()
            yield from _some(operation.paths, "paths")
        case RollbackEnded():
            yield f"of {operation.begin}: {operation.result}"
            if operation.late:
                yield f"late={operation.late[:SHORT_ID]}"
        case CheckpointsDeleted():
            yield from _some([id[:SHORT_ID] for id in operation.ids], "checkpoints")
            if operation.rule:
                yield f"({operation.rule})"
        case CheckpointsPinned():
            yield "pinned" if operation.pinned else "unpinned"
            yield from _some([id[:SHORT_ID] for id in operation.ids], "checkpoints")
        case CheckpointsFoundGood():
            yield "found good" if operation.good else "not good any more"
            yield from _some([id[:SHORT_ID] for id in operation.ids], "checkpoints")
        case CheckpointUndeleted() | CheckpointRenamed():
            yield f"{operation.id[:SHORT_ID]} name={operation.name or '(none)'}"
        case Verified():
            yield f"{operation.id[:SHORT_ID]}: {operation.result}"
        case WorkspaceRegistered():
            yield operation.path
        case WorkspaceForgotten():
            yield "with its checkpoints" if operation.drop else "its checkpoints stay"
        case WorkspaceConfigured():
            yield from (f"{key}={value or '(unset)'}" for key, value in operation.values.items())
        case SpaceFreed() | StoreChecked() | StoreRepaired() | PathsExpunged():
            yield from _upkeep_words(operation)
        case StoreCreated():
            yield f"format {operation.format.get('format', '?')}"


def _upkeep_words(operation: SpaceFreed | StoreChecked | StoreRepaired | PathsExpunged) -> Iterator[str]:
    match operation:
        case SpaceFreed():
            yield "automatic" if operation.automatic else "asked for"
            yield from _some([f"freed {id[:SHORT_ID]}" for id in operation.freed], "checkpoints freed")
            yield f"{len(operation.cuts)} packs shortened or removed, {len(operation.packs)} written"
        case StoreChecked():
            yield f"{operation.result}" + (f" ({operation.found} faults)" if operation.found else "")
            yield from ("every byte read",) if operation.read_data else ()
        case StoreRepaired():
            yield f"{operation.healed} objects healed"
            if operation.before:
                yield f"the log was chained anew behind {operation.before[:SHORT_ID]}, {operation.lost} lines lost"
        case PathsExpunged():
            yield f"{operation.pattern} from"
            yield from _some([new[:SHORT_ID] for _, new in operation.replaced], "checkpoints")


def _some(words: Sequence[str], noun: str) -> Sequence[str]:
    """The words, or how many there are where they would drown the rest."""
    return words if len(words) <= NAMED else [f"{len(words)} {noun}"]
