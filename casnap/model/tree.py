"""Entries of a directory as a checkpoint records them (docs/format/tree.md gives the bytes)."""

# Annotations are evaluated here, once: as texts they would be compiled when the decoders are made, which takes longer.

from enum import IntEnum, IntFlag
from typing import ClassVar, Union

from msgspec import Struct

NANOSECONDS = 1_000_000_000


class OmitReason(IntEnum):
    """Why an entry that exists was not captured. The number is part of the store format."""

    IGNORED = 1
    UNREADABLE = 2
    MOUNT_POINT = 3
    SOCKET = 4
    TOO_LARGE = 5
    STORE = 6
    GIT_LOCK = 7
    SENSITIVE = 8

    @property
    def by_rule(self) -> bool:
        """Whether a rule left the entry out, rather than something going wrong."""
        return self is not OmitReason.UNREADABLE

    @property
    def words(self) -> str:
        """The reason for a person."""
        return self.name.lower().replace("_", " ")


class FileFlag(IntFlag):
    """Facts about a captured file beside its bytes. The bits are part of the store format."""

    NONE = 0
    SPARSE = 1
    CHANGED_WHILE_READ = 2
    REDACTED = 4


class Entry(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One name in a directory."""

    letter: ClassVar[str] = "?"
    name: bytes


class Node(Entry, frozen=True, array_like=True, forbid_unknown_fields=True):
    """An entry that was captured, with the metadata that every kind has.

    ``mode`` holds the permission bits only (``st_mode & 07777``); the time is ``mtime_s`` seconds since
    the epoch (int64) and ``mtime_frac`` nanoseconds (0 … 999,999,999); ``xattrs`` is sorted by name.
    """

    mode: int
    uid: int
    gid: int
    mtime_s: int
    mtime_frac: int
    xattrs: tuple[tuple[bytes, bytes], ...]

    @property
    def mtime_ns(self) -> int:
        """The time in nanoseconds since the epoch."""
        return self.mtime_s * NANOSECONDS + self.mtime_frac


class File(Node, frozen=True, array_like=True, forbid_unknown_fields=True, tag=1):
    """A regular file. ``content`` is BLAKE3-256 of its bytes; ``chunk_list`` is empty where it is one chunk."""

    letter: ClassVar[str] = "f"
    size: int
    flags: int
    content: bytes
    chunk_list: bytes


class Directory(Node, frozen=True, array_like=True, forbid_unknown_fields=True, tag=2):
    """A directory: the id of its tree, and the tree's digest."""

    letter: ClassVar[str] = "d"
    tree: bytes
    digest: bytes


class Symlink(Node, frozen=True, array_like=True, forbid_unknown_fields=True, tag=3):
    """A symbolic link: its target as it stands, never followed."""

    letter: ClassVar[str] = "l"
    target: bytes


class Fifo(Node, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
    """A named pipe."""

    letter: ClassVar[str] = "p"


class Device(Node, frozen=True, array_like=True, forbid_unknown_fields=True, tag=5):
    """A device node: block or character, with its numbers."""

    letter: ClassVar[str] = "b"
    block: bool
    major: int
    minor: int


class Omitted(Entry, frozen=True, array_like=True, forbid_unknown_fields=True, tag=6):
    """An entry that exists but was not captured; a rollback neither changes nor deletes it."""

    letter: ClassVar[str] = "-"
    reason: int


AnyEntry = Union[File, Directory, Symlink, Fifo, Device, Omitted]
AnyNode = Union[File, Directory, Symlink, Fifo, Device]
Listing = tuple[AnyEntry, ...]
"""A directory's entries, sorted by name bytes, each name once."""


_REDACTED = FileFlag.REDACTED.value


def is_redacted(entry: AnyEntry | None) -> bool:
    """Whether an entry is a file of which only the keys were stored, not the values."""
    return isinstance(entry, File) and bool(entry.flags & _REDACTED)


def split_ns(ns: int) -> tuple[int, int]:
    """Nanoseconds since the epoch as (seconds, nanoseconds within the second), also before 1970."""
    return divmod(ns, NANOSECONDS)
