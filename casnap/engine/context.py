"""What every verb needs: the store, the settings, and the outside world as arguments."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct, field

from casnap.errors import NotFound, StorageFailed
from casnap.model.checkpoint import Origin
from casnap.model.clock import Clock, Progress, Silent
from casnap.model.policy import Policy
from casnap.model.report import WorkspaceInfo
from casnap.store.state import State, WorkspaceRow
from casnap.store.store import Store

if TYPE_CHECKING:
    from casnap.workspace.cache import StatCache

GC_LOCK = "gc"
"""The lock that whoever frees space holds."""

RESTARTS = 3

Outcome = TypeVar("Outcome")

Looks = tuple[tuple[int, ...] | None, tuple[int, ...] | None]
"""How the file of a stat cache and the patch beside it looked; None where there was none."""


class Context(Struct, frozen=True):
    """``boot`` identifies the running kernel's boot; ``origin`` says who asks.

    ``policy`` is that of the store; a workspace's own is :meth:`policy_in`. ``policies`` makes it of what the
    workspace has in the store; without it, all have the same. ``caches`` remembers the stat caches of workspaces for
    whoever looks more than once: how their files looked, and what they held. So many ``processes`` may be at work: more
    than one only in a process that is casnap's own, which it may fork.
    """

    store: Store
    policy: Policy
    clock: Clock
    origin: Origin
    boot: str
    progress: Progress = field(default_factory=Silent)
    policies: Callable[[tuple[tuple[str, str], ...]], Policy] | None = None
    caches: dict[str, tuple[Looks, StatCache | None]] = field(default_factory=dict)
    processes: int = 1

    def policy_in(self, row: WorkspaceRow) -> Policy:
        """The policy in a workspace.

        Raises:
            Usage: what is set for it makes no sense.
        """
        return self.policy if self.policies is None or not row.settings else self.policies(row.settings)

    def holder(self, verb: str) -> str:
        """What is written into a lock for others to read."""
        return f"casnap {verb} (process {self.origin.process or 'unknown'} of {self.origin.user or 'unknown'})"

    @property
    def by(self) -> tuple[str, ...]:
        """The origin as an operation's line records it, empty ends cut off."""
        return by_of(self.origin)


def by_of(origin: Origin) -> tuple[str, ...]:
    """Who asks, as an operation's line records it, empty ends cut off."""
    fields = [origin.user, origin.host, origin.process, origin.agent, origin.session, origin.turn, origin.tool]
    while fields and not fields[-1]:
        fields.pop()
    return tuple(fields)


def restarted(context: Context, attempt: Callable[[], Outcome]) -> Outcome:
    """What ``attempt``, which puts and commits, gives; once more when a gc took away what it had relied on.

    After some tries no gc is let in between.
    """
    from casnap.store.session import Swept  # here, since who only looks has no session

    for _ in range(RESTARTS):
        with contextlib.suppress(Swept):
            return attempt()
    with context.store.lock(GC_LOCK, context.holder("a command that a gc got in the way of")):
        return attempt()


def workspace_row(state: State, workspace: WorkspaceInfo) -> WorkspaceRow:
    """The workspace's row; one that was forgotten meanwhile is not found.

    Raises:
        NotFound: the workspace is not registered.
    """
    row = state.workspace(workspace.id)
    if row is None or row.forgotten:
        raise NotFound(
            f"no workspace at {workspace.path}: it is not registered",
            code="no-workspace",
            hint=f"register it with: casnap init -w {workspace.path}",
        )
    return row


@contextlib.contextmanager
def workspace_lock(context: Context, ids: list[str], verb: str, *, required: bool = True) -> Iterator[None]:
    """Hold the locks of workspaces, in the one order that all processes take them.

    Unless ``required``, a store that has no room or permission for locks is done without them.
    """
    with contextlib.ExitStack() as stack:
        try:
            for workspace_id in sorted(set(ids)):
                stack.enter_context(context.store.lock(f"workspace-{workspace_id}", context.holder(verb)))
        except StorageFailed:
            if required:
                raise
        yield
