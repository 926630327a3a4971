"""Ages as people write them: ``7d``, ``12h``."""

from __future__ import annotations

import re

from casnap.errors import Usage
from casnap.model.tree import NANOSECONDS

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_AGE = r"(?ai)(?P<number>\d{1,9})(?P<unit>[smhdw])"


def parse_age(what: str, text: str) -> int:
    """An age in nanoseconds; ``what`` names the option or key that it is the value of.

    Raises:
        Usage: it is no number with a unit.
    """
    if (match := re.fullmatch(_AGE, text)) is None:
        raise Usage(f"bad {what} {text!r}: not an age", hint="write a number and s, m, h, d or w, such as 7d")
    return int(match["number"]) * _UNITS[match["unit"].lower()] * NANOSECONDS


def age_text(ns: int) -> str:
    """An age as :func:`parse_age` reads it, in the largest unit that says it exactly; parts of a second are dropped."""
    seconds = ns // NANOSECONDS
    unit = next((unit for unit in "wdhm" if seconds and seconds % _UNITS[unit] == 0), "s")
    return f"{seconds // _UNITS[unit]}{unit}"
