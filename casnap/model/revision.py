"""Names of checkpoints, and the expressions that stand for one (docs/reference/revisions.md)."""

from __future__ import annotations

import datetime as dt
import re
import unicodedata

from msgspec import Struct

from casnap.errors import Usage
from casnap.model.tree import NANOSECONDS

NAME_MAX = 128
RESERVED = frozenset({"HEAD", "latest"})

MOST_COUNT_DIGITS = 9
"""Digits of a number of ancestors; what is longer is part of a name."""

_INSTANT = r"(?s)@\{(?P<time>.*)\}"
_RFC3339 = (
    r"(?a)(?P<date>\d{4}-\d\d-\d\d)[Tt ](?P<time>\d\d:\d\d:\d\d)(\.(?P<fraction>\d{1,9}))?(?P<zone>[Zz]|[+-]\d\d:\d\d)"
)
_LOCAL = r"(?a)\d{4}-\d\d-\d\d( \d\d:\d\d(:\d\d)?)?"


class Head(Struct, frozen=True):
    """``@`` or ``HEAD``: the checkpoint that the workspace descends from."""


class Latest(Struct, frozen=True):
    """``latest``: the checkpoint with the highest step."""


class Good(Struct, frozen=True):
    """``@good``: the checkpoint with the highest step among those that are marked good."""


class Word(Struct, frozen=True):
    """A name, an id, a step or the beginning of an id, in this order."""

    text: str


class Step(Struct, frozen=True):
    """A step and nothing else (``--step``, an integer in Python)."""

    number: int


class At(Struct, frozen=True):
    """``@{TIME}``: the newest whose scan had ended at that instant (nanoseconds since the epoch)."""

    instant: int


class Revision(Struct, frozen=True):
    """A base, and how many parent links to follow from it."""

    base: Head | Latest | Good | Word | Step | At
    ancestors: int = 0


HEAD = Revision(Head())


def parse_revision(text: str) -> Revision:
    """Read a revision expression; whether such a checkpoint exists is not asked.

    Raises:
        Usage: the expression is empty, or holds a time that cannot be read.
    """
    text = unicodedata.normalize("NFC", text)
    base, ancestors = _split_ancestors(text)
    if not base:
        raise Usage(f"cannot read revision {text!r}: it names no checkpoint", hint="use a name, a step, an id or @")
    return Revision(_parse_base(base), ancestors)


def _split_ancestors(text: str) -> tuple[str, int]:
    """What stands before the last run of ``~N``, and the sum of their numbers; ``~`` alone is 1."""
    begin = len(text.rstrip("~0123456789"))
    first, *counts = text[begin:].split("~")
    named = max((at + 1 for at, count in enumerate(counts) if len(count) > MOST_COUNT_DIGITS), default=0)
    base = text[:begin] + "~".join([first, *counts[:named]])
    return base, sum(int(count or 1) for count in counts[named:])


def _parse_base(text: str) -> Head | Latest | Good | Word | At:
    if text in ("@", "HEAD"):
        return Head()
    if text == "latest":
        return Latest()
    if text == "@good":
        return Good()
    if match := re.fullmatch(_INSTANT, text):
        return At(parse_instant(match["time"]))
    return Word(text)


def parse_instant(text: str) -> int:
    """An instant in nanoseconds since the epoch: RFC 3339, or ``YYYY-MM-DD[ HH:MM[:SS]]`` in local time.

    Raises:
        Usage: the text is neither.
    """
    try:
        if match := re.fullmatch(_RFC3339, text):
            zone = "+00:00" if match["zone"] in "Zz" else match["zone"]
            whole = dt.datetime.fromisoformat(f"{match['date']}T{match['time']}{zone}")
            return int(whole.timestamp()) * NANOSECONDS + int((match["fraction"] or "0").ljust(9, "0"))
        if re.fullmatch(_LOCAL, text):
            return int(dt.datetime.fromisoformat(text).astimezone().timestamp()) * NANOSECONDS
    except (ValueError, OverflowError) as error:
        raise Usage(f"cannot read time {text!r}: {error}", hint=_TIME_HINT) from None
    raise Usage(f"cannot read time {text!r}: neither RFC 3339 nor a local date", hint=_TIME_HINT)


_TIME_HINT = "write it as 2026-11-30T10:11:12Z or '2026-11-30 10:11'"


def normalise_name(name: str) -> str:
    """The name in NFC, checked against the rule for names.

    Raises:
        Usage: the name breaks the rule; the message says which part of it.
    """
    name = unicodedata.normalize("NFC", name)
    if fault := _fault(name):
        raise Usage(
            f"bad checkpoint name {name!r}: {fault}",
            code="bad-name",
            hint="use 1 to 128 letters, digits and . _ + : - /, not digits alone",
        )
    return name


def _fault(name: str) -> str | None:
    checks = (
        (not name, "it is empty"),
        (len(name) > NAME_MAX, f"it has {len(name)} characters, {NAME_MAX} are allowed"),
        (name in RESERVED, "it has a meaning of its own"),
        (name[:1] in ("-", "@"), f"it begins with {name[:1]!r}"),
        (name.isdecimal(), "digits alone are a step"),
        (any(part in ("", ".", "..") for part in name.split("/")), "a part between slashes is empty, . or .."),
    )
    for broken, fault in checks:
        if broken:
            return fault
    odd = next((character for character in name if not _is_allowed(character)), None)
    return None if odd is None else f"{odd!r} is not allowed"


def _is_allowed(character: str) -> bool:
    return character in "._+:-/" or unicodedata.category(character)[0] in "LMN"
