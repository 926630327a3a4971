"""What reads known spellings without click reads them as click does, or leaves them to it."""

from __future__ import annotations

import contextlib
import io
from functools import partial
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from casnap.cli import checkpoint, hook, overview, rollback, status
from casnap.cli import list as list_
from casnap.cli.app import invoke
from casnap.cli.grammar import ALIASES, AT_ONCE, EVERYWHERE, Option, grammar_of
from casnap.cli.session import Options, Session
from casnap.cli.spellings import read
from casnap.errors import Usage

MODULES = {"checkpoint": checkpoint, "hook": hook, "list": list_, "rollback": rollback, "status": status}
KEYS = ("store", "workspaces", "json", "format", "quiet", "verbose", "debug", "no_color", "strict", "wait")

Meaning = tuple[str, dict[str, Any], dict[str, Any]]
"""A verb, the options of every verb, and the values of its own."""


def options_of(options: Options) -> dict[str, Any]:
    return {key: getattr(options, key) for key in KEYS}


def read_by_us(words: list[str]) -> Meaning | None:
    request = read(words)
    return None if request is None else (request.verb, options_of(request.options), request.values)


def read_by_click(words: list[str]) -> Meaning | None:
    """None where click finds a mistake, or has something to say by itself."""
    called: list[tuple[str, dict[str, Any]]] = []

    def note(verb: str, _session: Session, **values: Any) -> int:
        called.append((verb, values))
        return 0

    session = Session()
    with contextlib.ExitStack() as stack:
        for verb, module in MODULES.items():
            stack.enter_context(mock.patch.object(module, "carry_out", partial(note, verb)))
        stack.enter_context(mock.patch.object(overview, "overview", return_value=0))
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        with contextlib.suppress(Usage):
            invoke(session, words)
    return None if not called else (called[0][0], options_of(session.options), called[0][1])


VERBS = [*AT_ONCE, *(alias for alias, verb in ALIASES.items() if verb in AT_ONCE)]
verbs = st.sampled_from(VERBS)
numbers = st.integers(0, 10**9 - 1).map(str)
texts = st.text(max_size=5).filter(lambda text: text != "--") | st.sampled_from(["-w", "--json", "-", "a=b", "--x=y"])


def good_value(option: Option) -> st.SearchStrategy[str]:
    match option.takes:
        case "count":
            return numbers
        case "seconds":
            return numbers | st.decimals(0, 999, places=2).map(str)
        case "choice":
            return st.sampled_from(option.choices)
        case _:
            return texts


@st.composite
def spelt(draw: st.DrawFn, option: Option, value: str | None) -> list[str]:
    name = draw(st.sampled_from(option.names))
    if value is None:
        return [name]
    return [f"{name}={value}"] if name.startswith("--") and draw(st.booleans()) else [name, value]


@st.composite
def some_of(draw: st.DrawFn, options: tuple[Option, ...]) -> list[list[str]]:
    """Some options in documented spellings, each with values that may stand beside each other."""
    found: list[list[str]] = []
    for option in draw(st.lists(st.sampled_from(options), unique=True, max_size=5)) if options else ():
        values = draw(st.lists(good_value(option), min_size=1, max_size=3)) if option.takes != "nothing" else [None]
        if option.repeated == "same":
            values = values[:1] * len(values)
        found += [draw(spelt(option, value)) for value in values]
    return found


@st.composite
def right_lines(draw: st.DrawFn) -> list[str]:
    """Command lines with nothing wrong in them."""
    word = draw(verbs)
    grammar = grammar_of(word)
    assert grammar is not None
    once = draw(st.booleans())  # two stores, one before the verb and one after it, would be a mistake
    before = draw(some_of(tuple(option for option in EVERYWHERE if once or option.key != "store")))
    anywhere = tuple(option for option in EVERYWHERE if not once or option.key != "store")
    after = draw(some_of((*anywhere, *grammar.options)))
    if grammar.argument and draw(st.booleans()):
        after.append([draw(texts.filter(lambda text: text[:1] != "-" or text == "-"))])
    after = draw(st.permutations(after))
    return [piece for pieces in (*before, [word], *after) for piece in pieces]


ODD = ["", "-", "x", "3", "-1", "٣", "1e3", "nan", "-h", "--help", "--version", "--nope", "--jso", "-qv", "-wx", "-n3"]
ODD += ["-n=3", "-w=x", "--json=1", "--limit=-1", "--limit=", "--store=", "--format=xml", "--wait=.", "--wait=-1", "--"]
NAMES = [name for option in EVERYWHERE for name in option.names]
NAMES += [name for grammar in AT_ONCE.values() for option in grammar.options for name in option.names]
words = st.sampled_from(NAMES) | st.sampled_from(ODD) | st.sampled_from(["json", "table", "1", "0.5"]) | texts
any_lines = st.builds(
    lambda before, verb, after: [*before, *verb, *after],
    st.lists(words, max_size=3),
    verbs.map(lambda verb: [verb]) | st.just([]),
    st.lists(words, max_size=6),
)


def without_paths(words: list[str]) -> list[str]:
    """What click gets to see: paths are split off before."""
    return words[: words.index("--")] if "--" in words else words


@given(right_lines())
def test_every_documented_spelling_is_read_and_means_what_it_means_to_click(words: list[str]) -> None:
    if "--" not in words:
        assert (meaning := read_by_us(words)) is not None
        assert meaning == read_by_click(words)


@given(any_lines)
@example(["--json", "list", "--format", "table"])
@example(["list", "-n", "3", "-n", "4"])
@example(["checkpoint", "a", "-s", "b"])
@example(["-w", "a", "checkpoint", "-w", "b", "-w", "a"])
@example(["--store", "a", "list", "--store", "b"])
@example(["checkpoint", "-m", "a", "-m", "b"])
@example(["list", "--", "path"])
def test_any_command_line_is_left_to_click_or_means_what_it_means_to_click(words: list[str]) -> None:
    meaning = read_by_us(words)
    assert meaning is None or meaning == read_by_click(without_paths(words))
    assert meaning is None or "--" not in words


@pytest.mark.parametrize("verb", VERBS)
def test_help_and_mistakes_are_left_to_click(verb: str) -> None:
    for wrong in (["-h"], ["--help"], ["--version"], ["--nope"], ["--wait"], ["--wait", "long"], ["a", "b"], ["--"]):
        assert read([verb, *wrong]) is None


def test_other_verbs_and_none_are_left_to_click() -> None:
    for words in ([], ["--json"], ["undo"], ["diff", "x"], ["lst"], ["-w", "list"]):
        assert read(words) is None
