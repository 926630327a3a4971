"""The short way of checking an entry and the one by columns know the same rules."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from casnap.codec import entries
from casnap.codec.compression import MAX_RAW
from casnap.model.tree import AnyEntry, Directory, File, Omitted, Symlink

EDGES = [-1, 0, 1, 7, 8, 0o644, 0o7777, 0o10000, MAX_RAW, MAX_RAW + 1, 999_999_999, 1_000_000_000]
EDGES += [sign * (1 << bits) + more for bits in (31, 32, 63) for sign in (1, -1) for more in (-1, 0, 1)]

IDS = [b"", b"i" * 31, b"i" * 32, b"i" * 33]

PLAIN = [
    File(b"f", 0o644, 0, 0, 0, 0, (), 1, 0, b"i" * 32, b""),
    Directory(b"d", 0o755, 0, 0, 0, 0, (), b"i" * 32, b"j" * 32),
]
OTHERS = [Symlink(b"l", 0o777, 0, 0, 0, 0, (), b"target"), Omitted(b"o", 1)]


def edges_of(known: object) -> list[object]:
    return list(EDGES) if isinstance(known, int) else list(IDS) if isinstance(known, bytes) else [((b"user.k", b"v"),)]


def at_an_edge() -> Iterator[AnyEntry]:
    """Each kind of entry, without fault but for one field, which is at or beyond each edge of what it may be."""
    for entry in (*PLAIN, *OTHERS):
        for field in entry.__struct_fields__[1:]:
            for edge in edges_of(getattr(entry, field)):
                yield replace(entry, **{field: edge})


@st.composite
def nearly_plain(draw: st.DrawFn) -> AnyEntry:
    """An entry without fault of which one or two fields are at, or beyond, an edge of what they may be."""
    entry: AnyEntry = draw(st.sampled_from([*PLAIN, *OTHERS]))
    for field in draw(st.lists(st.sampled_from(entry.__struct_fields__[1:]), max_size=2)):
        entry = replace(entry, **{field: draw(st.sampled_from(edges_of(getattr(entry, field))))})
    return entry


def by_columns(entry: AnyEntry) -> str | None:
    files = [entry] if isinstance(entry, File) else []
    nodes = [] if isinstance(entry, Omitted) else [entry]
    return entries._metadata_fault(nodes) or entries._files_fault(files) or entries._kind_fault(entry)


def test_what_is_passed_in_one_look_has_no_fault_in_any_column_at_every_edge_of_every_field() -> None:
    for entry in at_an_edge():
        assert not entries._is_plain(entry) or by_columns(entry) is None, entry
        assert entries.fields_fault([entry]) == by_columns(entry), entry


@given(nearly_plain())
def test_what_is_passed_in_one_look_has_no_fault_in_any_column(entry: AnyEntry) -> None:
    assert not entries._is_plain(entry) or by_columns(entry) is None
    assert entries.fields_fault([entry]) == by_columns(entry)


def test_everyday_entries_and_no_others_are_passed_in_one_look() -> None:
    assert [entries._is_plain(entry) for entry in (*PLAIN, *OTHERS)] == [True, True, False, False]
