"""The rules of an ignore file and a path, with a NUL between them: any bytes are rules, and say what they say."""

from __future__ import annotations

from typing import NamedTuple

from casnap.workspace.patterns import Patterns
from fuzz import slow_patterns
from fuzz.law import Target


class _Question(NamedTuple):
    rules: bytes
    path: bytes
    is_directory: bool


def _question(data: bytes) -> _Question:
    rules, _, path = data.rpartition(b"\0")
    names = [name for name in path.split(b"/") if name]
    return _Question(rules, b"/".join(names) or b"name", path.endswith(b"/"))


def _parse(data: bytes) -> bool | None:
    rules, path, is_directory = _question(data)
    return Patterns.parse(rules).verdict(path, is_directory=is_directory)


def _fault(verdict: bool | None, data: bytes) -> str | None:
    rules, path, is_directory = _question(data)
    expected = slow_patterns.verdict(rules, path, is_directory=is_directory)
    return None if verdict is expected else f"it says {verdict} of {path!r}, read slowly it says {expected}"


TARGET = Target(
    name="ignore-rules",
    parse=_parse,
    errors=(),
    fault=_fault,
    seeds=(
        b"*.log\n!keep.log\n\0a/b.log",
        b"# comment\n/build/\nsrc/**/*.o\n\0src/a/b/c.o",
        b"**/cache\ncache/**\n!cache/keep/\n\0x/cache/keep/",
        b"[a-c!]x?[[:digit:]\\]]\r\nlast\\ \n\0bxy7",
        b"\xef\xbb\xbf\\!a\n\\#b\na**/b\n\0a/c/b",
    ),
    tokens=(
        b"**",
        b"/**",
        b"**/",
        b"/**/",
        b"[!",
        b"[[:alpha:]]",
        b"[]-a]",
        b"[a-",
        b"\\ ",
        b"\\/",
        b"\r\n",
        b"!",
        b"#",
    ),
    # Regular expressions: 256 bytes for each bracket, and what Python makes of them.
    unpacked=1 << 20,
    longest=128,
)
