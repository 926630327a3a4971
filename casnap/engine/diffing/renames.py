"""Renames: a removed and an added file that have their content, or most of it, in common."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from casnap.engine.compare import change_of
from casnap.engine.diffing.lines import split_lines
from casnap.model.change import Aspect, Change, ChangeKind
from casnap.model.paths import split
from casnap.model.tree import File

ENOUGH = 50
"""Per cent of the larger file that both must share."""

ENOUGH_BY_NAME = 75
"""The same where the last part of the name, that no other file has, decides with which one a file is compared first."""

SIZE_LIMIT = 1 << 20
"""Larger files are paired by equal content only."""

PAIRS_LIMIT = 10_000
BYTES_LIMIT = 32 << 20
"""How many pairs of files are compared with each other, and how many bytes are read for that; beyond, none are."""

_PIECE = 64

Read = Callable[[Change], bytes | None]
"""Gives the bytes of the file that a change adds or removes; None where they cannot be read."""


@dataclass(slots=True)
class _Fingerprint:
    """A file's bytes as pieces: its lines, cut at 64 bytes; where in the file they stand does not count."""

    size: int
    pieces: Counter[bytes] = field(default_factory=Counter)

    @classmethod
    def of(cls, data: bytes) -> _Fingerprint:
        found = cls(len(data))
        for line in split_lines(data):
            if len(line) <= _PIECE:
                found.pieces[line] += 1
            else:
                found.pieces.update(line[at : at + _PIECE] for at in range(0, len(line), _PIECE))
        return found

    def similarity(self, other: _Fingerprint) -> int:
        """Per cent of the larger file that is in both; 100 is left to equal files."""
        shared = self.pieces.keys() & other.pieces.keys()
        common = sum(min(self.pieces[piece], other.pieces[piece]) * len(piece) for piece in shared)
        return min(100 * common // max(self.size, other.size, 1), 99)


class _Search:
    """Files that are gone, files that are new, and which of them were found to be the same."""

    def __init__(self, changes: tuple[Change, ...]) -> None:
        files = [change for change in changes if isinstance(change.new or change.old, File)]
        self.gone = {change.path: change for change in files if change.kind is ChangeKind.REMOVED}
        self.new = {change.path: change for change in files if change.kind is ChangeKind.ADDED}
        self.found: dict[bytes, Change] = {}

    def pair(self, gone: bytes, new: bytes, similarity: int) -> None:
        """Take them for one file."""
        old, changed = self.gone.pop(gone).old, self.new.pop(new).new
        same = change_of(new, old, changed)
        aspects = same.aspects if same else Aspect.NONE
        self.found[new] = Change(new, ChangeKind.RENAMED, old, changed, aspects, gone, similarity)

    def pair_equal(self, key: Callable[[Change], object]) -> None:
        """Pair files of which ``key`` says the same, in order of their paths."""
        known: defaultdict[object, deque[bytes]] = defaultdict(deque)
        for path, change in self.gone.items():
            known[key(change)].append(path)
        for path, change in list(self.new.items()):
            if waiting := known.get(key(change)):
                self.pair(waiting.popleft(), path, 100)


def find_renames(changes: tuple[Change, ...], read: Read) -> tuple[tuple[Change, ...], str | None]:
    """The changes with each removal and addition of one file as a rename; and what there is to say about it.

    Equal content decides first, then similarity.
    """
    search = _Search(changes)
    if not search.gone or not search.new:
        return changes, None
    search.pair_equal(lambda change: (_content(change), _last_name(change.path)))
    search.pair_equal(_content)
    note = _pair_similar(search, read)
    origins = {change.renamed_from for change in search.found.values()}
    kept = (search.found.get(change.path, change) for change in changes)
    return tuple(change for change in kept if change.kind is not ChangeKind.REMOVED or change.path not in origins), note


class _Comparison:
    """Files that are left, by path, and how much they have in common."""

    def __init__(self, search: _Search, read: Read) -> None:
        self.gone, self.new = (
            {path: change for path, change in side.items() if 0 < _size(change) <= SIZE_LIMIT}
            for side in (search.gone, search.new)
        )
        self._read = read
        self._known: dict[bytes, _Fingerprint | None] = {}

    @property
    def is_bounded(self) -> bool:
        """Whether they are few enough to be compared."""
        total = sum(map(_size, (*self.gone.values(), *self.new.values())))
        return len(self.gone) * len(self.new) <= PAIRS_LIMIT and total <= BYTES_LIMIT

    def similarity(self, gone: bytes, new: bytes) -> int:
        """Per cent; sizes that differ too much say enough."""
        old, changed = self.gone[gone], self.new[new]
        sizes = _size(old), _size(changed)
        if 100 * min(sizes) < ENOUGH * max(sizes):
            return 0
        before, after = self._fingerprint(old), self._fingerprint(changed)
        return before.similarity(after) if before and after else 0

    def _fingerprint(self, change: Change) -> _Fingerprint | None:
        if change.path not in self._known:
            data = self._read(change)
            self._known[change.path] = None if data is None else _Fingerprint.of(data)
        return self._known[change.path]


def _pair_similar(search: _Search, read: Read) -> str | None:
    """Pair files of which most is the same; what there is to say when there are too many for that."""
    compared = _Comparison(search, read)
    if not compared.is_bounded:
        gone, new = len(compared.gone), len(compared.new)
        return f"renames of edited files were not looked for: {gone} files are gone and {new} are new"
    for old_path, path in _by_last_name(compared.gone, compared.new):
        if (score := compared.similarity(old_path, path)) >= ENOUGH_BY_NAME:
            search.pair(old_path, path, score)
            del compared.gone[old_path], compared.new[path]
    scored = [(compared.similarity(gone, new), new, gone) for new in compared.new for gone in compared.gone]
    for score, new_path, old_path in sorted(scored, key=lambda one: (-one[0], *one[1:])):
        if score >= ENOUGH and old_path in search.gone and new_path in search.new:
            search.pair(old_path, new_path, score)
    return None


def _by_last_name(gone: Iterable[bytes], new: Iterable[bytes]) -> list[tuple[bytes, bytes]]:
    """Pairs of paths that end in the same name, which no third one has."""
    sides: list[dict[bytes, list[bytes]]] = [{}, {}]
    for side, paths in zip(sides, (gone, new), strict=True):
        for path in paths:
            side.setdefault(_last_name(path), []).append(path)
    both = ((olds, sides[1].get(name, [])) for name, olds in sides[0].items())
    return [(olds[0], news[0]) for olds, news in both if len(olds) == len(news) == 1]


def _file(change: Change) -> File:
    entry = change.new or change.old
    assert isinstance(entry, File)
    return entry


def _content(change: Change) -> bytes:
    return _file(change).content


def _size(change: Change) -> int:
    return _file(change).size


def _last_name(path: bytes) -> bytes:
    return split(path)[1]
