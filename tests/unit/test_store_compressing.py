"""Compressing beside what goes on: the same bytes in the same order, however many threads there are."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from casnap.codec.compression import Encoding, compress
from casnap.codec.records import RecordKind
from casnap.errors import Damage, StorageFailed
from casnap.model.ids import ObjectKey
from casnap.store import compressing
from casnap.store.compressing import BATCH, Compressing
from casnap.store.store import Store
from support.stores import chunk, commit_session, make_store, noise, open_store, pack_files, put


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    assert _threads() == []


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make_store(tmp_path / "store")


def _threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "casnap-compress"]


def _contents(count: int) -> list[bytes]:
    """Some that shrink and some that do not, all different, one of them empty."""
    rng = random.Random(count)
    texts = [b"%d " % number * rng.randrange(200) for number in range(count)]
    return [text if number % 3 else rng.randbytes(len(text)) + b"%d" % number for number, text in enumerate(texts)]


def _records(store: Store) -> list[tuple[RecordKind, Encoding, bytes]]:
    """Every object of a store's only pack, in its order."""
    (pack,) = pack_files(store.path)
    records = store.parts.reader.files.records(pack.stem, 0, pack.stat().st_size)
    return [(r.header.kind, r.header.encoding, r.payload) for r in records if r.header.kind.is_object]


def test_objects_come_back_in_their_order_as_if_each_were_compressed_alone() -> None:
    work = Compressing(3)
    contents = _contents(3 * BATCH + 5)
    for data in contents:
        assert not work.add(chunk(data), data, None)
    assert _threads() == ["casnap-compress"]
    assert list(work.rest()) == [((chunk(data), data, None), compress(data, 3)) for data in contents]
    assert list(work.rest()) == []
    work.close()


def test_less_than_a_batch_begins_no_thread() -> None:
    work = Compressing(3)
    for data in _contents(BATCH - 1):
        work.add(chunk(data), data, None)
    assert _threads() == []
    assert len(list(work.rest())) == BATCH - 1
    assert _threads() == []
    work.close()


def test_what_the_thread_has_not_begun_is_compressed_by_who_waits_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()
    by_whom: list[str] = []

    def watched(batch: list[bytes], level: int, threads: int) -> list[tuple[Encoding, bytes]]:
        by_whom.append(threading.current_thread().name)
        if by_whom[-1] == "casnap-compress":
            begun.set()
            assert go_on.wait(10)
        elif len(by_whom) == 3:
            go_on.set()
        return [compress(data, level) for data in batch]

    monkeypatch.setattr(compressing, "compress_all", watched)
    work = Compressing(3)
    contents = _contents(3 * BATCH)
    for data in contents:
        work.add(chunk(data), data, None)
    assert begun.wait(10)  # the thread is at the first of three
    assert [data for (_, data, _), _ in work.rest()] == contents
    assert by_whom == ["casnap-compress", "MainThread", "MainThread"]
    work.close()


def test_who_gives_more_than_may_be_under_way_is_told_to_take_some_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compressing, "BATCH_BYTES", 1000)
    monkeypatch.setattr(compressing, "IN_FLIGHT", 2000)
    work = Compressing(3)
    contents = [noise(number, 500) for number in range(6)]
    told = [work.add(chunk(data), data, None) for data in contents]
    assert told == [False, False, False, False, False, True]  # three batches of 1000 bytes
    assert [waiting[1] for waiting, _ in work.ready()] == contents[:2]
    assert not work.add(chunk(b""), b"", None)
    work.close()


def test_what_goes_wrong_in_the_thread_is_raised_where_its_result_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(batch: list[bytes], level: int, threads: int) -> None:
        raise MemoryError

    monkeypatch.setattr(compressing, "compress_all", fail)
    work = Compressing(3)
    for data in _contents(BATCH):
        work.add(chunk(data), data, None)
    with pytest.raises(MemoryError):
        list(work.rest())
    work.close()


def test_a_pack_has_its_objects_in_the_order_in_which_they_were_put(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = _contents(2 * BATCH + 3)
    with store.session() as session:
        put(session, *contents)
        commit_session(store, session)
    monkeypatch.setattr(compressing, "BATCH", 1 << 30)  # all of it by whoever asks, none by the thread
    alone = make_store(tmp_path / "alone")
    with alone.session() as session:
        put(session, *contents)
        commit_session(alone, session)
    expected = [(RecordKind.CHUNK, *compress(data, 3)) for data in contents]
    assert _records(store)[: len(expected)] == _records(alone)[: len(expected)] == expected


def test_an_object_that_is_under_way_is_there_is_read_and_is_not_written_twice(store: Store) -> None:
    contents = _contents(BATCH + 1)
    last, key = contents[-1], chunk(contents[-1])
    with store.session() as session:
        put(session, *contents, *contents)
        assert session.present([key, chunk(b"else")]) == {key}
        assert session.standing([key]) == {key}
        assert session.read(key) == last
        put(session, *contents)
        commit_session(store, session)
    assert [payload for kind, _, payload in _records(store)].count(compress(last, 3)[1]) == 1
    assert open_store(store.path).read(key) == last


def test_a_disk_that_fails_while_a_batch_is_appended_leaves_nothing_of_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_before = noise(0, 5000)
    with store.session() as session:
        put(session, put_before)
        commit_session(store, session)
    (pack,) = pack_files(store.path)
    size = pack.stat().st_size

    def full(fd: int, data: memoryview, offset: int) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compressing, "IN_FLIGHT", 1 << 20)
    with store.session() as session:
        with monkeypatch.context() as patch:
            patch.setattr("os.pwrite", full)
            with pytest.raises(StorageFailed, match="No space left"):
                put(session, *(noise(number, 100_000) for number in range(100)))
        with pytest.raises(StorageFailed, match="No space left"):
            session.finish()
    assert pack.stat().st_size == size


def test_an_interrupted_session_ends_its_thread_and_has_committed_nothing(store: Store) -> None:
    contents = _contents(2 * BATCH)
    key = chunk(contents[0])
    with pytest.raises(KeyboardInterrupt), store.session() as session:
        put(session, *contents)
        raise KeyboardInterrupt
    assert _threads() == []
    assert not _is_there(store, key)
    with store.session() as session:
        put(session, *contents)
        commit_session(store, session)
    assert _is_there(store, key)


def _is_there(store: Store, key: ObjectKey) -> bool:
    try:
        open_store(store.path).read(key)
    except Damage:
        return False
    return True
