"""Reading files that others may be writing: nothing is recorded as sound that could have been torn.

A file is read once its stamps are past by the margin, and counts when its stat is the same before and after.
What is too young, or changed, waits for the next round: one wait serves all. In its last round a file is taken
as it is, and flagged.
"""

from __future__ import annotations

import os
import stat

from msgspec.structs import replace

from casnap.fs.directories import Directories
from casnap.model.tree import File, FileFlag, OmitReason
from casnap.workspace.databases import Copier, Databases
from casnap.workspace.entries import ReadFailed, Xattrs, file_entry, is_sparse, read_xattrs
from casnap.workspace.found import FoundDirectory, ReadJob, only_chunk
from casnap.workspace.git_directories import GitDirectories
from casnap.workspace.lister import raise_if_ours, unreadable
from casnap.workspace.outbox import Base
from casnap.workspace.reader import GONE, Content, Reader, open_file
from casnap.workspace.scan import Sibling
from casnap.workspace.side_files import database_of, is_database_size
from casnap.workspace.signature import Settling, Signature, signature_of
from casnap.workspace.walk import Walk

ROUNDS = 3

CHANGED_WHILE_READ = "captured, but it kept changing while it was read"


class Rounds:
    """Reads the files that a walk could not make entries of. ``files_read`` counts readings.

    With a ``copier``, SQLite databases that others have open are taken through it. A ``sibling`` is only a hint.
    """

    def __init__(
        self,
        directories: Directories,
        walk: Walk,
        reader: Reader,
        settling: Settling,
        copier: Copier | None = None,
        sibling: Sibling | None = None,
    ) -> None:
        self.files_read = 0
        self._directories = directories
        self._walk = walk
        self._reader = reader
        self._settling = settling
        self._sibling = sibling
        self._git = GitDirectories(directories, walk)
        self._databases = Databases(directories, walk, copier)
        self._inodes: dict[tuple[int, int, bool], tuple[Signature, File]] = {}
        self._git_moved: set[bytes] = set()

    @property
    def bytes_read(self) -> int:
        """Bytes that all readings together gave."""
        return self._reader.bytes_read

    def run(self, jobs: list[ReadJob]) -> None:
        """Read until every file has an entry, is left out or is gone, and what belongs together fits or is flagged."""
        jobs = self._databases.without_live(jobs)
        while True:
            self._read_all(jobs)
            while self._git.settle():
                self._walk.run()
                self._read_all(self._walk.take_jobs())
            jobs = self._databases.settle(self._keep_copy)
            if not jobs:
                return

    def _read_all(self, jobs: list[ReadJob]) -> None:
        while jobs:
            ready, later = self._divide(jobs)
            later += [job for job in ready if not self._is_done(job)]
            for path in sorted(self._git_moved):
                self._walk.look_again_at_git_objects(path)
            self._git_moved.clear()
            self._walk.run()
            jobs = [job for job in later + self._walk.take_jobs() if self._walk.holds(job)]
            if jobs:
                self._settling.wait([job.signature for job in jobs])
                for job in jobs:
                    job.settled = True

    def _divide(self, jobs: list[ReadJob]) -> tuple[list[ReadJob], list[ReadJob]]:
        """The files to read in this round, and those to wait for; a database goes with its side files."""
        for job in jobs:
            job.rounds += 1
        young = {database_of(job.path) for job in jobs if not self._may_be_read(job)}
        if not young:
            return jobs, []
        ready: list[ReadJob] = []
        later: list[ReadJob] = []
        for job in jobs:
            waits = job.rounds < ROUNDS and database_of(job.path) in young
            (later if waits else ready).append(job)
        return ready, later

    def _may_be_read(self, job: ReadJob) -> bool:
        job.settled = job.settled or self._settling.settled(job.signature)
        return job.settled or job.rounds >= ROUNDS

    def _is_done(self, job: ReadJob) -> bool:
        if not self._walk.holds(job) or (self._inodes and self._is_read_already(job)):
            return True
        try:
            fd = open_file(self._directories.fd(job.directory.path), job.name)
        except OSError as error:
            raise_if_ours(job.path, error)
            if error.errno in GONE:
                self._note_moved(job)
                self._walk.look_again(job.path)
            else:
                job.directory.omit(job.name, OmitReason.UNREADABLE, unreadable(error))
            return True
        try:
            return self._read(job, fd)
        finally:
            os.close(fd)

    def _is_read_already(self, job: ReadJob) -> bool:
        """Whether the file has been read before, mostly under another of its names; if so that entry serves."""
        signature = job.signature
        known, entry = self._inodes.get((signature.device, signature.inode, job.redacted), (None, None))
        if entry is None or known != signature:
            return False
        job.directory.keep(replace(entry, name=job.name), settled=True)
        return True

    def _read(self, job: ReadJob, fd: int) -> bool:
        """Read an open file; False when that has to be done once more."""
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            self._walk.look_again(job.path)
            return True
        signature = job.signature
        if not signature.matches(status):
            self._note_moved(job)
            job.seen(signature := signature_of(status))
        if not (job.settled or self._may_be_read(job)):
            return False
        try:
            xattrs = read_xattrs(fd)
            if job.redacted:
                content = self._reader.read_redacted(fd, status)
            else:
                content = self._reader.read(fd, status, self._base(job))
        except ReadFailed as failure:
            job.directory.omit(job.name, OmitReason.UNREADABLE, unreadable(failure))
            return True
        self.files_read += 1
        if content is None:
            job.directory.omit(job.name, OmitReason.SENSITIVE)
            return True
        if is_database_size(content.size):
            self._databases.notice(job.path, fd)
        after = os.fstat(fd)
        steady = job.settled and content.whole and signature.matches(after)
        if not steady:
            job.seen(signature_of(after))
            if job.rounds < ROUNDS:
                return False
        flags = int(FileFlag.REDACTED) if job.redacted else int(FileFlag.SPARSE) if is_sparse(fd, after) else 0
        self._keep(job, after, content, xattrs, flags, steady=steady)
        return True

    def _base(self, job: ReadJob) -> Base:
        """What a file is perhaps like: what it was, or what stands there in a workspace that is like this one."""
        sibling = self._sibling
        return job.replaced if sibling is None else lambda: job.replaced() or only_chunk(sibling(job.path))

    def _note_moved(self, job: ReadJob) -> None:
        """Within a git directory, what is new or gone since the walk says that objects may have come or moved too."""
        if job.directory.in_git:
            self._git_moved.add(job.directory.path)

    def _keep(
        self, job: ReadJob, status: os.stat_result, content: Content, xattrs: Xattrs, flags: int, *, steady: bool
    ) -> None:
        if not steady:
            flags |= FileFlag.CHANGED_WHILE_READ
            job.directory.findings.problems[job.path] = CHANGED_WHILE_READ
        entry = file_entry(job.name, status, xattrs, content.size, flags, content.id, content.chunk_list)
        job.directory.keep(entry, settled=steady)
        if steady and (status.st_nlink > 1 or job.directory.in_git):
            self._inodes[status.st_dev, status.st_ino, job.redacted] = (job.signature, entry)

    def _keep_copy(self, found: FoundDirectory, name: bytes, fd: int, copy: int) -> None:
        """Record a database with the content of its copy."""
        status, copied = os.fstat(fd), os.fstat(copy)
        content = self._reader.read(copy, copied)
        self.files_read += 1
        entry = file_entry(name, status, read_xattrs(fd), content.size, FileFlag.NONE, content.id, content.chunk_list)
        found.signatures[name] = signature_of(status)
        found.keep(entry, settled=False)
