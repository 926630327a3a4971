"""The oracle itself: a judge that sees nothing would let everything pass."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from support.oracle import difference, inodes, snapshot
from support.trees import make_tree, mutate


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "sub").mkdir(parents=True)
    (root / "file").write_bytes(b"abc")
    (root / "sub" / "other").write_bytes(b"")
    (root / "link").symlink_to("no/such/place")
    return root


def test_every_path_is_seen_and_described(tree: Path) -> None:
    seen = snapshot(tree)
    assert sorted(seen) == [b".", b"file", b"link", b"sub", b"sub/other"]
    assert seen[b"file"].kind == "file"
    assert seen[b"file"].size == 3
    assert seen[b"file"].sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert seen[b"file"].owner == (os.getuid(), os.getgid())
    assert seen[b"link"].target == b"no/such/place"
    assert seen[b"."].kind == "directory"


def test_a_tree_does_not_differ_from_itself(tree: Path) -> None:
    assert difference(snapshot(tree), snapshot(os.fsencode(tree))) == []


def _same_size_same_time(tree: Path) -> None:
    before = (tree / "file").stat()
    (tree / "file").write_bytes(b"abd")
    os.utime(tree / "file", ns=(before.st_atime_ns, before.st_mtime_ns))


def _one_nanosecond(tree: Path) -> None:
    before = (tree / "file").stat()
    os.utime(tree / "file", ns=(before.st_atime_ns, before.st_mtime_ns + 1))


def _other_target(tree: Path) -> None:
    (tree / "link").unlink()
    (tree / "link").symlink_to("no/such/plaice")


def _other_type(tree: Path) -> None:
    (tree / "sub" / "other").unlink()
    (tree / "sub" / "other").mkdir()


@pytest.mark.parametrize(
    ("act", "path"),
    [
        (_same_size_same_time, b"file"),
        (_one_nanosecond, b"file"),
        (lambda tree: (tree / "file").chmod(0o4755), b"file"),
        (lambda tree: (tree / "sub").chmod(0o700), b"sub"),
        (lambda tree: tree.chmod(0o711), b"."),
        (_other_target, b"link"),
        (_other_type, b"sub/other"),
        (lambda tree: (tree / "sub" / "new").touch(), b"sub/new"),
        (lambda tree: (tree / "file").unlink(), b"file"),
        (lambda tree: os.link(tree / "file", tree / "sub" / "hard"), b"file"),
        (lambda tree: os.mkfifo(tree / "pipe"), b"pipe"),
        (lambda tree: open(os.fsencode(tree) + b"/caf\xe9", "x").close(), b"caf\xe9"),
    ],
)
def test_each_change_is_named(tree: Path, act: Callable[[Path], object], path: bytes) -> None:
    before = snapshot(tree)
    act(tree)
    assert [line for line in difference(before, snapshot(tree)) if line.startswith(f"{path!r}: ")]


def test_an_extended_attribute_is_seen(tree: Path) -> None:
    before = snapshot(tree)
    try:
        os.setxattr(tree / "file", "user.note", b"x")
    except OSError:
        pytest.skip("this file system has no user attributes")
    assert difference(before, snapshot(tree)) == ["b'file': xattrs () -> (('user.note', b'x'),)"]


def test_a_broken_hard_link_is_seen_though_the_bytes_are_equal(tree: Path) -> None:
    os.link(tree / "file", tree / "twin")
    before = snapshot(tree, times=False)
    (tree / "twin").unlink()
    (tree / "twin").write_bytes(b"abc")
    assert difference(before, snapshot(tree, times=False)) == [
        "b'file': links (b'file', b'twin') -> ()",
        "b'twin': links (b'file', b'twin') -> ()",
    ]


def test_times_and_owners_are_left_out_on_request(tree: Path) -> None:
    before = snapshot(tree, times=False, owners=False)
    _one_nanosecond(tree)
    assert difference(before, snapshot(tree, times=False, owners=False)) == []
    assert before[b"file"].owner is None


def test_a_socket_is_a_kind_of_its_own(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("sock")
    assert snapshot(tree)[b"sock"].kind == "socket"


def test_a_replaced_file_has_another_inode_and_an_untouched_one_has_not(tree: Path) -> None:
    before = inodes(tree)
    (tree / "new").write_bytes(b"abc")
    os.rename(tree / "new", tree / "file")
    after = inodes(tree)
    assert after[b"file"] != before[b"file"]
    assert after[b"sub/other"] == before[b"sub/other"]
    assert after[b"sub"] == before[b"sub"]


def test_the_same_seed_makes_the_same_tree(tmp_path: Path) -> None:
    for name in ("one", "two"):
        make_tree(tmp_path / name, random.Random(5), files=60)
    assert difference(snapshot(tmp_path / "one"), snapshot(tmp_path / "two")) == []


def test_a_made_tree_is_varied(tmp_path: Path) -> None:
    make_tree(tmp_path / "tree", random.Random(1), files=150)
    records = snapshot(tmp_path / "tree")
    assert sum(record.kind == "file" for record in records.values()) >= 150
    assert {record.kind for record in records.values()} == {"file", "directory", "symlink"}
    assert any(record.links for record in records.values())
    assert any(record.size == 0 for record in records.values())
    assert any((record.size or 0) > 1 << 20 for record in records.values())
    assert any(len(path.rpartition(b"/")[2]) == 255 for path in records)
    assert any(b"caf\xe9" in path for path in records)


def test_mutations_are_counted_and_change_the_tree(tmp_path: Path) -> None:
    make_tree(tmp_path / "tree", random.Random(2), files=40)
    before = snapshot(tmp_path / "tree")
    done = mutate(tmp_path / "tree", random.Random(3), 120)
    assert len(done) == 120
    assert len(difference(before, snapshot(tmp_path / "tree"))) >= 20
