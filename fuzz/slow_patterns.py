"""Ignore files read a second time, independently and slowly: what the ignore-rules target compares with.

No regular expressions: a glob is a list of steps, and matching keeps the set of all places in the text that can have
been reached, so no choice is ever taken back.
"""

from __future__ import annotations

import string
from collections.abc import Iterator

Step = frozenset[int] | str
"""The bytes of which one is next, or one of the three wildcards."""

STAR, DIRECTORIES, ANYTHING = "*", "**/", "**"

_SLASH = ord("/")
_BUT_SLASH = frozenset(range(256)) - {_SLASH}
_ASCII = {
    "alnum": string.ascii_letters + string.digits,
    "alpha": string.ascii_letters,
    "blank": " \t",
    "cntrl": "".join(map(chr, (*range(32), 127))),
    "digit": string.digits,
    "graph": string.ascii_letters + string.digits + string.punctuation,
    "lower": string.ascii_lowercase,
    "print": string.ascii_letters + string.digits + string.punctuation + " ",
    "punct": string.punctuation,
    "space": " \t\n\r",
    "upper": string.ascii_uppercase,
    "xdigit": string.hexdigits,
}
_CLASSES = {name.encode(): frozenset(members.encode()) for name, members in _ASCII.items()}


def verdict(rules: bytes, path: bytes, *, is_directory: bool) -> bool | None:
    """What the last rule says that matches: True to ignore, False not to; None when none matches."""
    answer = None
    for line in rules.removeprefix("\ufeff".encode()).split(b"\n"):
        rule = _trim(line[:-1] if line.endswith(b"\r") else line)
        again = rule.startswith(b"!")
        pattern = rule[again:]
        needs_directory = pattern.endswith(b"/")
        pattern = pattern[: len(pattern) - needs_directory]
        if not line.startswith(b"#") and is_directory >= needs_directory and _matches(pattern, path):
            answer = not again
    return answer


def _trim(line: bytes) -> bytes:
    """Up to a NUL, without the spaces at the end, but for one behind a backslash that no other escapes."""
    line = line.split(b"\0")[0]
    position = end = 0
    while position < len(line):
        if line[position : position + 1] == b"\\":
            if position + 1 == len(line):
                return line
            position += 1
            end = position + 1
        elif line[position : position + 1] != b" ":
            end = position + 1
        position += 1
    return line[:end]


def _matches(pattern: bytes, path: bytes) -> bool:
    """Whether a pattern, without its marks, matches a path: the whole of it when there is a slash in the pattern."""
    if b"/" not in pattern:
        path = path.rpartition(b"/")[2]
    pattern = pattern.removeprefix(b"/")
    literal = min((pattern.find(special) for special in (b"*", b"?", b"[", b"\\") if special in pattern), default=-1)
    if literal < 0:
        return pattern == path
    if pattern[:literal] != path[:literal]:
        return False
    try:
        steps = list(_steps(pattern[literal:]))
    except ValueError:
        return False
    return _walk(steps, path[literal:])


def _walk(steps: list[Step], text: bytes) -> bool:
    places = {0}
    for step in steps:
        if isinstance(step, frozenset):
            places = {place + 1 for place in places if place < len(text) and text[place] in step}
        elif places:
            first = min(places)
            if step == ANYTHING:
                places = set(range(first, len(text) + 1))
            elif step == DIRECTORIES:
                places |= {place + 1 for place in range(first, len(text)) if text[place] == _SLASH}
            else:
                for place in range(first, len(text)):
                    if place in places and text[place] != _SLASH:
                        places.add(place + 1)
    return len(text) in places


def _steps(glob: bytes) -> Iterator[Step]:
    """The steps of a glob; ValueError when it can match nothing."""
    position = 0
    while position < len(glob):
        byte = glob[position]
        if byte == ord("*"):
            stars = len(glob[position:]) - len(glob[position:].lstrip(b"*"))
            component = position == 0 or glob[position - 1] == _SLASH
            rest = glob[position + stars :]
            position += stars
            if stars == 1 or not component or not (rest == b"" or rest.startswith((b"/", b"\\/"))):
                yield STAR
            elif rest.startswith(b"/"):
                yield DIRECTORIES
                position += 1
            else:
                yield ANYTHING
        elif byte == ord("["):
            members, position = _bracket(glob, position + 1)
            yield members
        elif byte == ord("?"):
            yield _BUT_SLASH
            position += 1
        else:
            byte, position = _one(glob, position)
            yield frozenset({byte})


def _one(glob: bytes, position: int) -> tuple[int, int]:
    """The byte that stands here, escaped or not, and where the next one does."""
    position += glob[position : position + 1] == b"\\"
    if position >= len(glob):
        raise ValueError("the glob ends too early")
    return glob[position], position + 1


def _bracket(glob: bytes, position: int) -> tuple[frozenset[int], int]:
    negated = glob[position : position + 1] in (b"!", b"^")
    position += negated
    members: set[int] = set()
    before: int | None = None
    first = True
    while first or glob[position : position + 1] != b"]":
        first = False
        end = glob.find(b"]", position + 2)
        if glob.startswith(b"[:", position) and end < 0:
            raise ValueError("a class has no end")
        if glob[position : position + 1] == b"-" and before and glob[position + 1 : position + 2] not in (b"", b"]"):
            after, position = _one(glob, position + 1)
            members |= set(range(before, after + 1))
            before = None
        elif glob.startswith(b"[:", position) and end > position + 2 and glob[end - 1] == ord(":"):
            if glob[position + 2 : end - 1] not in _CLASSES:
                raise ValueError("a class has an unknown name")
            members |= _CLASSES[glob[position + 2 : end - 1]]
            before, position = None, end + 1
        else:
            before, position = _one(glob, position)
            members.add(before)
    return (_BUT_SLASH - members if negated else frozenset(members) - {_SLASH}), position + 1
