"""Reading files into objects."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from blake3 import blake3

from casnap.codec import chunking
from casnap.codec.chunk_lists import load_chunk_list
from casnap.codec.chunking import ChunkerParameters
from casnap.model.clock import Silent
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.tree import File
from casnap.workspace.entries import read_xattrs
from casnap.workspace.outbox import BATCH, BATCH_BYTES, Outbox
from casnap.workspace.reader import Content, Reader, open_file, store_file
from support.scanning import MemoryStore, as_nobody, chunk, entries_of, settle, take

MIB = 1 << 20


def read(path: Path, store: MemoryStore) -> Content:
    fd = os.open(path, os.O_RDONLY)
    try:
        outbox = Outbox(store)
        content = Reader(outbox, ChunkerParameters(), Silent()).read(fd, os.fstat(fd))
        outbox.flush()
        return content
    finally:
        os.close(fd)


def stored(store: MemoryStore, content: Content) -> bytes:
    if not content.chunk_list:
        return store.objects[ObjectKey(ObjectKind.CHUNK, content.id)]
    chunks = load_chunk_list(store, content.chunk_list, content.size)
    return b"".join(store.objects[ObjectKey(ObjectKind.CHUNK, id)] for _, id in chunks)


@pytest.mark.parametrize("size", [0, 1, 4096, MIB - 1, MIB, MIB + 1, 3 * MIB + 17])
def test_every_byte_is_stored_under_the_name_of_the_whole(tmp_path: Path, size: int) -> None:
    data = os.urandom(size)
    (tmp_path / "file").write_bytes(data)
    store = MemoryStore()
    content = read(tmp_path / "file", store)
    assert (content.size, content.id, content.whole) == (size, blake3(data).digest(), True)
    assert bool(content.chunk_list) == (size > MIB)
    assert stored(store, content) == data
    assert max(map(len, store.objects.values())) <= MIB


@pytest.mark.parametrize(
    "runs",
    [
        [(0, 5 * MIB)],
        [(2 * MIB, 4096), (4 * MIB, 1)],
        [(0, 1), (6 * MIB - 1, 1)],
        [(MIB, MIB), (3 * MIB, MIB)],
    ],
)
def test_holes_read_as_zeros(tmp_path: Path, runs: list[tuple[int, int]]) -> None:
    data = bytearray(6 * MIB)
    with open(tmp_path / "file", "wb") as file:
        file.truncate(len(data))
        for start, length in runs:
            data[start : start + length] = run = os.urandom(length)
            file.seek(start)
            file.write(run)
    store = MemoryStore()
    content = read(tmp_path / "file", store)
    assert content.id == blake3(bytes(data)).digest()
    assert stored(store, content) == data


def test_holes_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(tmp_path / "file", "wb") as file:
        file.truncate(64 * MIB)
        file.seek(32 * MIB)
        file.write(b"x" * 4096)
    asked = 0
    real = os.pread

    def count(fd: int, size: int, offset: int) -> bytes:
        nonlocal asked
        data = real(fd, size, offset)
        asked += len(data)
        return data

    monkeypatch.setattr(os, "pread", count)
    assert read(tmp_path / "file", MemoryStore()).size == 64 * MIB
    assert asked < MIB


def test_an_open_file_without_a_name_can_be_stored(tmp_path: Path) -> None:
    data = os.urandom(2 * MIB)
    (tmp_path / "file").write_bytes(data)
    store = MemoryStore()
    fd = os.open(tmp_path / "file", os.O_RDONLY)
    (tmp_path / "file").unlink()
    os.lseek(fd, 100, os.SEEK_SET)
    size, content, chunk_list = store_file(fd, store, ChunkerParameters())
    os.close(fd)
    assert (size, content) == (len(data), blake3(data).digest())
    assert stored(store, Content(size, content, chunk_list, True)) == data


def test_reading_leaves_the_access_time_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x")
    os.utime(path, ns=(5, 10))
    directory = os.open(tmp_path, os.O_RDONLY)
    fd = open_file(directory, b"file")
    os.read(fd, 1)
    os.close(fd)
    os.close(directory)
    assert os.stat(path).st_atime_ns == 5


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_file_of_somebody_else_is_opened_without_that_privilege(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "file").chmod(0o644)
    tmp_path.chmod(0o755)
    directory = os.open(tmp_path, os.O_RDONLY)

    def act() -> None:
        with pytest.raises(PermissionError):
            os.open(b"file", os.O_RDONLY | os.O_NOATIME, dir_fd=directory)
        fd = open_file(directory, b"file")
        assert os.read(fd, 2) == b"x"

    as_nobody(act)
    os.close(directory)


def test_attributes_that_a_file_system_does_not_have_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> list[str]:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "listxattr", fail)
    assert read_xattrs(0) == ()


def test_objects_go_out_in_batches_and_known_ones_too_so_that_they_can_be_healed() -> None:
    asked: list[int] = []

    class Counting(MemoryStore):
        def present(self, keys):  # type: ignore[no-untyped-def]
            wanted = list(keys)
            asked.append(len(wanted))
            return super().present(wanted)

    store = Counting()
    store.objects[chunk(b"0")] = b"0"
    outbox = Outbox(store)
    for number in [0, 0, 1, 1, *range(BATCH + 1)]:
        outbox.add(chunk(b"%d" % number), b"%d" % number)
    assert asked == [BATCH]
    assert store.puts == BATCH
    outbox.flush()
    outbox.flush()
    assert asked == [BATCH, 1]
    large = bytes(BATCH_BYTES)
    outbox.add(chunk(large), large)
    assert asked == [BATCH, 1, 1]


MEMORY = """
import sys
from support.scanning import MemoryStore, take
class Dropping(MemoryStore):
    def put(self, key, data, base=None):
        self.puts += 1
