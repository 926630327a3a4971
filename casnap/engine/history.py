"""Checkpoints as nouns, and the revisions that name them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

from casnap.codec.checkpoints import decode_checkpoint
from casnap.codec.metadata import decode_metadata
from casnap.engine.context import Context, workspace_row
from casnap.errors import CasnapError, Damage, NotFound
from casnap.model.checkpoint import Checkpoint, CheckpointObject, Counts, Origin, format_instant
from casnap.model.ids import ID_SIZE, MIN_PREFIX, ObjectKey, ObjectKind, short
from casnap.model.report import WorkspaceInfo
from casnap.store.state import CheckpointRow, State, WorkspaceRow

if TYPE_CHECKING:
    from casnap.model.revision import Revision

MOST_DIGITS = 18
"""Longest number that may be a step: SQLite's integers end there."""

_HEXADECIMAL = frozenset("0123456789abcdef")

MOST_CANDIDATES = 10
"""How many candidates an error names."""

MANY = 100
"""So many checkpoints are read together."""


def load_object(context: Context, checkpoint_id: bytes) -> CheckpointObject:
    """The immutable part of a checkpoint.

    Raises:
        Damage: it is missing or bad; the message says which checkpoint it is.
    """
    try:
        return decode_checkpoint(context.store.read(ObjectKey(ObjectKind.CHECKPOINT, checkpoint_id)))
    except Damage as damage:
        raise Damage(
            f"checkpoint {short(checkpoint_id)} is damaged: {damage.message}",
            hint="use another checkpoint; casnap list marks those that are damaged",
            details={**damage.details, "checkpoint": checkpoint_id.hex()},
        ) from damage


def as_noun(context: Context, state: State, row: CheckpointRow) -> Checkpoint:
    """A catalog row and its object as the noun that people and programs see; a bad object makes a damaged one."""
    try:
        found = load_object(context, row.id)
    except Damage:
        found = None
    workspace = state.workspace(row.workspace)
    is_head = workspace is not None and workspace.head == row.id
    return _noun(row, found, state.present_parent(row), is_head=is_head)


def _noun(row: CheckpointRow, found: CheckpointObject | None, parent: bytes, *, is_head: bool) -> Checkpoint:
    return Checkpoint(
        id=row.id.hex(),
        name=row.name or None,
        step=row.step or None,
        parent=parent.hex() or None,
        created_ns=found.scan_ended if found else row.time,
        message=found.message if found else "",
        metadata=decode_metadata(found.metadata) if found else {},
        pinned=row.pinned,
        head=is_head,
        safety=row.safety,
        automatic=row.automatic,
        deleted=row.deleted,
        digest=found.root.digest.hex() if found else "",
        origin=found.origin if found else Origin(),
        git=found.git if found else None,
        counts=Counts(*row.counts),
        skipped=row.skipped,
        new_bytes=row.new_bytes,
        damaged=found is None,
        good=row.good,
    )


def noun_of(context: Context, state: State, checkpoint_id: bytes) -> Checkpoint:
    """The noun of an id that is known to be in the catalog."""
    row = state.checkpoint(checkpoint_id)
    if row is None:
        raise NotFound(f"no checkpoint {short(checkpoint_id)}: the catalog does not know it")
    return as_noun(context, state, row)


def list_checkpoints(
    context: Context, workspace: WorkspaceInfo, *, limit: int | None = None, safety: bool = False
) -> list[Checkpoint]:
    """The checkpoints of a workspace, newest first; safety checkpoints only when asked for."""
    state = context.store.state()
    rows = [row for row in state.history(workspace.id) if not row.deleted and (safety or not row.safety)][:limit]
    if len(rows) < MANY:
        return [as_noun(context, state, row) for row in rows]
    return list(_nouns(context, state, workspace, rows))


def _nouns(context: Context, state: State, workspace: WorkspaceInfo, rows: list[CheckpointRow]) -> Iterator[Checkpoint]:
    """Many at once: a query for each would take as long as all else."""
    known = state.workspace(workspace.id)
    head = known.head if known else b""
    there = {row.id for row in state.history(workspace.id) if not row.deleted}
    for batch in (rows[start : start + MANY] for start in range(0, len(rows), MANY)):
        keys = [ObjectKey(ObjectKind.CHECKPOINT, row.id) for row in batch]
        read = context.store.read_many(keys)
        for key, row in zip(keys, batch, strict=True):
            try:
                found = decode_checkpoint(read[key])
            except (KeyError, Damage):  # its newest record is bad: another may be good
                yield as_noun(context, state, row)
            else:
                parent = row.parent if row.parent in there or not row.parent else state.present_parent(row)
                yield _noun(row, found, parent, is_head=row.id == head)


