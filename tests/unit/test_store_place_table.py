"""The table of all places: an object is found where it is, and not where something looks like it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casnap.codec.packs import IndexEntry
from casnap.model.clock import Silent
from casnap.model.ids import ObjectKey, ObjectKind
from casnap.store.inspection import Inspection
from casnap.store.pack_survey import survey
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


@pytest.mark.parametrize("there", [True, False])
def test_what_looks_like_an_object_across_two_columns_is_not_it(there: bool) -> None:
    key = ObjectKey(ObjectKind.CHUNK, bytes(32))
    alike = ObjectKey(ObjectKind.CHUNK, b"\0\0\1" + bytes(29))  # and then four zeros: the number of its pack
    table = _table([alike, key] if there else [alike])
    assert table.row_of(key) == (0 if there else -1)
    assert table.row_of(alike) == (1 if there else 0)


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
