"""gc over deltas and groups, which the format has: whatever builds on what, all that is needed stays readable."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from casnap.codec.checkpoints import encode_checkpoint
from casnap.codec.compression import compress_delta
from casnap.codec.hashing import digest
from casnap.codec.packs import IndexEntry, encode_index_record, encode_pack_header
from casnap.codec.records import Encoding, encode_group, encode_record, parse_header
from casnap.codec.trees import build_tree
from casnap.engine.context import Context
from casnap.engine.gc import collect
from casnap.engine.gc_terms import Terms
from casnap.model.checkpoint import CheckpointObject, Origin
from casnap.model.ids import ObjectKey
from casnap.model.objects import ObjectSink
from casnap.model.operation import CheckpointMade, CheckpointsDeleted, PackRange
from casnap.model.tree import Directory, File
from casnap.store import packs
from casnap.store.space import Space
from casnap.store.store import Store
from support.stores import POLICY, WORKSPACE, Ticking, chunk, make_store, noise, open_store, remove_catalogs

SESSION = 80
"""Bytes of a session record."""

EVERYTHING = Terms(grace=0, share=0.0)
REPACKED = Terms(grace=0, share=0.0, repack=True)
SIZE = 3000
SLACK = 700
"""What an index and the frame of a new pack are reckoned to take at most, for so few objects."""


@dataclass(frozen=True)
class Chunk:
    """A chunk: the pack that it lies in, the number of its base (below its own), how that is named, and who needs it.

    ``grouped`` puts it into the one group of its pack; ``again`` writes it once more, in full, into a last pack, and
    ``bad`` damages one of the two copies.
    """

    pack: int
    base: int | None = None
    near: bool = False
    grouped: bool = False
    live: bool = False
    again: bool = False
    bad: int | None = None


def depth(forest: Sequence[Chunk], number: int) -> int:
    base = forest[number].base
    return 0 if base is None else 1 + depth(forest, base)


@st.composite
def forests(draw: st.DrawFn) -> list[Chunk]:
    forest: list[Chunk] = []
    for _ in range(draw(st.integers(2, 12))):
        pack = draw(st.integers(0, 2))
        possible = [number for number in range(len(forest)) if depth(forest, number) < 4]
        base = draw(st.none() | st.sampled_from(possible)) if possible else None
        near = base is not None and forest[base].pack == pack and not forest[base].grouped and draw(st.booleans())
        grouped = base is None and draw(st.booleans())
        again = draw(st.integers(0, 4)) == 0
        bad = draw(st.sampled_from([None, 0, 1])) if again and not near else None
        forest.append(Chunk(pack, base, near, grouped, draw(st.booleans()), again, bad))
    # What others build on by distance must not be the copy that is bad.
    near_bases = {one.base for one in forest if one.near}
    return [
        Chunk(one.pack, one.base, one.near, one.grouped, one.live, one.again, None if number in near_bases else one.bad)
        for number, one in enumerate(forest)
    ]


def content(forest: Sequence[Chunk], number: int) -> bytes:
    """Noise, a little different from that of its base."""
    base = forest[number].base
    if base is None:
        return noise(("chunk", number), SIZE)
    below = content(forest, base)
    return below[: 100 * number] + noise(("change", number), 60) + below[100 * number :]


@dataclass
class Crafted:
    """A pack that is written by hand."""

    store: Store
    number: int
    data: bytes = b""
    entries: list[IndexEntry] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.id = f"{self.number + 1:02x}" * 16
        self.data = encode_pack_header(bytes.fromhex(self.id), bytes.fromhex(self.store.id))

    def add(self, record: bytes, *keys: ObjectKey, group: bool = False) -> int:
        offset = len(self.data)
        self.data += record
        self.entries += [IndexEntry(key.kind, key.id, offset, slot if group else -1) for slot, key in enumerate(keys)]
        return offset

    def raw(self, data: bytes) -> int:
        key = chunk(data)
        return self.add(encode_record(key.kind, key.id, Encoding.RAW, data, len(data)), key)

    def delta(self, data: bytes, base: bytes, depth: int, base_offset: int | None) -> int:
        key, payload = chunk(data), compress_delta(data, base, 3)
        distance = 0 if base_offset is None else len(self.data) - base_offset
        base_id = chunk(base).id if base_offset is None else b""
        record = encode_record(
            key.kind, key.id, Encoding.DELTA, payload, len(data), base_distance=distance, base_id=base_id, depth=depth
        )
        return self.add(record, key)

    def commit(self) -> None:
        index = self.add(encode_index_record(self.entries, 3))
        (self.store.path / "packs" / f"{self.id}.pack").write_bytes(self.data)
        written = (PackRange(self.id, 0, len(self.data), index),)
        self.store.commit(
            lambda _, line: CheckpointMade(
                seq=line.seq, time=line.time, prev=line.prev, workspace=WORKSPACE,
                id=chunk(line.prev.encode()).id.hex(), step=1, packs=line.packs,
            ),
            packs=written,
        )  # fmt: skip


def craft(store: Store, forest: Sequence[Chunk]) -> None:
    """Write the packs of a forest."""
    crafted = [Crafted(store, number) for number in range(4)]
    offsets: dict[int, int] = {}
    for pack in crafted[:3]:
        members = [n for n, one in enumerate(forest) if one.grouped and one.pack == pack.number]
        if members:
            objects = [(chunk(content(forest, n)), content(forest, n)) for n in members]
            offset = pack.add(encode_group(objects, 3), *(key for key, _ in objects), group=True)
            offsets.update(dict.fromkeys(members, offset))
    for number, one in enumerate(forest):
        pack, data = crafted[one.pack], content(forest, number)
        if one.base is not None:
            near = offsets[one.base] if one.near else None
            offsets[number] = pack.delta(data, content(forest, one.base), depth(forest, number), near)
        elif not one.grouped:
            offsets[number] = pack.raw(data)
        if one.again:
            again = crafted[3].raw(data)
            if one.bad == 0 and not one.grouped:
                spoil(pack, offsets[number])
            elif one.bad == 1:
                spoil(crafted[3], again)
    for pack in crafted:
        if pack.entries:
            pack.commit()


def spoil(pack: Crafted, offset: int) -> None:
    at = offset + parse_header(pack.data[offset : offset + 200]).payload_offset + 5
    pack.data = pack.data[:at] + bytes([pack.data[at] ^ 0xFF]) + pack.data[at + 1 :]


def put_checkpoint(sink: ObjectSink, files: dict[bytes, bytes]) -> bytes:
    """A real checkpoint of files that are one chunk each; its id."""
    listing = tuple(
        File(name, 0o644, 0, 0, 0, 0, (), len(data), 0, chunk(data).id, b"") for name, data in sorted(files.items())
    )
    built = build_tree(listing)
    for key, data in built.objects:
        sink.put(key, data)
    root = Directory(b"", 0o755, 0, 0, 0, 0, (), built.id, digest(listing))
    key, data = encode_checkpoint(CheckpointObject(WORKSPACE, root, b"", "", "{}", 1, 2, Origin(), None, (), ()))
    sink.put(key, data)
    return key.id


@contextmanager
def store_of(forest: Sequence[Chunk]) -> Iterator[Store]:
    """A store with a checkpoint of what is live in a forest, and a deleted one of all of it."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as place:
        store = make_store(Path(place, "store"))
        craft(store, forest)
        every = {b"%d" % number: content(forest, number) for number in range(len(forest))}
        live = {name: data for name, data in every.items() if forest[int(name)].live}
        with store.session() as session:
            ids = [put_checkpoint(session, files) for files in (live, every)]
            for step, id in enumerate(dict.fromkeys(ids), 2):
                store.commit(
                    lambda _, line, id=id, step=step: CheckpointMade(  # type: ignore[misc]
                        seq=line.seq, time=line.time, prev=line.prev, workspace=WORKSPACE,
                        id=id.hex(), step=step, packs=line.packs,
                    ),
                    session,
                )  # fmt: skip
        (row,) = store.state().workspaces()
        gone = [row.id.hex() for row in store.state().all_checkpoints() if row.id != ids[0]]
        store.commit(
            lambda _, line: CheckpointsDeleted(
                seq=line.seq, time=line.time, prev=line.prev, workspace=row.id, ids=tuple(gone)
            )
        )
        yield store
        store.close()


