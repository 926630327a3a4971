"""Ignore patterns line by line: each expectation is written down here, and git is asked whether it agrees."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from casnap.workspace.patterns import Patterns

Row = tuple[bytes, bytes, bool | None]
"""An ignore file, a path (with a slash at the end: a directory), and the verdict on that path."""

IGNORES, INCLUDES, SAYS_NOTHING = True, False, None

NAMES: list[Row] = [
    (b"build\n", b"build", IGNORES),
    (b"build\n", b"a/b/build", IGNORES),
    (b"build\n", b"build/", IGNORES),
    (b"build\n", b"build.x", SAYS_NOTHING),
    (b"build\n", b"xbuild", SAYS_NOTHING),
    (b"build\n", b"Build", SAYS_NOTHING),
    (b"build", b"build", IGNORES),
    (b"a\nb\nc", b"c", IGNORES),
    (b"*.log\n", b"x.log", IGNORES),
    (b"*.log\n", b".log", IGNORES),
    (b"*.log\n", b"d/x.log", IGNORES),
    (b"*.log\n", b"x.log.1", SAYS_NOTHING),
    (b"*\n", b"anything", IGNORES),
    (b"*\n", b".hidden", IGNORES),
    (b"**\n", b"a/b", IGNORES),
    (b"***\n", b"a", IGNORES),
    (b"f?o\n", b"foo", IGNORES),
    (b"f?o\n", b"fo", SAYS_NOTHING),
    (b"f*o\n", b"fo", IGNORES),
    (b"f*o\n", b"f/o", SAYS_NOTHING),
    (b"a*b*c\n", b"abcbc", IGNORES),
    (b"a*b*c\n", b"acb", SAYS_NOTHING),
    (b"a**c\n", b"abbc", IGNORES),
    (b"*a\n", b"ba", IGNORES),
    (b"x*\n", b"x\ny", IGNORES),
    (b"foo\x00bar\n", b"foo", IGNORES),
    (b"foo  \x00bar\n", b"foo", IGNORES),
    (b"\x00foo\n", b"foo", SAYS_NOTHING),
    (b"caf\xe9\n", b"caf\xe9", IGNORES),
    (b"caf?\n", b"caf\xe9", IGNORES),
    (b"caf?\n", "café".encode(), SAYS_NOTHING),
    (b"\x01\x7f\n", b"\x01\x7f", IGNORES),
    (b".gitignore\n", b".gitignore", IGNORES),
]

ORDER: list[Row] = [
    (b"*.log\n!x.log\n", b"x.log", INCLUDES),
    (b"*.log\n!x.log\n", b"y.log", IGNORES),
    (b"!x.log\n*.log\n", b"x.log", IGNORES),
    (b"a\n!a\na\n", b"a", IGNORES),
    (b"a\n!a\na\n!a\n", b"a", INCLUDES),
    (b"!a\n", b"a", INCLUDES),
    (b"build\n!/foo/build\n", b"foo/build", INCLUDES),
    (b"build\n!/foo/build\n", b"bar/build", IGNORES),
    (b"build\n!/foo/build\n", b"foo/bar/build", IGNORES),
    (b"d/\n!d/keep\n", b"d/", IGNORES),
    (b"d/*\n!d/keep\n", b"d/keep", INCLUDES),
    (b"d/*\n!d/keep\n", b"d/other", IGNORES),
    (b"d/*\n!d/keep\n", b"d/", SAYS_NOTHING),
    (b"X/**\n!X/**/\n", b"X/d/", INCLUDES),
    (b"X/**\n!X/**/\n", b"X/d/e/", INCLUDES),
    (b"X/**\n!X/**/\n", b"X/d/e", IGNORES),
    (b"X/**\n!X/**/\n", b"X/", SAYS_NOTHING),
    (b"/a/*\n!b\n/a/b\n", b"a/b", IGNORES),
    (b"*\n!*/\n!*.c\n", b"a.c", INCLUDES),
    (b"*\n!*/\n!*.c\n", b"src/", INCLUDES),
    (b"*\n!*/\n!*.c\n", b"src/a.h", IGNORES),
    (b"*.[ch]\n!/a.*\nb.c\n", b"a.c", INCLUDES),
    (b"*.[ch]\n!/a.*\nb.c\n", b"b.c", IGNORES),
    (b"/a\n!a\n", b"a", INCLUDES),
    (b"/a/b\n!*b\n", b"a/b", INCLUDES),
    (b"!/a/b\nb\n", b"a/b", IGNORES),
    (b"!!a\n", b"!a", INCLUDES),
    (b"!\n", b"!", SAYS_NOTHING),
    (b"!#a\n", b"#a", INCLUDES),
]

ANCHORS: list[Row] = [
    (b"/anchored\n", b"anchored", IGNORES),
    (b"/anchored\n", b"x/anchored", SAYS_NOTHING),
    (b"/*.c\n", b"a.c", IGNORES),
    (b"/*.c\n", b"x/a.c", SAYS_NOTHING),
    (b"a/b\n", b"a/b", IGNORES),
    (b"a/b\n", b"x/a/b", SAYS_NOTHING),
    (b"a/b\n", b"a/b/", IGNORES),
    (b"/a/b\n", b"a/b", IGNORES),
    (b"//a\n", b"a", SAYS_NOTHING),
    (b"a//b\n", b"a/b", SAYS_NOTHING),
    (b"/\n", b"a", SAYS_NOTHING),
    (b"/\n", b"a/", SAYS_NOTHING),
    (b"//\n", b"a/", SAYS_NOTHING),
    (b"d/\n", b"x/d/", IGNORES),
    (b"d/\n", b"d", SAYS_NOTHING),
    (b"/d/\n", b"x/d/", SAYS_NOTHING),
    (b"d//\n", b"d/", SAYS_NOTHING),
    (b"d/e/\n", b"d/e/", IGNORES),
    (b"d/e/\n", b"d/e", SAYS_NOTHING),
    (b"a/*\n", b"a/b/c", SAYS_NOTHING),
    (b"a/*/c\n", b"a/b/c", IGNORES),
    (b"a/*/c\n", b"a/b/b/c", SAYS_NOTHING),
    (b"a/?\n", b"a/b", IGNORES),
    (b"a?b/\n", b"a/b/", SAYS_NOTHING),
    (b"x/a[/]b\n", b"x/a/b", SAYS_NOTHING),
    (b"x/a[!b]b\n", b"x/a/b", SAYS_NOTHING),
    (b"a\\/b\n", b"a/b", IGNORES),
    (b"\\/a\n", b"a", SAYS_NOTHING),
]

STARS: list[Row] = [
    (b"**/bar\n", b"bar", IGNORES),
    (b"**/bar\n", b"a/b/bar", IGNORES),
    (b"**/bar\n", b"a/xbar", SAYS_NOTHING),
    (b"**/a/b\n", b"x/y/a/b", IGNORES),
    (b"bar/**\n", b"bar/", SAYS_NOTHING),
    (b"bar/**\n", b"bar/a/b", IGNORES),
    (b"bar/**\n", b"x/bar/a", SAYS_NOTHING),
    (b"foo/**/bar\n", b"foo/bar", IGNORES),
    (b"foo/**/bar\n", b"foo/a/b/bar", IGNORES),
    (b"foo/**/bar\n", b"foobar", SAYS_NOTHING),
    (b"foo/**/bar\n", b"foo/abar", SAYS_NOTHING),
    (b"foo/**/**/bar\n", b"foo/bar", IGNORES),
    (b"foo/**/*\n", b"foo/a/b", IGNORES),
    (b"foo/**/*\n", b"foo/a", IGNORES),
    (b"**/a*/**/c\n", b"x/ab/y/c", IGNORES),
    (b"**/a*/**/c\n", b"x/b/y/c", SAYS_NOTHING),
    (b"**/a/**/b/**/c\n", b"a/b/a/c/b/c", IGNORES),
    (b"**/a/**/b/**/c\n", b"b/a/c/b", SAYS_NOTHING),
    (b"x/**y/z\n", b"x/a/y/z", SAYS_NOTHING),
    (b"x/**y/z\n", b"x/ay/z", IGNORES),
    (b"x/y**/z\n", b"x/ya/z", IGNORES),
    (b"x/y**/z\n", b"x/y/a/z", IGNORES),
    (b"x/y**/z\n", b"x/yz", IGNORES),
    (b"x/[y]**/z\n", b"x/ya/z", IGNORES),
    (b"x/[y]**/z\n", b"x/y/a/z", SAYS_NOTHING),
    (b"x/y**\n", b"x/ya/b", IGNORES),
    (b"x/*y**\n", b"x/ya/b", SAYS_NOTHING),
    (b"x/***/z\n", b"x/a/b/z", IGNORES),
    (b"x/***/z\n", b"x/z", IGNORES),
    (b"**\\/z\n", b"a/b/z", IGNORES),
    (b"**\\/z\n", b"z", SAYS_NOTHING),
    (b"**//\n", b"a/", SAYS_NOTHING),
    (b"/a**//\n", b"a/", IGNORES),
    (b"**/\n", b"a/b/", IGNORES),
    (b"**/\n", b"a/b", SAYS_NOTHING),
]

LINES: list[Row] = [
    (b"#c\n", b"#c", SAYS_NOTHING),
    (b" #c\n", b" #c", IGNORES),
    (b"\\#x\n", b"#x", IGNORES),
    (b"\\!x\n", b"!x", IGNORES),
    (b"a#b\n", b"a#b", IGNORES),
    (b"a\\ \n", b"a ", IGNORES),
    (b"a\\ \n", b"a", SAYS_NOTHING),
    (b"a \n", b"a", IGNORES),
    (b"a   \n", b"a", IGNORES),
    (b"a \n", b"a ", SAYS_NOTHING),
    (b"a\\  \n", b"a ", IGNORES),
    (b"a\\\\ \n", b"a\\", IGNORES),
    (b"a\\\\\\ \n", b"a\\ ", IGNORES),
    (b"a\\ \\ \n", b"a  ", IGNORES),
    (b"a \\ \n", b"a  ", IGNORES),
    (b" a\n", b" a", IGNORES),
    (b" a\n", b"a", SAYS_NOTHING),
    (b"a b \n", b"a b", IGNORES),
    (b"   \n", b"   ", SAYS_NOTHING),
    (b"a\t\n", b"a", SAYS_NOTHING),
    (b"a\t\n", b"a\t", IGNORES),
    (b"d/ \n", b"d/", IGNORES),
    (b"! \n", b" ", SAYS_NOTHING),
    (b"a\r\n", b"a", IGNORES),
    (b"a\r\n!b\r\n", b"b", INCLUDES),
    (b"a\r", b"a", IGNORES),
    (b"a\r\r\n", b"a\r", IGNORES),
    (b"a \r\n", b"a", IGNORES),
    (b"a\r \n", b"a\r", IGNORES),
    (b"a\rb\n", b"a\rb", IGNORES),
    (b"\r\n", b"\r", SAYS_NOTHING),
    (b"d/\r\n", b"d/", IGNORES),
    (b"\xef\xbb\xbfa\n", b"a", IGNORES),
    (b"\xef\xbb\xbf#a\n", b"#a", SAYS_NOTHING),
    (b"b\n\xef\xbb\xbfa\n", b"a", SAYS_NOTHING),
    (b"\xef\xbb\xbf\xef\xbb\xbfa\n", b"\xef\xbb\xbfa", IGNORES),
    (b"\n\n\na\n", b"a", IGNORES),
    (b"", b"a", SAYS_NOTHING),
    (b"a\\", b"a", SAYS_NOTHING),
    (b"a\\\n", b"a\\", SAYS_NOTHING),
    (b"a\\\\\n", b"a\\", IGNORES),
    (b"a\\/\n", b"a\\/", SAYS_NOTHING),
    (b"\\a\\b\n", b"ab", IGNORES),
    (b"\\*\n", b"*", IGNORES),
    (b"\\*\n", b"x", SAYS_NOTHING),
    (b"\\***\n", b"*x", IGNORES),
]

BRACKETS: list[Row] = [
    (b"[a-c].t\n", b"b.t", IGNORES),
    (b"[a-c].t\n", b"d.t", SAYS_NOTHING),
    (b"*.[oa]\n", b"x.o", IGNORES),
    (b"*.[oa]\n", b"x.c", SAYS_NOTHING),
    (b"[!a]\n", b"b", IGNORES),
    (b"[!a]\n", b"a", SAYS_NOTHING),
    (b"[^a]\n", b"a", SAYS_NOTHING),
    (b"[^a]\n", b"^", IGNORES),
    (b"[a^]\n", b"^", IGNORES),
    (b"[a!]\n", b"!", IGNORES),
    (b"[!!]\n", b"!", SAYS_NOTHING),
    (b"[!^]\n", b"^", SAYS_NOTHING),
    (b"[]a]\n", b"]", IGNORES),
    (b"[!]a]\n", b"]", SAYS_NOTHING),
    (b"[!]a]\n", b"b", IGNORES),
    (b"[]-a]\n", b"_", IGNORES),
    (b"[a-]\n", b"-", IGNORES),
    (b"[-a]\n", b"-", IGNORES),
    (b"[--0]\n", b".x", SAYS_NOTHING),
    (b"[--0]x\n", b".x", IGNORES),
    (b"[a-c-e]\n", b"d", SAYS_NOTHING),
    (b"[a-c-e]\n", b"-", IGNORES),
    (b"[c-a]\n", b"b", SAYS_NOTHING),
    (b"[!c-a]\n", b"b", IGNORES),
    (b"[\\]]\n", b"]", IGNORES),
    (b"[\\a-\\c]\n", b"b", IGNORES),
    (b"[\\\\]\n", b"\\", IGNORES),
    (b"[*]\n", b"*", IGNORES),
    (b"[*]\n", b"a", SAYS_NOTHING),
    (b"[\x80-\xff]\n", b"\xe9", IGNORES),
    (b"[!a]\n", b"\xe9", IGNORES),
    (b"[a\n", b"[a", SAYS_NOTHING),
    (b"[\n", b"[", SAYS_NOTHING),
    (b"[]\n", b"[]", SAYS_NOTHING),
    (b"[!]\n", b"[!]", SAYS_NOTHING),
    (b"x[a\\\n", b"xa", SAYS_NOTHING),
    (b"[a-\\\n", b"a", SAYS_NOTHING),
    (b"*[\n", b"a[", SAYS_NOTHING),
    (b"\\[x\\]\n", b"[x]", IGNORES),
    (b"[x]\n", b"[x]", SAYS_NOTHING),
    (b"[[:alpha:]]\n", b"q", IGNORES),
    (b"[[:alpha:]]\n", b"7", SAYS_NOTHING),
    (b"[![:alpha:]]\n", b"7", IGNORES),
    (b"[[:alpha:][:digit:]_]\n", b"_", IGNORES),
    (b"[[:digit:]-z]\n", b"-", IGNORES),
    (b"[[:digit:]-z]\n", b"y", SAYS_NOTHING),
    (b"[[:nonsense:]]\n", b"n", SAYS_NOTHING),
    (b"[[:nonsense:]a]\n", b"a", SAYS_NOTHING),
    (b"[[::]]\n", b":", SAYS_NOTHING),
    (b"[[:ALPHA:]]\n", b"a", SAYS_NOTHING),
    (b"[[:]\n", b":", IGNORES),
    (b"[[:a]\n", b"[", IGNORES),
    (b"[[:alpha:]\n", b"a", SAYS_NOTHING),
    (b"[[:a]]\n", b"a]", IGNORES),
    (b"[a[:x]b\n", b"ab", IGNORES),
    (b"[[.a.]]\n", b"a]", IGNORES),
    (b"[+-[:alpha:]]\n", b"a]", IGNORES),
]

LONG: list[Row] = [
    (b"*a" * 100 + b"*b\n", b"a" * 250, SAYS_NOTHING),
    (b"*a" * 100 + b"*b\n", b"a" * 250 + b"b", IGNORES),
    (b"?" * 250 + b"\n", b"x" * 250, IGNORES),
    (b"?" * 250 + b"\n", b"x" * 249, SAYS_NOTHING),
    (b"d/" + b"[ab]" * 100 + b"/" + b"?" * 200 + b"\n", b"d/" + b"ab" * 50 + b"/" + b"x" * 200, IGNORES),
    (b"d/" + b"[ab]" * 100 + b"/" + b"?" * 200 + b"\n", b"d/" + b"ac" * 50 + b"/" + b"x" * 200, SAYS_NOTHING),
]

TABLES = {
    "names": NAMES,
    "order": ORDER,
    "anchors": ANCHORS,
    "stars": STARS,
    "lines": LINES,
    "brackets": BRACKETS,
    "long": LONG,
}

# Several of the patterns below take git 2.39 exponential time with a text that they nearly match.
HARD: list[Row] = [
    (b"/" + b"*a" * 500 + b"*b", b"a" * 2000, SAYS_NOTHING),
    (b"/" + b"*a" * 500 + b"*b", b"a" * 2000 + b"b", IGNORES),
    (b"**/a*" * 200 + b"/b", b"/".join([b"aaa"] * 400), SAYS_NOTHING),
    (b"/".join([b"**", b"a*a"] * 100) + b"/b", b"/".join([b"aaa"] * 400) + b"/b", IGNORES),
    (b"x/**" * 200 + b"/y", b"x/" * 400 + b"z", SAYS_NOTHING),
    (b"[" * 100_000, b"[", SAYS_NOTHING),
    (b"[" + b"[:x" * 100_000 + b"]", b"x", IGNORES),
    (b"[" + b"\x01-\xff" * 50_000 + b"]", b"x", IGNORES),
    (b"*/" * 20_000 + b"x", b"a/x", SAYS_NOTHING),
    (b"**/" * 20_000 + b"x", b"a/x", IGNORES),
    (b"*" * 1_000_000 + b"x", b"ax", IGNORES),
    (b"a" + b" " * 1_000_000 + b"b", b"a", SAYS_NOTHING),
    (b"\\" * 200_000 + b" ", b"a", SAYS_NOTHING),
    (b"a\n!b\n" * 5_000, b"a", IGNORES),
    (b"\n".join(b"*%d*" % number for number in range(10_000, 11_500)) + b"\n!*11499*", b"x11499y", INCLUDES),
    (b"\n".join(b"*%d*" % number for number in range(10_000, 11_500)) + b"\n!*11499*", b"x11498y", IGNORES),
]

CLASSES = ("alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "xdigit")
ALL_BYTES = [byte for byte in range(1, 256) if byte != ord("/")]


def verdict(data: bytes, path: bytes) -> bool | None:
    return Patterns.parse(data).verdict(path.removesuffix(b"/"), is_directory=path.endswith(b"/"))


def below_root(data: bytes, path: bytes) -> bool | None:
    """The verdict as git tells it, for which what is in an ignored directory is ignored."""
    parts = path.removesuffix(b"/").split(b"/")
    directories = (b"/".join(parts[:depth]) + b"/" for depth in range(1, len(parts)))
    return IGNORES if any(verdict(data, directory) for directory in directories) else verdict(data, path)


def ask_git(where: Path, questions: list[tuple[bytes, bytes]]) -> list[bool | None]:
    """What git says on the path in each (ignore file, path), all of them in one repository."""
    root = os.fsencode(where)
    environment = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", "init", "-q", "--template=", root], check=True, env=environment)
    bases: dict[object, bytes] = {}
    asked = []
    for number, (data, path) in enumerate(questions):
        base = bases.setdefault(number if b"/" in path else data, b"%d" % number)
        asked.append(base + b"/" + path.removesuffix(b"/"))
        if base == b"%d" % number:
            directories = path.rpartition(b"/")[0]
            os.makedirs(os.path.join(root, base, directories))
            with open(os.path.join(root, base, b".gitignore"), "wb") as file:
                file.write(data)
    command = [
        "git",
        "-c",
        f"core.excludesFile={os.devnull}",
        "check-ignore",
        "--stdin",
        "-z",
        "-v",
        "-n",
        "--no-index",
    ]
    given = b"".join(path + b"\0" for path in asked)
    done = subprocess.run(command, cwd=root, env=environment, input=given, capture_output=True, check=False)
    fields = done.stdout.split(b"\0")[:-1]
    assert fields[3::4] == asked, done.stderr
    answers = zip(fields[0::4], fields[2::4], strict=True)
    return [not pattern.startswith(b"!") if source else SAYS_NOTHING for source, pattern in answers]


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_the_last_pattern_that_matches_decides(table: list[Row]) -> None:
    verdicts = [(data, path, verdict(data, path)) for data, path, _ in table]
    assert verdicts == table


def test_git_agrees_with_each_row_of_the_tables(tmp_path: Path) -> None:
    questions = [(data, path) for table in TABLES.values() for data, path, _ in table]
    ours = [(*question, below_root(*question)) for question in questions]
    gits = [(*question, answer) for question, answer in zip(questions, ask_git(tmp_path, questions), strict=True)]
    assert ours == gits


def test_each_character_class_has_the_bytes_that_it_has_for_git(tmp_path: Path) -> None:
    questions = [(b"x[[:%s:]]" % name.encode(), b"x%c" % byte) for name in CLASSES for byte in ALL_BYTES]
    files = {data: Patterns.parse(data) for data, _ in questions}
    ours = [files[data].verdict(path, is_directory=False) for data, path in questions]
    assert ours == ask_git(tmp_path, questions)


def test_files_made_to_be_slow_are_decided_like_any_other() -> None:
    assert [verdict(data, path) for data, path, _ in HARD] == [expected for *_, expected in HARD]


def test_a_pattern_longer_than_a_name_matches_a_text_that_is_as_long() -> None:
    patterns = Patterns.parse(b"a\n" + b"?" * 300 + b"[x]\n!" + b"[y]" * 400)
    assert patterns.verdict(b"y" * 300 + b"x", is_directory=False) is True
    assert patterns.verdict(b"y" * 301, is_directory=False) is None
    assert patterns.verdict(b"y" * 400, is_directory=False) is False


def test_a_file_has_patterns_if_one_of_them_can_match() -> None:
    nothing = [b"", b"\n\r\n", b"# comment", b"/\n!\n", b"[\n", b"a\\", b"   ", b"\xef\xbb\xbf"]
    assert [data for data in nothing if Patterns.parse(data)] == []
    something = [b"a", b"d/", b"!a", b"*", b"/a", b"[a]", b"a/**", b"?" * 1000]
    assert [data for data in something if not Patterns.parse(data)] == []


def test_a_verdict_is_the_same_however_often_and_in_whatever_order_it_is_asked_for() -> None:
    patterns = Patterns.parse(b"*.o\n!/keep.o\nlib/\n!/src/lib\n")
    expected = {
        (b"keep.o", False): False,
        (b"a/keep.o", False): True,
        (b"lib", True): True,
        (b"lib", False): None,
        (b"src/lib", True): False,
        (b"src/lib", False): False,
        (b"a/src/lib", True): True,
    }
    for asked in [*expected, *reversed(expected)]:
        assert patterns.verdict(asked[0], is_directory=asked[1]) is expected[asked], asked


def test_more_names_than_are_remembered_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("casnap.workspace.patterns._REMEMBERED", 3)
    patterns = Patterns.parse(b"*[02468]\n")
    verdicts = [patterns.verdict(b"%d" % (number % 10), is_directory=False) for number in range(40)]
    assert verdicts == [True, None] * 20
