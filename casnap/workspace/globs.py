"""Globs of ignore files as regular expressions, after git's wildmatch, in polynomial time for every glob and text.

Matching that backtracks into every wildcard is exponential in their number. It need not: ``*`` stays within a
component, so where the leftmost match of what follows it leads to no match of the whole, no other does. The same
holds for ``**`` and all that follows up to the next ``**``. So every wildcard but the last is in an atomic group.
"""

from __future__ import annotations

import re

from msgspec import Struct

SPECIAL = re.compile(rb"[*?\[\\]")
"""What makes a pattern a glob rather than a text to compare with."""

_TOKEN = re.compile(rb"[^*?\[\\]+|\\.|\*+|[?\[]", re.DOTALL)

# The wildcards that match any number of bytes, greedy; a "?" behind makes them lazy.
_NONE = b""
_STAR = b"[^/]*"
_DIRECTORIES = b"(?:[^/]*+/)*"
_ANYTHING = b".*"

# git's own classes: without a locale, nothing above 127, and neither vertical tab nor form feed is a space.
_DIGITS = frozenset(b"0123456789")
_LOWER = frozenset(b"abcdefghijklmnopqrstuvwxyz")
_UPPER = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_GRAPHIC = frozenset(range(0x21, 0x7F))
_CLASSES = {
    b"alnum": _LOWER | _UPPER | _DIGITS,
    b"alpha": _LOWER | _UPPER,
    b"blank": frozenset(b" \t"),
    b"cntrl": frozenset(range(0x20)) | {0x7F},
    b"digit": _DIGITS,
    b"graph": _GRAPHIC,
    b"lower": _LOWER,
    b"print": _GRAPHIC | {0x20},
    b"punct": _GRAPHIC - _LOWER - _UPPER - _DIGITS,
    b"space": frozenset(b" \t\n\r"),
    b"upper": _UPPER,
    b"xdigit": _DIGITS | frozenset(b"abcdefABCDEF"),
}
_EVERY_BYTE = frozenset(range(256))
_SLASH = ord("/")


class _Malformed(Exception):
    """No text is matched by this glob."""


class _Segment(Struct):
    """An expression of fixed width, and the wildcard in front of it."""

    wildcard: bytes
    body: bytes = b""


class Glob(Struct, frozen=True):
    """A glob, as an expression for DOTALL that is to match a whole text of at least ``width`` bytes."""

    expression: bytes
    width: int


def translate(pattern: bytes) -> Glob | None:
    """The glob that ``pattern`` is; None when it matches nothing, as with an open bracket or a last lone backslash.

    No wildcard matches a slash, but for ``**`` as a whole component. As in git, what is before the first special
    byte is compared on its own: ``a**/b`` is ``a``, and then ``**/b``.
    """
    special = SPECIAL.search(pattern)
    start = special.start() if special else len(pattern)
    literal, rest = pattern[:start], pattern[start:]
    segments = [_Segment(_NONE, re.escape(literal))]
    try:
        width = start + _append(segments, rest)
    except _Malformed:
        return None
    return Glob(_expression(segments), width)


def _append(segments: list[_Segment], rest: bytes) -> int:
    """Add the segments of ``rest``, and tell the width of its shortest match."""
    position = width = 0
    bodies = [segments[-1].body]
    while position < len(rest):
        token = _TOKEN.match(rest, position)
        if token is None:
            raise _Malformed
        text, position = token.group(), token.end()
        if text[0] == ord("*"):
            segments[-1].body = b"".join(bodies)
            wildcard, position = _wildcard(rest, token.start(), position)
            if wildcard is not _STAR and segments[-1] == _Segment(_DIRECTORIES):
                segments.pop()
            segments.append(_Segment(wildcard))
            bodies = []
        elif text == b"[":
            members, position = _bracket(rest, position)
            bodies.append(_one_of(members))
            width += 1
        elif text == b"?":
            bodies.append(b"[^/]")
            width += 1
        else:
            literal = text[1:] if text[0] == ord("\\") else text
            bodies.append(re.escape(literal))
            width += len(literal)
    segments[-1].body = b"".join(bodies)
    return width


