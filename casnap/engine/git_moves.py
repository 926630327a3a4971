"""What a rollback does to the git directories in a workspace, told before it is done."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Callable, Iterator

from msgspec import Struct

from casnap.engine.compare import TreeView
from casnap.engine.content import pieces
from casnap.engine.scanning import LiveScan
from casnap.errors import Damage, Refused
from casnap.fs.directories import Directories
from casnap.model.change import Change, ChangeKind
from casnap.model.paths import components, escape, is_within, join, split
from casnap.model.plan import Plan
from casnap.model.report import GitMove
from casnap.model.tree import NANOSECONDS, Directory, File, OmitReason
from casnap.workspace.reader import open_file
from casnap.workspace.rules import GIT_DIRECTORY

LOCK_IS_FRESH = 600 * NANOSECONDS
"""A git lock that is younger means that git is at work."""

_LONGEST = 1 << 20
_LOOSE = re.compile(rb"objects/([0-9a-f]{2})/([0-9a-f]{38}|[0-9a-f]{62})")
_COMMITTED = re.compile(rb"^\S+ (?P<id>[0-9a-f]{40,64}) [^\t\n]*\tcommit", re.MULTILINE)

Read = Callable[[bytes], bytes]
"""The bytes of the file at a path, none where there is none that is small and can be read."""


def git_moves(plan: Plan, directories: Directories, live: TreeView, target: TreeView) -> tuple[GitMove, ...]:
    """How many commits and refs each git directory loses or gets back by a plan; git itself is never run."""
    before = _Side(live, lambda path: _read_live(directories, path))
    after = _Side(target, lambda path: _read_recorded(target, path))
    return tuple(_move(top, changes, before, after) for top, changes in _by_git_directory(plan, live, target).items())


def require_no_git_lock(plan: Plan, found: LiveScan, live: TreeView, target: TreeView, now: int) -> None:
    """See that git is not at work in a git directory that a plan changes (``now`` in nanoseconds).

    Raises:
        Refused: a lock file younger than ten minutes is there.
    """
    changed = _by_git_directory(plan, live, target)
    locks = [path for path, reason in found.skipped if reason is OmitReason.GIT_LOCK]
    for path in locks:
        fresh = now - found.signatures[path].mtime_ns < LOCK_IS_FRESH
        if fresh and any(is_within(path, top) for top in changed):
            raise Refused(
                f"cannot change the git directory of {escape(path)}: git is at work there, it holds that lock",
                code="git-locked",
                hint="wait for git to end, remove the lock if no git runs, or leave git alone with --keep-git",
                details={"lock": escape(path)},
            )


def _by_git_directory(plan: Plan, live: TreeView, target: TreeView) -> dict[bytes, list[Change]]:
    """The changes in each git directory, by its path; times alone are none."""
    found: dict[bytes, list[Change]] = {}
    for change in plan.visible:
        parts = components(change.path)
        if GIT_DIRECTORY in parts:
            top = b"/".join(parts[: parts.index(GIT_DIRECTORY) + 1])
            found.setdefault(top, []).append(change)
    return {
        top: changes
        for top, changes in found.items()
        if isinstance(live.entry(top), Directory) or isinstance(target.entry(top), Directory)
    }


class _Side(Struct, frozen=True):
    """The live tree or the target, and how a file of it is read."""

    view: TreeView
    read: Read

    def files(self, directory: bytes) -> Iterator[bytes]:
        return (path for path, entry in self.view.walk(directory) if isinstance(entry, File))

    def refs(self, top: bytes) -> dict[bytes, bytes]:
        """What HEAD and each ref say."""
        refs = {b"HEAD": self.read(join(top, b"HEAD"))}
        for line in self.read(join(top, b"packed-refs")).splitlines():
            commit, _, name = line.partition(b" ")
            if name and not line.startswith((b"#", b"^")):
                refs[name] = commit
        for path in self.files(join(top, b"refs")):
            refs[path[len(top) + 1 :]] = self.read(path).strip()
        return refs

    def logged(self, top: bytes) -> set[bytes]:
        """The commits that the reflogs say were made here."""
        texts = map(self.read, self.files(join(top, b"logs")))
        return {match["id"] for text in texts for match in _COMMITTED.finditer(text)}


def _move(top: bytes, changes: list[Change], before: _Side, after: _Side) -> GitMove:
    old, new = before.refs(top), after.refs(top)
    was, will_be = before.logged(top), after.logged(top)
    return GitMove(
        path=top,
        commits=len((_loose_commits(top, changes, ChangeKind.REMOVED, before.read) | was) - will_be),
        returning=len((_loose_commits(top, changes, ChangeKind.ADDED, after.read) | will_be) - was),
        refs=sum(old.get(name) != new.get(name) for name in old.keys() | new.keys()),
    )


def _loose_commits(top: bytes, changes: list[Change], kind: ChangeKind, read: Read) -> set[bytes]:
    """The ids of the commits among the loose objects that come or go."""
    found = set()
    for change in changes:
        match = _LOOSE.fullmatch(change.path[len(top) + 1 :])
        if match and change.kind is kind and _is_commit(read(change.path)):
            found.add(match[1] + match[2])
    return found


def _is_commit(data: bytes) -> bool:
    try:
        return zlib.decompressobj().decompress(data, 7) == b"commit "
    except zlib.error:
        return False


def _read_live(directories: Directories, path: bytes) -> bytes:
    parent, name = split(path)
    try:
        fd = open_file(directories.fd(parent), name)
    except OSError:
        return b""
    try:
        return os.pread(fd, _LONGEST, 0)
    except OSError:
        return b""
    finally:
        os.close(fd)


def _read_recorded(target: TreeView, path: bytes) -> bytes:
    entry = target.entry(path)
    if not isinstance(entry, File) or entry.size > _LONGEST:
        return b""
    try:
        return b"".join(pieces(target.source, entry))
    except Damage:
        return b""
