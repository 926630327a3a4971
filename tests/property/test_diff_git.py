"""``casnap diff A B --binary | git apply`` turns A into B, and back with ``-R``; CASNAP_DIFF_PAIRS says how often.

The trees hold what git's format has words for: regular files, the executable bit, symbolic links, any bytes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from casnap import CheckpointManager
from casnap.cli.running import run
from support.oracle import Snapshot, difference, snapshot

PAIRS = int(os.environ.get("CASNAP_DIFF_PAIRS", "25"))
FIRST = int(os.environ.get("CASNAP_DIFF_FIRST", "0"))
NAMES = (
    b"plain.txt",
    b"with space",
    b" around ",
    b"caf\xe9",
    b"\xff\xfe",
    b"new\nline",
    b"tab\there",
    b'"quoted"',
    b"back\\slash",
    "日本語".encode(),
    "\u202eright".encode(),
    b"-dash",
    b"a => b",
    b"b",
    b"{braces}",
    b"x b",
)
WORDS = (
    b"alpha",
    b"beta",
    b"}",
    b"",
    b"    return",
    b"caf\xe9",
    b"--- a/x",
    b"+++ b/x",
    b"@@ -1 +1 @@",
    b"diff --git a/b b/b",
)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + PAIRS))
def test_git_applies_what_diff_says(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    workspace, copy = os.fsencode(tmp_path / "workspace"), os.fsencode(tmp_path / "copy")
    with CheckpointManager(workspace) as manager:
        os.mkdir(workspace)
        for _ in range(rng.randint(1, 14)):
            put(free_path(workspace, rng), content(rng), rng)
        before = checkpoint(manager, "a")
        for _ in range(rng.randint(0, 10)):
            change(workspace, rng)
        after = checkpoint(manager, "b")
        manager.restore_to(copy, "a")
    options = [*(["--no-renames"] if rng.random() < 0.2 else []), *(["-U1"] if rng.random() < 0.2 else [])]
    patch = printed("diff", "-w", workspace, "a", "b", "--binary", *options)
    assert (patch == b"") == (difference(before, after) == [])
    if patch:
        git_apply(copy, patch)
        assert difference(after, seen_by_git(copy)) == []
        git_apply(copy, patch, "-R")
    assert difference(before, seen_by_git(copy)) == []


def checkpoint(manager: CheckpointManager, name: str) -> Snapshot:
    manager.create(name)
    return seen_by_git(os.fsencode(manager.status().workspace.path))


def printed(*args: str | bytes) -> bytes:
    """What a command prints, byte for byte."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        assert run([os.fsdecode(arg) for arg in args]) == 0
    stream = out.detach()
    assert isinstance(stream, io.BytesIO)
    return stream.getvalue()


def git_apply(directory: bytes, patch: bytes, *options: str) -> None:
    if not os.path.exists(os.path.join(directory, b".git")):
        subprocess.run(["git", "init", "--quiet"], cwd=directory, check=True)
    subprocess.run(
        ["git", "apply", "--binary", "--whitespace=nowarn", "--unidiff-zero", *options],
        cwd=directory,
        input=patch,
        check=True,
    )


def seen_by_git(directory: bytes) -> Snapshot:
    """What git could record of a directory."""
    return {
        path: dataclasses.replace(record, mode=None if record.mode is None else record.mode & 0o100, links=())
        for path, record in snapshot(directory, times=False, owners=False).items()
        if record.kind != "directory" and not path.startswith(b".git/")
    }


def content(rng: random.Random) -> bytes:
    kind = rng.random()
    if kind < 0.1:
        return b""
    if kind < 0.25:
        return rng.randbytes(rng.randint(1, 3000))
    end = b"\r\n" if rng.random() < 0.2 else b"\n"
    text = end.join(rng.choices(WORDS, k=rng.randint(1, 40))) + (end if rng.random() < 0.7 else b"")
    return text + b"\0" if rng.random() < 0.1 else text


