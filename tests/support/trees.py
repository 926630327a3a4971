"""Directories to protect: varied, repeatable from a seed, and broken at random.

Everything is drawn from the ``random.Random`` that is passed in; the same seed gives the same names and
bytes. Paths are bytes: names that are no UTF-8 occur.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import shutil
import stat
from collections.abc import Callable, Iterator

AnyPath = str | bytes | os.PathLike[str]
Test = Callable[[bytes], bool]
Act = Callable[[bytes, random.Random], None]

LONGEST_FILE = 3 << 20
ODD_NAMES = (
    b"caf\xe9 latin1",
    b"\xff\xfe",
    b"new\nline",
    b" leading and trailing ",
    b"-dash",
    b"tab\there",
    "日本語".encode(),
    "e\u0301 decomposed".encode(),
    b"back\\slash",
    b"*?[glob]",
    b"L" * 255,
)
FILE_MODES = (0o644, 0o644, 0o644, 0o644, 0o600, 0o755, 0o444, 0o400, 0o777, 0o4755, 0o640)
DIRECTORY_MODES = (0o755, 0o755, 0o755, 0o700, 0o750, 0o1777, 0o555)


def make_tree(path: AnyPath, rng: random.Random, *, files: int = 200) -> None:
    """Fill ``path`` (created if absent) with ``files`` regular files, and with links and directories of all sorts."""
    root = os.fsencode(path)
    os.makedirs(root, exist_ok=True)
    directories = _make_directories(root, rng, max(4, files // 12))
    for number in range(files):
        odd = ODD_NAMES[number] if number < len(ODD_NAMES) else None
        name = odd or b"%s-%d.%s" % (_word(rng), number, rng.choice((b"py", b"txt", b"json", b"bin", b"md")))
        data = rng.randbytes(LONGEST_FILE) if number == len(ODD_NAMES) else content(rng)
        write_file(os.path.join(rng.choice(directories), name), data, rng.choice(FILE_MODES), rng)
    _make_links(root, rng, directories)
    for directory in reversed(directories[1:]):
        os.chmod(directory, rng.choice(DIRECTORY_MODES))
        _age(directory, rng)
    _age(root, rng)


def content(rng: random.Random) -> bytes:
    """The bytes of a file: mostly a few KiB of text, sometimes nothing, seldom noise, up to a MiB or more."""
    fate = rng.random()
    if fate < 0.08:
        return b""
    if fate < 0.95:
        return b"\n".join(rng.choices(_LINES, k=rng.randint(1, 300))) + b"\n"
    if fate < 0.998:
        return rng.randbytes(rng.randint(1, 100_000))
    return rng.randbytes(rng.randint(1 << 20, LONGEST_FILE))


def write_file(path: bytes, data: bytes, mode: int, rng: random.Random) -> None:
    """A new regular file, some days old."""
    with open(path, "xb") as file:
        file.write(data)
    os.chmod(path, mode)
    _age(path, rng)


def mutate(path: AnyPath, rng: random.Random, n: int) -> list[str]:
    """Change the tree at ``path`` in ``n`` random ways; says what was done, one line each."""
    root = os.fsencode(path)
    done: list[str] = []
    paths: list[bytes] = []
    while len(done) < n:
        if len(done) % _LOOK_AGAIN == 0 or not paths:
            paths = _paths(root)
        kind, act = rng.choice(_MUTATIONS)
        victim = _draw(paths, kind, rng) if paths else None
        if victim is None:
            kind, act, victim = _is_anything, _add_file, os.path.join(root, b"x")
        with _writable(os.path.dirname(victim)):
            act(victim, rng)
        done.append(f"{act.__name__.strip('_')} {victim[len(root) + 1 :]!r}")
    return done


_LOOK_AGAIN = 25
"""Mutations between two walks of the tree: what is new becomes a victim after a while."""


def _draw(paths: list[bytes], kind: Test, rng: random.Random) -> bytes | None:
    for _ in range(100):
        path = rng.choice(paths)
        if os.path.lexists(path) and kind(path):
            return path
    return None


@contextlib.contextmanager
def _writable(directory: bytes) -> Iterator[None]:
    """Loosen a directory for one change, as its owner would; one that need not be loosened is not touched."""
    mode = stat.S_IMODE(os.lstat(directory).st_mode)
    if mode & 0o700 == 0o700 or os.geteuid() == 0:
        yield
        return
    os.chmod(directory, mode | 0o700)
    try:
        yield
    finally:
        os.chmod(directory, mode)


def _paths(root: bytes) -> list[bytes]:
    walk = os.walk(root)
    return sorted(os.path.join(directory, name) for directory, names, files in walk for name in names + files)


def _is_file(path: bytes) -> bool:
    return stat.S_ISREG(os.lstat(path).st_mode)


def _is_directory(path: bytes) -> bool:
    return stat.S_ISDIR(os.lstat(path).st_mode)


def _is_link(path: bytes) -> bool:
    return stat.S_ISLNK(os.lstat(path).st_mode)


def _is_small(path: bytes) -> bool:
    """No directory, or one with little below it: five hundred mutations must leave most of a tree alone."""
    return not _is_directory(path) or len(list(itertools.islice(os.walk(path), 3))) < 3


def _is_small_directory(path: bytes) -> bool:
    return _is_directory(path) and _is_small(path)


def _is_anything(path: bytes) -> bool:
    return True


def _edit(path: bytes, rng: random.Random) -> None:
    _loosen(path)
    with open(path, "r+b") as file:
        file.seek(rng.randint(0, max(os.path.getsize(path), 1)))
        file.write(b"edited by %d" % rng.getrandbits(32))


def _replace(path: bytes, rng: random.Random) -> None:
    os.unlink(path)
    write_file(path, content(rng), rng.choice(FILE_MODES), rng)


def _truncate(path: bytes, rng: random.Random) -> None:
    _loosen(path)
    os.truncate(path, 0)


def _edit_keeping_times(path: bytes, rng: random.Random) -> None:
    before = os.lstat(path)
    _edit(path, rng)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _remove(path: bytes, rng: random.Random) -> None:
    if _is_directory(path):
        for directory, _, _ in os.walk(path):
            os.chmod(directory, 0o700)
        shutil.rmtree(path)
    else:
        os.unlink(path)


def _add_file(path: bytes, rng: random.Random) -> None:
    write_file(_new_name(path, rng), content(rng), rng.choice(FILE_MODES), rng)


def _add_directory(path: bytes, rng: random.Random) -> None:
    new = _new_name(path, rng)
    os.mkdir(new)
    write_file(os.path.join(new, b"inside"), content(rng), 0o644, rng)


def _add_hard_link(path: bytes, rng: random.Random) -> None:
    os.link(path, _new_name(path, rng))


def _rename(path: bytes, rng: random.Random) -> None:
    os.rename(path, _new_name(path, rng))


def _move(path: bytes, rng: random.Random) -> None:
    parent = os.path.dirname(path)
    siblings = [found for name in sorted(os.listdir(parent)) if (found := os.path.join(parent, name)) != path]
    homes = [sibling for sibling in siblings if _is_directory(sibling)]
    if not homes:
        return _rename(path, rng)
    home = rng.choice(homes)
    with _writable(home):
        os.rename(path, _new_name(os.path.join(home, b"x"), rng))


def _change_mode(path: bytes, rng: random.Random) -> None:
    os.chmod(path, rng.choice(DIRECTORY_MODES if _is_directory(path) else FILE_MODES))


def _change_times(path: bytes, rng: random.Random) -> None:
    _age(path, rng)


def _retype(path: bytes, rng: random.Random) -> None:
    was_directory = _is_directory(path)
    _remove(path, rng)
    if was_directory:
        write_file(path, content(rng), 0o644, rng)
    elif rng.random() < 0.5:
        os.mkdir(path)
        write_file(os.path.join(path, b"was a file"), content(rng), 0o644, rng)
    else:
        os.symlink(b"was/a/file", path)


def _retarget(path: bytes, rng: random.Random) -> None:
    os.unlink(path)
    os.symlink(b"elsewhere/%d" % rng.getrandbits(16), path)


_MUTATIONS: tuple[tuple[Test, Act], ...] = (
    (_is_file, _edit),
    (_is_file, _edit),
    (_is_file, _replace),
    (_is_file, _truncate),
    (_is_file, _edit_keeping_times),
    (_is_file, _remove),
    (_is_file, _remove),
    (_is_file, _add_hard_link),
    (_is_file, _change_mode),
    (_is_file, _retype),
    (_is_link, _retarget),
    (_is_link, _retype),
    (_is_directory, _change_mode),
    (_is_small_directory, _retype),
    (_is_small_directory, _remove),
    (_is_anything, _change_times),
    (_is_small, _rename),
    (_is_small, _move),
    (_is_anything, _add_file),
    (_is_anything, _add_file),
    (_is_anything, _add_directory),
)


def _loosen(path: bytes) -> None:
    mode = stat.S_IMODE(os.lstat(path).st_mode)
    if mode & 0o600 != 0o600 and os.geteuid() != 0:
        os.chmod(path, mode | 0o600)


def _new_name(beside: bytes, rng: random.Random) -> bytes:
    return os.path.join(os.path.dirname(beside), b"new-%s-%08x" % (_word(rng), rng.getrandbits(32)))


def _make_directories(root: bytes, rng: random.Random, count: int) -> list[bytes]:
    directories = [root]
    for number in range(count):
        name = b"caf\xe9" if number == 0 else b"%s%d" % (_word(rng), number)
        directory = os.path.join(rng.choice(directories), name)
        os.mkdir(directory)
        directories.append(directory)
    return directories


def _make_links(root: bytes, rng: random.Random, directories: list[bytes]) -> None:
    links = {
        b"dangling": b"no/such/place",
        b"loop": b"loop",
        b"to-itself": b".",
        b"absolute": b"/usr/bin/env",
        b"out-of-tree": b"../../..",
        b"odd-target": b"caf\xe9/\xff",
    }
    for name, target in links.items():
        os.symlink(target, os.path.join(root, name))
        _age(os.path.join(root, name), rng)
    os.mkdir(os.path.join(root, b"empty"))
    directories.append(os.path.join(root, b"empty"))
    files, homes = [path for path in _paths(root) if _is_file(path)], directories[:-1]
    for number in range(min(len(files), max(2, len(files) // 40))):
        os.link(rng.choice(files), os.path.join(rng.choice(homes), b"hard-%d" % number))


def _age(path: bytes, rng: random.Random) -> None:
    """Set a time some days back, with all its nanoseconds."""
    instant = 1_700_000_000_000_000_000 + rng.randrange(10_000_000_000_000_000)
    os.utime(path, ns=(instant, instant), follow_symlinks=False)


def _word(rng: random.Random) -> bytes:
    return bytes(rng.choices(b"abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9)))


_LINES = [b" ".join(_word(random.Random(number)) for _ in range(number % 12)) for number in range(500)]
"""What text files are made of."""
