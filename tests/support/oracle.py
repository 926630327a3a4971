"""An independent account of what a directory holds. It shares no code with casnap, on purpose.

``snapshot`` looks at every path; ``difference`` says in words how two snapshots differ; ``inodes`` tells
whether a path is still the very same file or directory.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections import defaultdict
from dataclasses import dataclass, fields

ROOT = b"."
XATTR_PREFIX = "user."

_KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "symlink",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFBLK: "block device",
    stat.S_IFCHR: "character device",
}


@dataclass(frozen=True)
class Record:
    """All that is known of one path; a field that has no meaning for its kind, or was not asked for, is None.

    ``links`` holds the paths that are names of one file, itself included, where there are two or more.
    """

    kind: str
    mode: int | None
    size: int | None
    sha256: str | None
    target: bytes | None
    rdev: int | None
    xattrs: tuple[tuple[str, bytes], ...]
    links: tuple[bytes, ...]
    mtime_ns: int | None
    owner: tuple[int, int] | None


Snapshot = dict[bytes, Record]


def snapshot(path: str | bytes | os.PathLike[str], *, times: bool = True, owners: bool = True) -> Snapshot:
    """A record for every path below ``path``, and for itself as ``b"."``; symbolic links are not followed."""
    root = os.fsencode(path)
    statuses = dict(_walk(root))
    names: dict[tuple[int, int], list[bytes]] = defaultdict(list)
    for relative, status in statuses.items():
        if not stat.S_ISDIR(status.st_mode):
            names[status.st_dev, status.st_ino].append(relative)
    groups = {inode: tuple(sorted(paths)) for inode, paths in names.items() if len(paths) > 1}
    return {
        relative: _record(
            _absolute(root, relative), status, groups.get((status.st_dev, status.st_ino), ()), times, owners
        )
        for relative, status in statuses.items()
    }


def difference(before: Snapshot, after: Snapshot) -> list[str]:
    """One line for each path that is not the same in both, sorted by path; empty when nothing differs."""
    lines = []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old is None or new is None:
            here = old or new
            assert here is not None
            lines.append(f"{path!r}: {here.kind} only {'before' if new is None else 'after'}")
        elif old != new:
            lines.append(f"{path!r}: {_in_words(old, new)}")
    return lines


def inodes(path: str | bytes | os.PathLike[str]) -> dict[bytes, tuple[int, int, int]]:
    """(inode, mtime, ctime) of every path, times in nanoseconds."""
    root = os.fsencode(path)
    return {relative: (status.st_ino, status.st_mtime_ns, status.st_ctime_ns) for relative, status in _walk(root)}


def _absolute(root: bytes, relative: bytes) -> bytes:
    return root if relative == ROOT else os.path.join(root, relative)


def _walk(root: bytes) -> list[tuple[bytes, os.stat_result]]:
    found = []
    waiting = [ROOT]
    while waiting:
        relative = waiting.pop()
        status = os.lstat(_absolute(root, relative))
        found.append((relative, status))
        if stat.S_ISDIR(status.st_mode):
            prefix = b"" if relative == ROOT else relative + b"/"
            waiting.extend(prefix + name for name in os.listdir(_absolute(root, relative)))
    return found


def _record(path: bytes, status: os.stat_result, links: tuple[bytes, ...], times: bool, owners: bool) -> Record:
    form = stat.S_IFMT(status.st_mode)
    is_file, is_link = form == stat.S_IFREG, form == stat.S_IFLNK
    return Record(
        kind=_KINDS[form],
        mode=None if is_link else stat.S_IMODE(status.st_mode),
        size=status.st_size if is_file else None,
        sha256=_sha256(path) if is_file else None,
        target=os.readlink(path) if is_link else None,
        rdev=status.st_rdev if form in (stat.S_IFBLK, stat.S_IFCHR) else None,
        xattrs=_xattrs(path) if is_file or form == stat.S_IFDIR else (),
        links=links,
        mtime_ns=status.st_mtime_ns if times else None,
        owner=(status.st_uid, status.st_gid) if owners else None,
    )


def _sha256(path: bytes) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _xattrs(path: bytes) -> tuple[tuple[str, bytes], ...]:
    try:
        names = os.listxattr(path, follow_symlinks=False)
    except OSError:  # a file system without extended attributes
        return ()
    wanted = sorted(name for name in names if name.startswith(XATTR_PREFIX))
    return tuple((name, os.getxattr(path, name, follow_symlinks=False)) for name in wanted)


def _in_words(old: Record, new: Record) -> str:
    changed = []
    for field in fields(Record):
        before, after = getattr(old, field.name), getattr(new, field.name)
        if before != after:
            show = oct if field.name == "mode" and None not in (before, after) else repr
            changed.append(f"{field.name} {show(before)} -> {show(after)}")
    return ", ".join(changed)
