"""Files in a store's directories that do not belong there, and caches that are damaged: told, and left alone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from casnap.model.check import Fault, Finding
from casnap.store.inspection import Inspection
from casnap.workspace.cache_file import PATCH_SUFFIX, load_base
from casnap.workspace.cache_patch import load_patch

_AT_TOP = re.compile(
    r"casnap-store\.json|README\.txt|reserve|packs|oplog|locks|cache|lost\+found"
    r"|oplog-new|oplog-aside-.*|catalog-\d+\.db(\.aside)?(-wal|-shm|-journal)?"
)
_PACK = re.compile(r"[0-9a-f]{32}\.pack")
_SEGMENT = re.compile(r"\d{10}\.jsonl(\.torn-.*)?")
_STAT = re.compile(r"(.+)\.stat(-patch)?")
_TEMPORARY = re.compile(r".*\.[0-9a-f]{8}\.tmp")


def file_notes(inspection: Inspection) -> list[Finding]:
    """A note for each of them."""
    layout = inspection.layout
    known = ((layout.root, _AT_TOP), (layout.packs, _PACK), (layout.oplog, _SEGMENT))
    notes = [note for directory, names in known for note in _strangers(layout.root, directory, names)]
    return notes + [_damaged_cache(name) for name in damaged_caches(inspection)]


def damaged_caches(inspection: Inspection) -> list[str]:
    """Names of stat caches, and of patches to them, that cannot be used: damaged, or of another store."""
    names = []
    for name in sorted(_names(inspection.layout.cache)):
        match = _STAT.fullmatch(name)
        if match and _load(inspection.layout.cache / name, inspection.store_id, match[1]) is None:
            names.append(name)
    return names


def _load(path: Path, store: str, workspace: str) -> object:
    """What is in a file of a stat cache. A patch that is to another file than stands there was only left behind."""
    if path.suffix == PATCH_SUFFIX:
        return load_patch(path, store=store, workspace=workspace)
    return load_base(path, store=store, workspace=workspace)


def _damaged_cache(name: str) -> Finding:
    message = "the stat cache is damaged: that costs the next checkpoint time, and nothing else"
    return Finding(Fault.CACHE, message, False, f"cache/{name}")


def _strangers(root: Path, directory: Path, known: re.Pattern[str]) -> Iterator[Finding]:
    for name in sorted(_names(directory)):
        if known.fullmatch(name):
            continue
        file = os.path.relpath(directory / name, root)
        if _TEMPORARY.fullmatch(name):
            yield Finding(Fault.LEFTOVER, "a process was stopped while it wrote this file", False, file)
        else:
            yield Finding(Fault.UNKNOWN_FILE, "unknown file: it is not of this store, and is left alone", False, file)


def _names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []
