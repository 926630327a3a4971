"""Taking the values out of files of ``KEY=VALUE`` lines, so that what is stored tells only which keys there are."""

from __future__ import annotations

import re

MAX_REDACTED = 1 << 20
"""The longest file, in bytes, that is redacted; a longer one is left out."""

_LONGEST_KEY = 64
_ASSIGNMENT = re.compile(
    rb"(?P<head>[ \t]*(?:#[#\s]*)?(?:export[ \t]+)?(?P<key>[A-Za-z_][A-Za-z0-9_.]*)[ \t]*=)(?P<value>.*)", re.DOTALL
)
_CONVENTIONAL = re.compile(rb"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*|[a-z][a-z0-9]*([_.][a-z0-9]+)*")
_QUOTES = (b'"', b"'", b"`")


def redacted(data: bytes) -> bytes | None:
    """The file without its values: ``KEY=`` lines, comments and empty lines; None where it is of another kind.

    What could be a value in disguise makes it another kind: one that goes on in the next line, or a line of base 64,
    whose padding looks like an assignment. A comment that assigns something loses the value too.
    """
    if len(data) > MAX_REDACTED or b"\0" in data:
        return None
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    lines = []
    assigned = not data
    for line in data.split(b"\n"):
        text = line.removesuffix(b"\r").strip()
        match = _ASSIGNMENT.fullmatch(line.removesuffix(b"\r"))
        if match is not None and _is_assignment(match["key"], match["value"].strip()):
            lines.append(match["head"])
            assigned = True
        elif match is None and (not text or text.startswith(b"#")):
            lines.append(line)
        else:
            return None
    return b"\n".join(lines) if assigned else None


def _is_assignment(key: bytes, value: bytes) -> bool:
    """Whether a line is what it looks like, and ends where its value does."""
    if len(key) > _LONGEST_KEY or value.startswith(b"=") or value.endswith(b"\\"):
        return False
    if not value:  # nothing but the key would be stored: it must not be a secret itself
        return _CONVENTIONAL.fullmatch(key) is not None
    quote = value[:1]
    return quote not in _QUOTES or value.find(quote, 1) > 0
