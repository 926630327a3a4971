"""Writing anew what is lost, from workspaces that still have the bytes.

A scan of a workspace cuts and names everything as the scan of long ago did: what has not changed since comes out under
the same names. Only what is lost is written, whole and not as a delta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from casnap.engine.context import Context, workspace_lock
from casnap.engine.roots import peek_root
from casnap.engine.scanning import scan_workspace
from casnap.errors import Busy, CasnapError, NotFound, StorageFailed
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.operation import AnyOperation, StoreRepaired
from casnap.model.paths import escape
from casnap.store.reach import children
from casnap.store.session import WriteSession
from casnap.store.state import State, WorkspaceRow
from casnap.store.store import Commit


@dataclass(slots=True)
class Healing:
    """What came of it: objects that were written anew, and workspaces that could not be looked at, with the cause."""

    healed: set[ObjectKey] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)


def heal(context: Context, lost: Iterable[ObjectKey], has: Callable[[ObjectKey], bool]) -> Healing:
    """Write anew what of ``lost``, and of what that leads to, the workspaces have; ``has``: the store has it soundly.

    Raises:
        Busy: a workspace is in use.
        StorageFailed: the store cannot be written.
    """
    healing = Healing()
    wanted = set(lost)
    with context.store.session() as session:
        for row in context.store.state().workspaces():
            if not row.forgotten and wanted - healing.healed:
                _from_workspace(context, row, session, wanted, healing, has)
        if healing.healed:
            context.store.commit(_repaired(context, len(healing.healed)), session)
    return healing


def _from_workspace(
    context: Context,
    row: WorkspaceRow,
    session: WriteSession,
    wanted: set[ObjectKey],
    healing: Healing,
    has: Callable[[ObjectKey], bool],
) -> None:
    try:
        with workspace_lock(context, [row.id], "check --repair"):
            if any(key.kind is not ObjectKind.CHUNK for key in wanted - healing.healed):
                listed = _Listing()
                _look(context, row, listed)
                wanted |= set(_below(wanted - healing.healed, listed.objects, has))
            _look(context, row, _Writer(session, wanted, healing.healed))
    except (Busy, StorageFailed):
        raise
    except NotFound:  # a workspace that is gone has nothing to give
        return
    except CasnapError as error:
        healing.notes.append(f"{escape(row.path)} could not be looked at: {error.message}")


def _look(context: Context, row: WorkspaceRow, sink: _Writer | _Listing) -> None:
    with peek_root(row) as directories:
        scan_workspace(context, row, directories, sink, trusted=False)


def _below(
    wanted: Iterable[ObjectKey], known: dict[ObjectKey, bytes], has: Callable[[ObjectKey], bool]
) -> Iterator[ObjectKey]:
    """What trees and lists lead to that are lost, and known from elsewhere: nobody could say that it is lost too."""
    waiting, seen = [key for key in wanted if key in known], set()
    while waiting:
        key = waiting.pop()
        for child in children(key, known[key]):
            if child not in seen and not has(child):
                seen.add(child)
                yield child
                if child in known:
                    waiting.append(child)


class _Writer:
    """A sink that lets through what is wanted, once, and nothing else."""

    def __init__(self, session: WriteSession, wanted: set[ObjectKey], healed: set[ObjectKey]) -> None:
        self.wanted = wanted
        self._session = session
        self._healed = healed

    def put(self, key: ObjectKey, data: bytes, base: ObjectKey | None = None) -> None:
        """Write an object that is wanted."""
        if key in self.wanted and key not in self._healed:
            self._session.put(key, data)
            self._healed.add(key)

    def present(self, keys: Iterable[ObjectKey]) -> set[ObjectKey]:
        """All that nobody wants: it need not be read for this."""
        return {key for key in keys if key not in self.wanted or key in self._healed}

    def standing(self, keys: Iterable[ObjectKey]) -> set[ObjectKey]:
        """Here the same: what is damaged is asked for by name."""
        return self.present(keys)


class _Listing:
    """A sink that keeps trees and chunk lists in memory, and no chunk."""

    def __init__(self) -> None:
        self.objects: dict[ObjectKey, bytes] = {}

    def put(self, key: ObjectKey, data: bytes, base: ObjectKey | None = None) -> None:
        """Keep a tree or a list."""
        if key.kind is not ObjectKind.CHUNK:
            self.objects[key] = data

    def present(self, keys: Iterable[ObjectKey]) -> set[ObjectKey]:
        """Those that were put."""
        return {key for key in keys if key in self.objects}

    def standing(self, keys: Iterable[ObjectKey]) -> set[ObjectKey]:
        """Here the same: what is damaged is asked for by name."""
        return self.present(keys)


def _repaired(context: Context, healed: int) -> Callable[[State, Commit], AnyOperation]:
    def build(_state: State, commit: Commit) -> AnyOperation:
        return StoreRepaired(
            seq=commit.seq, time=commit.time, prev=commit.prev, by=context.by, healed=healed, packs=commit.packs
        )

    return build
