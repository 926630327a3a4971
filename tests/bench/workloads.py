"""What is worked on: trees of source files, one big file, and the edits of an agent; from a seed, the same each time.

The text is that of the running Python: its library and the packages that are installed beside it, file by file first,
then in copies of which each file differs by a few lines, as versions and vendored packages do. The same seed, number of
files and Python give the same names, bytes, modes and times.
"""

from __future__ import annotations

import os
import random
import shutil
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path

LIBRARY = Path(sysconfig.get_path("stdlib"))
TEXTS = (".py", ".txt", ".cfg", ".h", ".rst", ".toml", ".json")
NOT_SOURCE = {"__pycache__", "lib-dynload"}
LONGEST = 2_000_000
SHORT = 300
"""Files below this are mostly empty ``__init__.py``; three of four are passed over, as they say little."""

EPOCH = 1_700_000_000
EXECUTABLE, LINKED = 100, 1_000
"""One file of so many is executable; there is one symbolic link for so many files."""

BIG = "big.bin"
STRIPE = 64 << 10
"""The big file alternates so many bytes of noise with as many of text: half of it can be compressed."""

INSERTED, OVERWRITTEN = 1 << 10, 64 << 10
"""What an edit of the big file puts into its middle, and what it overwrites at a fifth; both are new bytes."""


