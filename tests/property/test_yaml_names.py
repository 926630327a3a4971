"""A name goes into somebody's YAML and out of it again, and each other byte stays."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from casnap.agents.installing.yaml_names import Unsuitable, names, with_name, without_name
from casnap.errors import Usage


def added(text: str) -> str:
    return with_name(text.encode(), "casnap", "config").decode()


def taken(text: str, first: str | None = None) -> str:
    return without_name(text.encode(), "casnap", "config", None if first is None else first.encode()).decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "plugins:\n  enabled:\n    - casnap\n"),
        ("# mine\n", "# mine\nplugins:\n  enabled:\n    - casnap\n"),
        ("a: 1 # one", "a: 1 # one\nplugins:\n  enabled:\n    - casnap\n"),
        ("a: 1\r\n", "a: 1\r\nplugins:\r\n  enabled:\r\n    - casnap\r\n"),
        ("plugins: # p\nb: 2\n", "plugins: # p\n  enabled:\n    - casnap\nb: 2\n"),
        (
            "plugins:\n    # off\n    disabled: []\n",
            "plugins:\n    enabled:\n      - casnap\n    # off\n    disabled: []\n",
        ),
        ("plugins:\n  enabled: # e\n\nb: 2\n", "plugins:\n  enabled: # e\n    - casnap\n\nb: 2\n"),
        (
            "plugins:\n  enabled:\n  # first\n  - x # one\n",
            "plugins:\n  enabled:\n  - casnap\n  # first\n  - x # one\n",
        ),
        ("plugins:\n  enabled: [x]\n", "plugins:\n  enabled: [casnap, x]\n"),
        ("plugins:\n  enabled: []\n", "plugins:\n  enabled: [casnap]\n"),
        ("plugins: {disabled: [x]}\n", "plugins: {enabled: [casnap], disabled: [x]}\n"),
        ("plugins: {}\n", "plugins: {enabled: [casnap]}\n"),
        ("  a: 1\n  b: 2\n", "  a: 1\n  b: 2\n  plugins:\n    enabled:\n      - casnap\n"),
        ("\ufeffa: 1\n", "\ufeffa: 1\nplugins:\n  enabled:\n    - casnap\n"),
        ("a: |\n  x\n", "a: |\n  x\nplugins:\n  enabled:\n    - casnap\n"),
    ],
)
def test_it_goes_in_where_it_belongs_and_out_again(before: str, after: str) -> None:
    assert added(before) == after
    assert added(after) == after
    assert names(after.encode(), "config")[0] == "casnap"
    assert taken(after, first=before) == before + "\n" * (before[-1:] not in ("", "\n"))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("plugins:\n  enabled:\n    - x\n    - casnap # mine\n    - y\n", "plugins:\n  enabled:\n    - x\n    - y\n"),
        ("plugins:\n  enabled:\n    - casnap\nb: 2\n", "b: 2\n"),
        ("plugins:\n  enabled:\n    - casnap\n  disabled: [x]\n", "plugins:\n  disabled: [x]\n"),
        ("plugins: {enabled: [x, casnap], other: 1}\n", "plugins: {enabled: [x], other: 1}\n"),
        ("plugins: {other: 1, enabled: [casnap]}\n", "plugins: {other: 1}\n"),
        ("plugins:\n  enabled: ['casnap']\n", ""),
        ("a: 1\n", "a: 1\n"),
    ],
)
def test_what_is_taken_out_leaves_nothing_empty_behind(text: str, left: str) -> None:
    assert taken(text) == left


def test_what_is_empty_and_was_there_stays() -> None:
    assert taken("plugins:\n  enabled:\n    - casnap\n", "plugins:\n  enabled:\n") == "plugins:\n  enabled:\n"
    assert taken("plugins: {enabled: [casnap]}\n", "plugins: {}\n") == "plugins: {}\n"


@pytest.mark.parametrize(
    "text",
    [
        "plugins: null\n",
        "plugins: ~\n",
        "plugins: [x]\n",
        "plugins:\n  enabled: yes\n",
        "{a: 1}\n",
        "- x\n",
        "text\n",
        "a: 1\n...\n",
        "a: |\n  x",
        "plugins: &p {}\nother: *p\n",
    ],
)
def test_what_cannot_be_changed_in_place_is_left_to_others(text: str) -> None:
    with pytest.raises(Unsuitable):
        added(text)


@pytest.mark.parametrize("text", ["a: [", "\ta: 1", "a: 1\n---\nb: 2\n", "x\x01: 1", "[" * 1200])
def test_what_is_no_yaml_is_refused(text: str) -> None:
    for act in (added, taken):
        with pytest.raises(Usage, match="cannot change config: it is no YAML") as caught:
            act(text)
        assert not isinstance(caught.value, Unsuitable)


def test_what_is_not_utf_8_is_refused() -> None:
    with pytest.raises(Usage, match="it is not UTF-8"):
        with_name(b"\xff", "casnap", "config")


WORDS = st.sampled_from(["a", "b: c", "# no", "yes", "1", "", "- x", "casnap-more", "é", "a\nb\n", "'q'", "{"])
VALUES = st.recursive(
    WORDS | st.none() | st.booleans() | st.integers(-9, 99),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
PLUGINS = st.fixed_dictionaries(
    {}, optional={"enabled": st.lists(WORDS, max_size=3), "disabled": st.lists(WORDS, max_size=2), "more": VALUES}
)
SETTINGS = st.dictionaries(WORDS, VALUES, max_size=3).flatmap(
    lambda others: st.fixed_dictionaries({}, optional={"plugins": PLUGINS}).flatmap(
        lambda own: st.permutations(list({**others, **own}.items())).map(dict)
    )
)


def written(value: Any, flow: bool, indent: int, newline: str) -> str:
    yaml = YAML()
    yaml.default_flow_style = flow
    yaml.indent(mapping=indent, sequence=indent + 2, offset=indent)
    out = io.StringIO()
    yaml.dump(value, out)
    return out.getvalue().replace("\n", newline)


def merged(value: Any) -> Any:
    """What is to be there, by an oracle that knows nothing of text."""
    plugins = value.get("plugins") or {}
    return {**value, "plugins": {**plugins, "enabled": ["casnap", *plugins.get("enabled", [])]}}


@settings(max_examples=50)
@given(SETTINGS, st.sampled_from([True, False, None]), st.sampled_from([2, 4]), st.sampled_from(["\n", "\r\n"]))
def test_everything_else_is_as_it_was(value: Any, flow: Any, indent: int, newline: str) -> None:
    before = written(value, flow, indent, newline)
    try:
        after = added(before)
    except Unsuitable:
        return
    parsed = YAML(typ="safe", pure=True).load(after.replace(newline, "\n"))
    assert parsed == merged(value)
    assert added(after) == after
    assert taken(after, first=before) == before
