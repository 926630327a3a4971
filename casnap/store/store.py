"""The store: objects, and what happened to them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from casnap.errors import Busy, CasnapError, Damage, StorageFailed
from casnap.fs.appending import Owner, make_file
from casnap.fs.locks import locked
from casnap.model.ids import ObjectKey
from casnap.store import creation, media, signals
from casnap.store.cache_directory import CacheDirectory
from casnap.store.follower import Follower
from casnap.store.format import Format
from casnap.store.identity import Identity
from casnap.store.layout import Layout
from casnap.store.objects import ObjectReader
from casnap.store.oplog import Oplog
from casnap.store.packs import PackFiles
from casnap.store.parts import Parts
from casnap.store.rows import START, Mark, PackRow, Place
from casnap.store.space import Space
from casnap.store.state import State

if TYPE_CHECKING:
    from casnap.model.clock import Clock
    from casnap.model.operation import AnyOperation, PackRange
    from casnap.model.policy import Policy
    from casnap.store.session import WriteSession

COMMIT_LOCK = "commit"


class Commit(Struct, frozen=True):
    """What the line that is about to be written must hold, whatever it says."""

    seq: int
    time: int
    prev: str
    packs: tuple[PackRange, ...]


class Store:
    """One store, open (ObjectSource). Several threads may use it one at a time, several processes at once."""

    def __init__(
        self,
        layout: Layout,
        store_format: Format,
        owner: Owner | None,
        obstacle: str | None,
        clock: Clock,
        policy: Policy,
    ) -> None:
        """Use :meth:`open` or :meth:`create`."""
        self.path = layout.root
        self.format = store_format
        self._layout = layout
        self._owner = owner
        self.obstacle = obstacle
        self.identity = Identity(layout, store_format.id)
        self._clock = clock
        self._policy = policy
        self._holder = "another command"
        self._files = PackFiles(layout)
        self._reader = ObjectReader(self._files, self._places)
        self._oplog = Oplog(layout, owner)
        self._follower = Follower(layout, self._oplog, self._reader.committed, owner, cut=self._files.close)
        self._state = State(self._follower)
        self.space = Space(layout, owner)
        self.cache = CacheDirectory(layout.cache, owner)

    @classmethod
    def create(cls, path: Path, *, clock: Clock, policy: Policy, explicit: bool = False, user: str = "") -> Store:
        """Make a store, or open the one that is there; many processes may do so at once. ``user`` is who asks.

        Raises:
            Refused: the directory holds something else, or belongs to another user.
            StorageFailed: it cannot be written there.
        """
        creation.create(Layout(path), clock=clock, policy=policy, explicit=explicit, user=user)
        return cls.open(path, clock=clock, policy=policy, explicit=explicit)

    @classmethod
    def open(cls, path: Path, *, clock: Clock, policy: Policy, explicit: bool = False) -> Store:
        """Open a store; nothing needs to be written for that. ``explicit`` lets root use another user's.

        Raises:
            NoStore: there is none.
            TooNew: it, or a line of its operation log, is of a newer format.
            Refused: it belongs to another user.
            Damage: its format file or its operation log cannot be read.
            StorageFailed: the disk refuses.
        """
        layout = Layout(path)
        owner = creation.check_owner(path, explicit=explicit)
        with creation.mendable():
            store_format = creation.read_format(layout)
            obstacle = store_format.obstacle or media.obstacle(path, layout.format)
            store = cls(layout, store_format, owner, obstacle, clock, policy)
            store._follower.load()
            if not store._state.seq:  # its first line was written before its format file
                raise Damage(f"cannot open store {path}: its operation log is gone")
        if store.writable and store._follower.lacks_catalog:
            store._make_catalog()
        return store

    @property
    def id(self) -> str:
        """32 hexadecimal digits, the store's own."""
        return self.format.id

    @property
    def writable(self) -> bool:
        """Whether nothing speaks against writing: not the medium, the permissions, or an unknown feature."""
        return self.obstacle is None

    @property
    def catalog(self) -> Path | None:
        """The catalog in use; None where none can be believed."""
        return self._follower.catalog_path

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should hear about the store's own files, in sentences."""
        return tuple(_notes(self._follower, self._oplog))

    def state(self) -> State:
        """The state as of now, the same object each time; it moves when a session opens a pack or meets damage, too."""
        self._follower.catch_up()
        return self._state

    def read(self, key: ObjectKey) -> bytes:
        """The object's bytes, checked against its name; of several records of it, from the newest that is good.

        Raises:
            Damage: it is missing, or no stored copy matches its name.
        """
        try:
            return self._reader.load_any(key, self._places(key))
        except Damage:  # a pack may have been removed, or the object healed, since the state was looked at
            self._follower.catch_up()
        return self._reader.load_any(key, self._places(key))

    def read_many(self, keys: Iterable[ObjectKey]) -> dict[ObjectKey, bytes]:
        """The bytes of those of ``keys`` whose newest record is good, read in the order in which they lie.

        Of the others :meth:`read` gives the bytes, or says what is wrong with them.
        """
        return self._reader.load_many(self._state.places(keys))

    def present(self, keys: Iterable[ObjectKey]) -> set[ObjectKey]:
        """Those of ``keys`` that the store has."""
        return self._state.present(keys)

    @contextlib.contextmanager
    def lock(self, name: str, holder: str) -> Iterator[None]:
        """Hold one of the store's locks; ``holder`` is what others are told who have to wait.

        Raises:
            Busy: it was not free within ``policy.wait``.
            StorageFailed: the store cannot be written.
        """
        self._holder = holder
        with self._locked(name, holder, self._policy.wait):
            yield

    @property
    def parts(self) -> Parts:
        """What it is made of, for other modules of this room."""
        return Parts(
            self._layout, self._owner, self.identity, self._policy.compression, self._state, self._reader, self._look
        )

    def sweep(self) -> int:
        """Take away what killed commands left behind, the bytes of which are given, and what the catalog need not know.

        Raises:
            Busy: the commit lock was not free in time.
        """
        from casnap.store import orphans

        with self._locked(COMMIT_LOCK, self._holder, self._policy.wait):
            self._catch_up_locked()
            freed = orphans.sweep_orphans(self.parts)
            self._follower.flush()
            return freed

    @contextlib.contextmanager
    def session(self) -> Iterator[WriteSession]:
        """Put objects; hand the session to :meth:`commit` before the with block ends.

        Raises:
            Damage: committed lines of the operation log are missing.
            StorageFailed: the store cannot be written.
        """
        from casnap.store.session import WriteSession

        self._check_writable()
        _require_log(self.path, self._follower, self._oplog)
        session = WriteSession(self.parts, source=self)
        try:
            yield session
        finally:
            session.close()

    def commit(
        self,
        build: Callable[[State, Commit], AnyOperation],
        session: WriteSession | None = None,
        *,
        packs: tuple[PackRange, ...] = (),
        last: bool = False,
    ) -> State:
        """Write one operation, and with it what ``session`` has put or ``packs`` say; the state after it.

        ``build`` is called under the commit lock with the caught-up state and makes the operation, or raises:
        then nothing is committed. Signals wait while the line is written; after the ``last`` commit of a
        verb they wait until that has been reported (:func:`casnap.store.signals.reported`).

        Raises:
            Busy: the commit lock was not free in time.
            Swept: a gc took away what a checkpoint in the session builds on; nothing was committed.
            Damage: the operation log is damaged.
            StorageFailed: the disk refused; after a failed sync the operation may or may not have happened.
        """
        self._check_writable()
        packs = session.finish() if session is not None else packs
        with self._locked(COMMIT_LOCK, self._holder, self._policy.wait):
            self._catch_up_locked()
            if session is not None:
                session.require_whole()
            commit = Commit(self._state.seq + 1, self._clock.now(), self._state.last_hash, packs)
            operation = build(self._state, commit)
            line, line_hash = _encode(operation, commit)
            with signals.held(until_reported=last):
                segment, offset = self._oplog.append(line)
                # It has happened; whatever goes wrong from here on must not hide that.
                with contextlib.suppress(CasnapError):
                    self._follower.accept(operation, Mark(commit.seq, line_hash, segment, offset))
                if session is not None:
                    session.confirm()
        return self._state

    def operations(self) -> Iterator[AnyOperation]:
        """Every operation there has been, oldest first.

        Raises:
            Damage: the operation log cannot be read.
        """
        return (operation for operation, _ in self._oplog.lines(START))

    def close(self) -> None:
        """Let go of all files."""
        self._files.close()
        self._follower.close()

    def _places(self, key: ObjectKey) -> list[Place]:
        return self._state.places([key]).get(key, [])

    def _look(self) -> tuple[dict[str, PackRow], bool]:
        self._follower.catch_up()
        return {row.id: row for row in self._state.packs()}, not (self._oplog.tail.bad or self._oplog.is_short)

    def _check_writable(self) -> None:
        self.identity.require()
        if self.obstacle is not None:
            raise StorageFailed(f"cannot write to store {self.path}: {self.obstacle}")

    @contextlib.contextmanager
    def _locked(self, name: str, holder: str, wait: float) -> Iterator[None]:
        self._check_writable()
        path = self._layout.lock(name)
        if self._owner is not None:
            make_file(path, self._owner)
        with locked(path, wait=wait, holder=holder):
            self.identity.require()  # who held it may have removed the store, and the lock with it
            yield

    def _catch_up_locked(self) -> None:
        """Catch up, make sure of what others left, and clear away a torn last line."""
        self._follower.catch_up()
        _require_log(self.path, self._follower, self._oplog)
        self._oplog.settle()
        self._oplog.repair()

    def _make_catalog(self) -> None:
        """Make a catalog from the operation log now, unless somebody is committing; nothing depends on it."""
        with contextlib.suppress(Busy, StorageFailed), self._locked(COMMIT_LOCK, self._holder, 0):
            self._follower.load()
            if self._follower.lacks_catalog:
                self._follower.flush()


