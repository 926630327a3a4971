"""``import``: the entries of another system's history as checkpoints."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from casnap.codec.checkpoints import encode_checkpoint
from casnap.engine.checkpoint import as_text, automatic_name, described, since_head
from casnap.engine.context import GC_LOCK, Context, workspace_lock, workspace_row
from casnap.engine.history import load_object, noun_of
from casnap.engine.importing.checksums import Checksums
from casnap.engine.importing.history import Entry, History
from casnap.engine.importing.source import Fault
from casnap.engine.scanning import LiveScan
from casnap.engine.sinks import MemorySink
from casnap.errors import Damage, Refused, StorageFailed, Usage
from casnap.fs.directories import Directories
from casnap.model.checkpoint import Checkpoint, CheckpointObject, Origin
from casnap.model.ids import ObjectKey, short
from casnap.model.objects import ObjectSink
from casnap.model.operation import AnyOperation, CheckpointMade
from casnap.model.paths import escape, join
from casnap.model.policy import Selection
from casnap.model.report import ImportReport, Problem, WorkspaceInfo
from casnap.model.revision import normalise_name
from casnap.model.tree import NANOSECONDS
from casnap.store.session import WriteSession
from casnap.store.state import CheckpointRow, State, WorkspaceRow
from casnap.store.store import Commit
from casnap.workspace.ahead import ReadingAhead
from casnap.workspace.omissions import Exclusions
from casnap.workspace.scan import Scan, scan

KEY = "imported"
"""The member of a checkpoint's metadata that says what it was in the other system."""

EVERYTHING = Selection(exclude=b"!*\n", exclude_caches=False)
"""Outranks every ignore file: a snapshot is what it holds."""

Identity = tuple[str, str]
"""What an entry is recognised by: its id and its time, as the other system wrote them."""


def import_history(
    context: Context,
    workspace: WorkspaceInfo,
    history: History,
    *,
    made: Callable[[Checkpoint, float], None] = lambda checkpoint, seconds: None,
) -> ImportReport:
    """Make a checkpoint of each entry that is not one yet.

    Each is committed by itself, and ``made`` is told of it and of the seconds that it took: what ends the import
    early leaves whole checkpoints, and the next import goes on. The history is only read.

    Raises:
        StorageFailed: the store's disk is too full, or refuses.
    """
    # No gc beside it: what an entry relies on would have to be read from the other system once more.
    with workspace_lock(context, [workspace.id], "import"), context.store.lock(GC_LOCK, context.holder("import")):
        return _Import(context, workspace, history, made).run()


