"""What a scan has found so far, directory by directory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.paths import ROOT, join, split
from casnap.model.tree import AnyEntry, Directory, File, Listing, OmitReason, Omitted
from casnap.workspace.belief import Known
from casnap.workspace.cache import CachedDirectory, Trait
from casnap.workspace.rules import Rules, Texts
from casnap.workspace.signature import Signature

Look = Callable[[bytes], Signature | None]
"""How a path looks now; None where nothing is."""


class Findings(Struct):
    """What is noted of single paths: ``linked`` ones have further names somewhere, ``leftovers`` are temporary."""

    problems: dict[bytes, str] = {}
    omitted: dict[bytes, OmitReason] = {}
    linked: set[bytes] = set()
    leftovers: set[bytes] = set()

    def drop(self, path: bytes) -> None:
        """Forget all about a path."""
        self.problems.pop(path, None)
        self.omitted.pop(path, None)
        self.linked.discard(path)
        self.leftovers.discard(path)


class FoundDirectory:
    """A directory, and what has been found in it.

    ``own`` has no tree and digest yet. ``rules`` are for what is in it, its own ignore files, which say ``texts``,
    included; ``remarks`` on those files are for a person, and ``read`` tells how each looked when it was read.
    ``pending`` are files that must be read and ``subdirectories`` directories that must be looked into before they
    have entries. ``guards`` are files that decide about entries, by their paths in it. ``traits`` is what its entries
    do not show. ``context`` stands for ``rules``.
    """

    __slots__ = (
        "context",
        "entries",
        "file_bytes",
        "findings",
        "guards",
        "in_git",
        "is_git_root",
        "known",
        "mounts",
        "own",
        "path",
        "pending",
        "read",
        "remarks",
        "rules",
        "settled",
        "signature",
        "signatures",
        "subdirectories",
        "texts",
        "traits",
        "unsettled",
    )

    def __init__(
        self,
        path: bytes,
        *,
        own: Directory,
        signature: Signature,
        settled: bool,
        in_git: bool,
        is_git_root: bool,
        known: Known,
        mounts: frozenset[bytes],
        rules: Rules,
        texts: Texts,
        findings: Findings,
        remarks: tuple[str, ...],
        read: Mapping[bytes, Signature | None],
        context: int,
    ) -> None:
        self.path = path
        self.own = own
        self.signature = signature
        self.settled = settled
        self.in_git = in_git
        self.is_git_root = is_git_root
        self.known = known
        self.mounts = mounts
        self.rules = rules
        self.texts = texts
        self.findings = findings
        self.remarks = remarks
        self.read = read
        self.entries: dict[bytes, AnyEntry] = {}
        self.signatures: dict[bytes, Signature] = {}
        self.unsettled: set[bytes] = set()
        self.pending: list[ReadJob] = []
        self.subdirectories: list[bytes] = []
        self.guards: dict[bytes, Signature] = {}
        self.file_bytes = 0
        self.traits: int = Trait.NONE
        self.context = context

    def keep(self, entry: AnyEntry, *, settled: bool) -> None:
        """Record an entry. Unless ``settled``, the next scan will look at it again."""
        self.entries[entry.name] = entry
        if not settled:
            self.unsettled.add(entry.name)

    @property
    def is_whole(self) -> bool:
        """Whether it is as it was in the cache: nobody has looked into it."""
        return False

    @property
    def before(self) -> CachedDirectory | None:
        """The directory as the cache has it."""
        return self.known.cached

    @property
    def count(self) -> int:
        """How many entries it has, left-out ones included."""
        return len(self.entries)

    def note_directory(self, name: bytes, signature: Signature) -> None:
        """How a directory in it looks."""
        self.signatures[name] = signature

    def take(self, entry: Directory) -> None:
        """Record a directory in it that is as it was."""
        self.keep(entry, settled=False)

    def omit(self, name: bytes, reason: OmitReason, problem: str | None = None) -> None:
        """Record that an entry exists and is left out; with a ``problem`` where something went wrong."""
        self.keep(Omitted(name, int(reason)), settled=False)
        path = join(self.path, name)
        self.findings.omitted[path] = reason
        if problem is not None:
            self.findings.problems[path] = problem

    def drop(self, name: bytes) -> None:
        """Forget all about a name."""
        self.entries.pop(name, None)
        self.signatures.pop(name, None)
        self.unsettled.discard(name)
        self.findings.drop(join(self.path, name))

    def listing(self) -> Listing:
        """The entries as a tree records them."""
        entries = self.entries
        return tuple([entries[name] for name in sorted(entries)])


class ProvenDirectory(FoundDirectory):
    """A directory that is as it was in the cache: what is in it is looked up when it is asked for."""

    __slots__ = ("_cached", "_directories", "_entries", "_look", "_looks", "_signatures")

    def __init__(
        self,
        path: bytes,
        cached: CachedDirectory,
        directories: Mapping[bytes, CachedDirectory],
        *,
        in_git: bool,
        mounts: frozenset[bytes],
        rules: Rules,
        findings: Findings,
        look: Look,
    ) -> None:
        """``cached`` must have a signature; ``directories`` are those of the cache."""
        self._cached = cached
        self._look = look
        self._directories = directories
        self._entries: dict[bytes, AnyEntry] | None = None
        self._signatures: dict[bytes, Signature] | None = None
        self._looks: dict[bytes, Signature] = {}
        self.path = path
        self.settled = True
        self.in_git = in_git
        self.is_git_root = bool(cached.traits & Trait.GIT_ROOT)
        self.mounts = mounts
        self.rules = rules
        self.texts = {}
        self.findings = findings
        self.remarks = ()
        self.read = {}
        self.unsettled = set()
        self.pending = []
        self.subdirectories = []
        self.guards = {}
        self.file_bytes = 0
        self.traits = cached.traits
        self.context = cached.context
        self._note_findings()

    def _note_findings(self) -> None:
        traits = self._cached.traits
        if traits & Trait.OMITS:
            for entry in self._cached.listing:
                if isinstance(entry, Omitted):
                    self.findings.omitted[join(self.path, entry.name)] = OmitReason(entry.reason)
        if traits & Trait.LINKS:
            pairs = zip(self._cached.listing, self._cached.signatures, strict=True)
            for entry, signature in pairs:
                if signature is not None and signature.nlink > 1:  # of captured ones that are no directories
                    self.findings.linked.add(join(self.path, entry.name))

    @property
    def is_whole(self) -> bool:
        """Whether nobody has looked into it."""
        return self._entries is None

    @property
    def before(self) -> CachedDirectory | None:
        """The directory as the cache has it, and as it still is."""
        return self._cached

    @property
    def known(self) -> Known:  # type: ignore[override]
        """What the cache knows of it: all there is."""
        return Known(self._cached, doubted=False, doubted_names=frozenset())

    @property
    def own(self) -> Directory:  # type: ignore[override]
        """The directory's own entry."""
        return self._cached.entry

    @property
    def signature(self) -> Signature:  # type: ignore[override]
        """How the directory itself looked."""
        signature = self._cached.signature
        assert signature is not None
        return signature

    @property
    def entries(self) -> dict[bytes, AnyEntry]:  # type: ignore[override]
        """The entries by name; who asks may change them."""
        if self._entries is None:
            self._entries = {entry.name: entry for entry in self._cached.listing}
            pairs = zip(self._cached.listing, self._cached.signatures, strict=True)
            self.unsettled = {
                entry.name for entry, found in pairs if found is None and not isinstance(entry, Directory)
            }
            self.guards = {name: look for name, look in self._cached.guards if b"/" in name}
        return self._entries

    def take(self, entry: Directory) -> None:
        """Nothing: it is in the listing."""

    @property
    def signatures(self) -> dict[bytes, Signature]:  # type: ignore[override]
        """How everything in it looks."""
        if self._signatures is None:
            self._signatures = stored_signatures(self.path, self._cached, self._directories, self._look) | self._looks
        return self._signatures

    @property
    def count(self) -> int:
        """How many entries it has, left-out ones included."""
        return self._cached.count if self._entries is None else len(self._entries)

    def note_directory(self, name: bytes, signature: Signature) -> None:
        """How a directory in it looks; said when somebody asks for signatures."""
        self._looks[name] = signature
        if self._signatures is not None:
            self._signatures[name] = signature


