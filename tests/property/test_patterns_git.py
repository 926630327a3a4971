"""Laws of ignore patterns, and random trees in which git and the patterns leave out the same files."""

from __future__ import annotations

import itertools
import os
import random
import re
import shutil
import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from casnap.model.policy import Selection
from casnap.model.tree import Directory, Omitted
from casnap.workspace.globs import translate
from casnap.workspace.patterns import Patterns
from support.scanning import MemoryStore, entries_of, take

REPOSITORIES = int(os.environ.get("CASNAP_IGNORE_REPOS", "60"))
"""How many random repositories are compared; the promise is held by 2,000 (CASNAP_IGNORE_REPOS)."""

NAMES = (
    *(
        b"a",
        b"b",
        b"c",
        b"ab",
        b"abc",
        b"foo",
        b"bar",
        b"build",
        b"dist",
        b"x.log",
        b"y.log",
        b"a.o",
        b"b.pyc",
        b".env",
    ),
    *(b"a b", b"tr ", b"tr  ", b" lead", b"tab\t", b"cr\r", b"new\nline", b"[x]", b"!bang", b"#hash", b"\\", b"back\\"),
    *(
        b"caf\xc3\xa9",
        b"latin\xe9",
        b"\xff",
        b"\x01\x7f",
        b"*",
        b"?",
        b"**",
        b"a]",
        b"-",
        b"^",
        b"Foo",
        b"\xef\xbb\xbfbom",
    ),
)
LINES = (
    *(b"*.log", b"!x.log", b"build/", b"/build", b"foo", b"foo/", b"**/bar", b"bar/**", b"a/**/b", b"/a/*", b"!/a/b"),
    *(
        b"[ab]",
        b"[!a]",
        b"f?o",
        b"!foo/",
        b"\\!bang",
        b"\\#hash",
        b"#hash",
        b"!bang",
        b"tr\\ ",
        b"tr\\ \\ ",
        b"tr ",
        b"",
    ),
    *(
        b"dist/*",
        b"!dist/a",
        b"a/b",
        b"**",
        b"!*/",
        b"*",
        b"!.gitignore",
        b"/foo/bar",
        b"**/foo/**",
        b"\\[x\\]",
        b"[x]",
    ),
    *(
        b"*/b",
        b"x.log  ",
        b"build/**/a",
        b"/**/a",
        b"a/**",
        b"!a/**/b",
        b"!build/",
        b"/*",
        b"!/a",
        b"!/foo/",
        b"a*",
        b"*c",
    ),
    *(
        b"caf\xc3\xa9",
        b"latin?",
        b"\xff",
        b"[\x80-\xff]*",
        b"[[:upper:]]*",
        b"*[[:space:]]",
        b"*[![:alnum:]]*",
        b"\\\\",
    ),
    *(
        b"back\\\\",
        b"back\\",
        b"[",
        b"*[",
        b"[[:nope:]]",
        b"/",
        b"!",
        b"\\*",
        b"\\?",
        b"\\*\\*",
        b"?",
        b"a\\]",
        b"[]a-]",
        b"***",
    ),
    *(
        b"a**/b",
        b"/a**",
        b"a**b",
        b"**a",
        b"a/**b/c",
        b"**/",
        b"/**/",
        b"**/**",
        b"*/*",
        b"*/*/",
        b"**/a/**/b",
        b"**\\/a",
        b"//",
    ),
)
PIECES = (
    *(
        b"a",
        b"b",
        b"c",
        b"o",
        b"*",
        b"**",
        b"?",
        b"/",
        b"**/",
        b"/**",
        b"/**/",
        b"*/",
        b"[ab]",
        b"[!a]",
        b"[^b-c]",
        b".",
    ),
    *(b"\\a", b"\\", b"[", b"]", b"!", b"#", b" ", b"\\ ", b"\t", b"-", b"[[:alpha:]]", b"\xff", b"\\/", b"foo", b"\0"),
)
ENDS = (b"\n", b"\n", b"\n", b"\r\n", b" \n", b"\n\n", b"\n#\n")

# What single-byte parts of a glob match among the bytes of ALPHABET.
ALPHABET = b"ab.*/"
SINGLE = {
    b"a": b"a",
    b"b": b"b",
    b".": b".",
    b"?": b"ab.*",
    b"[ab]": b"ab",
    b"[!a]": b"b.*",
    b"[*-/]": b".*",
    b"\\*": b"*",
}
STAR, DIRECTORIES, ANYTHING = b"*", b"**/", b"**"


