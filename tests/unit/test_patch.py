"""Patches against git: ``git apply`` turns the old file into the new one, and numbers agree with ``git diff``."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casnap.engine.diffing.patch import LINE_LIMIT, LINES_LIMIT, TEXT_LIMIT, FilePatch, Style, blob_id, patch_of
from casnap.engine.diffing.quoting import quote
from casnap.model.change import Aspect, Change, ChangeKind
from casnap.model.report import LineCount
from casnap.model.tree import AnyEntry, Device, Directory, Fifo, File, Symlink

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "x\r\n", "+\n", "-- \n"]), max_size=40).map("".join)
TEXTS = st.tuples(LINES, st.sampled_from(["", "", "end", "\x0cff"])).map("".join).map(str.encode)
ODD = [b"plain", b'q"uote', b"b\\s", b"new\nline", b"\xff", "ü".encode(), b" a ", b"a /b"]


def file(data: bytes, mode: int = 0o644) -> File:
    return File(b"f", mode, 0, 0, 0, 0, (), len(data), 0, data, b"")


def changed(old: AnyEntry, new: AnyEntry, aspects: Aspect = Aspect.CONTENT, path: bytes = b"f") -> Change:
    return Change(path, ChangeKind.CHANGED, old, new, aspects)


def edit(old: bytes, new: bytes, *, context: int = 3, binary: bool = False) -> FilePatch:
    return patch_of(changed(file(old), file(new)), old, new, Style(context, binary))


def applied(patch: bytes, before: bytes | None, name: bytes, place: Path) -> bytes | None:
    path = os.fsencode(place) + b"/" + name
    if before is not None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(os.fsdecode(path)).write_bytes(before)
    subprocess.run(["git", "apply", "--unsafe-paths", "--whitespace=nowarn", "-"], cwd=place, input=patch, check=True)
    return Path(os.fsdecode(path)).read_bytes() if os.path.lexists(path) else None


@settings(max_examples=50)
@given(old=TEXTS, new=TEXTS, context=st.integers(0, 4))
def test_git_applies_the_patch_of_a_changed_file(
    tmp_path_factory: pytest.TempPathFactory, old: bytes, new: bytes, context: int
) -> None:
    found = edit(old, new, context=max(context, 1))
    if old == new:
        assert found == FilePatch()
    else:
        assert applied(found.text, old, b"f", tmp_path_factory.mktemp("apply")) == new
        assert edit(old, new, context=context).count == found.count


@settings(max_examples=50)
@given(new=TEXTS, name=st.sampled_from(ODD))
def test_git_applies_the_patch_of_an_added_and_a_removed_file(
    tmp_path_factory: pytest.TempPathFactory, new: bytes, name: bytes
) -> None:
    place = tmp_path_factory.mktemp("apply")
    added = patch_of(Change(name, ChangeKind.ADDED, None, file(new)), b"", new, Style())
    assert applied(added.text, None, name, place) == new
    removed = patch_of(Change(name, ChangeKind.REMOVED, file(new), None), new, b"", Style())
    assert applied(removed.text, new, name, place) is None
    assert (added.count.added, added.count.removed) == (removed.count.removed, removed.count.added)


SOME = b"".join(b"%d\n" % number for number in range(30))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (SOME, SOME.replace(b"7\n", b"seven\n")),
        (b"", b"x\n" * 3 + b"no end"),
        (b"x", b"x\n"),
        (b"\0\n" * 9, b"\0\n" * 8),
        (bytes(range(256)) * 3, b"\0text"),
    ],
)
def test_a_patch_is_what_git_writes(old: bytes, new: bytes, tmp_path: Path) -> None:
    assert edit(old, new).text == git_diff(tmp_path, old, new)
    if b"\0" not in old:
        assert edit(old, new, binary=True).text == git_diff(tmp_path, old, new, "--binary")


def git_diff(place: Path, before: bytes, after: bytes, *options: str) -> bytes:
    """What git says about ``f``; the headings that it puts behind ``@@`` are no part of the format."""
    (place / "old").mkdir(exist_ok=True)
    (place / "new").mkdir(exist_ok=True)
    (place / "old" / "f").write_bytes(before)
    (place / "new" / "f").write_bytes(after)
    done = subprocess.run(
        ["git", "-c", "core.abbrev=7", "diff", "--no-index", *options, "old/f", "new/f"],
        cwd=place,
        capture_output=True,
        check=False,
    )
    lines = done.stdout.replace(b"a/old/f", b"a/f").replace(b"b/new/f", b"b/f").split(b"\n")
    return b"\n".join(line[: line.rindex(b"@@") + 2] if line.startswith(b"@@") else line for line in lines)


def test_a_file_that_became_a_link_is_a_removal_and_an_addition() -> None:
    link = Symlink(b"f", 0o777, 0, 0, 0, 0, (), b"to")
    found = patch_of(Change(b"f", ChangeKind.RETYPED, file(b"x\n"), link), b"x\n", b"", Style())
    assert found.text == (
        b"diff --git a/f b/f\ndeleted file mode 100644\nindex 587be6b..0000000\n"
        b"--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        b"diff --git a/f b/f\nnew file mode 120000\nindex 0000000..788636f\n"
        b"--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+to\n\\ No newline at end of file\n"
    )
    assert found.count == LineCount(1, 1)


def test_a_rename_names_both_paths_and_how_much_is_the_same() -> None:
    pure = Change(b"new name", ChangeKind.RENAMED, file(b"x"), file(b"x", 0o755), Aspect.MODE, b"old\n", 100)
    assert patch_of(pure, b"", b"", Style()).text == (
        b'diff --git "a/old\\n" b/new name\nold mode 100644\nnew mode 100755\nsimilarity index 100%\n'
        b'rename from "old\\n"\nrename to new name\n'
    )
    edited = Change(b"b c", ChangeKind.RENAMED, file(b"x\n"), file(b"x\ny\n"), Aspect.CONTENT, b"a", 50)
    assert patch_of(edited, b"x\n", b"x\ny\n", Style()).text == (
        b"diff --git a/a b/b c\nsimilarity index 50%\nrename from a\nrename to b c\n"
        b"index 587be6b..b77b4eb 100644\n--- a/a\n+++ b/b c\t\n@@ -1 +1,2 @@\n x\n+y\n"
    )


@pytest.mark.parametrize(
    "change",
    [
        Change(b"d", ChangeKind.ADDED, None, Directory(b"d", 0o755, 0, 0, 0, 0, (), b"", b"")),
        Change(b"p", ChangeKind.REMOVED, Fifo(b"p", 0o644, 0, 0, 0, 0, ()), None),
        Change(b"p", ChangeKind.ADDED, None, Device(b"p", 0o644, 0, 0, 0, 0, (), True, 1, 2)),
        changed(file(b"x"), file(b"x", 0o600), Aspect.MODE | Aspect.OWNER | Aspect.XATTRS | Aspect.LINKS),
    ],
)
def test_what_git_has_no_words_for_is_not_in_the_patch(change: Change) -> None:
    assert patch_of(change, b"", b"", Style()) == FilePatch()


def test_a_directory_that_became_a_file_is_an_addition() -> None:
    directory = Directory(b"f", 0o755, 0, 0, 0, 0, (), b"", b"")
    text = patch_of(Change(b"f", ChangeKind.RETYPED, directory, file(b"x\n")), b"", b"x\n", Style()).text
    assert text.startswith(b"diff --git a/f b/f\nnew file mode 100644\nindex 0000000..587be6b\n")
    assert b"deleted" not in text


def test_a_mode_change_is_two_lines() -> None:
    found = patch_of(changed(file(b"x"), file(b"x", 0o755), Aspect.MODE), b"x", b"x", Style())
    assert found.text == b"diff --git a/f b/f\nold mode 100644\nnew mode 100755\n"


def test_binary_files_are_mentioned_and_with_binary_exact(tmp_path: Path) -> None:
    found = edit(b"text", b"b\0n")
    assert found == FilePatch(
        b"diff --git a/f b/f\nindex f3a3485..5d17138 100644\nBinary files a/f and b/f differ\n", LineCount(shown=False)
    )
    exact = edit(b"text", b"b\0n", binary=True)
    assert applied(exact.text, b"text", b"f", tmp_path) == b"b\0n"
    assert exact.count == LineCount(shown=False)


@pytest.mark.parametrize(
    "large",
    [b"a" * (LINE_LIMIT + 1), b"\n" * (LINES_LIMIT + 1), (b"a" * 1023 + b"\n") * (TEXT_LIMIT // 1024) + b"\n"],
    ids=["one line", "many lines", "many bytes"],
)
def test_a_large_file_is_cut_unless_an_exact_patch_is_wanted(large: bytes, tmp_path: Path) -> None:
    found = edit(b"small", large)
    said = b"diff --git a/f b/f\nFiles a/f and b/f are too large to compare and differ\n"
    assert found == FilePatch(said, LineCount(shown=False), cut=True)
    with pytest.raises(subprocess.CalledProcessError):
        applied(found.text, b"small", b"f", tmp_path)
    exact = edit(b"small", large, binary=True)
    assert not exact.cut
    assert applied(exact.text, b"small", b"f", tmp_path) == large


def test_what_just_fits_is_compared() -> None:
    assert edit(b"small", b"a" * LINE_LIMIT).count == LineCount(1, 1)


def test_an_id_is_the_one_that_git_gives() -> None:
    done = subprocess.run(["git", "hash-object", "--stdin"], input=b"some\0bytes", capture_output=True, check=True)
    assert blob_id(b"some\0bytes") == done.stdout.decode().strip()


@given(path=st.binary(min_size=1, max_size=12).filter(lambda path: b"\0" not in path))
def test_a_quoted_path_can_be_read_back(path: bytes) -> None:
    text = quote(path)
    assert text.isprintable()
    if text.startswith('"'):
        assert text[1:-1].encode().decode("unicode_escape").encode("latin-1") == path
    else:
        assert text.encode() == path
