"""Ages as people write them: ``7d``, ``12h``."""

from __future__ import annotations

import re

from casnap.errors import Usage
from casnap.model.tree import NANOSECONDS

NO_AGE = ("not an age", "write a number and s, m, h, d or w, such as 7d")
"""What is wrong with a text that is none, and what to write."""

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_AGE = r"(?ai)(?P<number>\d{1,9})(?P<unit>[smhdw])"


def read_age(text: str) -> int | None:
    """An age in nanoseconds; None where ``text`` is no number with a unit."""
    if (match := re.fullmatch(_AGE, text)) is None:
        return None
    return int(match["number"]) * _UNITS[match["unit"].lower()] * NANOSECONDS


def parse_age(what: str, text: str) -> int:
    """An age in nanoseconds; ``what`` names the option or key that it is the value of.

    Raises:
        Usage: it is no number with a unit.
    """
    if (age := read_age(text)) is None:
        fault, hint = NO_AGE
        raise Usage(f"bad {what} {text!r}: {fault}", hint=hint)
    return age


def age_text(ns: int, units: str = "wdhm") -> str:
    """An age as :func:`read_age` reads it, in the first of the units that says it exactly, else in seconds."""
    seconds = ns // NANOSECONDS
    unit = next((unit for unit in units if seconds and seconds % _UNITS[unit] == 0), "s")
    return f"{seconds // _UNITS[unit]}{unit}"
