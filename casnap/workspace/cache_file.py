"""The stat cache as a file: columns of names and numbers, of which a scan that finds nothing new decodes hardly any.

Reading 100,000 rows takes a few milliseconds this way, fifty as lists of objects. Directories follow each other in the
order of a walk; those that are as they were are copied from the file before in runs. What has changed since such a file
was written may stand in a patch beside it (:mod:`casnap.workspace.cache_patch`).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Struct

from casnap.codec.compression import decompress_long
from casnap.codec.hashing import CHECKSUM_SIZE, checksum
from casnap.errors import Damage
from casnap.model.paths import ROOT, ancestors, last_below
from casnap.model.tree import Directory, Listing, Omitted
from casnap.workspace.cache import CachedDirectory, Guards, StatCache, Trait, Whole
from casnap.workspace.signature import Signature
from casnap.workspace.stats import Stats

if TYPE_CHECKING:
    from casnap.model.objects import ObjectSource

MAGIC = b"casnap stat cache 3\n"

PATCH_SUFFIX = ".stat-patch"


class Header(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a cache belongs to, and how long the parts are that have no length by themselves."""

    store: str
    workspace: str
    boot: str
    checkpoint: bytes
    written: int
    whole: Whole | None
    directories: int = 0
    rows: int = 0
    paths: int = 0
    entries: int = 0


class Origin(NamedTuple):
    """The file that a patch may be made to: its header, its checksum, which no other file has, and its size."""

    header: Header
    checksum: bytes
    size: int


_encoder = msgspec.msgpack.Encoder()
_header_decoder = msgspec.msgpack.Decoder(Header)
_entry_decoder = msgspec.msgpack.Decoder(Directory)