def depths(store: Store, forest: Sequence[Chunk]) -> dict[int, set[int]]:
    """How deep the records of each chunk are that can be read."""
    found: dict[int, set[int]] = {}
    for number in range(len(forest)):
        key = chunk(content(forest, number))
        for place in store.parts.state.places([key]).get(key, ()):
            if store.parts.reader.is_sound(key, place):
                found.setdefault(number, set()).add(store.parts.reader.files.header(place.pack, place.offset).depth)
    return found


def needed_by(forest: Sequence[Chunk]) -> set[int]:
    """What is live and what that builds on."""
    needed: set[int] = set()
    for number, one in enumerate(forest):
        at: int | None = number if one.live else None
        while at is not None:
            needed.add(at)
            at = forest[at].base
    return needed


def check(store: Store, forest: Sequence[Chunk], before: dict[int, set[int]]) -> None:
    """See that what is live reads, that no record is deeper than it was, and that what is dead went."""
    after = depths(store, forest)
    for number, one in enumerate(forest):
        data = content(forest, number)
        if one.live:
            assert store.read(chunk(data)) == data
            assert max(after[number]) <= max(before[number])
    sizes = {path.stem: path.stat().st_size for path in (store.path / "packs").iterdir()}
    left = dict.fromkeys(sizes, 0)
    for number in set(range(len(forest))) - needed_by(forest):
        key = chunk(content(forest, number))
        for place in store.parts.state.places([key]).get(key, ()):
            if place.slot < 0:
                left[place.pack] += store.parts.reader.files.header(place.pack, place.offset).size
    assert all(size < SLACK for size in left.values()), left


