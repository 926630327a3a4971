"""Paths as the system has them."""

from __future__ import annotations

import os


def canonical(path: str | bytes) -> bytes:
    """``path`` as an absolute path without links; what does not exist is taken as it stands."""
    return os.path.realpath(os.path.abspath(os.fsencode(path)))