def stored_signatures(
    path: bytes, cached: CachedDirectory, directories: Mapping[bytes, CachedDirectory], look: Look
) -> dict[bytes, Signature]:
    """How everything in a cached directory looks; what is left out is no part of the cache, and is looked at now."""
    found: dict[bytes, Signature] = {}
    for entry, signature in zip(cached.listing, cached.signatures, strict=True):
        inside = join(path, entry.name)
        if isinstance(entry, Directory):
            directory = directories.get(inside)
            signature = None if directory is None else directory.signature
        if signature is None and not (isinstance(entry, Omitted) and entry.reason == OmitReason.MOUNT_POINT):
            signature = look(inside)
        if signature is not None:
            found[entry.name] = signature
    return found


class ReadJob(Struct):
    """A regular file that must be read.

    ``settled`` says that its present state has stood for the margin; ``rounds`` counts how often its turn came.
    Of one that is ``redacted`` only keys are stored.
    """

    directory: FoundDirectory
    name: bytes
    settled: bool
    redacted: bool = False
    rounds: int = 0

    @property
    def path(self) -> bytes:
        """The file's path below the workspace's root."""
        return join(self.directory.path, self.name)

    def replaced(self) -> ObjectKey | None:
        """The chunk that the file of this name was in the cache, if it was one."""
        known = self.directory.known
        return None if known.cached is None else only_chunk(known.before(self.name))

    @property
    def signature(self) -> Signature:
        """The state that the file was last seen in."""
        return self.directory.signatures[self.name]

    def seen(self, signature: Signature) -> None:
        """The file is in another state than before."""
        self.directory.signatures[self.name] = signature
        self.settled = False