def collected(store: Store, room: int | None, terms: Terms) -> None:
    """A gc; with ``room`` on a disk with so many bytes besides what the packs take now."""
    context = Context(store, POLICY, Ticking(2_000_000_000 * 10**9), Origin(), "boot")
    if room is None:
        collect(context, terms)
        return

    def used() -> int:
        return sum(path.stat().st_size for path in (store.path / "packs").iterdir())

    limit = used() + room

    def free(_space: Space) -> tuple[int, int]:
        assert used() <= limit
        return max(0, limit - used()) + (64 << 10), 1 << 30

    with mock.patch.object(Space, "free", free):
        collect(context, terms)


FAR = [Chunk(0), Chunk(0, 0), Chunk(1, 1), Chunk(2, 2), Chunk(0, 3, live=True)]
NEAR = [Chunk(0), *(Chunk(0, number, near=True, live=number == 3) for number in range(4)), Chunk(0)]
TURNS = [Chunk(2), Chunk(1, 0), Chunk(1, 1, near=True, live=True), Chunk(0, 2), Chunk(0), Chunk(1)]
GROUP = [Chunk(0, grouped=True, live=number % 2 == 0) for number in range(4)] + [Chunk(0, 1, live=True), Chunk(0)]
TWICE = [Chunk(0, again=True, bad=0, live=True), Chunk(0), Chunk(1, 0, live=True), Chunk(1, again=True, bad=1)]


@given(
    forest=forests(),
    room=st.sampled_from([None, 9_000, 20_000]),
    small=st.booleans(),
    terms=st.sampled_from([EVERYTHING, REPACKED]),
)
@example(forest=FAR, room=None, small=False, terms=EVERYTHING)
@example(forest=FAR, room=None, small=True, terms=REPACKED)
@example(forest=NEAR, room=None, small=False, terms=EVERYTHING)
@example(forest=NEAR, room=9_000, small=True, terms=EVERYTHING)
@example(forest=TURNS, room=None, small=True, terms=EVERYTHING)
@example(forest=TURNS, room=9_000, small=True, terms=EVERYTHING)
@example(forest=TURNS, room=None, small=False, terms=REPACKED)
@example(forest=GROUP, room=None, small=False, terms=EVERYTHING)
@example(forest=GROUP, room=20_000, small=False, terms=EVERYTHING)
@example(forest=GROUP, room=20_000, small=False, terms=REPACKED)
@example(forest=TWICE, room=None, small=True, terms=EVERYTHING)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_builds_on_what_stays_readable_and_no_deeper(
    forest: list[Chunk], room: int | None, small: bool, terms: Terms
) -> None:
    with store_of(forest) as store, mock.patch.object(packs, "PACK_SIZE", 4000 if small else packs.PACK_SIZE):
        before = depths(store, forest)
        collected(store, room, terms)
        check(store, forest, before)
        fresh = open_store(store.path)
        check(fresh, forest, before)
        fresh.close()
        remove_catalogs(store.path)
        anew = open_store(store.path)
        check(anew, forest, before)
        size = sum(path.stat().st_size for path in (store.path / "packs").iterdir())
        collected(anew, None, terms)
        more = SESSION * 4 if terms.repack else 0  # which the packs that were crafted lack
        assert sum(path.stat().st_size for path in (store.path / "packs").iterdir()) <= size + more
        check(anew, forest, before)
        anew.close()
