"""Walking a workspace from its root, without recursion and without following a link."""

from __future__ import annotations

import os
from collections import Counter

from casnap.errors import CasnapError, Damage
from casnap.fs.directories import Directories
from casnap.model.clock import Progress
from casnap.model.paths import ROOT, ancestors, is_within, join, split
from casnap.model.tree import AnyEntry, OmitReason
from casnap.workspace.cache import CachedDirectory, StatCache, Trait
from casnap.workspace.cache_file import CacheFile, Patched
from casnap.workspace.found import FoundDirectory, ReadJob
from casnap.workspace.lister import KEPT_CHANGING, TRIES, Lister, raise_if_ours, unreadable
from casnap.workspace.omissions import GIT_OBJECTS
from casnap.workspace.proof import Proof
from casnap.workspace.reader import GONE
from casnap.workspace.rules import CACHE_TAG
from casnap.workspace.signature import looker

GIT_AT_WORK = "captured, but git was at work in it all the time: a restored copy may be incomplete"


class Walk:
    """Finds the directories of a workspace; ``found`` has each of them after the ones above it.

    ``passed`` are those that were passed over with all below them, since nothing there has changed: the numbers of the
    first and the last in the cache's file. ``order`` has both as they were met.

    Of a git directory the objects are looked at last: what a reference names by then is among them.
    """

    def __init__(
        self,
        directories: Directories,
        lister: Lister,
        progress: Progress,
        cache: StatCache | None = None,
        proof: Proof | None = None,
    ) -> None:
        """``proof`` says which directories of ``cache`` need not be looked at."""
        self.found: dict[bytes, FoundDirectory] = {}
        self.passed: dict[bytes, tuple[int, int]] = {}
        self.order: dict[bytes, None] = {}
        self.findings = lister.findings
        self.look = looker(directories)
        self._directories = directories
        self._lister = lister
        self._progress = progress
        self._cache = cache
        self._proof = proof
        self._ahead = [ROOT]
        self._jobs: list[ReadJob] = []
        self._looks: Counter[bytes] = Counter()

    def run(self) -> None:
        """Visit every directory that is ahead: all of them at first, later what :meth:`look_again` found.

        Raises:
            CasnapError: the root cannot be listed.
        """
        while self._ahead:
            path = self._ahead.pop()
            if self._take_proven(path):
                continue
            try:
                found = self._lister.list(path, self._directories.fd(path), self._above(path))
            except OSError as error:
                raise_if_ours(path, error)
                self._could_not_visit(path, error)
                continue
            if found is None:
                self._leave_out_cache(path)
                continue
            self.found[path] = found
            self.order[path] = None
            if path != ROOT:
                parent, name = split(path)
                self.found[parent].note_directory(name, found.signature)
            self._collect(found)
            self._progress.advance(len(found.signatures))

    @property
    def file(self) -> CacheFile | None:
        """The cache file, if there is one."""
        found = None if self._cache is None else self._cache.directories
        return found.file if isinstance(found, Patched) else found if isinstance(found, CacheFile) else None

    @property
    def count(self) -> int:
        """How many entries there are, left-out ones included."""
        counted = sum(found.count for found in self.found.values())
        if (file := self.file) is not None:
            counted += sum(sum(file.counts[first : last + 1]) for first, last in self.passed.values())
        return counted

    def cached(self, path: bytes) -> CachedDirectory:
        """A directory that was passed over, or is below one that was."""
        assert self._cache is not None
        return self._cache.directories[path]

    def entry(self, path: bytes) -> AnyEntry | None:
        """What was found at a path below the root."""
        directory, name = split(path)
        if (found := self.found.get(directory)) is not None:
            return found.entries.get(name)
        if self.passed.keys().isdisjoint((directory, *ancestors(directory))):
            return None
        return next((entry for entry in self.cached(directory).listing if entry.name == name), None)

    def _take_proven(self, path: bytes) -> bool:
        """Take a directory as it is in the cache, where that is proven; whether it is.

        One that is looked at again is not: something about it was not as it seemed.
        """
        if self._proof is None or self._cache is None or path == ROOT or self._looks[path]:
            return False
        above = self.found[split(path)[0]]
        if not self._proof.holds(path) or (cached := self._cache.directories[path]).context != above.context:
            return False
        if above.in_git and not self._is_still(path, cached):
            return False
        if not above.in_git and (run := self._proof.run(path)) is not None:
            self.passed[path] = run
            self._note(path, cached)
            return True
        try:
            found = self._lister.proven(path, cached, self._cache, above, self.look)
        except Damage:  # the store has not got its tree any more
            return False
        self.found[path] = found
        self._note(path, cached)
        self._ahead += [join(path, name) for name in reversed(self._proof.children(path))]
        return True

    def _note(self, path: bytes, cached: CachedDirectory) -> None:
        """Tell the directory above of one that is as it was."""
        parent, name = split(path)
        assert cached.signature is not None  # else nothing would be proven
        self.found[parent].note_directory(name, cached.signature)
        self.order[path] = None

    def _is_still(self, path: bytes, cached: CachedDirectory) -> bool:
        """Whether no name in a directory has come or gone up to now: objects come before what refers to them.

        The references may have been read after everything was proved.
        """
        try:
            status = os.lstat(path, dir_fd=self._directories.root_fd)
        except OSError:
            return False
        return cached.signature is not None and cached.signature.matches(status)

    def _leave_out_cache(self, path: bytes) -> None:
        """Leave a directory out that is a cache: its tag decides, also next time."""
        parent, name = split(path)
        above = self.found[parent]
        above.omit(name, OmitReason.IGNORED)
        tag = self._lister.tag  # as it was when it was read
        if tag is not None and self._lister.is_settled(tag):
            above.guards[join(name, CACHE_TAG)] = tag
        else:
            above.traits |= Trait.UNPROVABLE

    def _above(self, path: bytes) -> FoundDirectory | None:
        return None if path == ROOT else self.found[split(path)[0]]

    def take_jobs(self) -> list[ReadJob]:
        """The files that must be read, in the order of the walk; each is handed out once."""
        jobs, self._jobs = self._jobs, []
        return jobs

    def holds(self, job: ReadJob) -> bool:
        """Whether the directory that the job was found in is still part of the workspace."""
        return self.found.get(job.directory.path) is job.directory

    def look_again(self, path: bytes) -> None:
        """Look anew at a path that is not what it was: it may be something else, or gone with its directory.

        A directory that is found there is ahead of the next :meth:`run`.
        """
        while True:
            parent, name = split(path)
            self._directories.forget(parent)
            try:
                fd = self._directories.fd(parent)
                break
            except OSError as error:
                raise_if_ours(parent, error)
                path = parent
        self._discard(path)
        above = self.found[parent]
        above.drop(name)
        self._looks[path] += 1
        if self._looks[path] > TRIES:
            above.omit(name, OmitReason.UNREADABLE, KEPT_CHANGING)
        else:
            try:
                self._lister.look(above, fd, name)
            except OSError as error:
                above.omit(name, OmitReason.UNREADABLE, unreadable(error))
            self._collect(above)

    def look_anew(self, found: FoundDirectory, name: bytes) -> None:
        """Look once more at a name in a directory that is as it was, as if for the first time."""
        found.drop(name)
        try:
            self._lister.look(found, self._directories.fd(found.path), name)
        except OSError as error:
            raise_if_ours(found.path, error)
            found.omit(name, OmitReason.UNREADABLE, unreadable(error))
        self._collect(found)

    def walk_anew(self, path: bytes) -> None:
        """Have the next :meth:`run` visit a directory that was found, and all below it, as if for the first time."""
        self._directories.forget(path)
        self._discard(path)
        self._proof = None  # what is looked at anew is looked at in earnest
        self._ahead.append(path)

    def look_again_at_git_objects(self, path: bytes) -> None:
        """Walk the objects anew of the git directory that ``path`` is in: references have moved on."""
        for above in ancestors(path):
            objects = join(above, GIT_OBJECTS)
            if objects in self.found and self._looks[objects] < TRIES:
                self._looks[objects] += 1
                self.walk_anew(objects)
                return
            if objects in self.found:
                self.findings.problems[above] = GIT_AT_WORK
                return

    def _could_not_visit(self, path: bytes, error: OSError) -> None:
        if path == ROOT:
            root = os.fsdecode(self._directories.root_path)
            raise CasnapError(f"cannot read workspace {root}: {error.strerror}") from error
        if error.errno in GONE:
            self.look_again(path)
        else:
            parent, name = split(path)
            self.found[parent].omit(name, OmitReason.UNREADABLE, unreadable(error))

    def _collect(self, found: FoundDirectory) -> None:
        """Queue what of a directory is still to be done."""
        self._jobs += found.pending
        found.pending.clear()
        order = sorted(found.subdirectories, key=lambda name: (found.in_git and name == GIT_OBJECTS, name))
        self._ahead += [join(found.path, name) for name in reversed(order)]
        found.subdirectories.clear()

    def _discard(self, path: bytes) -> None:
        """Forget the directories at and below ``path``, also those that are still ahead."""
        self._ahead = [waiting for waiting in self._ahead if not is_within(waiting, path)]
        for inside in [known for known in self.order if is_within(known, path)]:
            del self.order[inside]
            self.passed.pop(inside, None)
        for inside in [known for known in self.found if is_within(known, path)]:
            directory = self.found.pop(inside)
            for name in directory.signatures.keys() | directory.entries.keys():
                directory.drop(name)