class CacheFile(Mapping[bytes, CachedDirectory]):
    """Directories by path, decoded one by one as they are asked for. ``source`` has their trees.

    ``origin`` is the file on disk that has them, if what is new can be told as a patch to that.
    """

    def __init__(self) -> None:
        self.origin: Origin | None = None
        self.source: ObjectSource | None = None
        self.paths: list[bytes] = []
        self.names: list[bytes] = []
        self.own = Stats()
        self.devices = array("Q")
        self.contexts = array("Q")
        self.counts = array("Q")
        self.traits = bytearray()
        self.starts = array("Q", [0])
        self.rows = Stats()
        self.entries: list[bytes] = []
        self._numbers: dict[bytes, int] | None = None
        self._ends: array[int] | None = None
        self._made: dict[bytes, StoredDirectory] = {}
        self._row_paths: list[bytes] | None = None

    @property
    def numbers(self) -> dict[bytes, int]:
        """The number of each directory."""
        if self._numbers is None:
            self._numbers = {path: number for number, path in enumerate(self.paths)}
        return self._numbers

    @property
    def ends(self) -> array[int]:
        """For each directory the number of the last one below it, itself if none is; empty if they are in no order."""
        if self._ends is None:
            self._ends = last_below(self.paths)
        return self._ends

    @property
    def row_paths(self) -> list[bytes]:
        """The path of each row."""
        if self._row_paths is None:
            self._row_paths = self._joined()
        return self._row_paths

    def _joined(self) -> list[bytes]:
        paths: list[bytes] = []
        for path, (start, end) in zip(self.paths, pairwise(self.starts), strict=True):
            names = self.names[start:end]
            paths += names if path == ROOT else [path + b"/" + name for name in names]
        return paths

    @property
    def base(self) -> CacheFile:
        """All that the file of ``origin`` has, as it stands there."""
        return self

    def doubt(self, written: int) -> None:
        """After another boot some of it counts for nothing (:meth:`Stats.doubt`), so it is not what its file has."""
        self.origin = None
        self.own.doubt(written)
        self.rows.doubt(written)

    def forget(self) -> None:
        """Let go of what was read from the store: it may not be there any more."""
        self._made.clear()

    def __getitem__(self, path: bytes) -> CachedDirectory:
        made = self._made.get(path)
        if made is None:
            made = self._made[path] = StoredDirectory(self, self.numbers[path])
        return made

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.paths)

    def __len__(self) -> int:
        return len(self.paths)

    def span(self, number: int) -> tuple[int, int]:
        """The rows of a directory."""
        return self.starts[number], self.starts[number + 1]

    def add(self, path: bytes, directory: CachedDirectory) -> None:
        """Append a directory."""
        self.paths.append(path)
        self.own.add([directory.signature if directory.signature and directory.signature.storable else None])
        self.devices.append(directory.device)
        self.contexts.append(directory.context)
        self.counts.append(directory.count)
        self.traits.append(directory.traits)
        self.entries.append(_encoder.encode(directory.entry))
        rows, device = directory.rows, directory.device
        self.names += [name for name, _ in rows]
        self.rows.add(
            look if look is not None and look.storable and look.device == device else None for _, look in rows
        )
        self.starts.append(len(self.names))

    def copy(self, other: CacheFile, first: int, last: int) -> None:
        """Append directories of another file, from a number to another, as they are."""
        start, end = other.starts[first], other.starts[last + 1]
        shift = len(self.names) - start
        self.paths += other.paths[first : last + 1]
        self.own.extend(other.own, first, last + 1)
        self.devices.extend(other.devices[first : last + 1])
        self.contexts.extend(other.contexts[first : last + 1])
        self.counts.extend(other.counts[first : last + 1])
        self.traits += other.traits[first : last + 1]
        self.entries += other.entries[first : last + 1]
        self.names += other.names[start:end]
        self.rows.extend(other.rows, start, end)
        self.starts.extend(position + shift for position in other.starts[first + 1 : last + 2])

    @property
    def data(self) -> tuple[bytes, int, int]:
        """Everything in bytes, and the lengths of the parts that have no length by themselves."""
        paths = b"\0".join(self.paths) + b"\0\0" + b"\0".join(self.names)
        entries = array("I", map(len, self.entries)).tobytes() + b"".join(self.entries)
        numbers = (self.devices, self.contexts, self.counts, self.starts)
        columns = b"".join((self.own.data, *map(array.tobytes, numbers), bytes(self.traits), self.rows.data))
        return columns + paths + entries, len(paths), len(entries)

    @classmethod
    def read(cls, data: memoryview, header: Header) -> CacheFile:
        """What :attr:`data` made.

        Raises:
            ValueError: it is not that.
        """
        file, count = cls(), header.directories
        file.own, data = Stats.read(data, count)
        del file.starts[:]
        for column in (file.devices, file.contexts, file.counts, file.starts):
            size = 8 * (count + (column is file.starts))
            column.frombytes(data[:size])
            data = data[size:]
        file.traits, data = bytearray(data[:count]), data[count:]
        file.rows, data = Stats.read(data, header.rows)
        paths, _, names = bytes(data[: header.paths]).partition(b"\0\0")
        file.paths = paths.split(b"\0") if count else []
        file.names = names.split(b"\0") if header.rows else []
        data = data[header.paths :]
        sizes = array("I")
        sizes.frombytes(data[: 4 * count])
        ends = list(accumulate(sizes, initial=4 * count))
        file.entries = [bytes(data[start:end]) for start, end in pairwise(ends)]
        if (len(file.paths), len(file.names), file.starts[-1], ends[-1]) != (
            count,
            header.rows,
            header.rows,
            len(data),
        ):
            raise ValueError("its columns do not fit")
        return file


class StoredDirectory(CachedDirectory):
    """A directory of a cache file: what is asked of it is decoded then, its listing read from the store."""

    __slots__ = ("_entry", "_listing", "_signatures", "file", "number")

    def __init__(self, file: CacheFile, number: int) -> None:
        self.file = file
        self.number = number
        self._entry: Directory | None = None
        self._listing: Listing | None = None
        self._signatures: tuple[Signature | None, ...] | None = None

    @property
    def entry(self) -> Directory:  # type: ignore[override]
        """The directory's own entry, its tree and digest included."""
        if self._entry is None:
            self._entry = _entry_decoder.decode(self.file.entries[self.number])
        return self._entry

    @property
    def signature(self) -> Signature | None:  # type: ignore[override]
        """How the directory itself looked."""
        return self.file.own.get(self.number, self.file.devices[self.number])

    @property
    def traits(self) -> int:  # type: ignore[override]
        """What must be known before the listing is looked at."""
        return self.file.traits[self.number]

    @property
    def context(self) -> int:  # type: ignore[override]
        """What stands for the rules in force in it."""
        return self.file.contexts[self.number]

    @property
    def device(self) -> int:  # type: ignore[override]
        """The device that the directory is on."""
        return self.file.devices[self.number]

    @property
    def count(self) -> int:
        """How many entries it has, left-out ones included."""
        return self.file.counts[self.number]

    @property
    def listing(self) -> Listing:  # type: ignore[override]
        """The entries.

        Raises:
            Damage: the store has not got the tree.
        """
        if self._listing is None:
            if self.file.source is None:
                raise Damage(f"cannot read tree {self.entry.tree.hex()}: there is no store to read it from")
            from casnap.codec.trees import load_listing  # here, since what has not changed is not looked at

            self._listing = load_listing(self.file.source, self.entry.tree)
        return self._listing

    @property
    def looks(self) -> dict[bytes, Signature | None]:
        """The rows, by name."""
        start, end = self.file.span(self.number)
        device = self.file.devices[self.number]
        return {self.file.names[row]: self.file.rows.get(row, device) for row in range(start, end)}

    @property
    def signatures(self) -> tuple[Signature | None, ...]:  # type: ignore[override]
        """How each entry of the listing looked."""
        if self._signatures is None:
            looks = self.looks
            self._signatures = tuple(
                None if isinstance(entry, Directory | Omitted) else looks.get(entry.name) for entry in self.listing
            )
        return self._signatures

    @property
    def guards(self) -> Guards:  # type: ignore[override]
        """Files that decide about entries."""
        if not self.traits & Trait.OMITS:
            return ()
        captured = {entry.name for entry in self.listing if not isinstance(entry, Directory | Omitted)}
        return tuple((name, look) for name, look in self.looks.items() if name not in captured and look is not None)


