"""Which entries a tree may hold: checked before it is written and after it is read (docs/format/tree.md).

This runs for every directory of every checkpoint: an everyday entry is passed in one look, the rest by columns.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Sequence

from casnap.codec.compression import MAX_RAW
from casnap.model.ids import ID_SIZE
from casnap.model.paths import NAME_MAX
from casnap.model.tree import (
    NANOSECONDS,
    AnyEntry,
    AnyNode,
    Device,
    Directory,
    File,
    FileFlag,
    Listing,
    OmitReason,
    Omitted,
    Symlink,
)

MAX_XATTRS = 1 << 20
"""Most bytes in all names and values of one entry's extended attributes."""

MAX_TARGET = 65_535
"""Most bytes in the target of a symbolic link; Linux itself stops at 4,095."""

_UINT32 = 1 << 32
_INT64 = 1 << 63
_MAX_SIZE = _INT64 - 1
_MAX_MODE = 0o7777
_ALL_FLAGS = sum(FileFlag)
_REASONS = frozenset(int(reason) for reason in OmitReason)


def find_fault(listing: Listing) -> str | None:
    """What is wrong with a directory's entries, in words; None when nothing is."""
    return names_fault([entry.name for entry in listing]) or fields_fault(listing)


def names_fault(names: Sequence[bytes]) -> str | None:
    """What is wrong with names that must be a directory's, each once and in order."""
    if not names:
        return None
    joined = b"/".join(names)
    if joined.count(b"/") != len(names) - 1 or b"\0" in joined or b"." in names or b".." in names:
        return "a name is one that no entry can have"
    if max(map(len, names)) > NAME_MAX or not all(names):
        return "a name is empty or too long"
    if not all(map(operator.lt, names, itertools.islice(names, 1, None))):
        return "its names are not sorted, or one is there twice"
    return None


def fields_fault(entries: Iterable[AnyEntry]) -> str | None:
    """What is wrong with entries beside their names."""
    entries = [entry for entry in entries if not _is_plain(entry)]
    if not entries:
        return None
    files = [entry for entry in entries if type(entry) is File]
    others = [entry for entry in entries if type(entry) is not File]
    nodes: list[AnyNode] = [*files, *(entry for entry in others if not isinstance(entry, Omitted))]
    return _metadata_fault(nodes) or _files_fault(files) or next(filter(None, map(_kind_fault, others)), None)


def _is_plain(entry: AnyEntry) -> bool:
    """Whether an entry is an everyday file or directory without fault, as nearly all are: asked at once."""
    if isinstance(entry, File):
        fits = (
            len(entry.content) == ID_SIZE
            and not entry.chunk_list
            and 0 <= entry.size <= MAX_RAW
            and 0 <= entry.flags <= _ALL_FLAGS
        )
    elif isinstance(entry, Directory):
        fits = len(entry.tree) == ID_SIZE == len(entry.digest)
    else:
        return False
    return (
        fits
        and not entry.xattrs
        and 0 <= entry.mode <= _MAX_MODE
        and 0 <= entry.uid < _UINT32
        and 0 <= entry.gid < _UINT32
        and -_INT64 <= entry.mtime_s < _INT64
        and 0 <= entry.mtime_frac < NANOSECONDS
    )


def xattrs_size(node: AnyNode) -> int:
    """Bytes in all names and values of an entry's extended attributes."""
    return sum(len(name) + len(value) for name, value in node.xattrs)


def _metadata_fault(nodes: Sequence[AnyNode]) -> str | None:
    owners = {node.uid for node in nodes} | {node.gid for node in nodes}
    if not all(0 <= mode <= _MAX_MODE for mode in {node.mode for node in nodes}):
        return "a mode is out of range"
    if not all(0 <= owner < _UINT32 for owner in owners):
        return "an owner is out of range"
    if not all(-_INT64 <= node.mtime_s < _INT64 and 0 <= node.mtime_frac < NANOSECONDS for node in nodes):
        return "a time is out of range"
    return next(filter(None, [_xattrs_fault(node) for node in nodes if node.xattrs]), None)


def _xattrs_fault(node: AnyNode) -> str | None:
    names = [name for name, _ in node.xattrs]
    if not all(0 < len(name) <= NAME_MAX and b"\0" not in name for name in names):
        return "an extended attribute has a name that cannot be"
    if not all(map(operator.lt, names, itertools.islice(names, 1, None))):
        return "extended attributes are not sorted, or one is there twice"
    if xattrs_size(node) > MAX_XATTRS:
        return "extended attributes are too long"
    return None


def _files_fault(files: Sequence[File]) -> str | None:
    if not {ID_SIZE}.issuperset({len(file.content) for file in files}):
        return "a content id has the wrong length"
    if not all(0 <= flags <= _ALL_FLAGS for flags in {file.flags for file in files}):
        return "a flag is unknown"
    if not all(0 <= file.size <= (_MAX_SIZE if file.chunk_list else MAX_RAW) for file in files):
        return "a file is longer than a chunk but has no chunk list, or longer than can be"
    if not all(len(file.chunk_list) == ID_SIZE and file.size > 1 for file in files if file.chunk_list):
        return "a chunk list has an id of the wrong length, or nothing to list"
    return None


def _kind_fault(entry: AnyEntry) -> str | None:
    """What is wrong with what only entries of its kind have; files are checked together."""
    match entry:
        case Omitted(reason=reason):
            return None if reason in _REASONS else "the reason of an omission is unknown"
        case Directory(tree=tree, digest=digest):
            fits = len(tree) == len(digest) == ID_SIZE
            return None if fits else "an id of a directory has the wrong length"
        case Symlink(target=target):
            fits = 0 < len(target) <= MAX_TARGET and b"\0" not in target
            return None if fits else "the target of a link is one that cannot be"
        case Device(major=major, minor=minor):
            fits = 0 <= major < _UINT32 and 0 <= minor < _UINT32
            return None if fits else "a device number is out of range"
    return None
