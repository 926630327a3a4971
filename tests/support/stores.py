"""Stores for tests: a clock that ticks, commits in one line, and what has been forced out to the disk."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from blake3 import blake3

from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.operation import CheckpointMade, WorkspaceRegistered
from casnap.model.policy import Policy
from casnap.store.session import WriteSession
from casnap.store.state import State
from casnap.store.store import Commit, Store

WORKSPACE = "w1"
POLICY = Policy(wait=5)


class Ticking:
    """A clock that moves a second forward whenever it is looked at."""

    def __init__(self, start: int = 1_700_000_000 * 10**9) -> None:
        self.time = start

    def now(self) -> int:
        self.time += 10**9
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += int(seconds * 10**9)


def make_store(path: Path) -> Store:
    """A new store with one workspace, at seq 2."""
    store = Store.create(path, clock=Ticking(), policy=POLICY)
    store.commit(
        lambda _, line: WorkspaceRegistered(
            seq=line.seq, time=line.time, prev=line.prev, workspace=WORKSPACE, path="/w"
        )
    )
    return store


def open_store(path: Path) -> Store:
    """A store that exists, opened once more."""
    return Store.open(path, clock=Ticking(), policy=POLICY)


def chunk(data: bytes) -> ObjectKey:
    """The key of a chunk, computed apart from the code under test."""
    return ObjectKey(ObjectKind.CHUNK, blake3(data).digest())


def noise(seed: object, size: int = 200) -> bytes:
    """Bytes that do not compress, the same for the same seed."""
    return random.Random(repr(seed)).randbytes(size)


def commit_chunks(store: Store, *contents: bytes, step: int | None = None, name: str = "") -> bytes:
    """Put chunks and commit a checkpoint with them; the checkpoint's id (of no real checkpoint)."""
    with store.session() as session:
        put(session, *contents)
        return commit_session(store, session, step=step, name=name)


def put(session: WriteSession, *contents: bytes) -> None:
    for data in contents:
        session.put(chunk(data), data)


def commit_session(store: Store, session: WriteSession, *, step: int | None = None, name: str = "") -> bytes:
    made: list[bytes] = []

    def build(state: State, line: Commit) -> CheckpointMade:
        row = state.workspace(WORKSPACE)
        assert row is not None
        number = row.last_step + 1 if step is None else step
        made.append(blake3(f"checkpoint {line.seq} {line.prev}".encode()).digest())
        return CheckpointMade(
            seq=line.seq,
            time=line.time,
            prev=line.prev,
            workspace=WORKSPACE,
            id=made[0].hex(),
            step=number,
            name=name,
            new_bytes=session.new_bytes,
            packs=line.packs,
        )

    store.commit(build, session)
    return made[0]


def segments(path: Path) -> list[Path]:
    return sorted((path / "oplog").glob("*.jsonl"))


def pack_files(path: Path) -> list[Path]:
    return sorted((path / "packs").glob("*.pack"))


def catalogs(path: Path) -> list[Path]:
    return sorted(path.glob("catalog-*.db"))


def remove_catalogs(path: Path) -> None:
    for file in path.glob("catalog-*"):
        file.unlink()


@contextmanager
def watched_syncs(monkeypatch_set: Callable[[object, str, object], None]) -> Iterator[list[str]]:
    """The names of files and directories that were forced out meanwhile, in order."""
    seen: list[str] = []
    real = {"fsync": os.fsync, "fdatasync": os.fdatasync}

    def spy(which: str) -> Callable[[int], None]:
        def sync(fd: int) -> None:
            seen.append(f"{which} {os.path.basename(os.readlink(f'/proc/self/fd/{fd}'))}")
            real[which](fd)

        return sync

    for which in real:
        monkeypatch_set(os, which, spy(which))
    yield seen