Part = CachedDirectory | tuple[int, int]
"""A directory, or the numbers of the first and the last of some in a file that are as they were."""


class Patched(Mapping[bytes, CachedDirectory]):
    """Directories of a cache file, some of them replaced: ``parts`` by the path of the first in each, in order."""

    def __init__(self, file: CacheFile, parts: Mapping[bytes, Part]) -> None:
        self.file = file
        self.parts = parts

    def __getitem__(self, path: bytes) -> CachedDirectory:
        for above in (path, *ancestors(path)):
            part = self.parts.get(above)
            if isinstance(part, tuple):
                return self.file[path]
            if part is not None and above == path:
                return part
        raise KeyError(path)

    def __iter__(self) -> Iterator[bytes]:
        for path, part in self.parts.items():
            if isinstance(part, tuple):
                yield from self.file.paths[part[0] : part[1] + 1]
            else:
                yield path

    def __len__(self) -> int:
        return sum(part[1] - part[0] + 1 if isinstance(part, tuple) else 1 for part in self.parts.values())


class Run(NamedTuple):
    """Directories of a file, by the numbers of the first and the last."""

    file: CacheFile
    first: int
    last: int


def unsealed(data: memoryview, magic: bytes) -> tuple[memoryview, bytes, memoryview]:
    """The header, encoded, of a file of a cache, the checksum that it states, and its columns.

    Raises:
        ValueError: it is no such file, or damaged.
        Damage: its columns are not compressed as they should be.
    """
    start = len(magic) + CHECKSUM_SIZE
    payload, stated = data[start:], bytes(data[len(magic) : start])
    if data[: len(magic)] != magic or stated != checksum(payload):
        raise ValueError("it is damaged")
    end = 8 + int.from_bytes(payload[:8], "little")
    return payload[8:end], stated, memoryview(decompress_long(payload[end:]))


UNREADABLE = (msgspec.MsgspecError, ValueError, IndexError, OSError, Damage)
"""What reading a file of a cache raises where there is none that is whole."""


def load_cache(path: Path, *, store: str, workspace: str, boot: str, base: CacheFile | None = None) -> StatCache | None:
    """The cache at ``path``, with a patch that is beside it; None where none is whole and of this store and workspace.

    ``base`` is what the same file was read as before.
    """
    file = load_base(path, store=store, workspace=workspace) if base is None else base
    if file is None or file.origin is None:
        return None
    header = file.origin.header
    if (patch := path.with_suffix(PATCH_SUFFIX)).exists():
        from casnap.workspace.cache_patch import patched  # here, since few workspaces have one

        file, header = patched(file, patch) or (file, header)
    if header.boot != boot:
        file.doubt(header.written)
    return StatCache(file, header.written, header.checkpoint, differs=False, whole=header.whole)


def load_base(path: Path, *, store: str, workspace: str) -> CacheFile | None:
    """What the file at ``path`` alone has; None where there is none that is whole and belongs to these."""
    try:
        data = memoryview(path.read_bytes())
        head, stated, columns = unsealed(data, MAGIC)
        header = _header_decoder.decode(head)
        file = CacheFile.read(columns, header)
    except UNREADABLE:
        return None
    file.origin = Origin(header, stated, len(data))
    return file if (header.store, header.workspace) == (store, workspace) else None
