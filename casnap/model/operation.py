"""Operations: what a line of the operation log says (docs/format/oplog.md).

Each line is self-sufficient: the catalog is the fold of :mod:`casnap.store.apply` over the lines. Ids are
lower-case hexadecimal, paths are escaped text, times nanoseconds since the epoch (UTC).
"""

# Annotations are evaluated here, once: as texts they would be compiled when the decoders are made, which takes longer.

from typing import Any, Union

from msgspec import Struct


class PackRange(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What one commit wrote to one pack: bytes ``start`` to ``end``, its index record at ``index``."""

    pack: str
    start: int
    end: int
    index: int


class PackCut(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A pack of which only the first ``length`` bytes are kept; 0: it is removed."""

    pack: str
    length: int


class Operation(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="op"):
    """What every line has. ``seq`` counts from 1; ``prev`` is the hash of the line before."""

    seq: int
    time: int
    prev: str
    by: tuple[str, ...] = ()
    version: str = ""


class StoreCreated(Operation, frozen=True, kw_only=True, tag="store-created"):
    """The first line: repeats the store's format file."""

    format: dict[str, Any]


class WorkspaceRegistered(Operation, frozen=True, kw_only=True, tag="register"):
    """A workspace is new, or is attached again after having been forgotten."""

    workspace: str
    path: str


class WorkspaceForgotten(Operation, frozen=True, kw_only=True, tag="forget"):
    """The workspace is no longer protected; its checkpoints stay. With ``drop`` gc may free them."""

    workspace: str
    drop: bool = False


class CheckpointMade(Operation, frozen=True, kw_only=True, tag="checkpoint"):
    """A checkpoint with a step; it becomes head unless ``aside`` (it was imported beside a present head).

    ``replaced`` is the id of the checkpoint that had its name until now.
    """

    workspace: str
    id: str
    step: int
    name: str = ""
    automatic: bool = False
    pinned: bool = False
    replaced: str = ""
    aside: bool = False
    parent: str = ""
    counts: tuple[int, int, int] = (0, 0, 0)
    skipped: int = 0
    new_bytes: int = 0
    packs: tuple[PackRange, ...] = ()


class RollbackBegun(Operation, frozen=True, kw_only=True, tag="rollback-begin"):
    """The intent to change a workspace, and the safety checkpoint that holds what was there before.

    ``verb`` is rollback, undo or recover. ``made`` says that ``safety`` is new with this line (its parent
    is ``head``); otherwise a live checkpoint that equals the live tree serves. ``keep_git`` says that git
    directories are left alone. ``head_after`` is what head
    becomes when the outcome is good; ``undo_safety`` and ``undo_head`` are what a later undo restores.
    """

    workspace: str
    verb: str
    safety: str
    target: str
    nonce: str
    made: bool = False
    head: str = ""
    head_after: str = ""
    undo_safety: str
    undo_head: str = ""
    paths: tuple[str, ...] = ()
    keep_git: bool = False
    counts: tuple[int, int, int] = (0, 0, 0)
    skipped: int = 0
    new_bytes: int = 0
    packs: tuple[PackRange, ...] = ()


class RollbackEnded(Operation, frozen=True, kw_only=True, tag="rollback-end"):
    """How a rollback came out: ``done``, ``partial`` or ``failed`` (nothing was changed).

    ``begin`` is the seq of its begin line. ``late`` is a further safety checkpoint with what others wrote
    while the rollback ran; its parent is head as it was until then.
    """

    workspace: str
    begin: int
    result: str
    late: str = ""
    counts: tuple[int, int, int] = (0, 0, 0)
    skipped: int = 0
    new_bytes: int = 0
    packs: tuple[PackRange, ...] = ()


class CheckpointsDeleted(Operation, frozen=True, kw_only=True, tag="delete"):
    """These are gone from lists until undeleted; their names are free. ``rule`` is the policy that chose them."""

    workspace: str
    ids: tuple[str, ...]
    rule: str = ""


class CheckpointUndeleted(Operation, frozen=True, kw_only=True, tag="undelete"):
    """It is back, under ``name`` where that was still free, else unnamed."""

    workspace: str
    id: str
    name: str = ""


class CheckpointsPinned(Operation, frozen=True, kw_only=True, tag="pin"):
    """These cannot be deleted any more, or (``pinned`` false) can be again."""

    workspace: str
    ids: tuple[str, ...]
    pinned: bool = True


class CheckpointsFoundGood(Operation, frozen=True, kw_only=True, tag="good"):
    """What these hold was found good, or (``good`` false) is not held to be any more."""

    workspace: str
    ids: tuple[str, ...]
    good: bool = True


class CheckpointRenamed(Operation, frozen=True, kw_only=True, tag="rename"):
    """It has another name, or (empty) none."""

    workspace: str
    id: str
    name: str = ""


class WorkspaceConfigured(Operation, frozen=True, kw_only=True, tag="configure"):
    """Settings of the workspace: a value in JSON by its key; an empty text takes the key away."""

    workspace: str
    values: dict[str, str]


class Verified(Operation, frozen=True, kw_only=True, tag="verify"):
    """A workspace was compared with a checkpoint: ``equal`` or ``differs``."""

    workspace: str
    id: str
    result: str


class SpaceFreed(Operation, frozen=True, kw_only=True, tag="gc"):
    """Packs are shortened or removed after this line; what they held and is still needed is in ``packs`` by now.

    ``freed`` are deleted checkpoints that cannot come back any more. ``automatic``: nobody asked for it. ``repacked``:
    the packs that it wrote are in the form for what is at rest.
    """

    freed: tuple[str, ...] = ()
    cuts: tuple[PackCut, ...] = ()
    automatic: bool = False
    repacked: bool = False
    packs: tuple[PackRange, ...] = ()


class StoreChecked(Operation, frozen=True, kw_only=True, tag="check"):
    """The store was looked through: ``clean`` or ``damaged``; ``read_data``: every byte of it; ``found``: faults."""

    result: str
    read_data: bool = False
    found: int = 0


class StoreRepaired(Operation, frozen=True, kw_only=True, tag="repair"):
    """Damage was mended: ``packs`` is what was written anew or found again, ``healed`` counts objects.

    When the operation log itself was mended, ``lost`` counts its lines that could not be read, and ``before`` is the
    hash of the last line that could; the lines behind it were chained anew.
    """

    healed: int = 0
    lost: int = 0
    before: str = ""
    packs: tuple[PackRange, ...] = ()


class PathsExpunged(Operation, frozen=True, kw_only=True, tag="expunge"):
    """What matches ``pattern`` is out of these checkpoints: each old id, and the id of what took its place."""

    workspace: str
    pattern: str
    replaced: tuple[tuple[str, str], ...]
    packs: tuple[PackRange, ...] = ()


AnyOperation = Union[
    StoreCreated,
    WorkspaceRegistered,
    WorkspaceForgotten,
    CheckpointMade,
    RollbackBegun,
    RollbackEnded,
    CheckpointsDeleted,
    CheckpointUndeleted,
    CheckpointsPinned,
    CheckpointsFoundGood,
    CheckpointRenamed,
    WorkspaceConfigured,
    Verified,
    SpaceFreed,
    StoreChecked,
    StoreRepaired,
    PathsExpunged,
]

OfStore = StoreCreated | SpaceFreed | StoreChecked | StoreRepaired
"""Operations of the store as a whole: they name no workspace."""
