"""Times as other systems write them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from casnap.engine.importing.times import instant

NOON = 1_714_996_800 * 10**9  # 2024-05-06T12:00:00Z


@pytest.fixture
def kolkata(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("said", "offset"),
    [
        ("2024-05-06T12:00:00Z", 0),
        ("2024-05-06 12:00:00 UTC", 0),
        ("2024-05-06t14:00:00+02:00", 0),
        ("2024-05-06T06:30:00.25-0530", 250_000_000),
        ("2024-05-06T12:00:00.123456789Z", 123_456_789),
        ("2024-05-06T12:00:00.1234567899999Z", 123_456_789),
        (1_714_996_800, 0),
        (1_714_996_800.5, 500_000_000),
        (1_714_996_800.000001, 1_000),
    ],
)
def test_a_time_that_names_its_zone_or_counts_seconds_is_exact(said: object, offset: int) -> None:
    assert instant(said) == NOON + offset


@pytest.mark.parametrize(
    "said",
    [
        "",
        "yesterday",
        "2024-05-06",
        "2024-02-30T12:00:00Z",
        "2024-05-06T12:00:60Z",
        "9999-12-31T23:59:59Z",
        "0001-01-01T00:00:00",
        "2024-05-06T12:00:00+99:00",
        10**30,
        float("inf"),
        float("nan"),
        True,
        None,
        [],
    ],
)
def test_what_is_no_time_or_cannot_be_recorded_is_none(said: object) -> None:
    assert instant(said) is None


def test_a_time_without_a_zone_is_local(kolkata: None) -> None:
    assert instant("2024-05-06T17:30:00") == NOON
    assert instant("2024-05-06 17:30:00.5") == NOON + 500_000_000


def test_a_running_number_behind_the_seconds_is_no_fraction(kolkata: None) -> None:
    assert instant("2024-05-06T17:30:00.7", serial=7) == NOON
    assert instant("2024-05-06T17:30:00.007", serial=7) == NOON
    assert instant("2024-05-06T17:30:00.5", serial=7) == NOON + 500_000_000
    assert instant("2024-05-06T17:30:00.5.7", serial=7) == NOON + 500_000_000
