"""What a look through a store found, and what a repair did about it."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from casnap.model.report import WorkspaceInfo


class Fault(StrEnum):
    """What a finding is about."""

    FORMAT = "format"
    LOG = "log"
    CATALOG = "catalog"
    PACK = "pack"
    RECORD = "record"
    OBJECT = "object"
    INDEX = "index"
    CACHE = "cache"
    LEFTOVER = "leftover"
    UNKNOWN_FILE = "unknown-file"
    UNREADABLE = "unreadable"


class Hit(Struct, frozen=True):
    """A checkpoint that a fault hurts: ``step`` and ``name`` are None where it has none.

    ``paths`` are relative to its workspace, in the order of its tree; ``more`` counts those beyond them. Without any,
    the checkpoint as a whole is lost.
    """

    workspace: WorkspaceInfo
    id: str
    step: int | None
    name: str | None
    paths: tuple[bytes, ...] = ()
    more: int = 0


class Finding(Struct, frozen=True):
    """One thing that is not as it should be.

    ``damage`` says that something is lost until it is repaired; otherwise it is a note. ``file`` is relative to the
    store, ``offset`` a byte in it. ``object`` is the kind and the id of what lies there.
    """

    fault: Fault
    message: str
    damage: bool = True
    file: str | None = None
    offset: int | None = None
    object: str | None = None
    hits: tuple[Hit, ...] = ()
    next_step: str | None = None


class Totals(Struct, frozen=True):
    """What was looked at: whole records, the objects that they are, checkpoints, and bytes of packs."""

    operations: int = 0
    packs: int = 0
    records: int = 0
    objects: int = 0
    checkpoints: int = 0
    bytes: int = 0


class CheckReport(Struct, frozen=True):
    """A store as it was found; true when nothing is lost.

    ``found`` counts all damage; ``findings`` name the first of it, ``notes`` what is harmless. ``done`` says in
    sentences what a repair did, ``healed`` how many objects it wrote anew.
    """

    read_data: bool
    totals: Totals
    found: int
    findings: tuple[Finding, ...]
    notes: tuple[Finding, ...]
    seconds: float = 0.0
    repaired: bool = False
    healed: int = 0
    done: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return not self.found

    @property
    def unreadable(self) -> bool:
        """Whether files could not be looked at, and nothing else is wrong."""
        return bool(self.findings) and all(finding.fault is Fault.UNREADABLE for finding in self.findings)

    @property
    def hits(self) -> tuple[Hit, ...]:
        """Each checkpoint that is hurt, once, without paths."""
        known: dict[str, Hit] = {}
        for finding in self.findings:
            for hit in finding.hits:
                known.setdefault(hit.id, Hit(hit.workspace, hit.id, hit.step, hit.name))
        return tuple(known.values())