def only_chunk(entry: AnyEntry | None) -> ObjectKey | None:
    """The one chunk that an entry is, if it is a file of one."""
    if not isinstance(entry, File) or entry.chunk_list:
        return None
    return ObjectKey(ObjectKind.CHUNK, entry.content)


class Signatures(Mapping[bytes, Signature]):
    """The signature of every path that a scan could stat: left-out ones too, and the root.

    ``found`` are the directories that were looked at; of the others the ``cache`` knows, as long as it is asked
    before anything changes.
    """

    def __init__(
        self, found: Mapping[bytes, FoundDirectory], cache: Mapping[bytes, CachedDirectory], look: Look
    ) -> None:
        self._found = found
        self._cache = cache
        self._look = look
        self._known: dict[bytes, dict[bytes, Signature]] = {}

    def _in(self, directory: bytes) -> dict[bytes, Signature]:
        found = self._found.get(directory)
        if found is not None:
            return found.signatures
        if directory not in self._known:
            cached = self._cache[directory]
            self._known[directory] = stored_signatures(directory, cached, self._cache, self._look)
        return self._known[directory]

    def __getitem__(self, path: bytes) -> Signature:
        if path == ROOT:
            signature = self._found[ROOT].signature if self._found else self._cache[ROOT].signature
            if signature is None:
                raise KeyError(path)
            return signature
        directory, name = split(path)
        return self._in(directory)[name]

    def __iter__(self) -> Iterator[bytes]:
        yield ROOT
        for directory in self._cache:
            for name in self._in(directory):
                yield join(directory, name)

    def __len__(self) -> int:
        return 1 + sum(len(self._in(directory)) for directory in self._cache)
