"""What is told about the reading that is ahead."""

from __future__ import annotations

import pytest

from casnap.workspace.ahead import ReadingAhead

DIRECTORIES = {
    b"": 5,
    b"app": 0,
    b"app/src": 300,
    b"app/src/deep": 10,
    b"app/data": 2,
    b"media": 100,
    b"media/a": 120,
    b"media/b": 130,
    b"tiny": 1,
    b"empty": 0,
}


@pytest.mark.parametrize(
    ("count", "largest"),
    [
        (0, []),
        (1, [(b"media", 350)]),
        (3, [(b"media", 350), (b"app/src", 310), (b"app/data", 2)]),
        (9, [(b"media", 350), (b"app/src", 310), (b"app/data", 2), (b"tiny", 1)]),
    ],
)
def test_the_largest_directories_lie_apart_and_as_deep_as_almost_all_of_them(
    count: int, largest: list[tuple[bytes, int]]
) -> None:
    assert ReadingAhead(0, 0, DIRECTORIES).largest_directories(count) == largest


def test_a_chain_of_directories_is_named_by_its_last() -> None:
    assert ReadingAhead(0, 0, {b"": 1, b"a/b/c": 100, b"a/b/d": 5}).largest_directories(3) == [
        (b"a/b/c", 100),
        (b"a/b/d", 5),
    ]
