"""From a plan to a changed and verified workspace, and the line that says how it came out."""

from __future__ import annotations

import contextlib
import os
from functools import partial

from casnap.engine.alike import MAY_BE_READ, unlike_paths
from casnap.engine.compare import TreeView, plan_between
from casnap.engine.content import Contents, require_contents
from casnap.engine.context import Context, restarted
from casnap.engine.late import LateWrites
from casnap.engine.safety import SafetyPoint
from casnap.engine.scanning import LiveScan, save_cache, scan_again
from casnap.engine.sinks import MemorySink
from casnap.errors import CasnapError, StorageFailed
from casnap.fs import placing
from casnap.fs.directories import Directories
from casnap.fs.durable import sync_filesystem, sync_names
from casnap.model.operation import AnyOperation, RollbackEnded
from casnap.model.paths import ancestors, split
from casnap.model.plan import Guard, Plan, Protected
from casnap.model.report import Problem
from casnap.model.tree import AnyEntry, Directory, OmitReason, Omitted, is_redacted
from casnap.store.state import State, WorkspaceRow
from casnap.store.store import Commit
from casnap.workspace.layout import lay_out
from casnap.workspace.mounts import border_of
from casnap.workspace.side_files import database_of
from casnap.workspace.staging import Staging
from casnap.workspace.switching import Switch

Problems = tuple[Problem, ...]


