"""What a scan has found so far, directory by directory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from casnap.model.paths import ROOT, join, split
from casnap.model.tree import AnyEntry, Directory, Listing, OmitReason, Omitted
from casnap.workspace.belief import Known
from casnap.workspace.rules import Rules, Texts
from casnap.workspace.signature import Signature


@dataclass(slots=True)
class Findings:
    """What is noted of single paths: ``linked`` ones have further names somewhere, ``leftovers`` are temporary."""

    problems: dict[bytes, str] = field(default_factory=dict)
    omitted: dict[bytes, OmitReason] = field(default_factory=dict)
    linked: set[bytes] = field(default_factory=set)
    leftovers: set[bytes] = field(default_factory=set)

    def drop(self, path: bytes) -> None:
        """Forget all about a path."""
        self.problems.pop(path, None)
        self.omitted.pop(path, None)
        self.linked.discard(path)
        self.leftovers.discard(path)


@dataclass(slots=True)
class FoundDirectory:
    """A directory, and what has been found in it.

    ``own`` has no tree and digest yet. ``rules`` are for what is in it, its own ignore files, which say ``texts``,
    included; ``remarks`` on those files are for a person. ``pending`` are files that must be read and
    ``subdirectories`` directories that must be looked into before they have entries.
    """

    path: bytes
    own: Directory
    signature: Signature
    settled: bool
    in_git: bool
    is_git_root: bool
    known: Known
    mounts: frozenset[bytes]
    rules: Rules
    texts: Texts
    findings: Findings
    remarks: tuple[str, ...] = ()
    entries: dict[bytes, AnyEntry] = field(default_factory=dict)
    signatures: dict[bytes, Signature] = field(default_factory=dict)
    unsettled: set[bytes] = field(default_factory=set)
    pending: list[ReadJob] = field(default_factory=list)
    subdirectories: list[bytes] = field(default_factory=list)
    file_bytes: int = 0

    def keep(self, entry: AnyEntry, *, settled: bool) -> None:
        """Record an entry. Unless ``settled``, the next scan will look at it again."""
        self.entries[entry.name] = entry
        if not settled:
            self.unsettled.add(entry.name)

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


@dataclass(slots=True)
class ReadJob:
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

    @property
    def signature(self) -> Signature:
        """The state that the file was last seen in."""
        return self.directory.signatures[self.name]

    def seen(self, signature: Signature) -> None:
        """The file is in another state than before."""
        self.directory.signatures[self.name] = signature
        self.settled = False


class Signatures(Mapping[bytes, Signature]):
    """The signature of every path that a scan could stat: left-out ones too, and the root."""

    def __init__(self, directories: Mapping[bytes, FoundDirectory]) -> None:
        self._root = directories[ROOT].signature
        self._by_directory = {path: found.signatures for path, found in directories.items()}

    def __getitem__(self, path: bytes) -> Signature:
        if path == ROOT:
            return self._root
        directory, name = split(path)
        return self._by_directory[directory][name]

    def __iter__(self) -> Iterator[bytes]:
        yield ROOT
        for directory, signatures in self._by_directory.items():
            for name in signatures:
                yield join(directory, name)

    def __len__(self) -> int:
        return 1 + sum(map(len, self._by_directory.values()))