def _wildcard(rest: bytes, start: int, end: int) -> tuple[bytes, int]:
    """Which wildcard the asterisks from ``start`` to ``end`` are, and where what follows it begins."""
    if end - start == 1 or (start and rest[start - 1] != _SLASH):
        return _STAR, end
    if rest.startswith(b"/", end):
        return _DIRECTORIES, end + 1
    if end == len(rest) or rest.startswith(b"\\/", end):
        return _ANYTHING, end
    return _STAR, end


def _bracket(pattern: bytes, position: int) -> tuple[frozenset[int], int]:
    """The bytes that a bracket expression matches, and where it ends. ``position`` is just behind its ``[``."""
    negated = pattern.startswith((b"!", b"^"), position)
    position += negated
    ranges: set[tuple[int, int]] = set()
    classes: set[bytes] = set()
    low: int | None = None  # what a range may start with
    closing = first = position  # a "]" that comes first is an ordinary byte
    while position == first or not pattern.startswith(b"]", position):
        byte = _byte(pattern, position)
        if byte == ord("-") and low is not None and pattern[position + 1 : position + 2] not in (b"", b"]"):
            high, position = _escaped(pattern, position + 1)
            ranges.add((low, high))
            low = None
            continue
        if pattern.startswith(b"[:", position):
            if closing < position + 2:
                closing = pattern.find(b"]", position + 2)
            if closing < 0:
                raise _Malformed
            if closing > position + 2 and pattern[closing - 1] == ord(":"):
                classes.add(pattern[position + 2 : closing - 1])
                low, position = None, closing + 1
                continue
        low, position = _escaped(pattern, position)
        ranges.add((low, low))
    return _members(ranges, classes, negated=negated), position + 1


def _members(ranges: set[tuple[int, int]], classes: set[bytes], *, negated: bool) -> frozenset[int]:
    if not classes <= _CLASSES.keys():
        raise _Malformed
    members = frozenset[int]().union(
        *(range(low, high + 1) for low, high in ranges), *map(_CLASSES.__getitem__, classes)
    )
    return (_EVERY_BYTE - members if negated else members) - {_SLASH}


def _byte(pattern: bytes, position: int) -> int:
    if position >= len(pattern):
        raise _Malformed
    return pattern[position]


def _escaped(pattern: bytes, position: int) -> tuple[int, int]:
    """The byte at ``position``, or the one that a backslash there escapes, and where what follows it begins."""
    byte = _byte(pattern, position)
    if byte != ord("\\"):
        return byte, position + 1
    return _byte(pattern, position + 1), position + 2


def _one_of(members: frozenset[int]) -> bytes:
    if not members:
        raise _Malformed
    ends = sorted(byte for byte in members if byte + 1 not in members)
    starts = sorted(byte for byte in members if byte - 1 not in members)
    return b"[" + b"".join(b"\\x%02x-\\x%02x" % each for each in zip(starts, ends, strict=True)) + b"]"


def _expression(segments: list[_Segment]) -> bytes:
    """The segments in blocks, each of which starts with a wildcard that crosses directories."""
    starts = [number for number, segment in enumerate(segments) if segment.wildcard is not _STAR]
    ends = [*starts[1:], len(segments)]
    blocks = [segments[start:end] for start, end in zip(starts, ends, strict=True)]
    return b"".join(_block(block, last=block is blocks[-1]) for block in blocks)


def _block(segments: list[_Segment], *, last: bool) -> bytes:
    first, *stars = segments
    inner = [first.body, *(_wild(star.wildcard, star.body, last=last and star is stars[-1]) for star in stars)]
    return _wild(first.wildcard, b"".join(inner), last=last)


def _wild(wildcard: bytes, follows: bytes, *, last: bool) -> bytes:
    """A wildcard before what follows it, as far left as that matches; the last one has to reach the end."""
    if last or not wildcard:
        return wildcard + follows
    return b"(?>" + wildcard + b"?" + follows + b")"
