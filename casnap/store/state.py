"""The state of a store: what its operation log amounts to, for whoever asks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from casnap.model.ids import ID_SIZE, ObjectKey
from casnap.store.catalog import CatalogLost
from casnap.store.follower import Follower
from casnap.store.rows import CheckpointRow, OpenRollback, PackRow, Place, UndoTarget, Upkeep, WorkspaceRow
from casnap.store.tables import Tables, surviving_ancestor

__all__ = ["CheckpointRow", "OpenRollback", "PackRow", "Place", "State", "UndoTarget", "Upkeep", "WorkspaceRow"]

Answer = TypeVar("Answer")

_HEXADECIMAL = r"[0-9a-f]{0,64}"


class State:
    """A view of the workspaces, checkpoints and objects; :meth:`casnap.store.store.Store.state` moves it forward."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower

    @property
    def seq(self) -> int:
        """How many operations there have been."""
        return self._follower.tables.mark.seq

    @property
    def last_hash(self) -> str:
        """The hash of the newest line."""
        return self._follower.tables.mark.hash

    @property
    def upkeep(self) -> Upkeep:
        """When the store was last looked after."""
        return self._follower.tables.upkeep

    def workspaces(self) -> list[WorkspaceRow]:
        """All workspaces, also forgotten ones, sorted by path."""
        rows = self._ask(lambda tables: tables.workspaces.select("1", (), lambda _: True))
        return sorted(rows, key=lambda row: (row.path, row.forgotten, -row.last_operation))

    def workspace(self, id: str) -> WorkspaceRow | None:
        """The workspace with this id."""
        return self._ask(lambda tables: tables.workspaces.get(id))

    def workspace_at(self, path: bytes) -> WorkspaceRow | None:
        """The workspace that is registered under this path; a forgotten one where there is no other."""
        rows = self._ask(lambda tables: tables.workspaces.select("path = ?", (path,), lambda row: row.path == path))
        return min(rows, key=lambda row: (row.forgotten, -row.last_operation), default=None)

    def checkpoint(self, id: bytes) -> CheckpointRow | None:
        """The checkpoint with this id, deleted or not."""
        return self._ask(lambda tables: tables.checkpoints.get(id))

    def named(self, workspace: str, name: str) -> CheckpointRow | None:
        """The checkpoint that has this name; deleted ones have lost theirs, and no name is nobody's."""
        if not name:
            return None

        def matches(row: CheckpointRow) -> bool:
            return row.workspace == workspace and row.name == name and not row.deleted

        return _newest(self._checkpoints("workspace = ? AND name = ? AND NOT deleted", (workspace, name), matches))

    def stepped(self, workspace: str, step: int) -> CheckpointRow | None:
        """The checkpoint with this step (from 1), deleted or not; what took another's place, rather than that one."""

        def matches(row: CheckpointRow) -> bool:
            return row.workspace == workspace and row.step == step and not row.safety

        return _newest(self._checkpoints("workspace = ? AND step = ? AND NOT safety", (workspace, step), matches))

    def with_prefix(self, workspace: str, prefix: str) -> list[CheckpointRow]:
        """Checkpoints whose id begins with these hexadecimal digits, deleted or not, newest first."""
        prefix = prefix.lower()
        if not re.fullmatch(_HEXADECIMAL, prefix):
            return []
        low, high = (bytes.fromhex(prefix.ljust(2 * ID_SIZE, digit)) for digit in "0f")

        def matches(row: CheckpointRow) -> bool:
            return row.workspace == workspace and low <= row.id <= high

        rows = self._checkpoints("workspace = ? AND id BETWEEN ? AND ?", (workspace, low, high), matches)
        return sorted(rows, key=_age, reverse=True)

    def history(self, workspace: str) -> list[CheckpointRow]:
        """All checkpoints of a workspace, safety checkpoints and deleted ones included, newest first."""
        rows = self._checkpoints("workspace = ?", (workspace,), lambda row: row.workspace == workspace)
        return sorted(rows, key=_age, reverse=True)

    def all_checkpoints(self) -> list[CheckpointRow]:
        """The checkpoints of all workspaces, deleted ones too, in the order in which they were made."""
        return sorted(self._checkpoints("1", (), lambda _: True), key=_age)

    @property
    def first_time(self) -> int:
        """When the oldest checkpoint was made, in nanoseconds since the epoch; 0 without any."""
        return min(
            (row.time for row in self._checkpoints("seq = (SELECT min(seq) FROM checkpoints)", (), _any)), default=0
        )

    def to_free(self, before: int) -> list[CheckpointRow]:
        """Those that were deleted up to an instant (nanoseconds since the epoch), and whose bytes are not freed."""

        def matches(row: CheckpointRow) -> bool:
            return row.deleted and not row.freed and row.deleted_at <= before

        return self._checkpoints("deleted AND NOT freed AND deleted_at <= ?", (before,), matches)

    def present_parent(self, row: CheckpointRow) -> bytes:
        """The id of the nearest ancestor that is not deleted; empty where there is none."""
        return self._ask(lambda tables: surviving_ancestor(tables, row.parent))

    def packs(self) -> list[PackRow]:
        """All packs that something was committed to."""
        return self._ask(lambda tables: tables.packs.select("1", (), lambda _: True))

    def places(self, keys: Iterable[ObjectKey]) -> dict[ObjectKey, list[Place]]:
        """Where those of ``keys`` that are there lie, newest first."""
        keys = list(keys)
        return self._ask(lambda tables: tables.index.places(keys))

    def fold_places(self, fold: Callable[[Iterable[tuple[str, int, int]]], Answer]) -> Answer:
        """What ``fold`` makes of pack, offset and slot of every object, which come in no order and may come twice.

        It is called once more when the catalog fails in the middle.
        """
        return self._ask(lambda tables: fold(tables.index.everything()))

    def present(self, keys: Iterable[ObjectKey]) -> set[ObjectKey]:
        """Those of ``keys`` that are there."""
        keys = list(keys)
        return self._ask(lambda tables: tables.index.present(keys))

    def _checkpoints(
        self, condition: str, parameters: tuple[str | int | bytes, ...], matches: Callable[[CheckpointRow], bool]
    ) -> list[CheckpointRow]:
        return self._ask(lambda tables: tables.checkpoints.select(condition, parameters, matches))

    def _ask(self, question: Callable[[Tables], Answer]) -> Answer:
        """The answer, from the operation log alone when the catalog fails in the middle of it."""
        while True:
            try:
                return question(self._follower.tables)
            except CatalogLost as error:
                self._follower.lose(error)


def _any(_row: CheckpointRow) -> bool:
    return True


def _age(row: CheckpointRow) -> tuple[int, bytes]:
    return row.seq, row.id


def _newest(rows: list[CheckpointRow]) -> CheckpointRow | None:
    """One that was freed only where there is no other: what took its place has its step."""
    return max(rows, key=lambda row: (not row.freed, *_age(row)), default=None)
