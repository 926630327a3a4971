"""Values of the store format for Hypothesis, and what its tests share."""

from __future__ import annotations

import random
from collections.abc import Iterable

from hypothesis import strategies as st
from msgspec.structs import replace

from casnap.errors import Damage
from casnap.model.checkpoint import CheckpointObject, GitState, Origin
from casnap.model.ids import ObjectKey
from casnap.model.tree import (
    NANOSECONDS,
    Device,
    Directory,
    Fifo,
    File,
    Listing,
    OmitReason,
    Omitted,
    Symlink,
)

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
UINT32 = st.integers(0, (1 << 32) - 1)
MAX_RAW = 4 << 20
IDS = st.binary(min_size=32, max_size=32)


class MemorySource(dict[ObjectKey, bytes]):
    """Objects in memory; a missing one is damage, as in a store."""

    def read(self, key: ObjectKey) -> bytes:
        try:
            return self[key]
        except KeyError:
            raise Damage(f"cannot read {key}: it is missing") from None


NAMES = (
    st.binary(min_size=1, max_size=12)
    .map(lambda name: name.replace(b"/", b"_").replace(b"\0", b"_"))
    .filter(lambda name: name not in (b".", b".."))
)
XATTRS = st.dictionaries(NAMES, st.binary(max_size=8), max_size=2).map(lambda found: tuple(sorted(found.items())))

# Strategies are made once: making them costs more than drawing from them.
_METADATA = (st.just(b""), st.integers(0, 0o7777), UINT32, UINT32, INT64, st.integers(0, NANOSECONDS - 1), XATTRS)
_FLAGS = st.integers(0, 3)
_TARGETS = st.binary(min_size=1, max_size=20).filter(lambda target: b"\0" not in target)

NODES = st.one_of(
    st.builds(File, *_METADATA, st.integers(0, MAX_RAW), _FLAGS, IDS, st.just(b"")),
    st.builds(File, *_METADATA, st.integers(2, (1 << 63) - 1), _FLAGS, IDS, IDS),
    st.builds(Directory, *_METADATA, IDS, IDS),
    st.builds(Symlink, *_METADATA, _TARGETS),
    st.builds(Fifo, *_METADATA),
    st.builds(Device, *_METADATA, st.booleans(), UINT32, UINT32),
)
"""Captured entries without a name."""

ENTRIES = NODES | st.builds(Omitted, st.just(b""), st.sampled_from(list(map(int, OmitReason))))
"""Entries without a name."""

LISTINGS = st.dictionaries(NAMES, ENTRIES, max_size=5).map(
    lambda found: tuple(replace(found[name], name=name) for name in sorted(found))
)
"""The entries of short directories."""


def file(name: bytes, seed: int = 0) -> File:
    """A plain file, the same for the same arguments."""
    content = random.Random(name + seed.to_bytes(4)).randbytes(32)
    return File(name, 0o644, 1000, 1000, 1_700_000_000, 123_456_789, (), 5_000, 0, content, b"")


def files(names: Iterable[bytes]) -> Listing:
    """A directory of plain files."""
    return tuple(map(file, sorted(names)))


_TEXT = st.text(max_size=8)


def _grouped(paths: set[bytes]) -> tuple[tuple[bytes, ...], ...]:
    """Some of the paths as hard-link groups."""
    ordered = tuple(sorted(paths))
    return tuple(group for group in (ordered[0:2], ordered[2:5], ordered[5:7]) if len(group) > 1)


CHECKPOINTS = st.builds(
    CheckpointObject,
    workspace=st.text(min_size=1, max_size=8),
    root=st.builds(Directory, *_METADATA, IDS, IDS),
    parent=st.just(b"") | IDS,
    message=_TEXT,
    metadata=st.sampled_from(["{}", '{"a":1,"b":[true,null,"é"]}']),
    scan_started=INT64,
    scan_ended=INT64,
    origin=st.builds(Origin, *[_TEXT] * 7),
    git=st.none() | st.builds(GitState, _TEXT, _TEXT, st.none() | st.integers(0, 1 << 40)),
    rules=st.lists(_TEXT, max_size=3).map(tuple),
    links=st.sets(st.lists(NAMES, min_size=1, max_size=3).map(b"/".join), max_size=7).map(_grouped),
)
"""Any checkpoint objects."""
