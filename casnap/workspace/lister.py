"""Looking at the entries of one directory, none of them opened."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Collection

from casnap.errors import CasnapError
from casnap.model.paths import escape, join, split
from casnap.model.tree import OmitReason, is_redacted
from casnap.workspace.belief import Belief, Known
from casnap.workspace.cache import CachedDirectory, StatCache, Trait, context_of
from casnap.workspace.entries import directory_entry, read_xattrs, special_entry
from casnap.workspace.found import Findings, FoundDirectory, Look, ProvenDirectory, ReadJob
from casnap.workspace.ignore_files import IgnoreFiles, is_cache, read_ignore_files
from casnap.workspace.omissions import Omissions, is_in_git
from casnap.workspace.rules import CACHE_TAG, GIT_DIRECTORY
from casnap.workspace.signature import Settling, Signature, signature_of
from casnap.workspace.temporaries import nonce_of

TRIES = 3
"""How often something that changes under our eyes is looked at again."""

KEPT_CHANGING = "not captured: it kept changing while it was looked at"

_OURS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


class Lister:
    """Turns names into entries, as far as a stat, a link's target and what is already known allow."""

    def __init__(
        self, omissions: Omissions, nonces: frozenset[str], settling: Settling, belief: Belief, context: int = 0
    ) -> None:
        """``context`` stands for all that decides about entries and is not in the workspace."""
        self.findings = Findings()
        self._context = context
        self._omissions = omissions
        self._nonces = nonces
        self._settling = settling
        self._belief = belief
        self.tag: Signature | None = None  # of the cache that was last left out

    def is_settled(self, signature: Signature) -> bool:
        """Whether a change from now on is bound to give another signature."""
        return self._settling.settled(signature)

    def list(self, path: bytes, fd: int, above: FoundDirectory | None) -> FoundDirectory | None:
        """Everything in the directory at ``path``, open as ``fd``; again where it changed meanwhile.

        ``above`` is the directory that it was found in, None for the root. None comes back for a cache that
        is not to be captured.

        Raises:
            OSError: it cannot be listed or searched.
        """
        known = self._belief.of(path)
        found = self._listed(path, fd, known, above)
        for _ in range(TRIES - 1):
            if found is None or found.signature.matches(os.fstat(fd)):
                break
            for name in found.signatures.keys() | found.entries.keys():
                self.findings.drop(join(path, name))
            found = self._listed(path, fd, known, above)
        return found

    def _listed(self, path: bytes, fd: int, known: Known, above: FoundDirectory | None) -> FoundDirectory | None:
        status = os.fstat(fd)
        signature = signature_of(status)
        before = known.own(status)
        settled = before is not None or self._settling.settled(signature)
        xattrs = read_xattrs(fd) if before is None else before.entry.xattrs
        names = sorted(map(os.fsencode, os.listdir(fd)))
        in_git = is_in_git(path)
        files = IgnoreFiles({}) if in_git else self._ignore_files(fd, names, above)
        if files is None:
            return None
        rules = self._omissions.rules if above is None else above.rules
        found = FoundDirectory(
            path,
            own=directory_entry(split(path)[1], status, xattrs),
            signature=signature,
            settled=settled,
            in_git=in_git,
            is_git_root=in_git and b"HEAD" in names,
            known=known,
            mounts=self._omissions.mounts_in(path),
            rules=rules.inside(path, files.texts, is_repository=above is not None and GIT_DIRECTORY in names),
            texts=files.texts,
            findings=self.findings,
            remarks=files.remarks,
            read=files.read,
            context=self._context if above is None else above.context,
        )
        self._note_rules(found, names)
        if not all(read is None or self.is_settled(read) for read in files.read.values()):
            found.traits |= Trait.UNPROVABLE  # it may say something else by now, and look the same
        if self._omissions.keeps_aside(path, names):
            found.traits |= Trait.UNPROVABLE  # the next scan does not
        for name in names:
            self.look(found, fd, name)
        return found

    def _note_rules(self, found: FoundDirectory, names: Collection[bytes]) -> None:
        """Give a directory that has rules of its own a context of its own."""
        is_repository = GIT_DIRECTORY in names and self._omissions.rules.selection.use_gitignore
        if found.texts or is_repository:
            said = repr((found.context, found.path, is_repository, sorted(found.texts.items())))
            found.context = context_of(said)
            found.traits |= Trait.RULES

    def proven(
        self, path: bytes, cached: CachedDirectory, cache: StatCache, above: FoundDirectory, look: Look
    ) -> FoundDirectory:
        """A directory that need not be looked at.

        Raises:
            Damage: the store has not got its tree.
        """
        return ProvenDirectory(
            path,
            cached,
            cache.directories,
            in_git=is_in_git(path),
            mounts=self._omissions.mounts_in(path),
            rules=above.rules,
            findings=self.findings,
            look=look,
        )

    def _ignore_files(self, fd: int, names: Collection[bytes], above: FoundDirectory | None) -> IgnoreFiles | None:
        """What the ignore files say in a directory; None for a cache, which the root never is."""
        rules = self._omissions.rules
        files = read_ignore_files(fd, names, rules, at_root=above is None)
        if rules.selection.exclude_caches and above is not None and CACHE_TAG in names:
            cache = is_cache(fd, files.read)
            if cache:
                self.tag = files.read[CACHE_TAG]
                return None
            if cache is None:
                files.texts[CACHE_TAG] = None
        return files

    def look(self, found: FoundDirectory, fd: int, name: bytes) -> None:
        """Record what stands at a name; nothing when it is gone.

        Raises:
            OSError: the directory may not be searched.
        """
        if name in found.mounts:
            found.omit(name, OmitReason.MOUNT_POINT)
            return
        try:
            for _ in range(TRIES):
                status = _lstat(fd, name)
                if status is None:
                    found.drop(name)
                    return
                if self._take(found, fd, name, status):
                    return
        except OSError as error:
            raise_if_ours(join(found.path, name), error)
            if error.errno == errno.EACCES:
                os.lstat(b".", dir_fd=fd)  # fails alike where it is the directory that keeps us out
            found.omit(name, OmitReason.UNREADABLE, unreadable(error))
        else:
            found.omit(name, OmitReason.UNREADABLE, KEPT_CHANGING)

    def _take(self, found: FoundDirectory, fd: int, name: bytes, status: os.stat_result) -> bool:
        """Record an entry that a stat was made of; False when it is not that entry any more."""
        known = found.known.find(name, status)
        signature = found.signatures[name] = _signature(known and known[0], status)
        if self._nonces and nonce_of(name) in self._nonces:
            self.findings.leftovers.add(join(found.path, name))
            return True
        reason = self._omissions.reason(found, name, status)
        if reason is not None:
            found.omit(name, reason)
            return True
        if stat.S_ISDIR(status.st_mode):
            found.subdirectories.append(name)
            return True
        redacts = self._omissions.redacts(found, name, status.st_mode)
        if known is not None and found.known.believes(name) and is_redacted(known[1]) == redacts:
            found.keep(known[1], settled=True)
        elif stat.S_ISREG(status.st_mode):
            found.pending.append(ReadJob(found, name, settled=known is not None, redacted=redacts))
        elif not self._take_special(found, fd, name, status, waited=known is not None):
            return False
        if stat.S_ISREG(status.st_mode):
            found.file_bytes += status.st_size
        if signature.nlink > 1:
            self.findings.linked.add(join(found.path, name))
        return True

    def _take_special(
        self, found: FoundDirectory, fd: int, name: bytes, status: os.stat_result, *, waited: bool
    ) -> bool:
        signature = found.signatures[name]
        settled = waited or self._settling.settled(signature)
        try:
            entry = special_entry(fd, name, status)
            unchanged = signature.matches(os.lstat(name, dir_fd=fd))
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EINVAL):  # EINVAL: a link that is none any more
                raise
            return False
        if unchanged:
            found.keep(entry, settled=settled)
        return unchanged


def unreadable(error: OSError) -> str:
    """How a problem says that an entry could not be captured."""
    return f"not captured: {error.strerror or error}"


def raise_if_ours(path: bytes, error: OSError) -> None:
    """Stop where it is this process, not the entry, that something is wrong with.

    Raises:
        CasnapError: there are no descriptors or no memory left.
    """
    if error.errno in _OURS:
        raise CasnapError(f"cannot look at {escape(path)}: {error.strerror}") from error


def _signature(known: Signature | None, status: os.stat_result) -> Signature:
    """The signature of a stat; the one that is known already, where it is the same in every field."""
    if known is not None and known.device == status.st_dev and known.nlink == status.st_nlink:
        return known
    return signature_of(status)


def _lstat(fd: int, name: bytes) -> os.stat_result | None:
    """The stat of an entry; None where a second look confirms that it is gone."""
    try:
        return os.lstat(name, dir_fd=fd)
    except FileNotFoundError:
        with contextlib.suppress(FileNotFoundError):
            return os.lstat(name, dir_fd=fd)
    return None
