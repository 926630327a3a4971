"""Switching: what was staged takes its place, what is not in the target goes.

An entry is looked at right before it is replaced or removed: one that is not as the safety checkpoint saw it
is left alone and reported, and what is written into it during the act is kept.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from casnap.codec.hashing import content_id
from casnap.errors import CasnapError
from casnap.fs import placing
from casnap.fs.directories import OPEN_LIMIT
from casnap.model.change import Change
from casnap.model.paths import components, split
from casnap.model.report import Problem
from casnap.model.tree import AnyEntry, AnyNode, Directory, File
from casnap.workspace.reader import open_file
from casnap.workspace.side_files import LOGS, database_of, is_database_size
from casnap.workspace.signature import Signature, signature_of
from casnap.workspace.staging import Staging

_NOT_PLACED = "its directory could not be put in place"

READ_AGAIN = 64 << 10
"""The most bytes of a replaced file that are read once more, to see whether somebody wrote to it unseen."""

Late = Callable[[bytes, int], None]
"""Takes what was written into an entry (path, open descriptor) while it was being replaced."""


class Outcome(Struct):
    """What switching came to: paths that are not as the target has them, and metadata that could not be set."""

    left_alone: list[Problem] = []
    problems: list[Problem] = []


class Switch:
    """One run over a layout whose new inodes are staged.

    ``before`` gives what the safety checkpoint holds of an entry that goes, ``target`` the target's entry of a
    directory whose names change; ``whole`` says that every directory is in scope, so that its time comes back too.
    """

    def __init__(
        self,
        staging: Staging,
        *,
        late: Late,
        before: Callable[[bytes], AnyEntry | None],
        target: Callable[[bytes], AnyEntry | None],
        whole: bool,
    ) -> None:
        self.staging = staging
        self.directories = staging.directories
        self.layout = staging.layout
        self.late = late
        self.before = before
        self.target = target
        self.whole = whole
        self.outcome = Outcome()
        self._parents = staging.parents
        self._removed = {change.path for change in self.layout.removals}
        self._seen: dict[tuple[int, int], Signature] = {}
        self._moved: set[bytes] = set()

    def run(self) -> Outcome:
        """Make the changes, in the order that lets each succeed."""
        self._moved = self._moved_databases()
        for change in self.layout.removals:
            self._try(change.path, self._remove, change)
        self.outcome.left_alone += [Problem(path, why) for path, why in self.staging.unreachable.items()]
        for path in self.staging.staged:
            if path in self.staging.unreachable or self._try(path, self._place, path):
                continue
            if path in self.staging.building:  # nothing that was built in it has a place
                below = self.staging.building.below(path) - self.staging.unreachable.keys()
                self.outcome.left_alone += [Problem(missed, _NOT_PLACED) for missed in sorted(below)]
        for path, base in self.layout.linked:
            self._try(path, self._join, path, base)
        self.staging.homes.remove()
        self._set_metadata()
        self.outcome.problems += self.staging.inodes.faults
        return self.outcome

    def _try(self, path: bytes, act: Callable[..., None], *arguments: Any) -> bool:
        """Do something about a path; what cannot be done is reported, and the rest goes on. Whether it was done."""
        try:
            act(*arguments)
            return True
        except _LeftAlone as reason:
            self.outcome.left_alone.append(Problem(path, str(reason)))
        except OSError as error:
            self.outcome.left_alone.append(Problem(path, error.strerror or str(error)))
        except CasnapError as error:
            self.outcome.left_alone.append(Problem(path, error.message))
        return False

    def _moved_databases(self) -> set[bytes]:
        """The files of databases of which one is not as the safety checkpoint saw it: all are left alone then."""
        sets: dict[bytes, set[bytes]] = {}
        for path in (*self._removed, *self.staging.staged):
            sets.setdefault(database_of(path), set()).add(path)
        return {
            path
            for database, members in sets.items()
            if _is_set(self.staging.signatures.get(database), database, members)
            and not all(map(self._is_as_seen, (database, *(database + log for log in LOGS))))
            for path in members
        }

    def _log_came(self, path: bytes) -> bool:
        """Whether a log has come beside a file since: then a program is at work in that database."""
        for log in (path + suffix for suffix in LOGS):
            known = log in self.staging.signatures and log not in self._removed
            with contextlib.suppress(OSError):  # a name that is too long is nobody's
                now = None if known else self._lstat(log)  # one of the target's comes after its database
                if now is not None and now.st_size:
                    return True
        return False

    def _is_as_seen(self, path: bytes) -> bool:
        try:
            now = self._lstat(path)
        except OSError:
            now = None
        expected = self.staging.signatures.get(path)
        return now is None if expected is None else now is not None and expected.matches(now)

    def _parent(self, path: bytes) -> int:
        return self.directories.fd(split(path)[0])

    def _require_unmoved(self, path: bytes) -> None:
        if path in self._moved:
            raise _LeftAlone("its database changed after the safety checkpoint was taken")

    def _remove(self, change: Change) -> None:
        self._require_unmoved(change.path)
        parent, name = self._parent(change.path), split(change.path)[1]
        if isinstance(change.old, Directory):
            self.directories.forget(change.path)
            try:
                placing.remove_directory(parent, name)
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    raise _LeftAlone("not empty: something in it was left alone or is new") from None
                raise
        else:
            with self._guarded(change.path):
                placing.remove_file(parent, name)

    def _place(self, path: bytes) -> None:
        self._require_unmoved(path)
        home, staged = self.staging.staged[path]
        parent, name = split(path)
        if home.count(b"/") + parent.count(b"/") < OPEN_LIMIT - 2:  # the one is still open when the other is asked for
            fd = self.directories.fd
            self._move(path, (fd(home), staged), (fd(parent), name))
        else:
            with self.directories.held(home) as home_fd, self.directories.held(parent) as parent_fd:
                self._move(path, (home_fd, staged), (parent_fd, name))

    def _move(self, path: bytes, source: tuple[int, bytes], target: tuple[int, bytes]) -> None:
        """Move a staged inode to its place."""
        if self._is_replaced(path):
            if self._log_came(path):
                raise _LeftAlone("its database came into use after the safety checkpoint was taken")
            with self._guarded(path):
                placing.replace(source, target)
        else:
            placing.place_new(source, target)

    def _is_replaced(self, path: bytes) -> bool:
        return path in self.staging.signatures and path not in self._removed

    def _join(self, path: bytes, base: bytes) -> None:
        held = self.directories.held
        with held(split(base)[0]) as base_fd, held(split(path)[0]) as parent_fd:
            source, target = (base_fd, split(base)[1]), (parent_fd, split(path)[1])
            try:
                if self._is_replaced(path):
                    self._join_over(path, source, target)
                else:
                    placing.link(source, target)
            finally:
                self._account_for(base)

    def _join_over(self, path: bytes, source: tuple[int, bytes], target: tuple[int, bytes]) -> None:
        """Give ``path``'s name to another inode in one step."""
        with self.directories.held(self.staging.homes.of(path)) as home_fd:
            temporary = (home_fd, b"link")
            placing.link(source, temporary)
            try:
                with self._guarded(path):
                    placing.replace(temporary, target)
            finally:
                if placing.exists(*temporary):  # a rename between two names of one inode does nothing
                    placing.remove_file(*temporary)

    def _account_for(self, path: bytes) -> None:
        """What this run did to an inode by way of one name is no change by others when it comes to another."""
        seen = self._lstat(path)
        if seen is None or path not in self.staging.signatures:
            return
        now = signature_of(seen)
        if _same_content(self._expected(path), now):
            self._seen[now.device, now.inode] = now

    @contextlib.contextmanager
    def _guarded(self, path: bytes) -> Iterator[None]:
        """Let an entry go only if it is as the safety checkpoint saw it; keep what is written meanwhile."""
        expected = self._expected(path)
        fd, readable = _open_old(self._parent(path), split(path)[1], expected)
        try:
            if not expected.matches(os.fstat(fd)):
                raise _LeftAlone("changed after the safety checkpoint was taken")
            yield
            after = signature_of(os.fstat(fd))
            if readable and (not _same_content(expected, after) or _is_rewritten(fd, self.before(path))):
                self.late(path, fd)
            self._seen[after.device, after.inode] = after
        finally:
            os.close(fd)

    def _lstat(self, path: bytes) -> os.stat_result | None:
        try:
            return os.lstat(split(path)[1], dir_fd=self._parent(path))
        except FileNotFoundError:
            return None

    def _expected(self, path: bytes) -> Signature:
        """How the entry was seen last: losing another of its names changes an inode's ctime."""
        signature = self.staging.signatures[path]
        return self._seen.get((signature.device, signature.inode), signature)

    # -- metadata ------------------------------------------------------------------------------------------

    def _set_metadata(self) -> None:
        directories = {*self._parents, *self.staging.homes.loosened, *self.staging.homes.tops, *self.layout.directories}
        for path, node in self.layout.repaired.items():
            if isinstance(node, Directory):
                directories.add(path)
            else:
                self._try(path, self._repair, path, node)
        failed = {problem.path for problem in self.outcome.left_alone}
        gone = {c.path for c in self.layout.removals if not isinstance(c.new, Directory)} - failed
        never = failed & self.layout.directories.keys()
        done = self.staging.building.finished
        for path in sorted(directories - gone - never - done, key=lambda path: len(components(path)), reverse=True):
            self._try(path, self._finish_directory, path)

    def _repair(self, path: bytes, node: AnyNode) -> None:
        seen = self._lstat(path)
        if seen is None or not _same_content(self._expected(path), signature_of(seen)):
            raise _LeftAlone("changed after the safety checkpoint was taken")
        parent, name = self._parent(path), split(path)[1]
        self._note(path, placing.set_metadata(parent, name, node))
        after = signature_of(os.lstat(name, dir_fd=parent))
        self._seen[after.device, after.inode] = after  # other names of it are repaired too

    def _finish_directory(self, path: bytes) -> None:
        node = self.target(path)
        if self._is_in_scope(path) and isinstance(node, Directory):
            parent, name = (self._parent(path), split(path)[1]) if path else (self.directories.root_fd, b".")
            self._note(path, placing.set_metadata(parent, name, node))
            return
        fd, signature = self.directories.fd(path), self.staging.signatures[path]
        if path in self.staging.homes.loosened:
            placing.change_mode_of(fd, stat.S_IMODE(signature.mode))
        if path not in self._parents:  # nothing but a staging directory came and went
            placing.set_times(fd, b".", signature.mtime_ns)

    def _is_in_scope(self, path: bytes) -> bool:
        if path in self.staging.borders:  # what is mounted there has its own metadata
            return False
        return self.whole or path in self.staging.building or path in self.layout.repaired

    def _note(self, path: bytes, faults: list[str]) -> None:
        self.outcome.problems += [Problem(path, fault) for fault in faults]


