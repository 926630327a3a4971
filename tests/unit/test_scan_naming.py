"""Chunks of a large file are named while the next are cut: the names are the same, and nothing is left behind."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from casnap import CheckpointManager
from casnap.codec.hashing import ContentHasher
from casnap.model.ids import ObjectKey
from casnap.store.rows import Place
from casnap.store.state import State
from casnap.workspace import naming, reader
from casnap.workspace.naming import named, named_beside


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=60), st.integers(1, 200))
def test_both_ways_name_the_same_in_order(chunks: list[bytes], batch: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(naming, "BATCH_BYTES", batch)
        for name in (named, named_beside):
            whole = ContentHasher()
            assert list(name(iter(chunks), whole)) == [(blake3(data).digest(), data) for data in chunks]
            assert whole.id() == blake3(b"".join(chunks)).digest()


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "casnap-name"]


def test_the_thread_ends_with_the_iterator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(naming, "BATCH_BYTES", 1)
    pairs = named_beside((b"%d" % number for number in range(100)), ContentHasher())
    next(pairs)
    assert threads() == ["casnap-name"]
    pairs.close()
    assert threads() == []


def test_what_goes_wrong_in_reading_or_in_naming_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def torn() -> Iterator[bytes]:
        yield b"a"
        raise OSError("torn")

    with pytest.raises(OSError, match="torn"):
        list(named_beside(torn(), ContentHasher()))

    def fail(data: bytes) -> bytes:
        raise MemoryError(data)

    monkeypatch.setattr(naming, "content_id", fail)
    with pytest.raises(MemoryError, match="a"):
        list(named_beside([b"a"], ContentHasher()))
    assert threads() == []


def test_a_large_file_is_the_same_however_its_chunks_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = random.Random(1).randbytes(3 << 20)
    digests = set()
    for bound in (1, 1 << 40):
        monkeypatch.setattr(reader, "NAMED_BESIDE", bound)
        workspace = tmp_path / f"workspace-{bound}"
        workspace.mkdir()
        (workspace / "large").write_bytes(data)
        manager = CheckpointManager(workspace, store=tmp_path / f"store-{bound}")
        digests.add(manager.create().digest)
        manager.restore_to(tmp_path / f"there-{bound}")
        assert (tmp_path / f"there-{bound}/large").read_bytes() == data
    assert len(digests) == 1


def test_chunks_that_are_there_are_looked_up_many_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    data = random.Random(1).randbytes(12 << 20)  # some 180 chunks
    (workspace / "large").write_bytes(data)
    CheckpointManager(workspace, store=tmp_path / "store").create()
    (workspace / "large").write_bytes(data[:-1] + b"!")
    questions: list[int] = []
    ask = State.places

    def counted(self: State, keys: Iterable[ObjectKey]) -> dict[ObjectKey, list[Place]]:
        keys = list(keys)
        questions.append(len(keys))
        return ask(self, keys)

    monkeypatch.setattr(State, "places", counted)
    assert CheckpointManager(workspace, store=tmp_path / "store").create().new_bytes < 1 << 20
    assert sum(questions) > 100
    assert len(questions) < 12
