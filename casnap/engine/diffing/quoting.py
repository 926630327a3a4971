"""Paths as git prints them."""

from __future__ import annotations

_NAMED = {
    0x07: "\\a",
    0x08: "\\b",
    0x09: "\\t",
    0x0A: "\\n",
    0x0B: "\\v",
    0x0C: "\\f",
    0x0D: "\\r",
    0x22: '\\"',
    0x5C: "\\\\",
}


def quote(path: bytes) -> str:
    """``path`` as it is where it is printable UTF-8, else in C quotes with octal escapes, which git reads too.

    A directory whose name ends with a space is quoted as well: ``git apply`` loses its way in such names.
    """
    try:
        text = path.decode("utf-8")
    except UnicodeDecodeError:
        return _quoted(path)
    return text if text.isprintable() and not any(odd in text for odd in ('"', "\\", " /")) else _quoted(path)


def _quoted(path: bytes) -> str:
    escapes = (_NAMED.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}") for byte in path)
    return f'"{"".join(escapes)}"'