def _is_set(seen: Signature | None, database: bytes, members: set[bytes]) -> bool:
    """Whether changed ``members`` belong to an SQLite database, of which the file itself was ``seen`` so."""
    is_file = seen is None or stat.S_ISREG(seen.mode)
    return is_file and (members != {database} or (seen is not None and is_database_size(seen.size)))


class _LeftAlone(Exception):
    """A path is not changed; the text says why."""


def _same_content(before: Signature, after: Signature) -> bool:
    """Whether nothing was written: losing a name or changing its mode moves only an inode's ctime."""
    return (before.inode, before.size, before.mtime_ns) == (after.inode, after.size, after.mtime_ns)


def _open_old(parent: int, name: bytes, expected: Signature) -> tuple[int, bool]:
    """The entry itself, and whether its bytes can be read; what cannot be read can still be looked at."""
    try:
        if stat.S_ISREG(expected.mode):
            with contextlib.suppress(PermissionError):
                return open_file(parent, name), True
        return os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent), False
    except FileNotFoundError:
        raise _LeftAlone("vanished after the safety checkpoint was taken") from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link or a socket by now
            raise _LeftAlone("changed after the safety checkpoint was taken") from None
        raise


def _is_rewritten(fd: int, entry: AnyEntry | None) -> bool:
    """Whether other bytes are in a file than the safety checkpoint holds as ``entry``, although no stat tells it.

    The act itself moves the ctime, mtime can be set, and a store through a mapping moves neither. Of what is large
    that is not worth a read.
    """
    if not isinstance(entry, File) or not 0 < entry.size <= READ_AGAIN:
        return False
    try:
        return content_id(os.pread(fd, entry.size + 1, 0)) != entry.content
    except OSError:  # it has gone already, and a disk that fails by now is no reason to say that it was left alone
        return False
