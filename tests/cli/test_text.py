"""Sizes, tables and escapes, as a person reads them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casnap.cli.as_json import aspect_words, dump, path_fields
from casnap.cli.output import printable
from casnap.cli.table import _aligned
from casnap.cli.text import change_line, moment, quantity, size
from casnap.model.change import Aspect, Change, ChangeKind


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_499, "999.5 kB"),
        (999_500, "1.0 MB"),
        (1_234_567, "1.2 MB"),
        (85_400_000_000, "85.4 GB"),
        (10**16, "10000.0 TB"),
    ],
)
def test_a_size_has_few_digits_and_a_unit(count: int, text: str) -> None:
    assert size(count) == text


def test_a_quantity_minds_its_plural() -> None:
    assert quantity(0, "path") == "0 paths"
    assert quantity(1, "entry", "entries") == "1 entry"
    assert quantity(2, "entry", "entries") == "2 entries"


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "EST5EDT,M3.2.0,M11.1.0")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("new_york")
def test_a_moment_is_local_and_says_its_offset() -> None:
    before_the_clocks_went_back, after = 1_793_507_400 * 10**9, 1_793_516_400 * 10**9
    assert moment(before_the_clocks_went_back) == "2026-11-01 00:30:00 -0400"
    assert moment(after) == "2026-11-01 02:00:00 -0500"


def test_columns_line_up_also_with_wide_characters() -> None:
    lines = list(_aligned([("NAME", "STEP"), ("日本", "1"), ("abcdef", "2"), ("e\u0301", "3")]))
    assert lines == ["NAME    STEP", "日本    1", "abcdef  2", "e\u0301       3"]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (Change(b"a", ChangeKind.CHANGED, None, None, Aspect.CONTENT | Aspect.TIME), "M a  (content)"),
        (Change(b"a", ChangeKind.CHANGED, None, None, Aspect.MODE | Aspect.OWNER), "M a  (mode, owner)"),
        (Change(b"a", ChangeKind.CHANGED, None, None, Aspect.TIME), "M a  (time)"),
        (Change(b"", ChangeKind.CHANGED, None, None, Aspect.XATTRS), "M .  (xattrs)"),
        (Change(b"a\nb", ChangeKind.ADDED, None, None), r"A a\nb"),
        (Change(b"a", ChangeKind.REMOVED, None, None), "D a"),
        (Change(b"a", ChangeKind.RETYPED, None, None), "T a"),
    ],
)
def test_a_change_is_one_line(change: Change, line: str) -> None:
    assert change_line(change) == line


def test_every_aspect_has_a_word() -> None:
    every = Aspect.CONTENT | Aspect.MODE | Aspect.OWNER | Aspect.XATTRS | Aspect.TIME | Aspect.LINKS
    assert aspect_words(every) == ["content", "mode", "owner", "xattrs", "time", "links"]
    assert aspect_words(Aspect.NONE) == []


@given(
    st.text(st.characters(exclude_categories=[])).filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text))
)
def test_printable_text_is_one_line_without_control_codes(text: str) -> None:
    shown = printable(text)
    assert shown == "" or shown.isprintable()
    if text.isprintable():
        assert shown == text


def test_escaped_paths_in_a_message_are_not_escaped_again() -> None:
    assert printable(r"cannot read caf\xe9") == r"cannot read caf\xe9"
    assert printable("esc \x1b[0m \udcff") == r"esc \x1b[0m \xff"


@given(st.binary(max_size=20))
def test_a_document_is_utf_8_whatever_the_path(path: bytes) -> None:
    line = dump(path_fields(path))
    assert line.endswith(b"}\n")
    line.decode("utf-8")
    assert line.count(b"\n") == 1


def test_what_is_no_text_stays_an_escape_of_json() -> None:
    assert dump({"a": "\ud800é", "b": b"\xff"}) == '{"a": "\\ud800é", "b": "\\\\xff"}\n'.encode()
