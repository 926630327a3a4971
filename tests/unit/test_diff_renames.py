"""Which removed and added files are one file, and that looking for it stays bounded."""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path

import pytest

from casnap.engine.diffing import renames
from casnap.engine.diffing.renames import find_renames
from casnap.model.change import Aspect, Change, ChangeKind
from casnap.model.tree import File, Symlink


def file(data: bytes, mode: int = 0o644) -> File:
    return File(b"", mode, 0, 0, 0, 0, (), len(data), 0, data, b"")  # the content id is the content itself


def gone(path: bytes, data: bytes) -> Change:
    return Change(path, ChangeKind.REMOVED, file(data), None)


def new(path: bytes, data: bytes, mode: int = 0o644) -> Change:
    return Change(path, ChangeKind.ADDED, None, file(data, mode))


def read(change: Change) -> bytes:
    entry = change.new or change.old
    assert isinstance(entry, File)
    return entry.content


def found(*changes: Change) -> list[tuple[bytes, bytes, int]]:
    """Each rename: from, to, similarity."""
    result, _ = find_renames(tuple(sorted(changes, key=lambda one: one.path)), read)
    assert [change.path for change in result] == sorted(change.path for change in result)
    return [(one.renamed_from, one.path, one.similarity) for one in result if one.renamed_from is not None]


TEXT = b"".join(b"line %d\n" % number for number in range(20))


def test_equal_content_is_a_rename_and_what_else_differs_is_said() -> None:
    result, note = find_renames((gone(b"a", TEXT), new(b"b", TEXT, 0o755)), read)
    assert result == (Change(b"b", ChangeKind.RENAMED, file(TEXT), file(TEXT, 0o755), Aspect.MODE, b"a", 100),)
    assert note is None


def test_of_several_equal_files_those_with_the_same_last_name_belong_together() -> None:
    assert found(gone(b"a/x", TEXT), gone(b"a/y", TEXT), new(b"b/y", TEXT), new(b"b/z", TEXT)) == [
        (b"a/y", b"b/y", 100),
        (b"a/x", b"b/z", 100),
    ]


def test_one_file_that_is_gone_is_renamed_once() -> None:
    result, _ = find_renames((gone(b"a", TEXT), new(b"b", TEXT), new(b"c", TEXT)), read)
    assert [change.kind.value for change in result] == ["R", "A"]


@pytest.mark.parametrize(("kept", "expected"), [(20, 100), (15, 75), (10, 50), (9, None), (0, None)])
def test_half_of_the_larger_file_must_be_the_same(kept: int, expected: int | None) -> None:
    lines = [b"line %2d\n" % number for number in range(20)]
    edited = lines[:kept] + [b"new  %2d\n" % number for number in range(20 - kept)]
    renamed = [(b"a", b"b", expected)] if expected else []
    assert found(gone(b"a", b"".join(lines)), new(b"b", b"".join(edited))) == renamed


def test_the_most_similar_file_wins() -> None:
    near, far = TEXT.replace(b"line 3", b"LINE 3"), TEXT.replace(b"line 1", b"LINE 1")
    assert found(gone(b"a", TEXT), new(b"b", far), new(b"c", near)) == [(b"a", b"c", 95)]


def test_a_name_that_no_other_file_has_decides_before_a_somewhat_greater_similarity() -> None:
    near, far = TEXT.replace(b"line 3\n", b""), TEXT.replace(b"line 3\n", b"").replace(b"line 4\n", b"")
    assert found(gone(b"a/x", TEXT), new(b"b/x", far), new(b"b/y", near)) == [(b"a/x", b"b/x", 90)]


def test_links_and_what_cannot_be_read_are_not_compared() -> None:
    link = Symlink(b"", 0o777, 0, 0, 0, 0, (), b"to")
    links = (Change(b"a", ChangeKind.REMOVED, link, None), Change(b"b", ChangeKind.ADDED, None, link))
    assert find_renames(links, read) == (links, None)
    changes = gone(b"a", TEXT), new(b"b", TEXT + b"more\n")
    assert find_renames(changes, lambda change: None) == (changes, None)


def test_too_many_pairs_or_bytes_are_not_compared_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = (*(gone(b"a%d" % number, TEXT + b"%d\n" % number) for number in range(3)), gone(b"same", b"same"))
    changes = (*changes, *(new(b"b%d" % number, TEXT + b"%d more\n" % number) for number in range(4)))
    changes = (*changes, new(b"still", b"same"))
    for limit in ("PAIRS_LIMIT", "BYTES_LIMIT"):
        with monkeypatch.context() as patch:
            patch.setattr(renames, limit, 11)
            result, note = find_renames(changes, read)
        assert [change.path for change in result if change.renamed_from is not None] == [b"still"]
        assert note == "renames of edited files were not looked for: 3 files are gone and 4 are new"
    assert len([change for change in find_renames(changes, read)[0] if change.renamed_from is not None]) == 4


def test_similarity_is_what_git_says_it_is(tmp_path: Path) -> None:
    rng = random.Random(3)
    for _ in range(8):
        lines = [b"%d %s\n" % (number, b"x" * rng.randrange(90)) for number in range(rng.randint(10, 60))]
        edited = [line if rng.random() < 0.85 else b"changed %d\n" % rng.randrange(99) for line in lines]
        by_git = git_similarity(tmp_path, b"".join(lines), b"".join(edited))
        ((_, _, similarity),) = found(gone(b"a", b"".join(lines)), new(b"b", b"".join(edited)))
        assert abs(similarity - by_git) <= 2


def git_similarity(place: Path, old: bytes, new: bytes) -> int:
    (place / "old").mkdir(exist_ok=True)
    (place / "new").mkdir(exist_ok=True)
    (place / "old" / "a").write_bytes(old)
    (place / "new" / "b").write_bytes(new)
    done = subprocess.run(
        ["git", "diff", "--no-index", "-M", "old", "new"], cwd=place, capture_output=True, check=False
    )
    match = re.search(rb"similarity index (\d+)%", done.stdout)
    assert match is not None, done.stdout
    return int(match[1])
