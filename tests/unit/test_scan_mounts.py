"""Mount points: read from mountinfo, left out and not touched."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from casnap.errors import Refused
from casnap.fs.directories import Directories
from casnap.workspace.mounts import Mount, find_mounts, mount_of, mounts_below, parse_mountinfo

TABLE = rb"""22 1 259:1 / / rw,relatime shared:1 - ext4 /dev/root rw
30 22 0:5 / /ws rw master:2 shared:9 - xfs /dev/sdb rw
31 30 0:6 / /ws/a\040space rw - tmpfs tmpfs rw
32 30 0:7 /file /ws/d/file\134\012x rw - ext4 /dev/root rw
33 30 0:8 / /ws/over rw - tmpfs tmpfs rw
34 33 0:9 / /ws/over rw - fuse.sshfs host:/ rw
35 22 0:10 / /ws/hidden rw - tmpfs tmpfs rw
36 22 0:11 / /wsx rw - nfs4 server:/x rw
"""


def test_lines_are_read_with_their_escapes_and_optional_fields() -> None:
    mounts = list(parse_mountinfo(TABLE))
    assert mounts[0] == Mount(22, 1, b"/", "ext4")
    assert [mount.point for mount in mounts[2:4]] == [b"/ws/a space", b"/ws/d/file\\\nx"]
    assert mounts[5].file_system == "fuse.sshfs"
    assert len(mounts) == 8


def test_only_mounts_that_sit_right_on_the_workspace_are_its_mount_points() -> None:
    mounts = list(parse_mountinfo(TABLE))
    found = mounts_below(mounts, b"/ws", 30)
    assert found.file_system == "xfs"
    assert found.points == {b"a space", b"d/file\\\nx", b"over"}
    assert mounts_below(mounts, b"/ws/d", 30).points == {b"file\\\nx"}
    assert mounts_below(mounts, b"/", 22).points == {b"ws", b"ws/hidden", b"wsx"}


@pytest.mark.parametrize(
    ("path", "mount"), [(b"/", 22), (b"/home", 22), (b"/ws", 30), (b"/ws/x", 30), (b"/ws/over/x", 34), (b"/wsx/y", 36)]
)
def test_the_mount_of_a_path_is_the_uppermost_of_the_deepest(path: bytes, mount: int) -> None:
    assert mount_of(list(parse_mountinfo(TABLE)), path) == mount


def test_the_type_of_the_file_system_is_found(tmp_path: Path) -> None:
    with Directories(os.fsencode(tmp_path)) as directories:
        found = find_mounts(directories)
    said = subprocess.run(["stat", "-f", "-c", "%T", tmp_path], capture_output=True, text=True, check=True).stdout
    assert found.file_system.startswith(said.strip().split("/")[0][:3])
    assert found.points == frozenset()


def test_without_proc_nothing_is_scanned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: object) -> bytes:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(os, "readlink", absent)
    with (
        Directories(os.fsencode(tmp_path)) as directories,
        pytest.raises(Refused, match="cannot find the mount points"),
    ):
        find_mounts(directories)


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.EMFILE, "ulimit -n"),
        (errno.ENFILE, "fs.file-max"),
        (errno.ENOENT, "mount /proc"),
        (errno.EACCES, "proc"),
    ],
)
def test_why_mount_points_cannot_be_found_says_what_to_do(
    number: int, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> bytes:
        raise OSError(number, os.strerror(number))

    with Directories(os.fsencode(tmp_path)) as directories:
        monkeypatch.setattr(os, "readlink", failing)
        with pytest.raises(Refused, match=os.strerror(number)) as refused:
            find_mounts(directories)
    assert hint in (refused.value.hint or "")
    assert (number in (errno.EMFILE, errno.ENFILE)) == ("open more files" in (refused.value.hint or ""))


INSIDE = """
import os, subprocess, sys
from pathlib import Path
from casnap.model.tree import OmitReason
from casnap.workspace.omissions import Exclusions
from support.scanning import MemoryStore, entries_of, take
root = Path(sys.argv[1])
for name in ("odd \\\\ name\\n", "bound", "store", "source"):
    (root / name).mkdir()
(root / "source" / "file").touch()
(root / "bound-file").touch()
mount = lambda *words: subprocess.run(["mount", *map(str, words)], check=True)
mount("-t", "tmpfs", "none", root / "odd \\\\ name\\n")
mount("--bind", root / "source", root / "bound")
mount("--bind", root / "source" / "file", root / "bound-file")
(root / "odd \\\\ name\\n" / "inside").touch()
real = os.lstat
def lstat(path, **options):
    assert path not in (b"bound", b"bound-file"), "a mount point was looked at"
    return real(path, **options)
os.lstat = lstat
store = MemoryStore()
scan = take(root, store, exclusions=Exclusions.of(root / "store"))
reasons = {path: entry.reason for path, entry in entries_of(store, scan.root).items() if hasattr(entry, "reason")}
M = OmitReason.MOUNT_POINT
assert reasons == {b"odd \\\\ name\\n": M, b"bound": M, b"bound-file": M, b"store": OmitReason.STORE}, reasons
assert scan.problems == []
(root / "source" / "sub").mkdir()
store = MemoryStore()
scan = take(root / "bound", store, exclusions=Exclusions.of(root / "source" / "sub"))
assert scan.skipped == [(b"sub", OmitReason.STORE)], scan.skipped
print("fine")
"""


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root and unshare")
def test_mount_points_are_left_out_and_not_even_looked_at(tmp_path: Path) -> None:
    paths = os.pathsep.join([str(Path(__file__).parents[2]), str(Path(__file__).parents[1])])
    ran = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", sys.executable, "-c", INSIDE, tmp_path],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in ran.stderr and "failed" in ran.stderr:
        pytest.skip("mount namespaces are not allowed here")
    assert (ran.stdout, ran.stderr) == ("fine\n", "")
