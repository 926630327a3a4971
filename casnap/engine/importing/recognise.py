"""Telling whose history a path leads to."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from casnap.engine.importing import oh_my_coder, pitrrwnd, ws_ckpt
from casnap.engine.importing.history import History
from casnap.errors import NotFound, Usage
from casnap.fs.paths import canonical
from casnap.model.paths import escape

SYSTEMS = (pitrrwnd.SYSTEM, oh_my_coder.SYSTEM, ws_ckpt.SYSTEM)


def open_history(path: str | bytes, *, system: str | None = None, index: str | bytes | None = None) -> History:
    """The history at ``path``; ``system`` says whose it is where that is known, ``index`` where that of ws-ckpt is.

    Nothing is written. The caller closes the history's source.

    Raises:
        NotFound: there is none.
        Usage: it may be of several systems.
        Refused: a link stands where the history should be.
    """
    place = canonical(path)
    if not os.path.lexists(place):
        raise NotFound(f"no history at {escape(place)}: it does not exist", code="no-history")
    if index is not None:
        if system not in (None, ws_ckpt.SYSTEM):
            raise Usage("bad arguments: --index is for ws-ckpt", hint="leave it out")
        system = ws_ckpt.SYSTEM
    found = _candidates(place, system, None if index is None else canonical(index))
    if len(found) > 1:
        raise Usage(
            f"cannot tell whose history {escape(place)} holds: there are several",
            hint=f"say which with --from: {', '.join(found)}",
            details={"systems": list(found)},
        )
    for read in found.values():
        return read()
    looked = "; ".join((pitrrwnd.LOOKED_FOR, oh_my_coder.LOOKED_FOR, ws_ckpt.LOOKED_FOR))
    raise NotFound(
        f"no history at {escape(place)}: looked for {looked}",
        code="no-history",
        hint="name the directory that holds it, and with --from whose it is",
    )


def _candidates(place: bytes, system: str | None, index: bytes | None) -> dict[str, Callable[[], History]]:
    """For each system that may have left what is at ``place``, how to read it."""
    found: dict[str, Callable[[], History]] = {}
    is_directory = os.path.isdir(place)
    if is_directory and system in (None, pitrrwnd.SYSTEM) and (base := pitrrwnd.find(place)) is not None:
        found[pitrrwnd.SYSTEM] = partial(pitrrwnd.read, place, base)
    if is_directory and system in (None, oh_my_coder.SYSTEM):
        base = oh_my_coder.find(place)
        if base is None and system is not None:
            base = b""
        if base is not None:
            found[oh_my_coder.SYSTEM] = partial(oh_my_coder.read, place, base)
    if system == ws_ckpt.SYSTEM or (system is None and not found):
        snapshots = ws_ckpt.find(place, index, sure=system is not None and is_directory)
        if snapshots is not None:
            found[ws_ckpt.SYSTEM] = partial(ws_ckpt.read, snapshots)
    return found
