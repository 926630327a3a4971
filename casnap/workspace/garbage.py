"""Python's collector of garbage, kept away from where many small objects come and none goes."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Look for no garbage to the end of the with block: among a workspace's entries that takes as long as making them.

    What nobody refers to any more goes all the same; only what refers to itself stays for that long.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
