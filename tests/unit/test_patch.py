"""Patches against git: ``git apply`` turns the old file into the new one, and numbers agree with ``git diff``."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casnap.engine.patch import TEXT_LIMIT, patch_of
from casnap.model.change import Aspect, Change, ChangeKind
from casnap.model.tree import AnyEntry, File, Symlink

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "x\r\n", "+\n", "-- \n"]), max_size=40).map("".join)
TEXTS = st.tuples(LINES, st.sampled_from(["", "", "end", "\x0cff"])).map("".join).map(str.encode)


def file(data: bytes, mode: int = 0o644) -> File:
    return File(b"f", mode, 0, 0, 0, 0, (), len(data), 0, data, b"")


def applied(patch: str, before: bytes | None, name: bytes, place: Path) -> bytes | None:
    path = os.fsencode(place) + b"/" + name
    if before is not None:
        with open(path, "wb") as out:
            out.write(before)
    subprocess.run(
        ["git", "apply", "--unsafe-paths", "--whitespace=nowarn", "-"],
        cwd=place,
        input=patch.encode("utf-8", "surrogateescape"),
        check=True,
    )
    if not os.path.lexists(path):
        return None
    with open(path, "rb") as result:
        return result.read()


@given(old=TEXTS, new=TEXTS, context=st.integers(0, 4))
def test_git_applies_the_patch_of_a_changed_file(
    tmp_path_factory: pytest.TempPathFactory, old: bytes, new: bytes, context: int
) -> None:
    change = Change(b"f", ChangeKind.CHANGED, file(old), file(new), Aspect.CONTENT)
    found = patch_of(change, old, new, max(context, 1))
    if old == new:
        assert "@@" not in found.text
    else:
        assert applied(found.text, old, b"f", tmp_path_factory.mktemp("apply")) == new
        wider = patch_of(change, old, new, context)
        assert (wider.count.added, wider.count.removed) == (found.count.added, found.count.removed)


@given(
    new=TEXTS.filter(bool), name=st.sampled_from([b"plain", b'q"uote', b"b\\s", b"new\nline", b"\xff", "ü".encode()])
)
def test_git_applies_the_patch_of_an_added_and_a_removed_file(
    tmp_path_factory: pytest.TempPathFactory, new: bytes, name: bytes
) -> None:
    place = tmp_path_factory.mktemp("apply")
    added = patch_of(Change(name, ChangeKind.ADDED, None, file(new)), b"", new, 3)
    assert applied(added.text, None, name, place) == new
    removed = patch_of(Change(name, ChangeKind.REMOVED, file(new), None), new, b"", 3)
    assert applied(removed.text, new, name, place) is None
    assert (added.count.added, added.count.removed) == (removed.count.removed, removed.count.added)


def test_a_file_that_became_a_link_is_a_removal_and_an_addition() -> None:
    link = Symlink(b"f", 0o777, 0, 0, 0, 0, (), b"to")
    text = patch_of(Change(b"f", ChangeKind.RETYPED, file(b"x\n"), link), b"x\n", b"", 3).text
    assert "deleted file mode 100644" in text
    assert "new file mode 120000" in text
    assert text.endswith("+to\n\\ No newline at end of file\n")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b"text", b"b\0n", "Binary files a/f and b/f differ\n"),
        (b"text", None, "File too large to compare: 4 bytes before, 2000000 bytes after\n"),
    ],
)
def test_what_is_not_compared_is_said(old: bytes, new: bytes | None, said: str) -> None:
    after: AnyEntry = file(new) if new else File(b"f", 0o644, 0, 0, 0, 0, (), 2_000_000, 0, b"", b"")
    found = patch_of(Change(b"f", ChangeKind.CHANGED, file(old), after, Aspect.CONTENT), old, new, 3)
    assert found.text.endswith(said)
    assert not found.count.shown


def test_a_mode_change_is_two_lines() -> None:
    change = Change(b"f", ChangeKind.CHANGED, file(b"x"), file(b"x", 0o755), Aspect.MODE)
    assert patch_of(change, b"x", b"x", 3).text == "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n"


def test_wholly_different_long_files_are_replaced_without_comparing() -> None:
    old = b"".join(b"old %d\n" % number for number in range(50_000))
    new = b"".join(b"new %d\n" % number for number in range(50_000))
    assert len(old) < TEXT_LIMIT
    change = Change(b"f", ChangeKind.CHANGED, file(old), file(new), Aspect.CONTENT)
    assert patch_of(change, old, new, 3).count.added == 50_000
