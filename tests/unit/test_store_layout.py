"""Names in a store: which are numbers of segments and catalogs, and up to where the log is known to be on the disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from casnap.store import catalog
from casnap.store.catalog import Catalog
from casnap.store.layout import Layout
from casnap.store.oplog import noted_end


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(tmp_path)
    for directory in made.directories[1:]:
        directory.mkdir()
    return made


def test_segments_are_what_is_named_by_ten_digits(layout: Layout) -> None:
    for name in (
        "0000000002.jsonl",
        "0000000010.jsonl",
        "000000003.jsonl",
        "00000000004.jsonl",
        "0000000005.jsonl.torn-7-ab",
        "-000000006.jsonl",
        "0000000007.json",
        "000000000x.jsonl",
        ".jsonl",
    ):
        (layout.oplog / name).touch()
    assert layout.segments() == [2, 10]


def test_catalogs_are_given_newest_first_without_those_that_were_set_aside(layout: Layout) -> None:
    for name in (
        "catalog-2.db",
        "catalog-10.db",
        "catalog-11.db.aside",
        "catalog-12.db-wal",
        "catalog-13.db.aside.aside",
        "catalog-.db",
        "catalog-x.db",
        "catalog-14",
        "a-catalog-15.db",
    ):
        (layout.root / name).touch()
    assert layout.catalogs() == [10, 2]


def test_a_number_that_a_catalog_had_which_was_set_aside_is_not_given_again(layout: Layout) -> None:
    assert layout.next_catalog() == 1
    for name in ("catalog-3.db", "catalog-7.db.aside", "catalog-9.db.aside-wal"):
        (layout.root / name).touch()
    assert layout.next_catalog() == 8


@pytest.mark.parametrize(
    ("note", "end"),
    [
        (b"0000000002 0000000345\n", (2, 345)),
        (b"0000000002 0000000345", (0, 0)),
        (b"0000000002 0000000345\n\n", (0, 0)),
        (b"0000000002  000000345\n", (0, 0)),
        (b"000000002 00000000345\n", (0, 0)),
        (b"000000000x 0000000345\n", (0, 0)),
        (b"+000000002 0000000345\n", (0, 0)),
        (b"0000000002_0000000345\n", (0, 0)),
        (b"\n", (0, 0)),
        (b"", (0, 0)),
    ],
)
def test_a_note_that_is_not_as_it_is_written_says_nothing(layout: Layout, note: bytes, end: tuple[int, int]) -> None:
    layout.synced.write_bytes(note)
    assert noted_end(layout) == end


def test_no_note_says_nothing(layout: Layout) -> None:
    assert noted_end(layout) == (0, 0)


@pytest.mark.parametrize("name", [b"a b", b"50%41", b"what?mode=memory", b"no#fragment", b"caf\xc3\xa9", b"\xff\xfe"])
def test_a_catalog_is_found_under_any_path(tmp_path: Path, name: bytes) -> None:
    place = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
    place.mkdir()
    path = place / "catalog-1.db"
    path.touch()
    catalog.create(path)
    opened = Catalog(path)
    opened.close()
    assert opened.mark.seq == 0
    assert os.listdir(os.fsencode(tmp_path)) == [name]  # and nothing beside it