def make_tree(root: Path, files: int, *, seed: int = 1) -> list[str]:
    """Make ``root`` with ``files`` regular files and some links; the relative paths of the files, in order."""
    rng = random.Random(f"tree {seed}")
    made: list[str] = []
    for path, data in _sources(files, rng):
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        place.chmod(0o755 if rng.randrange(EXECUTABLE) == 0 else 0o644)
        os.utime(place, (EPOCH + len(made),) * 2)
        made.append(path)
    for number in range(max(1, files // LINKED)):
        aim = root / rng.choice(made)
        link = aim.parent / f"link{number}"
        link.symlink_to(aim.name)
        os.utime(link, (EPOCH, EPOCH), follow_symlinks=False)
    for directory, _, _ in os.walk(root, topdown=False):
        os.utime(directory, (EPOCH, EPOCH))
    return sorted(made)


def _sources(wanted: int, rng: random.Random) -> Iterator[tuple[str, bytes]]:
    directories = list(_directories())
    rng.shuffle(directories)
    done = 0
    for edition in range(wanted):
        for directory, names in directories:
            for name in names:
                if done == wanted:
                    return
                data = (LIBRARY / directory / name).read_bytes()
                if len(data) < SHORT and rng.random() < 0.75:
                    continue
                if edition:
                    data = edited(data, rng)
                done += 1
                yield os.path.normpath(f"edition{edition}/{directory}/{name}"), data


@cache
def _directories() -> tuple[tuple[str, list[str]], ...]:
    """The directories of the library that hold text, and its names in each."""
    found = []
    for directory, inner, names in os.walk(LIBRARY):
        inner[:] = sorted(set(inner) - NOT_SOURCE)
        texts = [name for name in sorted(names) if name.endswith(TEXTS)]
        if kept := [name for name in texts if 0 < (Path(directory) / name).stat().st_size <= LONGEST]:
            found.append((os.path.relpath(directory, LIBRARY), kept))
    return tuple(found)


def edited(data: bytes, rng: random.Random) -> bytes:
    """The same text after one to four small edits: a line replaced, some lines added, or a line taken away."""
    lines = data.splitlines(keepends=True) or [b"\n"]
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(lines))
        match rng.choices(("replace", "add", "remove"), (10, 7, 3))[0]:
            case "replace":
                lines[at] = _line(rng)
            case "add":
                lines[at:at] = [_line(rng) for _ in range(rng.randint(1, 3))]
            case _ if len(lines) > 1:
                del lines[at]
    return b"".join(lines)


_WORDS = [
    "assert",
    "await",
    "buffer",
    "bytes",
    "class",
    "close",
    "config",
    "count",
    "data",
    "default",
    "else",
    "entry",
    "error",
    "except",
    "field",
    "file",
    "for",
    "from",
    "handler",
    "if",
    "import",
    "index",
    "int",
    "item",
    "key",
    "length",
    "limit",
    "line",
    "list",
    "lock",
    "match",
    "name",
    "node",
    "none",
    "not",
    "object",
    "offset",
    "open",
    "parse",
    "path",
    "pending",
    "queue",
    "raise",
    "read",
    "result",
    "return",
    "self",
    "size",
    "source",
    "start",
    "state",
    "str",
    "target",
    "text",
    "token",
    "tree",
    "true",
    "try",
    "value",
    "while",
    "with",
    "write",
    "yield",
]


def _line(rng: random.Random) -> bytes:
    words = " ".join(rng.choices(_WORDS, k=rng.randint(3, 11)))
    return f"{'    ' * rng.randrange(4)}{words}  # {rng.randrange(1_000_000)}\n".encode()


def _text(rng: random.Random, size: int) -> bytes:
    text = bytearray()
    while len(text) < size:
        text += _line(rng)
    return bytes(text)


class Agent:
    """Edits a tree as an agent does; two agents with the same seed make the same edits in equal trees.

    ``files`` are the relative paths of the tree's files; the agent keeps its own account of them.
    """

    def __init__(self, root: Path, files: list[str], seed: str) -> None:
        self.root = root
        self.files = list(files)
        self._seed, self._step = seed, 0

    def step(self) -> None:
        """One to ten files edited, some added, deleted, renamed."""
        rng = self._next()
        self._edit(rng, rng.randint(1, 10))
        self._add(rng, rng.choice((0, 0, 1, 1, 2)))
        self._delete(rng, rng.choice((0, 0, 0, 1, 1)))
        if rng.randrange(5) == 0:
            self._rename(rng)

    def change(self, *, edit: int = 8, add: int = 1, delete: int = 1) -> None:
        """So many files edited, added and deleted."""
        rng = self._next()
        self._edit(rng, edit)
        self._add(rng, add)
        self._delete(rng, delete)

    def _next(self) -> random.Random:
        self._step += 1
        return random.Random(f"{self._seed} {self._step}")

    def _edit(self, rng: random.Random, count: int) -> None:
        for path in rng.sample(self.files, count):
            place = self.root / path
            place.write_bytes(edited(place.read_bytes(), rng))

    def _add(self, rng: random.Random, count: int) -> None:
        for number in range(count):
            path = f"{os.path.dirname(rng.choice(self.files))}/added_{self._step}_{number}.py"
            place = self.root / path
            place.parent.mkdir(parents=True, exist_ok=True)  # git leaves no directory without files
            place.write_bytes(_text(rng, rng.randint(200, 8_000)))
            self.files.append(path)

    def _delete(self, rng: random.Random, count: int) -> None:
        for path in rng.sample(self.files, count):
            (self.root / path).unlink()
            self.files.remove(path)

    def _rename(self, rng: random.Random) -> None:
        old = rng.choice(self.files)
        new = f"{os.path.dirname(old)}/renamed_{self._step}.py"
        (self.root / old).rename(self.root / new)
        self.files[self.files.index(old)] = new


def make_big(root: Path, size: int, *, seed: int = 1) -> None:
    """Make ``root`` with one file of ``size`` bytes, rounded down to whole stripes of both kinds."""
    rng = random.Random(f"big {seed}")
    root.mkdir(parents=True)
    text = _text(rng, 4 << 20)
    with (root / BIG).open("wb") as file:
        for _ in range(size // (2 * STRIPE)):
            file.write(rng.randbytes(STRIPE))
            at = rng.randrange(len(text) - STRIPE)
            file.write(text[at : at + STRIPE])


def edit_big(root: Path, seed: str) -> None:
    """Insert new bytes in the middle of the big file, so that all behind them move, and overwrite some before."""
    rng = random.Random(f"big edit {seed}")
    path = root / BIG
    size = path.stat().st_size
    middle = size // 2 + rng.randrange(size // 1_000)
    with path.open("r+b") as file:
        file.seek(middle)
        behind = file.read()
        file.seek(middle)
        file.write(rng.randbytes(INSERTED) + behind)
        file.seek(size // 5 + rng.randrange(size // 1_000))
        file.write(rng.randbytes(OVERWRITTEN))


def make_copies(root: Path, base: Path, files: list[str], copies: int) -> list[Path]:
    """Directories below ``root`` that are copies of ``base``; all but the first differ from it in 1 % of the files."""
    root.mkdir()
    made = []
    for number in range(copies):
        copy = root / f"copy{number}"
        shutil.copytree(base, copy, symlinks=True)
        if number:
            Agent(copy, files, f"copy {number}").change(edit=max(1, len(files) // 100), add=2, delete=2)
        made.append(copy)
    return made
