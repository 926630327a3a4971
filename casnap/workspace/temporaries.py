"""Names of the temporary entries that a rollback stages contents under."""

from __future__ import annotations

import re

_PREFIX = b".casnap-"
_SHAPE = re.compile(rb"\.casnap-(?P<nonce>[0-9A-Za-z]+)-[0-9]+", re.DOTALL)


def temporary_name(nonce: str, number: int) -> bytes:
    """The name of the ``number``-th temporary entry of the rollback that drew ``nonce`` (ASCII letters and digits)."""
    return b"%s%s-%d" % (_PREFIX, nonce.encode(), number)


def nonce_of(name: bytes) -> str | None:
    """The nonce in a name of that shape: only an open rollback with this very nonce makes it a temporary one."""
    if not name.startswith(_PREFIX):
        return None
    match = _SHAPE.fullmatch(name)
    return match["nonce"].decode() if match else None
