"""Times as other systems write them."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal

from casnap.model.tree import NANOSECONDS

_INT64 = 1 << 63
_TEXT = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)[Tt ](?P<time>\d\d:\d\d:\d\d)"
    r"(?:\.(?P<fraction>\d+))?(?:\.(?P<serial>\d+))? ?(?P<zone>[Zz]|UTC|[+-]\d\d:?\d\d)?",
    re.ASCII,
)


def instant(value: object, *, serial: int | None = None) -> int | None:
    """An instant in nanoseconds since the epoch; None where ``value`` is none, or one that cannot be recorded.

    Text is ISO 8601, in local time where it names no zone; a number counts seconds since the epoch. What stands
    behind the last dot is no fraction of a second where it is ``serial``, the running number of an entry.
    """
    try:
        found = _of_text(value, serial) if isinstance(value, str) else _of_number(value)
    except (ValueError, OverflowError, OSError):
        return None
    return found if found is not None and -_INT64 <= found < _INT64 else None


def _of_text(text: str, serial: int | None) -> int | None:
    match = _TEXT.fullmatch(text.strip())
    if match is None:
        return None
    fraction = match["fraction"] or ""
    if match["serial"] is None and fraction and serial is not None and int(fraction) == serial:
        fraction = ""
    zone = match["zone"] or ""
    whole = dt.datetime.fromisoformat(f"{match['date']}T{match['time']}{'+00:00' if zone in _UTC else zone}")
    if whole.tzinfo is None:
        whole = whole.astimezone()
    return int(whole.timestamp()) * NANOSECONDS + int(fraction[:9].ljust(9, "0"))


_UTC = frozenset({"Z", "z", "UTC"})


def _of_number(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    if isinstance(value, int):
        return value * NANOSECONDS
    return int(Decimal(repr(value)) * NANOSECONDS)