scan = take(sys.argv[1], Dropping())
assert scan.bytes_read == 1 << 30, scan.bytes_read
# not ru_maxrss: that remembers the parent's memory from before exec
print(next(int(line.split()[1]) for line in open('/proc/self/status') if line.startswith('VmHWM')) >> 10)
"""


def test_memory_does_not_grow_with_the_size_of_a_file(tmp_path: Path) -> None:
    with open(tmp_path / "large", "wb") as file:
        file.truncate(1 << 30)
        file.seek(1 << 29)
        for _ in range(64):
            file.write(os.urandom(MIB))
    paths = os.pathsep.join([str(Path(__file__).parents[2]), str(Path(__file__).parents[1])])
    ran = subprocess.run(
        [sys.executable, "-c", MEMORY, tmp_path],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    assert int(ran.stdout) < 150  # MiB


def test_files_that_are_cut_without_the_compiled_core_are_right_and_it_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = {name: os.urandom(MIB + 1) for name in ("one", "other")}
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
    settle(tmp_path)
    assert take(tmp_path).remarks == ()
    monkeypatch.setattr(chunking, "_compiled_fastcdc", lambda: None)
    store = MemoryStore()
    found = take(tmp_path, store)
    (remark,) = found.remarks
    assert remark.startswith("large files were cut every 64 KiB: the compiled part of pyfastcdc is missing")
    files = entries_of(store, found.root)
    for name, data in contents.items():
        file = files[name.encode()]
        assert isinstance(file, File)
        chunks = load_chunk_list(store, file.chunk_list, file.size)
        assert [length for length, _ in chunks] == [64 << 10] * 16 + [1]
        assert b"".join(store.objects[ObjectKey(ObjectKind.CHUNK, id)] for _, id in chunks) == data
    again = take(tmp_path, store, cache=found.cache)
    assert (again.files_read, again.remarks) == (0, ())  # nothing was cut this time


def test_nothing_is_said_of_a_core_that_no_file_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "short").write_bytes(bytes(MIB))
    monkeypatch.setattr(chunking, "_compiled_fastcdc", lambda: None)
    assert take(tmp_path).remarks == ()
