"""``one_file_system = false``: what is mounted in a workspace is captured and put back, the mount points stay."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from casnap.workspace.mounts import border_of, mounts_inside, parse_mountinfo

TABLE = rb"""22 1 259:1 / / rw - ext4 /dev/root rw
30 22 0:5 / /ws rw - xfs /dev/sdb rw
31 30 0:6 / /ws/a rw - tmpfs tmpfs rw
32 31 0:7 / /ws/a/deep rw - nfs4 server:/ rw
33 30 0:8 / /ws/over rw - tmpfs tmpfs rw
34 33 0:9 / /ws/over rw - fuse.sshfs host:/ rw
35 33 0:10 / /ws/over/hidden rw - tmpfs tmpfs rw
36 34 0:11 / /ws/over/seen rw - tmpfs tmpfs rw
37 30 0:12 / /ws/proc rw - proc proc rw
38 37 0:13 / /ws/proc/fs rw - tmpfs tmpfs rw
39 22 0:14 / /ws/hidden rw - tmpfs tmpfs rw
"""


def test_what_is_mounted_in_what_is_mounted_counts_too_and_what_is_covered_does_not() -> None:
    found = mounts_inside(list(parse_mountinfo(TABLE)), b"/ws", 30)
    assert found.file_system == "xfs"
    assert found.points == {b"proc"}
    assert {path: kind for path, kind in found.inside.items() if not path.startswith(b"proc")} == {
        b"a": "tmpfs",
        b"a/deep": "nfs4",
        b"over": "fuse.sshfs",
        b"over/seen": "tmpfs",
    }


@pytest.mark.parametrize(
    ("path", "border"), [(b"a", b"a"), (b"a/b/c", b"a/b"), (b"a/bc", b"a"), (b"b", b""), (b"", b"")]
)
def test_the_border_of_a_path_is_the_deepest_at_or_above(path: bytes, border: bytes) -> None:
    assert border_of(path, frozenset({b"a", b"a/b"})) == border


INSIDE = """
import os, subprocess, sys
from pathlib import Path
from casnap import CheckpointManager
from support.oracle import difference, snapshot
base = Path(sys.argv[1])
root, outside = base / "root", base / "outside"
for path in (root / "disk", root / "bound", root / "proc", outside, root / "plain", root / "store-bound"):
    path.mkdir(parents=True)
(root / "bound-file").touch()
(outside / "file").write_text("outside")
mount = lambda *words: subprocess.run(["mount", *map(str, words)], check=True)
mount("-t", "tmpfs", "-o", "mode=750", "none", root / "disk")
(root / "disk" / "nested").mkdir()
mount("-t", "tmpfs", "none", root / "disk" / "nested")
mount("--bind", outside, root / "bound")
mount("--bind", outside / "file", root / "bound-file")
mount("-t", "proc", "proc", root / "proc")

def fill(text):
    for place in ("plain", "disk", "disk/nested", "bound"):
        (root / place / "f").write_text(text)
        (root / place / "sub").mkdir(exist_ok=True)
        (root / place / "sub" / text).write_text(text)
        linked = root / place / "linked"
        linked.unlink(missing_ok=True)
        os.link(root / place / "f", linked)

def looked():
    return [snapshot(root / place) for place in ("plain", "disk", "bound")]

def changed(before):
    lines = [line for pair in zip(before, looked()) for line in difference(*pair)]
    return [line for line in lines if not line.startswith(("b'.':", "b'nested':"))]

fill("one")
for place in ("disk/nested", "bound"):
    os.chmod(root / place, 0o711)
os.environ["CASNAP_ONE_FILE_SYSTEM"] = "false"
store = base / "store"
with CheckpointManager(root, store=store) as manager:
    mount("--bind", outside, outside)  # what others do elsewhere is of no account
    made = manager.create("one")
    status_ = manager.status()
    assert status_.left_out == {"mount point": 2}, status_.left_out
    before = looked()
    for place in ("disk/nested", "bound"):
        os.chmod(root / place, 0o700)
    fill("two")
    (root / "disk" / "new").write_text("new")
    report = manager.rollback("one")
    assert report.complete, report.left_alone
    assert changed(before) == [], changed(before)
    assert oct(os.stat(root / "bound").st_mode)[-3:] == "700"
    assert (root / "bound-file").read_text() == "outside"
    assert os.path.ismount(root / "disk") and os.path.ismount(root / "disk" / "nested")
    manager.undo()
    assert (root / "bound" / "sub" / "two").read_text() == "two"
    assert (root / "disk" / "new").read_text() == "new"
    manager.create("two")

    # a mount that the target knows nothing of is left alone with all that is in it
    (root / "late").mkdir()
    mount("-t", "tmpfs", "none", root / "late")
    (root / "late" / "f").write_text("late")
    report = manager.rollback("two")
    assert report.left_alone == (), report.left_alone
    assert report.kept == (b"bound-file", b"late", b"proc"), report.kept
    assert (root / "late" / "f").read_text() == "late"

    # so is one where the target has a file
    (root / "swap").write_text("a file")
    manager.create("swap")
    (root / "swap").unlink()
    (root / "swap").mkdir()
    mount("-t", "tmpfs", "none", root / "swap")
    (root / "swap" / "f").write_text("mounted")
    report = manager.rollback("swap")
    assert [problem.path for problem in report.left_alone] == [b"swap"], report.left_alone
    assert (root / "swap" / "f").read_text() == "mounted"

os.environ["CASNAP_ONE_FILE_SYSTEM"] = "true"
with CheckpointManager(root, store=store) as manager:
    (root / "plain" / "f").write_text("three")
    (root / "disk" / "f").write_text("three")
    report = manager.rollback("two")
    assert (root / "plain" / "f").read_text() == "two"
    assert (root / "disk" / "f").read_text() == "three"
    assert {b"disk", b"bound"} <= {problem.path for problem in report.left_alone}, report.left_alone
print("fine")
"""


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root and unshare")
def test_what_is_mounted_is_captured_and_put_back_and_mount_points_stay_as_they_are(tmp_path: Path) -> None:
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
    assert ran.stderr == ""
    assert ran.stdout == "fine\n"
