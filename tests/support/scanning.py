"""Scans into memory, and an account of a directory that shares no code with the scan."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import os
import pkgutil
import signal
import stat
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from blake3 import blake3

import casnap
from casnap.codec.chunking import ChunkerParameters
from casnap.codec.hashing import object_id
from casnap.codec.trees import load_listing
from casnap.errors import Damage
from casnap.fs.directories import Directories
from casnap.model.clock import Silent
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.policy import Selection
from casnap.model.tree import AnyEntry, Device, Directory, Fifo, File, Omitted, Symlink
from casnap.workspace.ahead import ReadingAhead
from casnap.workspace.cache import StatCache
from casnap.workspace.omissions import Exclusions
from casnap.workspace.scan import Scan, Trust, scan

NOBODY = 65534
_PR_SET_DUMPABLE = 4


class SystemClock:
    """The real clock; ``slept`` adds up the waits in seconds."""

    def __init__(self) -> None:
        self.slept = 0.0

    def now(self) -> int:
        return time.time_ns()

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        time.sleep(seconds)


class PinnedClock(SystemClock):
    """Stands where it is put, and moves on by what is waited; nothing really waits."""

    def __init__(self, now: int) -> None:
        super().__init__()
        self.waits = 0
        self._now = now

    @classmethod
    def just_after(cls, path: str | bytes | os.PathLike[str]) -> PinnedClock:
        """A millisecond after the last change of ``path``."""
        return cls(os.lstat(path).st_ctime_ns + 1_000_000)

    def now(self) -> int:
        return self._now + round(self.slept * 1e9)

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.waits += 1


class MemoryStore:
    """A sink and source that checks the name of everything that it is given."""

    def __init__(self) -> None:
        self.objects: dict[ObjectKey, bytes] = {}
        self.puts = 0

    def put(self, key: ObjectKey, data: bytes, base: ObjectKey | None = None) -> None:
        assert key.id == object_id(key.kind, data)
        self.puts += 1
        self.objects[key] = data

    def present(self, keys: Iterable[ObjectKey]) -> set[ObjectKey]:
        return {key for key in keys if key in self.objects}

    def standing(self, keys: Iterable[ObjectKey]) -> set[ObjectKey]:
        return self.present(keys)

    def read(self, key: ObjectKey) -> bytes:
        try:
            return self.objects[key]
        except KeyError:
            raise Damage(f"missing: {key}") from None


def take(
    root: str | bytes | os.PathLike[str],
    store: MemoryStore | None = None,
    *,
    cache: StatCache | None = None,
    before_reading: Callable[[ReadingAhead], None] = lambda ahead: None,
    clock: SystemClock | None = None,
    directories: Directories | None = None,
    exclusions: Exclusions | None = None,
    selection: Selection | None = None,
    nonces: Iterable[str] = (),
    **options: Any,
) -> Scan:
    """Scan the directory ``root``; what :class:`Trust` has may be given as it is."""
    trust = Trust(**{name: options.pop(name) for name in Trust.__struct_fields__ if name in options})
    opened = directories or Directories(os.path.realpath(os.fsencode(root)))
    options.setdefault("source", store)
    try:
        return scan(
            opened,
            sink=MemoryStore() if store is None else store,
            cache=cache,
            clock=clock or SystemClock(),
            progress=Silent(),
            exclusions=exclusions or Exclusions(),
            selection=selection or Selection(),
            nonces=frozenset(nonces),
            parameters=ChunkerParameters(),
            before_reading=before_reading,
            trust=trust,
            **options,
        )
    finally:
        if directories is None:
            opened.close()


def entries_of(store: MemoryStore, root: Directory) -> dict[bytes, AnyEntry]:
    """Every entry of a scanned tree by its path, the root under the empty one."""
    entries: dict[bytes, AnyEntry] = {b"": root}
    waiting = [(b"", root)]
    while waiting:
        path, directory = waiting.pop()
        for entry in load_listing(store, directory.tree):
            below = path + b"/" + entry.name if path else entry.name
            entries[below] = entry
            if isinstance(entry, Directory):
                waiting.append((below, entry))
    return entries


def facts_of(store: MemoryStore, root: Directory) -> dict[bytes, tuple[Any, ...]]:
    """What a scan says of each path, in the form of :func:`facts_on_disk`; what was left out is left out."""
    return {path: _facts(entry) for path, entry in entries_of(store, root).items() if not isinstance(entry, Omitted)}


def _facts(entry: AnyEntry) -> tuple[Any, ...]:
    assert not isinstance(entry, Omitted)
    common = (entry.mode, entry.uid, entry.gid, entry.mtime_s * 10**9 + entry.mtime_frac, dict(entry.xattrs))
    match entry:
        case File():
            return ("file", *common, entry.size, entry.content)
        case Directory():
            return ("directory", *common)
        case Symlink():
            return ("symlink", *common, entry.target)
        case Fifo():
            return ("fifo", *common)
        case Device():
            return ("block" if entry.block else "character", *common, entry.major, entry.minor)


def facts_on_disk(root: str | bytes | os.PathLike[str]) -> dict[bytes, tuple[Any, ...]]:
    """Kind, metadata and content of every path below ``root``, by lstat, readlink and reading."""
    top = os.fsencode(root)
    found: dict[bytes, tuple[Any, ...]] = {}
    waiting = [b""]
    while waiting:
        path = waiting.pop()
        absolute = os.path.join(top, path) if path else top
        status = os.lstat(absolute)
        found[path] = _facts_on_disk(absolute, status)
        if stat.S_ISDIR(status.st_mode):
            waiting += [path + b"/" + name if path else name for name in os.listdir(absolute)]
    return found


def _facts_on_disk(path: bytes, status: os.stat_result) -> tuple[Any, ...]:
    common = (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid, status.st_mtime_ns, _xattrs(path))
    if stat.S_ISREG(status.st_mode):
        data = Path(os.fsdecode(path)).read_bytes()
        return ("file", *common, len(data), blake3(data).digest())
    if stat.S_ISDIR(status.st_mode):
        return ("directory", *common)
    if stat.S_ISLNK(status.st_mode):
        return ("symlink", *common, os.readlink(path))
    if stat.S_ISFIFO(status.st_mode):
        return ("fifo", *common)
    kind = "block" if stat.S_ISBLK(status.st_mode) else "character"
    return (kind, *common, os.major(status.st_rdev), os.minor(status.st_rdev))


def _xattrs(path: bytes) -> dict[bytes, bytes]:
    names = os.listxattr(path, follow_symlinks=False)
    return {
        os.fsencode(name): os.getxattr(path, name, follow_symlinks=False)
        for name in names
        if name.startswith("user.") or name in ("security.capability", "system.posix_acl_access")
    }


def chunk(data: bytes) -> ObjectKey:
    """The name of a chunk."""
    return ObjectKey(ObjectKind.CHUNK, blake3(data).digest())


def settle(root: str | bytes | os.PathLike[str]) -> None:
    """Wait until everything that was written just now has stamps that are past by the margin."""
    time.sleep(0.03)


@contextlib.contextmanager
def deadline(seconds: int) -> Iterator[None]:
    """Fail what blocks, instead of stopping the whole run."""

    def give_up(*_: object) -> None:
        raise AssertionError(f"still not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@functools.cache
def _import_everything() -> None:
    """Import all that is imported late: Python itself may lie where only its owner may read."""
    importlib.import_module("sqlite_utils")
    for module in pkgutil.walk_packages(casnap.__path__, "casnap."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def as_nobody(act: Callable[[], None]) -> None:
    """Run ``act`` in a child without privileges; what goes wrong there fails the test here."""
    _import_everything()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)  # or /proc/self stays closed to it
            act()
        except BaseException:
            os.write(writer, traceback.format_exc().encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        said = file.read()
    os.waitpid(child, 0)
    assert not said, said
