"""The safety checkpoint: what is there before a change, kept before anything is touched."""

from __future__ import annotations

import contextlib
import os

from msgspec import Struct
from msgspec.structs import replace

from casnap.codec.checkpoints import encode_checkpoint
from casnap.engine.checkpoint import checkpoint_object, described, since_head
from casnap.engine.context import Context, restarted, workspace_row
from casnap.engine.history import load_object
from casnap.engine.request import Request
from casnap.engine.scanning import LiveScan, scan_again
from casnap.errors import Damage, NotFound, StorageFailed
from casnap.fs.directories import Directories
from casnap.model.checkpoint import Counts
from casnap.model.operation import AnyOperation, RollbackBegun
from casnap.model.paths import escape
from casnap.model.plan import Plan
from casnap.model.report import WorkspaceInfo
from casnap.model.tree import File
from casnap.store.session import WriteSession
from casnap.store.state import State, UndoTarget, WorkspaceRow
from casnap.store.store import Commit

BIGGEST = 3
"""How many paths an error about space names."""


class SafetyPoint(Struct, frozen=True):
    """A committed intent: its line's seq, its nonce, the safety checkpoint, and the scan that it holds."""

    seq: int
    nonce: str
    safety: bytes
    live: LiveScan


def begin_needed(row: WorkspaceRow, look: LiveScan, plan: Plan, head_after: bytes) -> bool:
    """Whether there is anything to do: changes, times included, a move of head, or an interruption to close."""
    return bool(plan.changes or plan.blocked or row.head != head_after or row.open or look.found.leftovers)


def begin(
    context: Context,
    workspace: WorkspaceInfo,
    directories: Directories,
    look: LiveScan,
    new_bytes: int,
    request: Request,
    plan: Plan,
) -> SafetyPoint:
    """Take the safety checkpoint and commit the intent in one line.

    What is about to change is read once more, believing no cache. A checkpoint that equals the tree serves.

    Raises:
        StorageFailed: the store cannot keep it; nothing was changed.
    """
    _require_space(context, new_bytes, plan)
    return restarted(context, lambda: _begun(context, workspace, directories, look, request, plan))


def _begun(
    context: Context,
    workspace: WorkspaceInfo,
    directories: Directories,
    look: LiveScan,
    request: Request,
    plan: Plan,
) -> SafetyPoint:
    row = workspace_row(context.store.state(), workspace)
    doubted = [change.path for change in plan.changes if isinstance(change.old, File)]
    with context.store.session() as session:
        live = scan_again(context, row, directories, session, look, doubted=doubted)
        taken = _safety_checkpoint(context, row, live, request, session)
        nonce = os.urandom(6).hex()

        def build(state: State, commit: Commit) -> AnyOperation:
            _require_target(state, request)
            return replace(
                _intent(context, row, request, taken, commit),
                nonce=nonce,
                skipped=len(live.skipped),
                new_bytes=session.new_bytes,
            )

        state = context.store.commit(build, session)
    return SafetyPoint(state.seq, nonce, taken.id, live)


def _require_target(state: State, request: Request) -> None:
    """See that the target has not gone for good since it was named."""
    row = state.checkpoint(bytes.fromhex(request.target.id))
    if row is None or row.freed:
        raise NotFound(f"no checkpoint {request.target.label}: it has been freed meanwhile", code="no-such-checkpoint")


class _Taken(Struct, frozen=True):
    """The checkpoint that serves, what it differs in from head, and whether it is new."""

    id: bytes
    counts: Counts
    made: bool


def _intent(context: Context, row: WorkspaceRow, request: Request, taken: _Taken, commit: Commit) -> RollbackBegun:
    undo = request.undo or UndoTarget(taken.id, row.head)
    return RollbackBegun(
        seq=commit.seq,
        time=commit.time,
        prev=commit.prev,
        by=context.by,
        workspace=row.id,
        verb=request.verb,
        safety=taken.id.hex(),
        target=request.target.id,
        nonce="",
        made=taken.made,
        head=row.head.hex(),
        head_after=request.head_after.hex(),
        undo_safety=undo.safety.hex(),
        undo_head=undo.head.hex(),
        paths=tuple(map(escape, request.paths or ())),
        keep_git=request.keep_git,
        counts=(taken.counts.added, taken.counts.changed, taken.counts.removed),
        packs=commit.packs,
    )


def _safety_checkpoint(
    context: Context, row: WorkspaceRow, live: LiveScan, request: Request, session: WriteSession
) -> _Taken:
    if serving := _equal_checkpoint(context, row, live):
        return _Taken(serving, Counts(), made=False)
    key, data = encode_checkpoint(checkpoint_object(context, row, live, session, _message(request), described(None)))
    session.put(key, data)
    return _Taken(key.id, since_head(context, row, live, session).counts, made=True)


def _message(request: Request) -> str:
    return f"before {request.verb} to {request.target.label}"


def _equal_checkpoint(context: Context, row: WorkspaceRow, live: LiveScan) -> bytes:
    """A live checkpoint of this very tree, or b"": head, what undo leads to, and the newest are asked."""
    state = context.store.state()
    asked = [row.head, row.undo.safety if row.undo else b"", *(found.id for found in state.history(row.id)[:1])]
    for candidate in dict.fromkeys(filter(None, asked)):
        found = state.checkpoint(candidate)
        if found is None or found.deleted:
            continue
        with contextlib.suppress(Damage):  # a checkpoint that cannot be read serves nobody
            recorded = load_object(context, candidate)
            same = (recorded.root, recorded.links, recorded.rules) == (live.root, live.links, live.found.rules)
            if same:
                return candidate
    return b""


def _require_space(context: Context, new_bytes: int, plan: Plan) -> None:
    free, size = context.store.space.free()
    reserve = context.policy.reserve(size)
    if not new_bytes or free - new_bytes >= reserve:
        return
    files = [(change.old.size, change.path) for change in plan.changes if isinstance(change.old, File)]
    biggest = ", ".join(f"{escape(path)} ({bytes_} bytes)" for bytes_, path in sorted(files, reverse=True)[:BIGGEST])
    raise StorageFailed(
        f"cannot keep what is there now: {new_bytes} new bytes, and {reserve} of the {free} bytes free on "
        f"{context.store.space.disk} must stay free; the biggest are {biggest}",
        code="min-free",
        hint="free some space on that disk, or give up the way back with --no-safety",
        details={"new_bytes": new_bytes, "free": free, "min_free": reserve},
    )
