"""Excludes in ``casnap.toml`` and in ``pyproject.toml`` at a workspace's root, as lines of a ``.casnapignore``.

Whoever works in the workspace may write these files, so excludes are all that they can set.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from casnap.model.config import DEEPEST, IN_WORKSPACE, KEYS, BadValue, flat, key_of
from casnap.model.paths import escape
from casnap.workspace.rules import TOML_FILES

CASNAP_TOML, PYPROJECT = TOML_FILES

_PIECES = re.compile(rb"[=,{}\[\]]")
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"' rb"|'[^']*'")
_MENTION = b"casnap"
_NAMED = 3
_LONGEST_NAME = 60


def excludes_in(name: bytes, data: bytes) -> bytes:
    """The lines that a file of this name sets; none where it cannot be understood."""
    try:
        return _lines(_table(name, data))
    except (BadValue, ValueError, RecursionError):
        return b""


def remarks_on(name: bytes, data: bytes) -> tuple[str, ...]:
    """What a person should hear about a file of this name: keys that it may not set, and what makes no sense."""
    try:
        table = _table(name, data)
    except (ValueError, RecursionError) as error:
        cause = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error) or "it is nested too deep"
        return (f"{escape(name)} cannot be read, and excludes nothing: {cause}",)
    remarks = []
    try:
        _lines(table)
    except BadValue as error:
        remarks.append(f"{escape(name)}: bad {IN_WORKSPACE}: {error}; it excludes nothing")
    others = sorted(key for key, _ in flat(table) if key != IN_WORKSPACE)
    for other in others[:_NAMED]:
        remarks.append(f"{escape(name)}: {_refused(other)}; it has no effect")
    if len(others) > _NAMED:
        remarks.append(f"{escape(name)}: {len(others) - _NAMED} more keys have no effect")
    return tuple(remarks)


def _table(name: bytes, data: bytes) -> Mapping[str, Any]:
    if name == PYPROJECT and _MENTION not in data:
        return {}
    if _is_too_deep(data):
        raise ValueError("a name in it has too many dots")
    import tomllib  # most workspaces have no such file

    table: Any = tomllib.loads(data.decode("utf-8"))
    if name == PYPROJECT:
        table = table.get("tool", {})
        table = table.get("casnap", {}) if isinstance(table, dict) else {}
    if not isinstance(table, dict):
        raise ValueError("[tool.casnap] is no table")
    return table


def _lines(table: Mapping[str, Any]) -> bytes:
    value: Any = KEYS[IN_WORKSPACE].accept(table.get(IN_WORKSPACE, ()))
    return "\n".join(value).encode("utf-8")


def _is_too_deep(data: bytes) -> bool:
    """Whether some name may have more parts than any key: the parser's time grows with the square of their number."""
    lines = (line for line in data.split(b"\n") if not line.lstrip().startswith(b"#"))
    return any(piece.count(b".") > DEEPEST for line in lines for piece in _PIECES.split(_STRINGS.sub(b"", line)))


def _refused(name: str) -> str:
    shown = escape(name.encode("utf-8", "surrogateescape"))[:_LONGEST_NAME]
    if key_of(name) is None:
        return f"there is no key {shown}"
    return f"{shown} may not be set inside the workspace"
