"""What the tests of field cases share: ordinary users, killed processes, git, and meddlers beside a command."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import io
import json
import os
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pyfastcdc  # noqa: F401  # an ordinary user may be unable to reach what is imported late
import sqlite_utils  # noqa: F401

from casnap import CheckpointManager
from casnap.cli.running import run as program
from support.cli import Result, environment
from support.oracle import Snapshot, difference, snapshot
from support.scanning import NOBODY, as_nobody

AnyPath = str | os.PathLike[str]

_RENAME_EXCHANGE = 2
_AT_FDCWD = -100
_NAME_EVENTS = 0x40 | 0x80 | 0x100 | 0x200
"""inotify's moved from, moved to, created, deleted."""

_libc = ctypes.CDLL(None, use_errno=True)


def start(*args: AnyPath, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start ``casnap ARGS`` and do not wait for it; what it says can be had from ``communicate``."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "casnap", *map(str, args)],
        env=environment(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def kill_after(seconds: float, *args: AnyPath, written: Path | None = None) -> bool:
    """Run a command and kill it; whether the kill came in time. The time begins when something is ``written`` there."""
    size = None if written is None else _size_below(written)
    child = start(*args)
    while written is not None and child.poll() is None and _size_below(written) == size:
        time.sleep(0.001)
    time.sleep(seconds)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    return child.returncode == -signal.SIGKILL


def _size_below(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.iterdir())


def run_here(
    *args: str | bytes | os.PathLike[str],
    cwd: AnyPath | None = None,
    env: dict[str, str] | None = None,
    check: int | None = None,
) -> Result:
    """``support.cli.run`` within this process: many times quicker, and for users who cannot reach the interpreter."""
    words = tuple(os.fsdecode(word) for word in args)
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    on_terminate = signal.getsignal(signal.SIGTERM)
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            contextlib.chdir(cwd or "."),
            mock.patch.dict(os.environ, env or {}),
        ):
            status = program(list(words))
    finally:
        signal.signal(signal.SIGTERM, on_terminate)
    texts = [stream.detach().getvalue().decode("utf-8", "backslashreplace") for stream in (out, err)]
    result = Result(words, status, *texts)
    if check is not None:
        assert status == check, f"casnap {' '.join(words)}: exit {status}, {check} was expected\n{texts[0]}\n{texts[1]}"
    return result


def as_ordinary_user(act: Callable[[Path], None]) -> None:
    """Run ``act`` without privileges, in a directory of its own; what goes wrong there fails the test here."""
    place = Path(tempfile.mkdtemp(prefix="casnap-user-"))
    try:
        if os.geteuid() == 0:
            _import_everything()
            os.chmod(place, 0o755)
            os.chown(place, NOBODY, NOBODY)
            as_nobody(lambda: act(place))
        else:
            act(place)
    finally:
        remove(place)


@functools.cache
def _import_everything() -> None:
    """Have the verbs import what they need, while it can be reached."""
    with tempfile.TemporaryDirectory() as place:
        workspace = Path(place, "workspace")
        workspace.mkdir()
        options = ("--store", f"{place}/store", "-w", str(workspace))
        for verb in ("checkpoint", "status", "diff", "list", "rollback", "verify", "recover"):
            assert run_here(verb, *options).status == 0


def remove(path: AnyPath) -> None:
    """Remove a directory with all in it, whatever the modes are."""
    for directory, names, _ in os.walk(path):
        for name in [".", *names]:
            found = os.path.join(directory, name)
            if not os.path.islink(found):
                os.chmod(found, 0o700)
    shutil.rmtree(path)


def restores_to(manager: CheckpointManager, scratch: Path, expected: dict[str, Snapshot] | None = None) -> int:
    """Restore every listed checkpoint, safety ones too, and compare those that are known by name; how many."""
    listed = manager.list(safety=True)
    for checkpoint in listed:
        manager.restore_to(scratch, checkpoint.id)
        if expected is not None and checkpoint.name in expected:
            assert difference(expected[checkpoint.name], snapshot(scratch)) == []
        remove(scratch)
    return len(listed)


def in_processes(count: int, act: Callable[[int], Any]) -> list[Any]:
    """``act(number)`` in so many forked processes that begin at the same instant; their JSON-ready answers.

    Raises:
        AssertionError: one of them raised.
    """
    gate, opener = os.pipe()
    children: list[tuple[int, int]] = []
    for number in range(count):
        answers, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(opener)
            os.read(gate, 1)
            try:
                answer = {"answer": act(number)}
            except BaseException:
                answer = {"raised": traceback.format_exc()}
            os.write(writer, json.dumps(answer).encode())
            os._exit(0)
        os.close(writer)
        children.append((child, answers))
    os.close(gate)
    os.close(opener)
    found = []
    for child, answers in children:
        with os.fdopen(answers) as stream:
            found.append(json.loads(stream.read()))
        os.waitpid(child, 0)
    assert not [answer["raised"] for answer in found if "raised" in answer], found
    return [answer["answer"] for answer in found]


@contextlib.contextmanager
def beside(act: Callable[[], None]) -> Iterator[None]:
    """Have a thread do ``act`` over and over while the block runs."""
    stop = threading.Event()
    failed: list[BaseException] = []

    def loop() -> None:
        try:
            while not stop.is_set():
                act()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert failed == []


def exchange(one: AnyPath, other: AnyPath) -> bool:
    """Swap what two names stand for, in one step; whether it worked."""
    names = os.fsencode(one), os.fsencode(other)
    return bool(_libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0)


@contextlib.contextmanager
def swapping(directory: Path, outside: Path) -> Iterator[None]:
    """While the block runs, ``directory`` keeps turning into a link to ``outside`` and back."""
    parked = outside.with_name("parked")
    parked.symlink_to(outside)
    swaps = [0]

    def swap() -> None:
        swaps[0] += exchange(directory, parked)
        time.sleep(0.001)

    with beside(swap):
        yield
    assert swaps[0]
    if parked.is_symlink():
        parked.unlink()
    else:
        if directory.is_symlink():
            directory.unlink()
            parked.rename(directory)
        else:  # the workspace got a directory of its own meanwhile
            remove(parked)


def git(directory: Path, *args: str, check: bool = True) -> str:
    """Run git with an identity and no configuration of anybody; what it says on standard output."""
    identity = {f"GIT_{who}_{what}": "t@example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    plain = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    done = subprocess.run(
        ["git", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main", "-c", "gc.auto=0", *args],
        cwd=directory,
        env=os.environ | identity | plain,
        capture_output=True,
        check=False,
    )
    assert not check or done.returncode == 0, done.stderr
    return done.stdout.decode("utf-8", "surrogateescape")


def make_repository(directory: Path, *, commits: int = 2) -> Path:
    """A git repository with as many commits, each of a file of its own; its directory."""
    directory.mkdir(parents=True, exist_ok=True)
    git(directory, "init", "-q")
    for number in range(commits):
        (directory / f"f{number}").write_text(f"{directory.name} {number}\n")
        git(directory, "add", "-A")
        git(directory, "commit", "-q", "-m", f"commit {number}")
    return directory


@contextlib.contextmanager
def names_that_change(*directories: Path) -> Iterator[list[bytes]]:
    """While the block runs, collect the names that are made, moved or removed in these directories."""
    fd = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    for directory in directories:
        assert _libc.inotify_add_watch(fd, os.fsencode(directory), _NAME_EVENTS) > 0
    found: list[bytes] = []
    try:
        yield found
    finally:
        with contextlib.suppress(BlockingIOError):
            while events := os.read(fd, 1 << 16):
                while events:
                    length = struct.unpack_from("iIII", events)[3]
                    found.append(events[16 : 16 + length].rstrip(b"\0"))
                    events = events[16 + length :]
        os.close(fd)


def flip(store: Path, needle: bytes, at: int) -> None:
    """Damage the pack that holds ``needle`` as it is, ``at`` bytes behind its beginning."""
    for pack in sorted((store / "packs").iterdir()):
        data = bytearray(pack.read_bytes())
        found = data.find(needle)
        if found >= 0:
            data[found + at] ^= 0xFF
            pack.write_bytes(data)
            return
    raise AssertionError("no pack holds it")


def account(path: AnyPath) -> tuple[object, ...]:
    """All that an outsider can see of one file: type, mode, owner, size, times, and its bytes or target."""
    status = os.lstat(path)
    content = os.readlink(path) if stat.S_ISLNK(status.st_mode) else Path(path).read_bytes()
    return (status.st_ino, status.st_mode, status.st_uid, status.st_gid, status.st_size, status.st_mtime_ns, content)
