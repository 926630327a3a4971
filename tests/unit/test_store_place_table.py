"""The table of all places: an object is found where it is, and not where something looks like it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casnap.codec.packs import IndexEntry
from casnap.model.clock import Silent
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.model.operation import PackCut
from casnap.store import objects
from casnap.store.inspection import Inspection
from casnap.store.objects import decode_indexed
from casnap.store.pack_survey import survey
from casnap.store.packs import Record
from casnap.store.place_table import PlaceTable
from support.stores import commit_chunks, make_store, noise

# Few different bytes, so that ids share beginnings and the end of one row looks like the beginning of another.
IDS = st.lists(st.sampled_from([0, 1, 2]), min_size=32, max_size=32).map(bytes)
KEYS = st.builds(ObjectKey, st.sampled_from(ObjectKind), IDS)


def _table(keys: list[ObjectKey]) -> PlaceTable:
    table = PlaceTable()
    table.add(1, "aa" * 16, [IndexEntry(key.kind, key.id, 64 + 8 * at) for at, key in enumerate(keys)])
    table.settle()
    return table


@given(st.lists(KEYS, max_size=20), KEYS)
def test_an_object_is_found_at_each_of_its_places_and_another_at_none(keys: list[ObjectKey], other: ObjectKey) -> None:
    table = _table(keys)
    for key in {*keys, other}:
        expected = [64 + 8 * at for at, known in enumerate(keys) if known == key]
        assert sorted(place.offset for place in table.places(key)) == expected
        assert (table.row_of(key) >= 0) == bool(expected)
    for kind in ObjectKind:
        ids = [key.id for key in keys if key.kind is kind]
        assert table.holds_all(kind, ids)
        assert table.holds_all(kind, [*ids, other.id]) == (ObjectKey(kind, other.id) in keys)


@pytest.mark.parametrize("there", [True, False])
def test_what_looks_like_an_object_across_two_columns_is_not_it(there: bool) -> None:
    key = ObjectKey(ObjectKind.CHUNK, bytes(32))
    alike = ObjectKey(ObjectKind.CHUNK, b"\0\0\1" + bytes(29))  # and then four zeros: the number of its pack
    table = _table([alike, key] if there else [alike])
    assert table.row_of(key) == (0 if there else -1)
    assert table.row_of(alike) == (1 if there else 0)
    assert table.holds_all(ObjectKind.CHUNK, [key.id, alike.id]) == there


PACKS = {1: "aa" * 16, 2: "bb" * 16}
"""Packs by the numbers that a catalog has for them."""

Row = tuple[int, bytes, int, int, int]


def _known() -> tuple[PlaceTable, list[Row]]:
    """Places of which one object has two, and what a catalog that knows them has."""
    table = PlaceTable()
    ids = [bytes([number, 7]) * 16 for number in range(5)]
    told = [IndexEntry(ObjectKind.CHUNK, id, 64 + 8 * at) for at, id in enumerate(ids)]
    table.add(1, PACKS[2], told)
    table.add(2, PACKS[1], [IndexEntry(ObjectKind.CHUNK, ids[0], 800), IndexEntry(ObjectKind.TREE, ids[1], 904, 3)])
    table.add(3, PACKS[2], told[:2])  # told again: the same places
    table.settle()
    rows: list[Row] = [(1, ids[0], 1, 800, -1), *((1, entry.id, 2, entry.offset, -1) for entry in told)]
    return table, [*rows, (3, ids[1], 1, 904, 3)]


def test_places_are_those_of_a_catalog_that_knows_each_once() -> None:
    table, rows = _known()
    assert table.are(rows, PACKS, 3)
    assert not table.are(rows, PACKS, 1)  # by then there were fewer
    assert table.are([row for row in rows if row[2] == 2], PACKS, 1)


OTHERS: list[Callable[[list[Row]], list[Row]]] = [
    lambda rows: rows[1:],
    lambda rows: rows[:-1],
    lambda rows: [rows[0], rows[0], *rows[1:]],
    lambda rows: [rows[0], rows[0], *rows[2:]],
    lambda rows: [*rows, (3, bytes(32), 1, 64, -1)],
    lambda rows: [(9, *rows[0][1:]), *rows[1:]],
    lambda rows: [(1, rows[0][1][:31], *rows[0][2:]), *rows[1:]],
    lambda rows: [(1, rows[0][1] + b"x", *rows[0][2:]), *rows[1:]],
    lambda rows: [(*rows[0][:3], 801, -1), *rows[1:]],
    lambda rows: [(*rows[0][:3], 1 << 40, -1), *rows[1:]],
    lambda rows: [(*rows[0][:2], 2, 800, -1), *rows[1:]],
    lambda rows: [(*rows[0][:2], 7, 800, -1), *rows[1:]],
    lambda rows: [(*rows[0][:4], 0), *rows[1:]],
]


@pytest.mark.parametrize("change", OTHERS)
def test_places_are_not_those_of_a_catalog_that_differs_in_one(change: Callable[[list[Row]], list[Row]]) -> None:
    table, rows = _known()
    assert not table.are(change(rows), PACKS, 3)


def test_places_that_a_later_line_cut_off_are_no_longer_expected() -> None:
    table, rows = _known()
    table.cut(4, [PackCut(PACKS[2], 88)])
    assert table.are(rows, PACKS, 3)
    assert not table.are(rows, PACKS, 4)
    assert table.are([row for row in rows if row[2] == 1 or row[3] < 88], PACKS, 4)
    kept = [table.holds(ObjectKey(ObjectKind.CHUNK, bytes([number, 7]) * 16)) for number in range(5)]
    assert kept == [True, True, True, False, False]
    assert table.holds_all(ObjectKind.CHUNK, [bytes([number, 7]) * 16 for number in range(3)])
    assert not table.holds_all(ObjectKind.CHUNK, [bytes([3, 7]) * 16])


def test_each_index_of_a_store_is_decoded_once_however_often_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(tmp_path / "store")
    commit_chunks(store, *(noise(number, 100) for number in range(50)))
    store.close()
    decoded: list[int] = []

    def counted(record: Record) -> tuple[IndexEntry, ...]:
        decoded.append(record.offset)
        return decode_indexed(record)

    inspection = Inspection(store.path, explicit=True)
    monkeypatch.setattr(objects, "decode_indexed", counted)
    inspection.load_places()
    (account,) = survey(inspection, Silent(), read_data=True).accounts.values()
    inspection.close()
    assert (account.objects, account.faults) == (50, [])
    assert len(decoded) == 1


def test_every_byte_of_a_pack_is_read_once_a_mebibyte_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(tmp_path / "store")
    contents = [noise(number, 10_000) for number in range(250)]
    commit_chunks(store, *contents)
    inspection = Inspection(store.path, explicit=True)
    inspection.load_places()
    reads: list[int] = []
    pread = os.pread

    def watched(fd: int, size: int, offset: int) -> bytes:
        data = pread(fd, size, offset)
        reads.append(len(data))
        return data

    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", watched)
        (account,) = survey(inspection, Silent(), read_data=True).accounts.values()
    inspection.close()
    assert (account.objects, account.faults, account.broken) == (250, [], "")
    assert sum(reads) < account.bytes + (200 << 10)  # the header, the index, and what lies across a mebibyte's end
    assert len(reads) < 12
