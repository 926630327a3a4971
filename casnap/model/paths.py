"""Paths inside a workspace: bytes, relative to its root, components joined by ``/``; the root is ``b""``."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable

ROOT = b""
NAME_MAX = 255
"""Longest name of a directory entry, in bytes (Linux NAME_MAX)."""

_ESCAPED = r"\\(\\|n|t|r|x[0-9a-f]{2})"
_SIMPLE = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_PLAIN = {"\\": b"\\", "n": b"\n", "t": b"\t", "r": b"\r"}


def is_valid_name(name: bytes) -> bool:
    """Whether ``name`` can be the name of a directory entry."""
    return 0 < len(name) <= NAME_MAX and name not in (b".", b"..") and b"/" not in name and b"\0" not in name


def join(parent: bytes, name: bytes) -> bytes:
    """The path of ``name`` in the directory ``parent``."""
    return parent + b"/" + name if parent else name


def split(path: bytes) -> tuple[bytes, bytes]:
    """The directory and the name of ``path``."""
    parent, _, name = path.rpartition(b"/")
    return parent, name


def components(path: bytes) -> list[bytes]:
    """The names along ``path``; none for the root."""
    return path.split(b"/") if path else []


def ancestors(path: bytes) -> list[bytes]:
    """The directories above ``path``, deepest first, the root last; none for the root itself."""
    above = []
    while path:
        path, _ = split(path)
        above.append(path)
    return above


def is_within(path: bytes, directory: bytes) -> bool:
    """Whether ``path`` is ``directory`` or lies below it."""
    return not directory or path == directory or path.startswith(directory + b"/")


def names_by_directory(paths: Iterable[bytes]) -> dict[bytes, frozenset[bytes]]:
    """For each directory that holds some of ``paths``, their names in it."""
    names: dict[bytes, set[bytes]] = {}
    for path in paths:
        directory, name = split(path)
        names.setdefault(directory, set()).add(name)
    return {directory: frozenset(found) for directory, found in names.items()}


def last_below(paths: list[bytes]) -> array[int]:
    """For each of a tree's directories the number of the last one below it, itself if none is.

    Empty if some directory does not follow right after what is in the one above it.
    """
    ends = array("q", range(len(paths)))
    open_: list[tuple[int, bytes]] = []
    for number, path in enumerate(paths):
        parent = split(path)[0]
        while open_ and open_[-1][1] != parent:
            ends[open_.pop()[0]] = number - 1
        if number and not open_:
            return array("q")
        open_.append((number, path))
    for number, _ in open_:
        ends[number] = len(paths) - 1
    return ends


def escape(path: bytes) -> str:
    r"""``path`` as printable text, reversibly: bytes that are no printable UTF-8 become ``\xNN``.

    A backslash is doubled; newline, tab and carriage return become ``\n``, ``\t``, ``\r``.
    """
    text = path.decode("utf-8", "surrogateescape")
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(_escape_character(character) for character in text)


def _escape_character(character: str) -> str:
    if character in _SIMPLE:
        return _SIMPLE[character]
    if character.isprintable():
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


def unescape(text: str) -> bytes:
    """The path that :func:`escape` turned into ``text``.

    Raises:
        ValueError: ``text`` holds a backslash that begins no escape.
    """
    parts: list[bytes] = []
    position = 0
    for match in re.finditer(_ESCAPED, text):
        parts.append(_verbatim(text[position : match.start()]))
        code = match.group(1)
        parts.append(_PLAIN[code] if code in _PLAIN else bytes.fromhex(code[1:]))
        position = match.end()
    parts.append(_verbatim(text[position:]))
    return b"".join(parts)


def _verbatim(text: str) -> bytes:
    if "\\" in text:
        raise ValueError(f"stray backslash in escaped path: {text!r}")
    return text.encode("utf-8", "surrogateescape")
