"""The short way to write plain files and directories makes the same tree as the long one, which looks at each entry."""

from __future__ import annotations

import os
import random
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casnap import CheckpointManager
from casnap.workspace import staging
from support.oracle import difference, snapshot
from support.trees import make_tree

SHORT, LONG = 0, 1 << 60
"""For how many new inodes it is learnt first what is given: always, or never."""

ROWS = ("01000600ffffffff", "0200040001000000", "04000400ffffffff", "10000600ffffffff", "20000400ffffffff")
ACL = bytes.fromhex("02000000" + "".join(ROWS))
MASKS = st.sampled_from([0o022, 0o000, 0o077, 0o027])
PLACES = st.sampled_from(["plain", "hands its group down", "hands an ACL down"])


@contextmanager
def room(mask: int) -> Iterator[Path]:
    before = os.umask(mask)
    place = Path(tempfile.mkdtemp(prefix="casnap-ways-"))
    try:
        yield place
    finally:
        os.umask(before)
        for directory, _, _ in os.walk(place):
            os.chmod(directory, 0o700)
        shutil.rmtree(place)


def make_place(path: Path, kind: str) -> Path:
    path.mkdir()
    if kind == "hands its group down":
        path.chmod(0o2775)
    elif kind == "hands an ACL down":
        try:
            os.setxattr(path, "system.posix_acl_default", ACL)
        except OSError:
            pytest.skip("a file system without ACLs")
    return path


def spoil(root: Path, rng: random.Random) -> None:
    """Give some entries what a new inode has not by itself."""
    for directory, names, files in os.walk(root):
        for name in names + files:
            path = os.path.join(directory, name)
            if os.path.islink(path):
                continue
            if rng.random() < 0.1:
                os.setxattr(path, "user.k", b"v")
            if os.geteuid() == 0 and rng.random() < 0.1:
                mode = stat.S_IMODE(os.lstat(path).st_mode)
                os.chown(path, rng.choice([0, 1000]), 1000)
                os.chmod(path, mode)


def state(root: Path) -> object:
    """All that lstat, the bytes and the attributes tell."""
    attributes = {
        path: sorted(
            (name, os.getxattr(os.path.join(os.fsencode(root), path), name, follow_symlinks=False)) for name in found
        )
        for path, found in (
            (path, os.listxattr(os.path.join(os.fsencode(root), path), follow_symlinks=False))
            for path in snapshot(root)
        )
    }
    return snapshot(root), attributes


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1 << 32), MASKS, PLACES)
def test_both_ways_make_the_same_tree(seed: int, mask: int, kind: str) -> None:
    rng = random.Random(seed)
    with room(mask) as place, pytest.MonkeyPatch.context() as patch:
        workspace = make_place(place / "above", kind) / "workspace"
        make_tree(workspace, rng, files=30)
        spoil(workspace, rng)
        with open(workspace / "sparse", "xb") as file:
            file.truncate(1 << 20)
        with CheckpointManager(workspace, store=place / "store") as manager:
            manager.create("c1")
            wanted = state(workspace)
            for way in (SHORT, LONG):
                patch.setattr(staging, "LEARNT_FOR", way)
                restored = make_place(place / f"restored-{way}", kind) / "in"
                assert manager.restore_to(restored).problems == ()
                assert state(restored) == wanted
                assert os.lstat(restored / "sparse").st_blocks == os.lstat(workspace / "sparse").st_blocks
                gone = [path for path in workspace.iterdir() if rng.random() < 0.7]
                for path in gone:
                    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
                assert manager.rollback("c1").complete
                assert difference(wanted[0], snapshot(workspace)) == []  # type: ignore[index]
                assert state(workspace) == wanted
