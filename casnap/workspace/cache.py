"""The stat cache: what a scan found, so that the next one reads only what has changed. It may vanish at any time.

It is never trusted blindly: a checksum guards its file against damage, it names the store, workspace and boot that it
belongs to, and an entry without a signature had not settled when it was seen.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from casnap.codec.hashing import checksum
from casnap.model.tree import AnyEntry, Directory, Listing, OmitReason, Omitted
from casnap.workspace.signature import Signature

Guards = tuple[tuple[bytes, Signature], ...]
"""What decides about an entry beside its name: a file, by its path in the directory, and how it looked."""


class Trait:
    """What must be known of a directory before its listing is looked at: bits, plain for speed."""

    NONE = 0
    UNPROVABLE = 1
    """Something in it can change without a trace in any stat: it is looked at each time."""

    RULES = 2
    """It has ignore files, or is a repository: what is in it decides about what is below."""

    SIDE_FILES = 4
    """A database in it may have files beside it."""

    OMITS = 8
    """Something in it is left out."""

    LINKS = 16
    """A file in it has further names."""

    GIT_ROOT = 32
    """It is a git directory."""


class CachedDirectory:
    """One directory as a scan found it.

    ``entry`` is the directory's own, its tree and digest included. ``signatures`` run along ``listing``; None
    stands where an equal stat proves nothing: not settled, omitted, or a directory, which carries its own.
    ``context`` stands for the rules that were in force for what is in it. ``device`` is the directory's.
    """

    __slots__ = ("context", "device", "entry", "guards", "listing", "signature", "signatures", "traits")

    def __init__(
        self,
        entry: Directory,
        signature: Signature | None,
        listing: Listing,
        signatures: tuple[Signature | None, ...],
        *,
        traits: int,
        guards: Guards,
        context: int,
        device: int,
    ) -> None:
        self.entry = entry
        self.signature = signature
        self.listing = listing
        self.signatures = signatures
        self.traits = traits
        self.guards = guards
        self.context = context
        self.device = device

    @property
    def count(self) -> int:
        """How many entries it has, left-out ones included."""
        return len(self.listing)

    @property
    def rows(self) -> list[tuple[bytes, Signature | None]]:
        """What must look as it did for all of it to be as it was: None never does."""
        pairs = zip(self.listing, self.signatures, strict=True)
        looked_at = [(entry.name, found) for entry, found in pairs if not isinstance(entry, Directory | Omitted)]
        return [*looked_at, *self.guards]


def is_same(one: CachedDirectory, other: CachedDirectory) -> bool:
    """Whether two say the same; one of them may be read from a file as far as it is asked."""
    if (one.entry, one.signature, one.traits, one.context) != (
        other.entry,
        other.signature,
        other.traits,
        other.context,
    ):
        return False
    return (one.listing, one.signatures, one.guards) == (other.listing, other.signatures, other.guards)


def traits_of(listing: Listing, signatures: tuple[Signature | None, ...]) -> int:
    """The traits that entries alone show."""
    found = Trait.NONE
    for entry, signature in zip(listing, signatures, strict=True):
        if isinstance(entry, Omitted):
            found |= Trait.OMITS
            if entry.reason in _ASKED_AGAIN:
                found |= Trait.UNPROVABLE
        elif not isinstance(entry, Directory) and signature is not None and signature.nlink > 1:
            found |= Trait.LINKS
    return found


_ASKED_AGAIN = frozenset({int(OmitReason.UNREADABLE)})
"""Reasons that may be gone although no stat has changed."""


class Whole(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a scan said of a workspace as a whole, if nothing was wrong with it; ``context`` is what it went by."""

    context: int
    links: tuple[tuple[bytes, ...], ...]
    rules: tuple[str, ...]
    skipped: tuple[tuple[bytes, int], ...]
    remarks: tuple[str, ...]
    entries: int


class StatCache(Struct):
    """Directories by path, in the order of a walk, as they were at ``written`` (nanoseconds since the epoch).

    ``checkpoint`` is the id of the checkpoint that holds all of it; empty until that has been committed.
    ``differs`` says whether anything is new since the cache that the scan began with. ``whole`` is there when all of
    it can be taken as it is if every stat is.
    """

    directories: Mapping[bytes, CachedDirectory]
    written: int
    checkpoint: bytes = b""
    differs: bool = True
    whole: Whole | None = None


def known_entries(directory: CachedDirectory) -> dict[bytes, tuple[Signature, AnyEntry]]:
    """The entries, by name, that an equal stat proves unchanged."""
    pairs = zip(directory.listing, directory.signatures, strict=True)
    return {entry.name: (signature, entry) for entry, signature in pairs if signature is not None}


def context_of(said: str) -> int:
    """A number that stands for a text about rules."""
    return int.from_bytes(checksum(said.encode("utf-8", "surrogateescape")), "little")