class _Import:
    """One import, under the workspace's lock."""

    def __init__(
        self, context: Context, workspace: WorkspaceInfo, history: History, made: Callable[[Checkpoint, float], None]
    ) -> None:
        self._context = context
        self._workspace = workspace
        self._history = history
        self._made = made
        self._findings = history.findings
        self._checksums = Checksums()
        self._imported: list[bytes] = []
        self._skipped: list[bytes] = []
        self._ids: dict[str, bytes] = {}
        self._last = b""

    def run(self) -> ImportReport:
        state = self._context.store.state()
        row = workspace_row(state, self._workspace)
        known = _imported(self._context, state, row, self._history.tool)
        for entry in self._history.entries():
            if (before := known.get((entry.id, entry.said))) is not None:
                self._skip(entry, before)
            else:
                self._adopt(entry, keeps_head=bool(row.head))
        state = self._context.store.state()
        if self._imported and row.head:
            self._findings.notes.append("head stays where it was")
        elif self._imported and not workspace_row(state, self._workspace).head:
            self._findings.notes.append("there is no head, since the entry that it was is not imported")
        return ImportReport(
            system=self._history.system,
            imported=tuple(noun_of(self._context, state, id) for id in self._imported),
            skipped=tuple(noun_of(self._context, state, id) for id in self._skipped),
            problems=tuple(self._findings.problems),
            notes=tuple(self._findings.notes),
        )

    def _skip(self, entry: Entry, row: CheckpointRow) -> None:
        self._skipped.append(row.id)
        self._ids[entry.id] = self._last = row.id
        if row.deleted:
            self._note(entry, f"it was imported and then deleted: bring it back with casnap undelete {short(row.id)}")

    def _adopt(self, entry: Entry, *, keeps_head: bool) -> None:
        """Make a checkpoint of an entry, or say why there is none."""
        began = self._context.clock.now()
        try:
            directories = self._history.source.opened(entry.place)
        except Fault as fault:
            self._findings.problems.append(fault.problem)
            return
        with directories, self._context.store.session() as session:
            live = self._look(directories, session)
            sound = self._tell(entry, live, session) and entry.sound
            try:
                key, data = self._encoded(entry, live, session, sound=sound)
            except (Usage, Refused) as error:
                self._findings.problems.append(Problem(entry.place, f"it is not imported: {error.message}"))
                return
            if (row := self._context.store.state().checkpoint(key.id)) is not None:
                self._skip(entry, row)  # its object could not be read, else it had been recognised
                return
            session.put(key, data)
            self._commit(entry, live, key.id, session, aside=keeps_head or entry.id != self._history.head)
        self._imported.append(key.id)
        self._ids[entry.id] = self._last = key.id
        noun = noun_of(self._context, self._context.store.state(), key.id)
        self._made(noun, (self._context.clock.now() - began) / NANOSECONDS)

    def _look(self, directories: Directories, session: WriteSession) -> LiveScan:
        told: list[ReadingAhead] = []

        def guard(ahead: ReadingAhead) -> None:
            told.append(ahead)
            if not self._fits(ahead.total_bytes):  # most of it may be stored already: that is looked at first
                sink = MemorySink(self._context.store)
                self._scan(directories, sink, lambda ahead: None)
                self._require_room(sink.missing_bytes)

        return LiveScan(self._scan(directories, session, guard), told[0], news=False)

    def _scan(self, directories: Directories, sink: ObjectSink, before_reading: Callable[[ReadingAhead], None]) -> Scan:
        context = self._context
        return scan(
            directories,
            sink=sink,
            cache=None,
            clock=context.clock,
            progress=context.progress,
            exclusions=Exclusions.of(context.store.path),
            selection=EVERYTHING,
            nonces=frozenset(),
            parameters=context.store.format.parameters,
            before_reading=before_reading,
        )

    def _fits(self, new_bytes: int) -> bool:
        free, size = self._context.store.space.free()
        return free - new_bytes >= self._context.policy.reserve(size)

    def _require_room(self, new_bytes: int) -> None:
        if self._fits(new_bytes):
            return
        space = self._context.store.space
        free, size = space.free()
        reserve = self._context.policy.reserve(size)
        raise StorageFailed(
            f"cannot import: {new_bytes} bytes are new, and {reserve} of the {free} bytes free on {space.disk} "
            f"must stay free",
            code="min-free",
            hint="free some space on that disk, and import again: it goes on where it stopped",
            details={"new_bytes": new_bytes, "free": free, "min_free": reserve},
        )

    def _tell(self, entry: Entry, live: LiveScan, session: WriteSession) -> bool:
        """Say what is wrong with the files of an entry; whether nothing is."""
        problems = [Problem(join(entry.place, one.path), one.message) for one in live.problems]
        if entry.sums is not None:
            for fault in self._checksums.faults(live.view(session), entry.sums):
                path = join(entry.place, fault.path)
                problems.append(Problem(path, f"step {entry.step}: {escape(fault.path)} {fault.message}"))
        self._findings.problems.extend(problems)
        if by_rule := {why: count for why, count in live.left_out.items() if why != "unreadable"}:
            left_out = ", ".join(f"{count} {why}" for why, count in sorted(by_rule.items()))
            self._note(entry, f"left out: {left_out}")
        return not problems

    def _encoded(self, entry: Entry, live: LiveScan, session: WriteSession, *, sound: bool) -> tuple[ObjectKey, bytes]:
        return encode_checkpoint(
            CheckpointObject(
                workspace=self._workspace.id,
                root=live.root,
                parent=self._parent(entry),
                message=as_text(entry.message),
                metadata=self._metadata(entry, sound=sound),
                scan_started=entry.created,
                scan_ended=entry.created,
                origin=Origin(user=entry.user, host=entry.host, tool=self._history.tool),
                git=None,
                rules=self._rules(live, session),
                links=live.links,
            )
        )

    def _parent(self, entry: Entry) -> bytes:
        if self._history.linear:
            return self._last
        return b"" if entry.parent is None else self._ids.get(entry.parent, b"")

    def _rules(self, live: LiveScan, session: WriteSession) -> tuple[str, ...]:
        """Nothing was ignored, but what the other system never looks at must not count as removed."""
        view = live.view(session)
        unseen = [name for name in self._history.uncaptured if view.entry(name) is None]
        return (*live.found.rules, *(f"exclude /{escape(name)}" for name in unseen))

    def _metadata(self, entry: Entry, *, sound: bool) -> str:
        """The system's own metadata, and what the entry was there; what JSON cannot say is left out with a note."""
        facts: dict[str, Any] = {"from": self._history.system, "id": entry.id, "created": entry.said, **entry.facts}
        if entry.step is not None:
            facts["step"] = entry.step
        if not sound or entry.sums is not None:
            facts["sound"] = sound
        own = entry.metadata if isinstance(entry.metadata, dict) else {}
        if entry.metadata is not None and not isinstance(entry.metadata, dict):
            facts["metadata"] = entry.metadata
        if KEY in own:
            facts[KEY] = own[KEY]
        try:
            return described({**own, KEY: facts})
        except Usage as error:
            self._note(entry, f"its metadata cannot be kept: {error.message}")
            facts.pop("metadata", None)
            facts.pop(KEY, None)
            return described({KEY: facts})

    def _commit(self, entry: Entry, live: LiveScan, id: bytes, session: WriteSession, *, aside: bool) -> None:
        context = self._context
        row = workspace_row(context.store.state(), self._workspace)
        counts = since_head(context, replace(row, head=self._parent(entry)), live, session).counts
        name = self._name(context.store.state(), row, entry)

        def build(state: State, commit: Commit) -> AnyOperation:
            last = (state.workspace(row.id) or row).last_step
            step = entry.step if entry.step is not None and entry.step > last else last + 1
            return CheckpointMade(
                seq=commit.seq,
                time=commit.time,
                prev=commit.prev,
                by=context.by,
                workspace=row.id,
                id=id.hex(),
                step=step,
                name=name or automatic_name(entry.created, step),
                automatic=not name,
                pinned=entry.pinned,
                aside=aside,
                parent=self._parent(entry).hex(),
                counts=(counts.added, counts.changed, counts.removed),
                skipped=len(live.skipped),
                new_bytes=session.new_bytes,
                packs=commit.packs,
            )

        context.store.commit(build, session)

    def _name(self, state: State, row: WorkspaceRow, entry: Entry) -> str:
        """The name that an entry's checkpoint gets; empty for an automatic one."""
        if not entry.name:
            return ""
        try:
            name = normalise_name(entry.name)
        except Usage as error:
            self._note(entry, error.message)
            return ""
        if (taken := state.named(row.id, name)) is None:
            return name
        self._note(entry, f"step {taken.step} has the name {name} already")
        return ""

    def _note(self, entry: Entry, text: str) -> None:
        what = entry.id if entry.step is None else f"step {entry.step}"
        self._findings.notes.append(f"{what}: {text}")


def _imported(context: Context, state: State, row: WorkspaceRow, tool: str) -> dict[Identity, CheckpointRow]:
    """The checkpoints that earlier imports made, live ones before deleted ones."""
    found: dict[Identity, CheckpointRow] = {}
    for checkpoint in state.history(row.id):
        if checkpoint.safety:
            continue
        try:
            recorded = load_object(context, checkpoint.id)
        except Damage:
            continue
        facts = json.loads(recorded.metadata).get(KEY) if recorded.origin.tool == tool else None
        if not isinstance(facts, dict):
            continue
        identity = (str(facts.get("id")), str(facts.get("created")))
        if identity not in found or found[identity].deleted:
            found[identity] = checkpoint
    return found
