"""A revision, as somebody types it: each character counts, and what it was read as has a text of its own."""

from __future__ import annotations

import datetime as dt
import re
import unicodedata

from casnap.errors import Usage
from casnap.model.revision import At, Good, Head, Latest, Revision, Step, Word, parse_revision
from casnap.model.tree import NANOSECONDS
from fuzz.law import Target

_MOST = 999_999_999
"""The highest number that may follow one ``~``."""

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_ZONES = {"Z": 0, "+23:59": 86_340, "-23:59": -86_340}
"""Two more than are needed but at both ends of the calendar."""


def _parse(data: bytes) -> Revision:
    return parse_revision(_text(data))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _fault(revision: Revision, data: bytes) -> str | None:
    if parse_revision(_write(revision)) != revision:
        return f"it was read as {revision}, but {_write(revision)} is something else"
    if not re.fullmatch(f"({_spelling(revision)})(~[0-9]{{0,9}})*", unicodedata.normalize("NFC", _text(data))):
        return f"it was read as {revision}, as if some of its characters were not there"
    return None


def _spelling(revision: Revision) -> str:
    """A pattern of how its base may be spelled."""
    match revision.base:
        case Head():
            return "@|HEAD"
        case Latest():
            return "latest"
        case Good():
            return "@good"
        case At():
            return r"@\{[0-9TtZz :.+-]+\}"
        case Word(text=text):
            return re.escape(text)
        case Step(number=number):
            return str(number)


def _write(revision: Revision) -> str:
    """One text for it."""
    more, rest = divmod(revision.ancestors, _MOST)
    return _base(revision) + f"~{_MOST}" * more + (f"~{rest}" if rest else "")


def _base(revision: Revision) -> str:
    match revision.base:
        case Head():
            return "@"
        case Latest():
            return "latest"
        case Good():
            return "@good"
        case At(instant=instant):
            return f"@{{{_write_instant(instant)}}}"
        case Word(text=text):
            return text
        case Step(number=number):
            return str(number)


def _write_instant(instant: int) -> str:
    seconds, fraction = divmod(instant, NANOSECONDS)
    for zone, offset in _ZONES.items():
        try:
            local = _EPOCH + dt.timedelta(seconds=seconds + offset)
        except OverflowError:
            continue
        return f"{local.replace(tzinfo=None).isoformat()}.{fraction:09d}{zone}"
    raise ValueError(f"{instant} lies outside the calendar")


TARGET = Target(
    name="revision",
    parse=_parse,
    errors=(Usage,),
    fault=_fault,
    seeds=tuple(
        text.encode()
        for text in (
            "@",
            "HEAD~2",
            "latest",
            "@good~1",
            "@{2026-11-30 10:11}",
            "@{2026-11-30}~",
            "@{2026-11-30T10:11:12.5+02:00}",
            "name/é~~3",
            "3f9a",
        )
    ),
    tokens=(
        *(b"@{", b"}", b"~", b"HEAD", b"latest", b"@good", b"9999-12-31", b"0001-01-01", b"+23:59"),
        *(b"\n", b" ", b"000000000"),
    ),
    longest=256,
)
