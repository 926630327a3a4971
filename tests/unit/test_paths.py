"""Paths in the workspace, and their escaped form."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from casnap.model.paths import ancestors, components, escape, is_valid_name, is_within, join, split, unescape

any_bytes = st.binary(max_size=40)
names = st.binary(min_size=1, max_size=12).filter(is_valid_name)
paths = st.lists(names, min_size=1, max_size=5).map(b"/".join)


@given(any_bytes)
@example(b"\xff\\xff")
@example("é\u200f".encode())
@example(b"a\nb\tc\rd\x1b[0m")
def test_escaped_text_leads_back_to_the_same_bytes(path: bytes) -> None:
    assert unescape(escape(path)) == path


@given(any_bytes)
def test_escaped_text_is_printable_utf_8(path: bytes) -> None:
    text = escape(path)
    assert text == "" or text.isprintable()
    text.encode("utf-8")


@given(any_bytes, any_bytes)
def test_different_paths_are_escaped_differently(one: bytes, other: bytes) -> None:
    assert (escape(one) == escape(other)) == (one == other)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (b"plain/path.txt", "plain/path.txt"),
        ("café/日本語".encode(), "café/日本語"),
        (b"caf\xe9", r"caf\xe9"),
        (b"new\nline\ttab\rreturn", r"new\nline\ttab\rreturn"),
        (b"back\\slash", r"back\\slash"),
        (rb"\xff", r"\\xff"),
        (b"\xff", r"\xff"),
        (b"esc\x1b[31m", r"esc\x1b[31m"),
        ("right-to-left\u202e".encode(), r"right-to-left\xe2\x80\xae"),
        (b"", ""),
    ],
)
def test_bytes_are_escaped_as_written_here(path: bytes, text: str) -> None:
    assert escape(path) == text


@pytest.mark.parametrize("text", ["\\", "a\\b", r"\x4", r"\xZZ", "end\\"])
def test_a_stray_backslash_is_no_escaped_path(text: str) -> None:
    with pytest.raises(ValueError, match="stray backslash"):
        unescape(text)


@given(paths, names)
def test_split_undoes_join(parent: bytes, name: bytes) -> None:
    assert split(join(parent, name)) == (parent, name)


@given(names)
def test_joining_to_the_root_adds_nothing(name: bytes) -> None:
    assert join(b"", name) == name
    assert split(name) == (b"", name)


@given(paths)
def test_components_make_up_the_path(path: bytes) -> None:
    assert b"/".join(components(path)) == path


@given(paths)
def test_the_ancestors_are_the_directories_up_to_the_root(path: bytes) -> None:
    expected, above = [], path
    while above:
        above = posixpath.dirname(above)
        expected.append(above)
    assert ancestors(path) == expected


def test_the_root_has_no_ancestors() -> None:
    assert ancestors(b"") == []


@given(paths)
def test_a_path_lies_within_each_of_its_ancestors(path: bytes) -> None:
    for directory in ancestors(path):
        assert is_within(path, directory)
        assert directory == b"" or not is_within(directory, path)


def test_a_common_beginning_is_not_within() -> None:
    assert is_within(b"src/a", b"src")
    assert is_within(b"src", b"src")
    assert not is_within(b"src2/a", b"src")
    assert not is_within(b"sr", b"src")


@pytest.mark.parametrize("name", [b"", b".", b"..", b"a/b", b"nul\0", b"x" * 256])
def test_what_no_directory_entry_can_be_called_is_no_name(name: bytes) -> None:
    assert not is_valid_name(name)


@pytest.mark.parametrize("name", [b"a", b"...", b"\xff", b"\n", b" ", b"-f", b"x" * 255])
def test_odd_names_are_names(name: bytes) -> None:
    assert is_valid_name(name)
