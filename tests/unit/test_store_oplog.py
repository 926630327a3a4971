"""The operation log: a torn last line is nobody's, anything else that is wrong is damage."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from casnap.errors import Damage, StorageFailed, TooNew
from casnap.store.store import Store
from support.stores import (
    WORKSPACE,
    chunk,
    commit_chunks,
    make_store,
    noise,
    open_store,
    pack_files,
    remove_catalogs,
    segments,
)


def _names(store: Store) -> list[str]:
    return [row.name for row in store.state().history(WORKSPACE)]


def _torn(path: Path) -> list[Path]:
    return sorted((path / "oplog").glob("*.torn-*"))


def test_a_last_line_torn_at_any_byte_is_moved_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for sync in ("fsync", "fdatasync"):  # a thousand of them would take a minute, and no power is lost here
        monkeypatch.setattr(os, sync, lambda _: None)
    path = tmp_path / "store"
    store = make_store(path)
    commit_chunks(store, b"kept", name="kept")
    whole = segments(path)[0].stat().st_size
    commit_chunks(store, b"torn", name="torn")
    store.close()
    [segment] = segments(path)
    data = segment.read_bytes()
    for cut in range(whole, len(data)):
        os.truncate(segment, cut)
        forget_note(path)
        store = open_store(path)
        assert _names(store) == ["kept"]
        assert segment.stat().st_size == cut  # a look changes nothing
        commit_chunks(store, b"kept", name="next")
        assert _names(open_store(path)) == ["next", "kept"]
        assert [file.read_bytes() for file in _torn(path)] == ([data[whole:cut]] if cut > whole else [])
        for file in _torn(path):
            file.unlink()
        segment.write_bytes(data)


def test_a_last_line_that_is_invalid_in_any_byte_is_moved_aside(tmp_path: Path) -> None:
    path = tmp_path / "store"
    store = make_store(path)
    commit_chunks(store, b"kept", name="kept")
    [segment] = segments(path)
    whole = segment.stat().st_size
    commit_chunks(store, name="bad")
    store.close()
    data = segment.read_bytes()
    forget_note(path)
    for position in range(whole, len(data), 7):
        segment.write_bytes(data[:position] + bytes([data[position] ^ 0x20]) + data[position + 1 :])
        assert _names(open_store(path)) == ["kept"]
    segment.write_bytes(data[:whole] + bytes(len(data) - whole))
    store = open_store(path)
    commit_chunks(store, name="next")
    assert _names(store) == ["next", "kept"]


def test_zeros_after_the_last_line_are_moved_aside(tmp_path: Path) -> None:
    path = tmp_path / "store"
    store = make_store(path)
    with open(segments(path)[0], "ab") as segment:
        segment.write(bytes(5000))
    commit_chunks(store, name="next")
    assert _names(open_store(path)) == ["next"]
    assert [file.read_bytes() for file in _torn(path)] == [bytes(5000)]


def test_a_line_that_does_not_continue_the_chain_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "store"
    store = make_store(path)
    commit_chunks(store, name="one")
    line = segments(path)[0].read_bytes().splitlines(keepends=True)[-1]
    with open(segments(path)[0], "ab") as segment:
        segment.write(line)
    assert _names(open_store(path)) == ["one"]


@pytest.mark.parametrize("which", [0, 1, 2])
def test_an_invalid_line_that_is_not_the_last_is_damage(tmp_path: Path, which: int) -> None:
    path = tmp_path / "store"
    store = make_store(path)
    commit_chunks(store)
    commit_chunks(store)
    store.close()
    remove_catalogs(path)
    [segment] = segments(path)
    lines = segment.read_bytes().splitlines(keepends=True)
    lines[which] = lines[which].replace(b'"seq":', b'"sEq":')
    segment.write_bytes(b"".join(lines))
    with pytest.raises(Damage, match=f"byte {sum(map(len, lines[:which]))} of 0000000001.jsonl"):
        open_store(path)


def test_a_bad_end_of_a_segment_that_has_a_successor_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("casnap.store.oplog.SEGMENT_SIZE", 1)
    path = tmp_path / "store"
    commit_chunks(make_store(path))
    remove_catalogs(path)
    os.truncate(segments(path)[1], 10)
    with pytest.raises(Damage, match="0000000002"):
        open_store(path)


def test_a_missing_segment_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("casnap.store.oplog.SEGMENT_SIZE", 1)
    path = tmp_path / "store"
    store = make_store(path)
    for _ in range(3):
        commit_chunks(store)
    store.close()
    remove_catalogs(path)
    segments(path)[1].unlink()
    with pytest.raises(Damage, match="segment from 1 on is missing"):
        open_store(path)


def test_a_log_in_many_segments_reads_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("casnap.store.oplog.SEGMENT_SIZE", 500)
    path = tmp_path / "store"
    store = make_store(path)
    for number in range(9):
        commit_chunks(store, name=f"c{number}")
    assert len(segments(path)) > 3
    remove_catalogs(path)
    assert _names(open_store(path)) == [f"c{number}" for number in reversed(range(9))]


@pytest.mark.parametrize("torn", [b"", b'{"op":"che'])
def test_a_segment_that_was_only_begun_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torn: bytes
) -> None:
    path = tmp_path / "store"
    store = make_store(path)
    monkeypatch.setattr("casnap.store.oplog.SEGMENT_SIZE", 1)
    (path / "oplog/0000000002.jsonl").write_bytes(torn)
    commit_chunks(store, name="one")
    assert _names(open_store(path)) == ["one"]
    assert segments(path)[1].read_bytes().count(b"\n") == 1


def test_an_unknown_operation_is_too_new_and_not_damage(tmp_path: Path) -> None:
    import hashlib

    path = tmp_path / "store"
    store = make_store(path)
    state = store.state()
    body = json.dumps({"op": "teleport", "seq": 3, "time": 1, "prev": state.last_hash}, separators=(",", ":")).encode()[
        :-1
    ]
    line = body + b',"hash":"' + hashlib.sha256(body).hexdigest().encode() + b'"}\n'
    with open(segments(path)[0], "ab") as segment:
        segment.write(line)
    with pytest.raises(TooNew):
        open_store(path)


def test_a_committed_last_line_that_is_damaged_is_not_mistaken_for_a_torn_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("casnap.store.follower.LONG_TAIL", 0)  # the catalog sees each line at once
    path = tmp_path / "store"
    store = make_store(path)
    commit_chunks(store, name="one")
    store.close()
    [segment] = segments(path)
    data = segment.read_bytes()
    os.truncate(segment, len(data) - 10)
    store = open_store(path)
    assert store.state().seq == 2  # what can be read is read
    with pytest.raises(Damage, match="operation 3 is damaged or lost"):
        commit_chunks(store)
    assert segment.read_bytes() == data[:-10]
    segment.write_bytes(data)
    assert _names(open_store(path)) == ["one"]


def test_that_line_can_be_given_up_as_the_hint_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("casnap.store.follower.LONG_TAIL", 0)
    path = tmp_path / "store"
    store = make_store(path)
    commit_chunks(store, name="one")
    os.truncate(segments(path)[0], segments(path)[0].stat().st_size - 10)
    remove_catalogs(path)
    forget_note(path)
    store = open_store(path)
    commit_chunks(store, name="two")
    assert _names(store) == ["two"]


@pytest.mark.parametrize("harm", ["the line is gone", "it is cut", "it is another", "its segment is gone"])
def test_a_committed_last_line_is_missed_also_when_no_catalog_has_seen_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    path = tmp_path / "store"
    store = make_store(path)
    commit_chunks(store, name="one")
    whole = segments(path)[0].stat().st_size
    if harm == "its segment is gone":
        monkeypatch.setattr("casnap.store.oplog.SEGMENT_SIZE", whole)
    commit_chunks(store, b"two", name="two")
    store.close()
    remove_catalogs(path)
    segment = segments(path)[-1]
    data = segment.read_bytes()
    match harm:
        case "the line is gone":
            os.truncate(segment, whole)
        case "it is cut":
            os.truncate(segment, len(data) - 20)
        case "it is another":
            segment.write_bytes(data[:-30] + b"x" * 29 + b"\n")
        case _:
            segment.unlink()
    left = [file.read_bytes() for file in segments(path)]
    store = open_store(path)
    assert _names(store) == ["one"]  # what can be read is read
    assert store.notes == ("committed lines are missing at the end of the operation log: run `casnap check`",)
    with pytest.raises(Damage, match="committed lines are missing") as raised:
        commit_chunks(store, name="three")
    assert "--repair" in (raised.value.hint or "")
    assert [file.read_bytes() for file in segments(path)] == left


def forget_note(path: Path) -> None:
    """Let nothing say up to where the log was forced out: so a process leaves it that dies before that."""
    (path / "cache" / "oplog-synced").unlink()


def test_nothing_is_cut_off_a_pack_while_the_last_line_is_bad(tmp_path: Path) -> None:
    path = tmp_path / "store"
    store = make_store(path)
    commit_chunks(store, b"one")
    with open(pack_files(path)[0], "ab") as pack:
        pack.write(b"x" * 100)
    with open(segments(path)[0], "ab") as segment:
        segment.write(b"x")
    [pack_file] = pack_files(path)
    before = pack_file.read_bytes()
    with store.session() as session:
        session.put(chunk(b"two"), b"two")
        session.finish()
        assert pack_file.read_bytes() == before
    assert len(pack_files(path)) == 2


def test_a_reader_sees_a_log_that_was_put_back_to_an_older_copy(tmp_path: Path) -> None:
    path = tmp_path / "store"
    store = make_store(path)
    commit_chunks(store, name="old")
    shutil.copytree(path / "oplog", tmp_path / "copy")
    commit_chunks(store, name="new")
    assert _names(store) == ["new", "old"]
    shutil.rmtree(path / "oplog")
    shutil.copytree(tmp_path / "copy", path / "oplog")
    assert _names(store) == ["old"]


def test_a_log_that_another_wrote_to_without_the_lock_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "store"
    store = make_store(path)

    def build(state, line):  # type: ignore[no-untyped-def]
        with open(segments(path)[0], "ab") as segment:
            segment.write(b"intruder")
        from casnap.model.operation import Verified

        return Verified(seq=line.seq, time=line.time, prev=line.prev, workspace=WORKSPACE, id="0" * 64, result="equal")

    with pytest.raises(StorageFailed, match="bytes long instead of"):
        store.commit(build)
    assert segments(path)[0].read_bytes().endswith(b"intruder")


def test_full_disk_in_the_middle_of_a_line_leaves_no_torn_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store"
    store = make_store(path)
    log = segments(path)[0].read_bytes()
    real = os.pwrite

    def half(fd: int, data: memoryview, offset: int) -> int:
        if bytes(data[:1]) == b"{":
            real(fd, data[: len(data) // 2], offset)
            raise OSError(28, "No space left on device")
        return real(fd, data, offset)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", half)
        with pytest.raises(StorageFailed, match="No space left") as failed:
            commit_chunks(store, noise(1))
    assert "casnap gc" in str(failed.value.hint)
    assert segments(path)[0].read_bytes() == log
    commit_chunks(store, noise(1), name="retry")
    assert _names(open_store(path)) == ["retry"]