class Restoring:
    """One run over one plan. Without a safety ``point`` nothing is recorded.

    ``mirrors`` is the checkpoint whose tree ``target`` is.
    """

    def __init__(
        self,
        context: Context,
        row: WorkspaceRow,
        directories: Directories,
        live: LiveScan,
        plan: Plan,
        target: TreeView,
        *,
        mirrors: bytes = b"",
        point: SafetyPoint | None = None,
    ) -> None:
        self.context = context
        self.row = row
        self.directories = directories
        self.live = live
        self.plan = plan
        self.target = target
        self.mirrors = mirrors
        self.point = point
        self.late = LateWrites(context, directories)

    def run(self) -> tuple[Problems, Problems]:
        """Change the workspace.

        Returns:
            Paths that were left alone, and metadata that could not be set.
        """
        try:
            staging = self._stage()
        except BaseException:  # whatever it was, nothing is changed: the intent must not stay open
            with contextlib.suppress(CasnapError):
                self.end("failed")
            raise
        self._remove_leftovers()
        before = {change.path: change.old for change in self.plan.changes}.get
        whole = self.plan.whole
        switch = Switch(staging, late=self.late.take, before=before, target=self.target.entry, whole=whole)
        outcome = switch.run()
        alone = {problem.path for problem in outcome.left_alone}
        left_alone = tuple(outcome.left_alone) + self._differences(alone, staging.homes.touched)
        self._sync(staging)
        self.end("partial" if left_alone else "done")
        return left_alone, tuple(outcome.problems)

    def _stage(self) -> Staging:
        layout = lay_out(self.plan, self.live.signatures)
        staging = Staging(
            self.directories,
            layout,
            self.live.signatures,
            nonce=self.point.nonce if self.point else os.urandom(6).hex(),
            contents_of=partial(Contents, self.context.store),
            progress=self.context.progress,
            processes=self.context.processes,
            borders=self.live.found.borders,
        )
        require_contents(self.context.store, layout.staged.items())
        staging.stage()
        return staging

    def _remove_leftovers(self) -> None:
        """What an interrupted rollback had staged: its bytes are in the store."""
        for path in self.live.found.leftovers:
            with contextlib.suppress(OSError):
                parent, name = split(path)
                placing.remove_staging(self.directories.fd(parent), name)

    def _differences(self, known: set[bytes], staged: frozenset[bytes]) -> Problems:
        """Look again at what was touched: what differs from the target although nothing said so."""
        plan = self.plan
        names = {path for group in (*plan.old_links, *plan.new_links) for path in group}
        changed = {change.path for change in (*plan.changes, *plan.blocked)}
        sink = MemorySink(self.context.store)
        after = scan_again(
            self.context,
            self.row,
            self.directories,
            sink,
            self.live,
            touched=changed | names | staged,
            stored=self.point is not None,
            aside=frozenset(item.path for item in self.plan.protected if _hides_later(item)),
        )
        paths = None if self.plan.whole else tuple(change.path for change in self.plan.changes)
        rest = plan_between(after.view(sink), self.target, paths)
        planned = {change.path for change in self.plan.changes}
        left = known | {item.path for item in self.plan.protected} | self.live.found.borders
        differing = tuple(
            Problem(change.path, "differs from the target: it changed while the rollback ran")
            for change in rest.visible
            if change.path not in left and (self.plan.whole or change.path in planned) and not is_redacted(change.old)
        )
        differing += self._hidden(rest, known)
        if self.point and self.target.root and after.root.tree == self.target.root.tree:
            # every tree of it is in the store, which those of a scan that only looks need not be
            save_cache(self.context, self.row, after, mirrors=self.mirrors)
        return differing

    def _hidden(self, rest: Plan, known: set[bytes]) -> Problems:
        """What is not as the target has it, of what a rule hides now that did not when the rollback was planned.

        The rule may have come meanwhile, or with the run itself, or it hid all along what was not there yet: only a
        look tells what stands there.
        """
        spared = known | {item.path for item in self.plan.protected}
        hidden = {
            item.path: item.new
            for item in rest.protected
            if item.reason in MAY_BE_READ and spared.isdisjoint((item.path, *ancestors(item.path)))
        }
        wanted: dict[bytes, AnyEntry | None] = {
            path: entry for path, entry in hidden.items() if not isinstance(entry, Omitted)
        }
        for change in self.plan.changes if hidden else ():
            if change.path not in known and not hidden.keys().isdisjoint((change.path, *ancestors(change.path))):
                wanted[change.path] = change.new
        unlike = unlike_paths(wanted.items(), self.directories, self.target)
        why = "differs from the target: it changed while the rollback ran, and a rule hides it"
        return tuple(Problem(path, why) for path in sorted(unlike))

    def _sync(self, staging: Staging) -> None:
        layout = staging.layout
        try:
            if not staging.synced or any(not isinstance(node, Directory) for node in layout.repaired.values()):
                borders = self.live.found.borders
                for border in {border_of(path, borders) for path in (*staging.parents, *layout.repaired)}:
                    sync_filesystem(self.directories.fd(border))
                return
            for path in {*staging.parents, *layout.directories, *layout.repaired, *staging.homes.tops}:
                with contextlib.suppress(OSError):  # a directory that is gone has no names
                    sync_names(self.directories.fd(path))
        except StorageFailed as error:
            raise StorageFailed(
                f"{error.message}; the workspace is changed, but may not survive a power loss"
            ) from error

    def end(self, result: str) -> None:
        """Record how it came out: ``done``, ``partial``, or ``failed`` (nothing was changed)."""
        if self.point is not None:
            restarted(self.context, partial(self._end, self.point, result))
            self.late.close()

    def _end(self, point: SafetyPoint, result: str) -> None:
        with self.context.store.session() as session:
            late = self.late.checkpoint(self.row, point, session) if self.late.found else b""

            def build(state: State, commit: Commit) -> AnyOperation:
                return RollbackEnded(
                    seq=commit.seq,
                    time=commit.time,
                    prev=commit.prev,
                    by=self.context.by,
                    workspace=self.row.id,
                    begin=point.seq,
                    result=result,
                    late=late.hex(),
                    new_bytes=session.new_bytes,
                    packs=commit.packs,
                )

            self.context.store.commit(build, session, last=True)


def _hides_later(item: Protected) -> bool:
    """Whether something may hide the path no more once the target's ignore files are in place."""
    hidden = isinstance(item.reason, Guard) or item.reason is OmitReason.IGNORED
    return hidden or database_of(item.path) != item.path  # protected for its database's sake