def edited(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(lines) + 1)
        lines[at : at + rng.randint(0, 2)] = rng.choices(WORDS, k=rng.randint(0, 2))
    return b"\n".join(lines)


def put(path: bytes, data: bytes, rng: random.Random) -> None:
    """A file, or sometimes a link, at a path whose directories are made."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if rng.random() < 0.12:
        os.symlink(rng.choice((b"elsewhere", b"caf\xe9/\xff", b"new\nline", b"..", b"x" * 200)), path)
        return
    Path(os.fsdecode(path)).write_bytes(data)
    os.chmod(path, 0o755 if rng.random() < 0.25 else 0o644)


def free_path(root: bytes, rng: random.Random) -> bytes:
    """A path where nothing is, in the root, in a directory that is there, or in new ones."""
    while True:
        directories = [directory for directory, _, _ in os.walk(root)]
        path = os.path.join(rng.choice(directories), *rng.sample(NAMES, rng.choice((1, 1, 1, 2, 3))))
        if not os.path.lexists(path) and all(os.path.isdir(above) for above in existing_above(root, path)):
            return path


def existing_above(root: bytes, path: bytes) -> list[bytes]:
    above = []
    while len(path) > len(root):
        path = os.path.dirname(path)
        above += [path] if os.path.lexists(path) else []
    return above


def change(root: bytes, rng: random.Random) -> None:
    """One random change that leaves no empty directory, which git does not know."""
    paths = sorted(os.path.join(top, name) for top, _, names in os.walk(root) for name in names)
    paths += sorted(os.path.join(top, name) for top, names, _ in os.walk(root) for name in names)
    act = rng.choice((add, add, edit, edit, edit, move, move, move_edited, remove, chmod, retype, empty_out, swap))
    if act is add or not paths:
        put(free_path(root, rng), content(rng), rng)
        return
    act(root, rng.choice(paths), rng)
    for directory, _, _ in os.walk(root, topdown=False):
        if directory != root and not os.listdir(directory):
            os.rmdir(directory)


def add(root: bytes, path: bytes, rng: random.Random) -> None:
    put(free_path(root, rng), content(rng), rng)


def is_file(path: bytes) -> bool:
    return os.path.isfile(path) and not os.path.islink(path)


def edit(root: bytes, path: bytes, rng: random.Random) -> None:
    if is_file(path):
        data = Path(os.fsdecode(path)).read_bytes()
        Path(os.fsdecode(path)).write_bytes(edited(data, rng) if rng.random() < 0.8 else content(rng))


def move(root: bytes, path: bytes, rng: random.Random) -> None:
    home = free_path(root, rng)
    if not home.startswith(path + b"/"):
        os.makedirs(os.path.dirname(home), exist_ok=True)
        os.rename(path, home)


def move_edited(root: bytes, path: bytes, rng: random.Random) -> None:
    edit(root, path, rng)
    move(root, path, rng)


def remove(root: bytes, path: bytes, rng: random.Random) -> None:
    shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)


def chmod(root: bytes, path: bytes, rng: random.Random) -> None:
    if is_file(path):
        os.chmod(path, rng.choice((0o755, 0o644)))


def empty_out(root: bytes, path: bytes, rng: random.Random) -> None:
    if is_file(path):
        os.truncate(path, 0)


def retype(root: bytes, path: bytes, rng: random.Random) -> None:
    """A file where a directory was, a directory where a file was, or a link where either was, and back."""
    remove(root, path, rng)
    put(path if rng.random() < 0.7 else os.path.join(path, rng.choice(NAMES)), content(rng), rng)


def swap(root: bytes, path: bytes, rng: random.Random) -> None:
    """Two files exchange their names."""
    others = [other for other in (os.path.join(root, name) for name in sorted(os.listdir(root))) if is_file(other)]
    if others and is_file(path):
        other = rng.choice(others)
        aside = os.path.join(root, b"aside")
        os.rename(path, aside)
        if other != path:
            os.rename(other, path)
            os.rename(aside, other)
        else:
            os.rename(aside, path)