def count_safety(context: Context, workspace: WorkspaceInfo) -> int:
    """How many safety checkpoints a workspace has."""
    return sum(row.safety and not row.deleted for row in context.store.state().history(workspace.id))


def resolve(context: Context, workspace: WorkspaceInfo, revision: Revision, *, deleted: bool = False) -> Checkpoint:
    """The checkpoint that a revision names; with ``deleted`` also one that is deleted.

    Raises:
        NotFound: there is none, or more than one; ``details["candidates"]`` says which come close.
    """
    state = context.store.state()
    row = _Resolver(context, state, workspace_row(state, workspace), deleted).find(revision)
    return as_noun(context, state, row)


class _Resolver:
    """Looks a revision up in one workspace at one moment."""

    def __init__(self, context: Context, state: State, workspace: WorkspaceRow, deleted: bool) -> None:
        self.context = context
        self.state = state
        self.workspace = workspace
        self.deleted = deleted

    def find(self, revision: Revision) -> CheckpointRow:
        row = self.base(revision)
        for taken in range(revision.ancestors):
            parent = self.state.present_parent(row)
            above = self.state.checkpoint(parent) if parent else None
            if above is None:
                raise NotFound(
                    f"no ancestor {revision.ancestors} of {_spell(revision)}: its history goes back {taken}",
                    code="no-such-checkpoint",
                    hint="drop the changes since the last checkpoint with: casnap rollback",
                    details={"maximum": taken},
                )
            row = above
        return row

    def base(self, revision: Revision) -> CheckpointRow:
        from casnap.model.revision import At, Good, Head, Latest, Step, Word  # here and below: who lists names none

        match revision.base:
            case Head():
                return self._head()
            case Latest():
                return self._latest()
            case Good():
                return self._good()
            case At(instant):
                return self._at(instant)
            case Step(number):
                known = len(str(number)) <= MOST_DIGITS
                row = self.state.stepped(self.workspace.id, number) if known else None
                return self._live(row, f"step {number}")
            case Word(text):
                return self._word(text)

    def _head(self) -> CheckpointRow:
        row = self.state.checkpoint(self.workspace.head) if self.workspace.head else None
        return row or self._none_yet()

    def _latest(self) -> CheckpointRow:
        rows = [row for row in self._rows() if not row.deleted and not row.safety]
        return max(rows, key=lambda row: row.step) if rows else self._none_yet()

    def _good(self) -> CheckpointRow:
        rows = [row for row in self._rows() if row.good and not row.deleted and not row.safety]
        if rows:
            return max(rows, key=lambda row: row.step)
        raise NotFound(
            f"no good checkpoint in {self._place(self.workspace)}: none is marked so",
            code="no-such-checkpoint",
            hint="have one marked by a command that ends well: casnap run -- COMMAND",
        )

    def _at(self, instant: int) -> CheckpointRow:
        rows = [row for row in self._rows() if not row.deleted and not row.safety]
        if not rows:
            return self._none_yet()
        # All are looked at: an imported one is older than its place in the history says.
        created = [as_noun(self.context, self.state, row).created_ns for row in rows]
        reached = [(ended, row) for ended, row in zip(created, rows, strict=True) if ended <= instant]
        if reached:
            return max(reached, key=lambda pair: pair[0])[1]
        oldest = min(created)
        raise NotFound(
            f"no checkpoint at {format_instant(instant)}: the oldest is of {format_instant(oldest)}",
            code="no-such-checkpoint",
            details={"oldest": format_instant(oldest)},
        )

    def _word(self, text: str) -> CheckpointRow:
        import unicodedata

        text = unicodedata.normalize("NFC", text)
        found = self.state.named(self.workspace.id, text) or self._deleted_name(text)
        if found is not None:
            return found
        if (by_id := self._by_whole_id(text)) is not None:
            return by_id
        if text.isdecimal() and text.isascii() and len(text) <= MOST_DIGITS:
            row = self.state.stepped(self.workspace.id, int(text))
            if row is not None:
                return self._live(row, f"step {text}")
        if len(text) >= MIN_PREFIX and set(text.lower()) <= _HEXADECIMAL:
            return self._by_prefix(text)
        raise self._unknown(text)

    def _deleted_name(self, text: str) -> CheckpointRow | None:
        if not self.deleted:
            return None
        return min((row for row in self._rows() if row.deleted and row.name == text), key=_is_freed, default=None)

    def _by_whole_id(self, text: str) -> CheckpointRow | None:
        if len(text) != 2 * ID_SIZE or not set(text.lower()) <= _HEXADECIMAL:
            return None
        row = self.state.checkpoint(bytes.fromhex(text))
        if row is None:
            return None
        if row.workspace != self.workspace.id:
            raise self._elsewhere(row)
        return self._live(row, text[:12])

    def _elsewhere(self, row: CheckpointRow) -> NotFound:
        other = self._place(self.state.workspace(row.workspace))
        return NotFound(
            f"no checkpoint {short(row.id)} in {self._place(self.workspace)}: it belongs to {other}",
            code="no-such-checkpoint",
            hint="name the workspace that it belongs to with -w",
        )

    def _by_prefix(self, text: str) -> CheckpointRow:
        rows = self.state.with_prefix(self.workspace.id, text.lower())
        live = [row for row in rows if self.deleted or not row.deleted]
        if len(live) == 1:
            return live[0]
        if len(live) > 1:
            raise NotFound(
                f"ambiguous id {text}: {len(live)} checkpoints begin with it",
                code="ambiguous",
                hint="give more digits: " + ", ".join(short(row.id) for row in live[:MOST_CANDIDATES]),
                details={"candidates": [row.id.hex() for row in live]},
            )
        if rows:
            return self._live(rows[0], text)
        found = [row for other in self.state.workspaces() for row in self.state.with_prefix(other.id, text.lower())]
        raise self._elsewhere(found[0]) if len(found) == 1 else self._unknown(text)

    def _live(self, row: CheckpointRow | None, spelt: str) -> CheckpointRow:
        if row is None:
            raise self._unknown(spelt)
        if row.deleted and not self.deleted:
            raise self._gone(row, spelt)
        return row

    def _gone(self, row: CheckpointRow, spelt: str) -> NotFound:
        when, rule = format_instant(row.deleted_at), self._rule(row)
        return NotFound(
            f"no checkpoint {spelt} in {self._place(self.workspace)}: it was deleted at {when}"
            + (f" by a cleanup ({rule})" if rule else "")
            + (", and its bytes have been freed" if row.freed else ""),
            code="no-such-checkpoint",
            hint=None if row.freed else f"bring it back with: casnap undelete {short(row.id)}",
            details={"id": row.id.hex(), "deleted": when, "rule": rule or None},
        )

    def _rule(self, row: CheckpointRow) -> str:
        """The rule that let a checkpoint go, empty for a person: only the operation log knows."""
        from casnap.model.operation import CheckpointsDeleted

        rule = ""
        with contextlib.suppress(CasnapError):  # the error is worth saying without it
            for operation in self.context.store.operations():
                if isinstance(operation, CheckpointsDeleted) and row.id.hex() in operation.ids:
                    rule = operation.rule
        return rule

    def _rows(self) -> list[CheckpointRow]:
        return self.state.history(self.workspace.id)

    def _none_yet(self) -> NoReturn:
        raise NotFound(
            f"no checkpoint in {self._place(self.workspace)} yet",
            code="no-such-checkpoint",
            hint="make one with: casnap checkpoint",
        )

    def _unknown(self, text: str) -> NotFound:
        gone = min((row for row in self._rows() if row.deleted and row.name == text), key=_is_freed, default=None)
        if gone is not None:
            return self._gone(gone, text)
        names = [row.name for row in self._rows() if row.name and not row.deleted]
        near = [name for name in names if text.lower() in name.lower() or name.lower() in text.lower()]
        chosen = (near or names)[:MOST_CANDIDATES]
        return NotFound(
            f"no checkpoint {text!r} in {self._place(self.workspace)}",
            code="no-such-checkpoint",
            hint=f"known are: {', '.join(chosen)}" if chosen else "see them with: casnap list --safety",
            details={"candidates": chosen},
        )

    @staticmethod
    def _place(workspace: WorkspaceRow | None) -> str:
        return workspace.path.decode("utf-8", "backslashreplace") if workspace else "an unknown workspace"


def _is_freed(row: CheckpointRow) -> bool:
    return row.freed


def _spell(revision: Revision) -> str:
    from casnap.model.revision import At, Good, Head, Latest, Step, Word

    match revision.base:
        case Head():
            return "head"
        case Latest():
            return "latest"
        case Good():
            return "the newest good one"
        case Step(number):
            return f"step {number}"
        case Word(text):
            return text
        case At(instant):
            return f"the checkpoint at {format_instant(instant)}"
