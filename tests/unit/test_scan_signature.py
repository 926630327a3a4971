"""When a stat proves that nothing has changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from casnap.model.tree import NANOSECONDS
from casnap.workspace import scan as scan_module
from casnap.workspace.mounts import Mounts
from casnap.workspace.signature import Settling, Signature, signature_of
from casnap.workspace.temporaries import nonce_of, temporary_name
from support.scanning import SystemClock, settle, take

NOW = 1_800_000_000 * NANOSECONDS + 123_456_789
MS = 1_000_000


class StoppedClock:
    """Stands at NOW, and notes how long it was asked to wait."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def now(self) -> int:
        return NOW

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


def signature(mtime_ns: int, ctime_ns: int) -> Signature:
    return Signature(0o100644, 1, mtime_ns, ctime_ns, 1, 1, 1)


@pytest.mark.parametrize(
    ("mtime", "ctime", "remaining"),
    [
        (NOW - 21 * MS, NOW - 21 * MS, -1 * MS),
        (NOW - 20 * MS, NOW - 100 * MS, 0),
        (NOW - 19 * MS, NOW - 100 * MS, 1 * MS),
        (NOW - 100 * MS, NOW - 5 * MS, 15 * MS),
        (NOW + 5 * MS, NOW - 100 * MS, 25 * MS),
        (NOW + 500 * MS, NOW - 30 * MS, -10 * MS),
        (NOW + 500 * MS, NOW + 500 * MS, 0),
        (NOW - NOW % NANOSECONDS, NOW - NOW % NANOSECONDS, 2_100 * MS - NOW % NANOSECONDS),
        (NOW - NOW % NANOSECONDS, NOW - 50 * MS, -30 * MS),
        (-5, NOW - 50 * MS, -30 * MS),
    ],
)
def test_stamps_must_be_past_by_the_margin(mtime: int, ctime: int, remaining: int) -> None:
    settling = Settling(StoppedClock(), "ext4")
    assert settling.remaining(signature(mtime, ctime)) == remaining
    assert settling.settled(signature(mtime, ctime)) == (remaining <= 0)


def test_one_wait_is_as_long_as_the_youngest_needs() -> None:
    clock = StoppedClock()
    settling = Settling(clock, "ext4")
    settling.wait([signature(NOW - 15 * MS, 0), signature(NOW - 8 * MS, 0), signature(0, 0)])
    settling.wait([signature(0, 0)])
    assert clock.waits == [0.012]


@pytest.mark.parametrize("kind", ["nfs4", "fuse.sshfs", "fuseblk", "9p", "virtiofs", "cifs"])
def test_where_a_server_makes_the_stamps_only_waiting_helps(kind: str) -> None:
    clock = StoppedClock()
    settling = Settling(clock, kind)
    assert not settling.settled(signature(0, 0))
    settling.wait([signature(0, 0)])
    assert clock.waits == [2.0]


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "overlay", "tmpfs", "zfs", "fusectl", ""])
def test_local_file_systems_are_known_by_their_type(kind: str) -> None:
    assert not Settling(StoppedClock(), kind).remote


def test_a_remote_workspace_waits_once_and_then_believes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Patient(SystemClock):
        def sleep(self, seconds: float) -> None:
            self.slept += seconds

    monkeypatch.setattr(scan_module, "find_mounts", lambda directories, **_: Mounts("nfs4", frozenset()))
    for name in ("a", "b", "c"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "link").symlink_to("a")
    settle(tmp_path)
    clock = Patient()
    first = take(tmp_path, clock=clock)
    assert clock.slept == 2.0
    assert first.problems == []
    second = take(tmp_path, cache=first.cache, clock=clock)
    third = take(tmp_path, cache=second.cache, clock=clock, trusted=False)
    assert clock.slept == 2.0
    assert (second.files_read, third.files_read) == (0, 3)
    (tmp_path / "a").write_bytes(b"y")
    assert take(tmp_path, cache=third.cache, clock=clock).files_read == 1
    assert clock.slept == 4.0


def test_a_signature_matches_the_same_state_on_another_device_number(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    status = os.lstat(tmp_path / "file")
    same = signature_of(status)
    assert same.matches(status)
    assert replace(same, device=77, nlink=5).matches(status)
    for field in ("mode", "size", "mtime_ns", "ctime_ns", "inode"):
        assert not replace(same, **{field: getattr(same, field) + 1}).matches(status)


def test_names_of_temporary_files_give_their_nonce_back() -> None:
    assert nonce_of(temporary_name("3f9a1c2e0b7d", 12)) == "3f9a1c2e0b7d"
    for other in (
        b".casnap",
        b".casnap-x",
        b".casnap-x-",
        b".casnap--1",
        b".casnap-x-1\n",
        b"a.casnap-x-1",
        b".casnap-\xff-1",
    ):
        assert nonce_of(other) is None
