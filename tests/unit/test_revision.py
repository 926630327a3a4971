"""Names of checkpoints, and expressions that stand for one."""

from __future__ import annotations

import datetime as dt
import time
import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from casnap.errors import Usage
from casnap.model.revision import (
    At,
    Good,
    Head,
    Latest,
    Revision,
    Word,
    normalise_name,
    parse_instant,
    parse_revision,
)

GOOD_CHARACTERS = st.characters(categories=["L", "N"]) | st.sampled_from("._+:-")
segments = st.text(GOOD_CHARACTERS, min_size=1, max_size=8).filter(lambda text: text not in (".", ".."))
good_names = (
    st.lists(segments, min_size=1, max_size=4)
    .map("/".join)
    .filter(lambda name: not unicodedata.normalize("NFC", name).isdecimal())
    .filter(lambda name: name[0] not in "-@" and name not in ("HEAD", "latest"))
)


@pytest.mark.parametrize(
    "name",
    ["before-refactor", "v1.0", "a/b/c", "日本語", "daily-20261130", "x:y+z", "1a", "a" * 128, "ab" * 32, "Ünï_ß"],
)
def test_a_name_that_keeps_the_rule_stands_as_it_is(name: str) -> None:
    assert normalise_name(name) == name


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("", "it is empty"),
        ("a" * 129, "it has 129 characters, 128 are allowed"),
        ("HEAD", "it has a meaning of its own"),
        ("latest", "it has a meaning of its own"),
        ("-f", "it begins with '-'"),
        ("--all", "it begins with '-'"),
        ("@good", "it begins with '@'"),
        ("1", "digits alone are a step"),
        ("٣", "digits alone are a step"),
        (".", "a part between slashes is empty, . or .."),
        ("..", "a part between slashes is empty, . or .."),
        ("../x", "a part between slashes is empty, . or .."),
        ("/x", "a part between slashes is empty, . or .."),
        ("x/", "a part between slashes is empty, . or .."),
        ("a//b", "a part between slashes is empty, . or .."),
        (" ", "' ' is not allowed"),
        ("a b", "' ' is not allowed"),
        ("a\nb", r"'\n' is not allowed"),
        ("a\0b", r"'\x00' is not allowed"),
        ("a~1", "'~' is not allowed"),
        ("a@{b}", "'@' is not allowed"),
        ("%", "'%' is not allowed"),
        ("*", "'*' is not allowed"),
        ("🚀", "'🚀' is not allowed"),
        ("a\u200fb", r"'\u200f' is not allowed"),
        ("caf\udce9", r"'\udce9' is not allowed"),
    ],
)
def test_a_name_that_breaks_the_rule_is_refused_with_the_part_that_it_breaks(name: str, fault: str) -> None:
    with pytest.raises(Usage) as caught:
        normalise_name(name)
    assert caught.value.code == "bad-name"
    assert caught.value.message.endswith(f": {fault}")


@given(good_names)
@example("e\u0301")
def test_names_come_out_in_nfc_and_stay_so(name: str) -> None:
    once = normalise_name(name)
    assert once == unicodedata.normalize("NFC", name)
    assert normalise_name(once) == once


@given(good_names)
def test_whatever_can_be_created_can_be_named(name: str) -> None:
    normal = normalise_name(name)
    assert parse_revision(name) == Revision(Word(normal))
    assert parse_revision(f"{name}~2") == Revision(Word(normal), 2)


@pytest.mark.parametrize(
    ("text", "revision"),
    [
        ("@", Revision(Head())),
        ("HEAD", Revision(Head())),
        ("latest", Revision(Latest())),
        ("@~2", Revision(Head(), 2)),
        ("@~", Revision(Head(), 1)),
        ("@~~", Revision(Head(), 2)),
        ("HEAD~3~1", Revision(Head(), 4)),
        ("latest~0", Revision(Latest())),
        ("7", Revision(Word("7"))),
        ("v1.0", Revision(Word("v1.0"))),
        ("%", Revision(Word("%"))),
        ("*", Revision(Word("*"))),
        ("@good", Revision(Good())),
        ("@good~2", Revision(Good(), 2)),
        ("@goods", Revision(Word("@goods"))),
        ("cafe\u0301", Revision(Word("café"))),
        ("@{2026-11-30T10:11:12Z}", Revision(At(1_796_033_472_000_000_000))),
        ("@{2026-11-30T10:11:12Z}~1", Revision(At(1_796_033_472_000_000_000), 1)),
    ],
)
def test_an_expression_is_read_as_written_here(text: str, revision: Revision) -> None:
    assert parse_revision(text) == revision


@pytest.mark.parametrize("text", ["", "~", "~1"])
def test_an_expression_without_a_base_is_refused(text: str) -> None:
    with pytest.raises(Usage, match="names no checkpoint"):
        parse_revision(text)


@pytest.mark.parametrize(
    "text", ["@{}", "@{yesterday}", "@{2026-02-30}", "@{2026-11-30T10:11:12}", "@{2026-11-30 25:00}"]
)
def test_a_time_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(Usage, match="cannot read time"):
        parse_revision(text)


EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@given(st.integers(-2_000_000_000, 7_000_000_000), st.integers(0, 999_999_999))
@example(-1, 999_999_999)
def test_rfc_3339_is_read_to_the_nanosecond(seconds: int, fraction: int) -> None:
    whole = EPOCH + dt.timedelta(seconds=seconds)
    assert parse_instant(f"{whole:%Y-%m-%dT%H:%M:%S}.{fraction:09d}Z") == seconds * 10**9 + fraction


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-30T10:11:12.5Z",
        "2026-11-30t10:11:12.500z",
        "2026-11-30 10:11:12.5Z",
        "2026-11-30T11:11:12.5+01:00",
        "2026-11-30T04:41:12.5-05:30",
    ],
)
def test_an_offset_says_the_same_instant_otherwise(text: str) -> None:
    assert parse_instant(text) == 1_796_033_472_500_000_000


@pytest.fixture
def tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "JST-9")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("tokyo")
@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-11-30", "2026-11-29T15:00:00Z"),
        ("2026-11-30 10:11", "2026-11-30T01:11:00Z"),
        ("2026-11-30 10:11:12", "2026-11-30T01:11:12Z"),
    ],
)
def test_a_time_without_an_offset_is_local(text: str, utc: str) -> None:
    assert parse_instant(text) == parse_instant(utc)