def random_line(rng: random.Random, paths: list[bytes]) -> bytes:
    """A line of an ignore file: a known one, a path of the tree made vague, or nonsense."""
    fate = rng.random()
    if fate < 0.4:
        return rng.choice(LINES)
    if fate < 0.6 or not paths:
        return b"".join(rng.choice(PIECES) for _ in range(rng.randint(1, 6)))
    parts = [vague(rng, part) for part in rng.choice(paths).split(b"/")]
    if rng.random() < 0.3:
        parts[rng.randrange(len(parts))] = b"**"
    marks = rng.choice((b"", b"", b"", b"!")), rng.choice((b"", b"/", b"**/")), rng.choice((b"", b"", b"/", b"/**"))
    return marks[0] + marks[1] + b"/".join(parts[rng.randrange(len(parts)) :]) + marks[2]


def vague(rng: random.Random, name: bytes) -> bytes:
    """A pattern that matches ``name``, most of the time."""
    fate, at = rng.random(), rng.randrange(len(name))
    before, byte, after = name[:at], name[at : at + 1], name[at + 1 :]
    if fate < 0.3:
        return re.sub(rb"([*?\[\]\\!# ])", rb"\\\1", name)
    if fate < 0.5:
        return before + b"*" + (after if rng.random() < 0.7 else b"")
    if fate < 0.8:
        return (
            before + rng.choice((b"?", b"[%s]", b"[!%s]", b"[!q%s]", b"[a-%s]", b"\\%s")).replace(b"%s", byte) + after
        )
    return name


def make_tree(base: bytes, rng: random.Random) -> None:
    """Directories, files and links with names that matter to patterns, and ignore files in some directories."""
    os.mkdir(base)
    directories, taken = [b""], set[bytes]()
    for number in range(rng.randint(15, 50)):
        path = rng.choice(directories) + rng.choice(NAMES)
        if path in taken:
            continue
        taken.add(path)
        kind = rng.random() if number > 8 else rng.random() / 3
        if kind < 0.3:
            os.mkdir(base + b"/" + path)
            directories.append(path + b"/")
        elif kind < 0.35:
            os.symlink(b".", base + b"/" + path)
        else:
            os.close(os.open(base + b"/" + path, os.O_CREAT | os.O_EXCL))
    for directory in {b"", *rng.sample(directories, min(3, len(directories)))}:
        below = [path.removeprefix(directory) for path in sorted(taken) if path.startswith(directory)]
        lines = [random_line(rng, below) + rng.choice(ENDS) for _ in range(rng.randint(1, 6))]
        data = rng.choice((b"", b"", b"", b"\xef\xbb\xbf")) + b"".join(lines)
        with open(base + b"/" + directory + b".gitignore", "wb") as file:
            file.write(data[: rng.choice((len(data), -1))])


def kept(root: bytes) -> set[bytes]:
    """What is no directory and in a checkpoint of ``root``."""
    store = MemoryStore()
    scan = take(root, store, selection=Selection(use_gitignore=True))
    captured = entries_of(store, scan.root).items()
    return {path for path, entry in captured if not isinstance(entry, Directory | Omitted)}


def kept_by_git(root: bytes, *, exclude: bytes) -> set[bytes]:
    """What git would add in a new repository at ``root``; ``exclude`` is its own ignore file."""
    environment = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", "init", "-q", "--template=", root], check=True, env=environment)
    os.makedirs(root + b"/.git/info", exist_ok=True)
    with open(root + b"/.git/info/exclude", "wb") as file:
        file.write(exclude)
    command = ["git", "-c", f"core.excludesFile={os.devnull}", "ls-files", "-z", "-o", "--exclude-standard"]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, check=True)
    return set(done.stdout.split(b"\0")[:-1])


def test_scans_and_git_leave_out_the_same_files(tmp_path: Path) -> None:
    ignored = 0
    for seed in range(REPOSITORIES):
        root, rng = os.fsencode(tmp_path / f"{seed}"), random.Random(seed)
        make_tree(root, rng)
        theirs = kept_by_git(root, exclude=rng.choice((b"", b"*.pyc\nbuild\n!/foo/**\n", b"/[a-c]*/\n")))
        ours = {path for path in kept(root) if not path.startswith(b".git/")}
        assert ours ^ theirs == set(), f"repository {seed}"
        ignored += sum(len(files) for _, _, files in os.walk(root)) - len(ours)
        shutil.rmtree(root)
    assert ignored > REPOSITORIES  # or they ask nothing


