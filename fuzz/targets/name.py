"""The name of a checkpoint, as somebody types it."""

from __future__ import annotations

from casnap.errors import Usage
from casnap.model.revision import Revision, Word, normalise_name, parse_revision
from fuzz.law import Target


def _parse(data: bytes) -> str:
    return normalise_name(data.decode("utf-8", "surrogateescape"))


def _fault(name: str, data: bytes) -> str | None:
    if normalise_name(name) != name:
        return "a name in its normal form has another one"
    if parse_revision(name) != Revision(Word(name)):
        return "a name is no revision, or stands for something else"
    return None


TARGET = Target(
    name="name",
    parse=_parse,
    errors=(Usage,),
    fault=_fault,
    seeds=tuple(text.encode() for text in ("before-refactor", "v1.0", "a/b", "名前", "e\u0301te\u0301", "Å", "12a")),
    tokens=tuple(
        text.encode() for text in ("HEAD", "latest", "@", "~1", "..", "\n", *"\u0301\u0345\u1161\u212b\u0660\ufb1d")
    ),
    longest=512,
)
