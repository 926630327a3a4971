"""The short forms of a diff: letters, and counts of lines."""

from __future__ import annotations

import pytest

from casnap.engine.diffing.summary import name_status_lines, stat_lines
from casnap.model.change import Aspect, Change, ChangeKind
from casnap.model.report import Diff, LineCount
from casnap.model.tree import Directory, Fifo, File


def file(size: int = 1) -> File:
    return File(b"", 0o644, 0, 0, 0, 0, (), size, 0, b"%d" % size, b"")


DIRECTORY = Directory(b"", 0o755, 0, 0, 0, 0, (), b"", b"")
EDITED = Change(b"edited", ChangeKind.CHANGED, file(1), file(2), Aspect.CONTENT)
CHANGES: dict[Change, LineCount] = {
    Change(b"", ChangeKind.CHANGED, DIRECTORY, DIRECTORY, Aspect.OWNER | Aspect.TIME): LineCount(),
    Change(b"bin", ChangeKind.CHANGED, file(10), file(20), Aspect.CONTENT): LineCount(shown=False),
    EDITED: LineCount(3, 1),
    Change(b"huge", ChangeKind.ADDED, None, file(90)): LineCount(shown=False),
    Change(b"new\nname", ChangeKind.RENAMED, file(1), file(1), Aspect.NONE, b"caf\xe9", 100): LineCount(),
    Change(b"sub", ChangeKind.ADDED, None, DIRECTORY): LineCount(),
    Change(b"x", ChangeKind.RETYPED, DIRECTORY, Fifo(b"", 0o644, 0, 0, 0, 0, ())): LineCount(),
}


def diff(changes: dict[Change, LineCount]) -> Diff:
    return Diff("a", "b", tuple(changes), "", tuple(changes.values()), cut=(b"huge",))


def test_a_status_is_a_letter_and_the_path() -> None:
    assert name_status_lines(diff(CHANGES)) == (
        'M\t.\nM\tbin\nM\tedited\nA\thuge\nR100\t"caf\\351"\t"new\\nname"\nA\tsub\nT\tx\n'
    )


def test_statistics_are_lines_a_path_and_their_sums() -> None:
    assert stat_lines(diff(CHANGES)) == (
        " .                        | (owner)\n"
        " bin                      | Bin 10 -> 20 bytes\n"
        " edited                   | 4 +++-\n"
        " huge                     | Large 0 -> 90 bytes\n"
        ' "caf\\351" => "new\\nname" | 0\n'
        " sub                      | (new: directory)\n"
        " x                        | (another kind: fifo)\n"
        " 4 files changed, 3 insertions(+), 1 deletion(-), 3 other paths changed\n"
    )


@pytest.mark.parametrize(
    ("count", "total"),
    [
        (LineCount(1, 0), " 1 file changed, 1 insertion(+)\n"),
        (LineCount(0, 2), " 1 file changed, 2 deletions(-)\n"),
        (LineCount(0, 0), " 1 file changed, 0 insertions(+), 0 deletions(-)\n"),
    ],
)
def test_the_sums_are_said_as_git_says_them(count: LineCount, total: str) -> None:
    assert stat_lines(diff({EDITED: count})).endswith(total)


def test_many_lines_are_drawn_to_scale() -> None:
    other = Change(b"other", ChangeKind.CHANGED, file(1), file(2), Aspect.CONTENT)
    first, second, _ = stat_lines(diff({EDITED: LineCount(100_000, 50_000), other: LineCount(0, 1)})).split("\n")[:3]
    assert (first.count("+"), first.count("-")) == (41, 21)
    assert second == " other  |      1 -"
    assert len(first) <= 80


def test_no_differences_are_no_lines() -> None:
    assert (stat_lines(diff({})), name_status_lines(diff({}))) == ("", "")