COMPONENTS = st.just([ANYTHING]) | st.lists(st.sampled_from([*SINGLE, STAR, STAR]), min_size=1, max_size=6).filter(
    lambda parts: (STAR, STAR) not in itertools.pairwise(parts)
)
GLOBS = st.lists(COMPONENTS, min_size=1, max_size=6)
TEXTS = st.lists(st.sampled_from(list(ALPHABET)), max_size=12).map(bytes)


def naive(components: list[list[bytes]], text: bytes) -> bool:
    """Whether a glob matches: all places are followed up to which its parts so far can match."""
    reached = {0}
    for number, component in enumerate(components):
        last = number == len(components) - 1
        for part in component:
            reached = step(DIRECTORIES if part == ANYTHING and not last else part, reached, text)
        if component != [ANYTHING] and not last:
            reached = {at + 1 for at in reached if text.startswith(b"/", at)}
    return len(text) in reached


def step(part: bytes, reached: set[int], text: bytes) -> set[int]:
    """Where a match can be after ``part`` if it can be at any of ``reached`` before."""
    spans = [(start, end) for start in reached for end in range(start, len(text) + 1)]
    if part == STAR:
        return {end for start, end in spans if b"/" not in text[start:end]}
    if part == ANYTHING:
        return {end for _, end in spans}
    if part == DIRECTORIES:
        return {end for start, end in spans if start == end or text[end - 1 : end] == b"/"}
    return {at + 1 for at in reached if at < len(text) and text[at] in SINGLE[part]}


@st.composite
def near(draw: st.DrawFn, components: list[list[bytes]]) -> bytes:
    """A text that the glob matches, or would but for one byte."""
    written = []
    for component in components:
        parts = [TEXTS if part == ANYTHING else one_component(part) for part in component]
        written.append(b"".join(draw(part) for part in parts))
    text = b"/".join(written)
    if text and draw(st.booleans()):
        at = draw(st.integers(0, len(text) - 1))
        text = text[:at] + draw(st.sampled_from([b"", b"a", b"/"])) + text[at + 1 :]
    return text


def one_component(part: bytes) -> st.SearchStrategy[bytes]:
    if part == STAR:
        return TEXTS.map(lambda text: text.replace(b"/", b"")[:4])
    return st.sampled_from(list(SINGLE[part])).map(lambda byte: bytes([byte]))


@given(st.data(), GLOBS)
def test_a_glob_matches_what_a_matcher_that_tries_everything_matches(
    data: st.DataObject, components: list[list[bytes]]
) -> None:
    text = data.draw(near(components) | TEXTS)
    glob = translate(b"/".join(b"".join(component) for component in components))
    assert glob is not None
    matched = re.compile(b"(?:" + glob.expression + rb")\Z", re.DOTALL).match(text) is not None
    assert matched == naive(components, text)
    assert not matched or len(text) >= glob.width


NONSENSE = st.lists(st.sampled_from(PIECES) | st.binary(max_size=3), max_size=8).map(b"".join)
LINE = NONSENSE.map(lambda line: line.replace(b"\n", b"")) | st.sampled_from(LINES)
PATHS = st.lists(st.sampled_from([*NAMES, *PIECES]), min_size=1, max_size=3).map(b"/".join)


@given(st.lists(LINE, max_size=8), st.lists(PATHS, max_size=4), st.booleans())
def test_a_file_says_what_its_last_line_says_that_says_anything(
    lines: list[bytes], paths: list[bytes], is_directory: bool
) -> None:
    whole = Patterns.parse(b"\n" + b"\n".join(lines))
    alone = [Patterns.parse(b"\n" + line) for line in lines]
    for path in paths:
        verdicts = [each.verdict(path, is_directory=is_directory) for each in alone]
        said = [verdict for verdict in verdicts if verdict is not None]
        assert whole.verdict(path, is_directory=is_directory) is (said[-1] if said else None)


@given(st.binary() | NONSENSE, st.binary(), st.booleans())
def test_no_bytes_are_an_error(data: bytes, path: bytes, is_directory: bool) -> None:
    patterns = Patterns.parse(data)
    verdict = patterns.verdict(path, is_directory=is_directory)
    assert verdict in (True, False, None)
    assert patterns or verdict is None


@given(st.binary() | NONSENSE)
def test_an_expression_is_at_most_a_few_times_as_long_as_its_glob(pattern: bytes) -> None:
    glob = translate(pattern)
    assert glob is None or len(glob.expression) <= 12 * len(pattern) + 12