def _require_log(path: Path, follower: Follower, oplog: Oplog) -> None:
    """See that nothing is missing that was committed: it would be taken for what a killed process left."""
    fault = None
    if (seq := follower.forgotten_line) is not None:
        fault = f"operation {seq} is damaged or lost in its operation log"
    elif oplog.is_short:
        fault = "committed lines are missing at the end of its operation log"
    if fault is not None:
        raise Damage(f"cannot write to store {path}: {fault}", hint=creation.CHECK)


def _notes(follower: Follower, oplog: Oplog) -> Iterator[str]:
    yield from follower.notes
    yield from oplog.notes
    if follower.forgotten_line:
        yield "the catalog has seen operations that the operation log has lost: run `casnap check`"
    elif oplog.is_short:
        yield "committed lines are missing at the end of the operation log: run `casnap check`"
    elif oplog.tail.bad:
        yield "the last line of the operation log is not whole: what it says has not happened"


def _encode(operation: AnyOperation, commit: Commit) -> tuple[bytes, str]:
    if (operation.seq, operation.prev, getattr(operation, "packs", ())) != (commit.seq, commit.prev, commit.packs):
        raise ValueError("an operation must hold the seq, prev and packs that it was given")
    from casnap.codec.lines import encode_line  # here, since readers write none

    return encode_line(operation)
