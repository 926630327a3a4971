"""Which version of an agent is here, as far as what lies around its program tells: nothing is run for it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

_VERSION = re.compile(r"\d+\.\d+[\w.+-]*")

_FAR = 3
"""Directories above a program in which its package may describe itself."""


def version_of(program: str, distribution: str) -> str | None:
    """The version of a program; ``distribution`` is what Python calls the package, where it is one of Python's."""
    real = Path(os.path.realpath(program))
    if _VERSION.fullmatch(real.name):  # a directory of versions, one file each
        return real.name
    return _of_python(real, distribution) if distribution else _of_node(real)


def _of_python(real: Path, distribution: str) -> str | None:
    pattern = f"lib/python3*/site-packages/{distribution}-*.dist-info"
    found = sorted(real.parent.parent.glob(pattern))
    return found[-1].name.removesuffix(".dist-info").partition("-")[2] if found else None


def _of_node(real: Path) -> str | None:
    for directory in list(real.parents)[:_FAR]:
        try:
            said = json.loads((directory / "package.json").read_bytes())
        except (OSError, ValueError):
            continue
        version = said.get("version") if isinstance(said, dict) else None
        return version if isinstance(version, str) and _VERSION.fullmatch(version) else None
    return None
