"""The patterns of an ignore file, as gitignore(5) has them and as git reads them where that page is silent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from msgspec import Struct

from casnap.workspace.globs import SPECIAL, Glob, translate

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Compiling takes microseconds a byte: what is longer than a name can be is compiled when there is a text so long.
_LONG = 256
# As many answers by name are remembered: most names of a workspace occur often, and none is long.
_REMEMBERED = 1 << 16


class _Pattern(Struct, frozen=True):
    """One line, without the marks that stand for the other fields.

    ``text`` starts with a slash if it is for the whole path, and has none if it is for the base name.
    """

    text: bytes
    ignores: bool
    directories_only: bool


class Patterns:
    """The patterns of one ignore file, ready to be matched with many entries."""

    __slots__ = ("_directories", "_others")

    def __init__(self, patterns: Sequence[_Pattern]) -> None:
        others = [pattern for pattern in patterns if not pattern.directories_only]
        self._directories = _Verdicts(patterns)
        self._others = _Verdicts(others) if len(others) < len(patterns) else self._directories

    @classmethod
    def parse(cls, data: bytes) -> Patterns:
        """The patterns in the bytes of an ignore file, whatever they are: git takes no file for an error."""
        lines = data.removeprefix(_BYTE_ORDER_MARK).split(b"\n")
        return cls([_parse_line(line) for line in lines if line and not line.startswith(b"#")])

    def __bool__(self) -> bool:
        """Whether any pattern here could match something."""
        return bool(self._directories)

    def verdict(self, path: bytes, *, is_directory: bool) -> bool | None:
        """Whether the last pattern that matches ignores (True) or re-includes (False) an entry; None: none matches.

        ``path`` is relative to the directory that the ignore file is in, without a slash at either end. What is in
        an ignored directory is ignored too, which is for the caller to know: no pattern that matches a directory
        matches what is below for that reason.
        """
        verdicts = self._directories if is_directory else self._others
        return verdicts.of(path)


class _Verdicts:
    """What the patterns of a file say of one kind of entry: directories, or all else.

    Among successive patterns that say the same the order is of no account: such a run is matched at once. Runs
    have numbers, the last one in the file is 0.
    """

    __slots__ = ("_by_name", "_by_path", "_outcomes", "_remembered")

    def __init__(self, patterns: Sequence[_Pattern]) -> None:
        self._by_name, self._by_path = _Runs(), _Runs()
        self._outcomes: list[bool | None] = []
        self._remembered: dict[bytes, int] = {}
        for ignores, run in groupby(reversed(patterns), lambda pattern: pattern.ignores):
            texts = [pattern.text for pattern in run]
            self._by_name.add(len(self._outcomes), [text for text in texts if not text.startswith(b"/")])
            self._by_path.add(len(self._outcomes), [text for text in texts if text.startswith(b"/")])
            self._outcomes.append(ignores)
        self._outcomes.append(None)

    def __bool__(self) -> bool:
        return bool(self._by_name or self._by_path)

    def of(self, path: bytes) -> bool | None:
        name = path[path.rfind(b"/") + 1 :]
        newest = self._remembered.get(name)
        if newest is None:
            newest = self._by_name.newest(name, len(self._outcomes) - 1)
            if len(self._remembered) >= _REMEMBERED:
                self._remembered.clear()
            self._remembered[name] = newest
        if self._by_path:
            newest = self._by_path.newest(b"/" + path, newest)
        return self._outcomes[newest]


class _Runs:
    """Patterns of all runs, for base names or for paths."""

    __slots__ = ("_exact", "_wild")

    def __init__(self) -> None:
        self._exact: dict[bytes, int] = {}
        self._wild: list[tuple[int, _Wild]] = []

    def add(self, number: int, texts: Iterable[bytes]) -> None:
        """Add the next older run."""
        globs = []
        for text in texts:
            if SPECIAL.search(text):
                globs.append(text)
            elif text:
                self._exact.setdefault(text, number)
        if wild := _Wild(globs):
            self._wild.append((number, wild))

    def __bool__(self) -> bool:
        return bool(self._exact or self._wild)

    def newest(self, text: bytes, below: int) -> int:
        """The lowest number of a run that matches ``text`` whole; ``below`` if no number below that does."""
        exact = self._exact.get(text, below)
        if exact < below:
            below = exact
        for number, wild in self._wild:
            if number >= below:
                break
            if wild.matches(text):
                return number
        return below


class _Wild:
    """Some globs, of which any may match."""

    __slots__ = ("_compiled", "_long", "_short", "_suffixes")

    def __init__(self, patterns: Iterable[bytes]) -> None:
        suffixes: set[bytes] = set()
        globs: list[Glob] = []
        for pattern in patterns:
            if pattern.startswith(b"*") and not SPECIAL.search(pattern, 1):
                suffixes.add(pattern[1:])
            elif glob := translate(pattern):
                globs.append(glob)
        self._suffixes = tuple(suffixes)
        self._short = [glob for glob in globs if glob.width < _LONG]
        self._long = [glob for glob in globs if glob.width >= _LONG]
        self._compiled: re.Pattern[bytes] | None = None

    def __bool__(self) -> bool:
        return bool(self._suffixes or self._short or self._long)

    def matches(self, text: bytes) -> bool:
        if text.endswith(self._suffixes):
            return True
        if self._short:
            if self._compiled is None:
                self._compiled = _compile(self._short)
            if self._compiled.match(text):
                return True
        return any(len(text) >= glob.width and _compile([glob]).match(text) for glob in self._long)


def _compile(globs: Iterable[Glob]) -> re.Pattern[bytes]:
    return re.compile(b"(?:" + b"|".join(glob.expression for glob in globs) + rb")\Z", re.DOTALL)


def _parse_line(line: bytes) -> _Pattern:
    text = _without_trailing_spaces(line.removesuffix(b"\r").partition(b"\0")[0])  # a NUL ends a line, as in git
    body = text.removeprefix(b"!")
    stem = body.removesuffix(b"/")
    return _Pattern(
        text=b"/" + stem.removeprefix(b"/") if b"/" in stem else stem,
        ignores=body == text,
        directories_only=stem != body,
    )


def _without_trailing_spaces(line: bytes) -> bytes:
    kept = line.rstrip(b" ")
    backslashes = len(kept) - len(kept.rstrip(b"\\"))
    if kept != line and backslashes % 2:
        return kept + b" "
    return kept
