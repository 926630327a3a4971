"""What a scan captures of each kind of entry, against an account of the disk that shares no code with it."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest
from blake3 import blake3

from casnap.errors import CasnapError
from casnap.fs.directories import Directories
from casnap.model.tree import Directory, File, FileFlag, OmitReason, Omitted
from casnap.workspace.omissions import Exclusions
from support.scanning import MemoryStore, as_nobody, chunk, entries_of, facts_of, facts_on_disk, take

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "workspace"
    directory.mkdir()
    return directory


def test_a_tree_of_every_kind_is_captured_as_it_is(root: Path) -> None:
    (root / "file").write_bytes(b"content")
    (root / "empty").touch()
    (root / "directory" / "empty").mkdir(parents=True)
    (root / "directory" / "script").write_text("#!/bin/sh\n")
    (root / "directory" / "script").chmod(0o4755)
    (root / "link").symlink_to("/etc/passwd")
    (root / "dangling").symlink_to("no/such")
    (root / "loop").symlink_to("loop")
    (root / "to-directory").symlink_to("directory")
    os.mkfifo(root / "fifo", 0o640)
    (root / "directory").chmod(0o1770)
    store = MemoryStore()
    scan = take(root, store)
    assert facts_of(store, scan.root) == facts_on_disk(root)
    assert scan.problems == []
    assert scan.skipped == []
    assert scan.entries == 10
    assert scan.files_read == 3
    assert scan.bytes_read == len(b"content#!/bin/sh\n")
    assert scan.started <= scan.ended


@needs_root
def test_devices_are_captured_by_their_numbers_and_never_opened(root: Path) -> None:
    os.mknod(root / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    os.mknod(root / "disk", 0o600 | stat.S_IFBLK, os.makedev(259, 300))
    os.chown(root / "disk", 12, 34)
    store = MemoryStore()
    facts = facts_of(store, take(root, store).root)
    assert facts == facts_on_disk(root)
    assert facts[b"disk"][0] == "block"
    assert facts[b"disk"][-2:] == (259, 300)
    assert facts[b"disk"][2:4] == (12, 34)


def test_names_of_any_bytes_are_kept(root: Path) -> None:
    names = [
        b"\xff\xfe",
        b"caf\xe9",
        b"new\nline",
        b"L" * 255,
        "e\u0301".encode(),
        "\u00e9".encode(),
        b" ",
        b"\\x",
        b"-",
    ]
    for number, name in enumerate(names):
        directory = os.path.join(os.fsencode(root), b"in " + name[:200])
        os.mkdir(directory)
        for parent in (os.fsencode(root), directory):
            with open(os.path.join(parent, name), "wb") as file:
                file.write(b"%d" % number)
    store = MemoryStore()
    scan = take(root, store)
    assert facts_of(store, scan.root) == facts_on_disk(root)
    assert scan.signatures[b"new\nline"].size == 1


@pytest.mark.parametrize("stamp", [1_700_000_000_999_999_931, 0, -1_000_000_000, -1, (1 << 33) * 10**9 + 7])
def test_times_are_kept_to_the_nanosecond(root: Path, stamp: int) -> None:
    (root / "file").write_bytes(b"x")
    (root / "directory").mkdir()
    (root / "link").symlink_to("x")
    for path in (root / "file", root / "directory", root / "link", root):
        os.utime(path, ns=(stamp, stamp), follow_symlinks=False)
    if os.lstat(root / "file").st_mtime_ns != stamp:
        pytest.skip("the file system cannot hold this time")
    store = MemoryStore()
    entries = entries_of(store, take(root, store).root)
    assert {path: entry.mtime_ns for path, entry in entries.items() if not isinstance(entry, Omitted)} == dict.fromkeys(
        [b"", b"file", b"directory", b"link"], stamp
    )


def test_extended_attributes_are_captured_sorted_and_only_those_that_belong_to_the_entry(root: Path) -> None:
    (root / "file").write_bytes(b"x")
    (root / "directory").mkdir()
    wanted = {b"user.k%02d" % number: bytes([number]) * number for number in range(30)}
    for path in (root / "file", root / "directory", root):
        for name, value in reversed(wanted.items()):
            os.setxattr(path, name, value)
        if os.geteuid() == 0:
            os.setxattr(path, b"trusted.not", b"1")
            os.setxattr(path, b"security.not", b"1")
    store = MemoryStore()
    entries = entries_of(store, take(root, store).root)
    for path in (b"", b"file", b"directory"):
        entry = entries[path]
        assert not isinstance(entry, Omitted)
        assert entry.xattrs == tuple(sorted(wanted.items()))


@needs_root
def test_capabilities_and_acls_are_captured(root: Path) -> None:
    (root / "file").write_bytes(b"x")
    os.mkfifo(root / "fifo")
    capability = bytes.fromhex("0100000200200000000000000000000000000000")
    rows = ("01000600ffffffff", "0200040001000000", "04000400ffffffff", "10000600ffffffff", "20000400ffffffff")
    acl = bytes.fromhex("02000000" + "".join(rows))
    os.setxattr(root / "file", "security.capability", capability)
    os.setxattr(root / "file", "system.posix_acl_access", acl)
    os.setxattr(root / "fifo", "system.posix_acl_access", acl)
    os.setxattr(root, "system.posix_acl_default", acl)
    store = MemoryStore()
    entries = entries_of(store, take(root, store).root)
    file, fifo, top = entries[b"file"], entries[b"fifo"], entries[b""]
    assert not isinstance(file, Omitted)
    assert not isinstance(fifo, Omitted)
    assert not isinstance(top, Omitted)
    assert file.xattrs == ((b"security.capability", capability), (b"system.posix_acl_access", acl))
    assert fifo.xattrs == ((b"system.posix_acl_access", acl),)
    assert top.xattrs == ((b"system.posix_acl_default", acl),)


def test_sparse_files_are_flagged_and_others_are_not(root: Path) -> None:
    with open(root / "sparse", "wb") as file:
        file.truncate(8 << 20)
        file.seek(4 << 20)
        file.write(b"data" * 1024)
    (root / "small").write_bytes(b"x")
    (root / "empty").touch()
    (root / "zeros").write_bytes(bytes(1 << 16))
    os.truncate(root / "small", 1 << 14)
    store = MemoryStore()
    entries = entries_of(store, take(root, store).root)
    flags = {path: entry.flags for path, entry in entries.items() if isinstance(entry, File)}
    assert flags == {b"sparse": FileFlag.SPARSE, b"small": FileFlag.SPARSE, b"empty": 0, b"zeros": 0}
    assert facts_of(store, take(root, store).root) == facts_on_disk(root)
    assert sum(map(len, store.objects.values())) < 1 << 20


def test_small_files_are_one_chunk_of_their_own_name(root: Path) -> None:
    (root / "file").write_bytes(b"abc")
    (root / "bound").write_bytes(b"b" * (1 << 20))
    store = MemoryStore()
    entries = entries_of(store, take(root, store).root)
    file, bound = entries[b"file"], entries[b"bound"]
    assert isinstance(file, File)
    assert file.content.hex() == "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"
    assert file.chunk_list == b""
    assert store.objects[chunk(b"abc")] == b"abc"
    assert isinstance(bound, File)
    assert bound.chunk_list == b""


def test_sockets_are_left_out_with_their_reason(root: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(root / "s"))
        store = MemoryStore()
        scan = take(root, store)
    assert entries_of(store, scan.root)[b"s"] == Omitted(b"s", OmitReason.SOCKET)
    assert scan.skipped == [(b"s", OmitReason.SOCKET)]
    assert scan.problems == []
    assert stat.S_ISSOCK(scan.signatures[b"s"].mode)
    assert scan.entries == 0


def test_lock_files_are_left_out_within_git_directories_only(root: Path) -> None:
    for directory in (".git/refs/heads", "sub/.git", "plain", "x.git"):
        (root / directory).mkdir(parents=True)
        (root / directory / "index.lock").touch()
    (root / "poetry.lock").touch()
    (root / ".git" / "odd.lock").mkdir()
    (root / ".git" / "odd.lock" / "file").touch()
    (root / ".git" / "HEAD").touch()
    scan = take(root)
    assert scan.skipped == [
        (b".git/refs/heads/index.lock", OmitReason.GIT_LOCK),
        (b"sub/.git/index.lock", OmitReason.GIT_LOCK),
    ]


def test_the_store_is_left_out_wherever_it_lies(root: Path) -> None:
    (root / "deep" / "store").mkdir(parents=True)
    (root / "deep" / "store" / "pack").touch()
    (root / "through").symlink_to("deep/store")
    for seen in (root / "deep" / "store", root / "through", root / "deep" / ".." / "through"):
        store = MemoryStore()
        scan = take(root, store, exclusions=Exclusions.of(seen))
        assert scan.skipped == [(b"deep/store", OmitReason.STORE)]
        assert sorted(entries_of(store, scan.root)) == [b"", b"deep", b"deep/store", b"through"]


def test_temporary_files_are_left_out_while_their_rollback_is_open(root: Path) -> None:
    for name in (".casnap-abc123-0", ".casnap-other-0", ".casnap-abc123-", ".casnap-abc123-1x", "x.casnap-abc123-0"):
        (root / name).touch()
    (root / "sub").mkdir()
    (root / "sub" / ".casnap-abc123-12").mkdir()
    (root / "sub" / ".casnap-abc123-12" / "0").touch()
    store = MemoryStore()
    scan = take(root, store, nonces=["abc123"])
    assert scan.leftovers == [b".casnap-abc123-0", b"sub/.casnap-abc123-12"]
    assert sorted(entries_of(store, scan.root)) == [
        b"",
        b".casnap-abc123-",
        b".casnap-abc123-1x",
        b".casnap-other-0",
        b"sub",
        b"x.casnap-abc123-0",
    ]
    assert scan.skipped == []
    assert scan.signatures[b"sub/.casnap-abc123-12"].nlink == 2
    assert take(root).leftovers == []


def test_names_of_one_file_form_a_group(root: Path, tmp_path: Path) -> None:
    (root / "c").mkdir()
    (root / "b").write_bytes(b"shared")
    os.link(root / "b", root / "a")
    os.link(root / "b", root / "c" / "d")
    (root / "outside").write_bytes(b"x")
    os.link(root / "outside", tmp_path / "elsewhere")
    (root / "l1").symlink_to("x")
    os.link(root / "l1", root / "l0", follow_symlinks=False)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(root / "s1"))
    os.link(root / "s1", root / "s2")
    store = MemoryStore()
    scan = take(root, store)
    assert scan.links == ((b"a", b"b", b"c/d"), (b"l0", b"l1"))
    assert facts_of(store, scan.root).keys() == facts_on_disk(root).keys() - {b"s1", b"s2"}
    assert scan.files_read == 2  # each inode once


def test_signatures_say_what_lstat_says_of_every_path(root: Path) -> None:
    (root / "d" / "e").mkdir(parents=True)
    (root / "d" / "e" / "f").write_bytes(b"x")
    os.link(root / "d" / "e" / "f", root / "g")
    (root / "l").symlink_to("nowhere")
    scan = take(root)
    for path in (b"", b"d", b"d/e", b"d/e/f", b"g", b"l"):
        status = os.lstat(os.path.join(os.fsencode(root), path) if path else root)
        assert tuple(getattr(scan.signatures[path], name) for name in scan.signatures[path].__struct_fields__) == (
            status.st_mode,
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
            status.st_ino,
            status.st_dev,
            status.st_nlink,
        )
    assert sorted(scan.signatures) == [b"", b"d", b"d/e", b"d/e/f", b"g", b"l"]
    assert len(scan.signatures) == 6
    assert b"d/x" not in scan.signatures
    assert b"x/y" not in scan.signatures


@needs_root
def test_what_cannot_be_read_is_left_out_and_reported_and_the_rest_is_captured(root: Path) -> None:
    for name in ("open", "closed", "listed", "searched"):
        (root / name).mkdir()
        (root / name / "file").write_bytes(b"x")
        (root / name / "file").chmod(0o644)
    (root / "secret").write_bytes(b"y")
    for name, mode in (("secret", 0), ("closed", 0), ("listed", 0o744), ("searched", 0o711), ("open", 0o755)):
        (root / name).chmod(mode)
    root.chmod(0o755)
    with Directories(os.fsencode(root)) as directories:

        def act() -> None:
            store = MemoryStore()
            scan = take(root, store, directories=directories)
            assert scan.skipped == [
                (name, OmitReason.UNREADABLE) for name in (b"closed", b"listed", b"searched", b"secret")
            ]
            assert [(problem.path, problem.message) for problem in scan.problems] == [
                (name, "not captured: Permission denied") for name in (b"closed", b"listed", b"searched", b"secret")
            ]
            entries = entries_of(store, scan.root)
            assert entries[b"open/file"].content == blake3(b"x").digest()  # type: ignore[union-attr]
            assert scan.entries == 2

        as_nobody(act)


@needs_root
def test_a_root_that_cannot_be_listed_is_an_error(root: Path) -> None:
    (root / "file").touch()
    root.chmod(0o700)
    with Directories(os.fsencode(root)) as directories:

        def act() -> None:
            with pytest.raises(CasnapError, match=r"^cannot read workspace .*: Permission denied$"):
                take(root, directories=directories)

        as_nobody(act)


def test_a_workspace_without_entries_is_a_tree(root: Path) -> None:
    store = MemoryStore()
    scan = take(root, store)
    assert isinstance(scan.root, Directory)
    assert list(entries_of(store, scan.root)) == [b""]
    assert scan.root.name == b""
    assert scan.entries == 0
