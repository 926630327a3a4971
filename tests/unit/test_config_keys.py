"""The keys of the configuration: what each can hold, and how that is written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casnap.model.config import (
    AGE,
    ALIASES,
    COUNT,
    KEYS,
    LEVEL,
    LINES,
    SIZE,
    BadValue,
    Key,
    key_of,
    policy_of,
    similar_to,
)
from casnap.model.policy import Policy, Retention, Selection, Sensitive
from support import keys

SECOND = 10**9
BAD = "neither a list nor a number"


def values_of(key: Key) -> st.SearchStrategy[Any]:
    """Every value that a key can have."""
    kinds: dict[int, st.SearchStrategy[Any]] = {
        id(COUNT): st.integers(0, 10**9 - 1),
        id(SIZE): st.integers(0, 10**15 - 1),
        id(AGE): st.integers(0, 10**9 - 1).map(lambda seconds: seconds * SECOND),
        id(LEVEL): st.integers(1, 19),
        id(LINES): st.lists(st.text(min_size=1).filter(lambda text: not set(text) & set("\n\0"))).map(tuple),
    }
    found = kinds.get(id(key.kind), st.just(key.default))
    return found | st.none() if key.nothing else found


@given(data=st.data())
def test_a_value_comes_back_from_json_and_from_text(data: st.DataObject) -> None:
    key = data.draw(st.sampled_from([*KEYS.values()]))
    value = data.draw(values_of(key))
    assert key.accept(key.plain(value)) == value
    assert key.parse(key.text(value)) == value


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("git", "exclude", "exclude"),
        ("sensitive.policy", "redact", "redact"),
        ("sensitive.patterns", "*.key\n\n.env\n", ("*.key", ".env")),
        ("use_gitignore", "ON", True),
        ("use_gitignore", "no", False),
        ("retention.keep", "0", 0),
        ("retention.keep", "none", None),
        ("retention.max_age", "7d", 7 * 86_400 * SECOND),
        ("retention.max_age", "90M", 5_400 * SECOND),
        ("retention.max_age", "2w", 14 * 86_400 * SECOND),
        ("max_file_size", "1g", 1 << 30),
        ("max_file_size", "none", None),
        ("min_free", "auto", None),
        ("min_free", "0", 0),
        ("max_checkpoints", "5", 5),
        ("retention_days", "30", 30 * 86_400 * SECOND),
        ("auto_cleanup", "true", True),
    ],
)
def test_a_text_is_read(name: str, text: str, value: object) -> None:
    key = key_of(name)
    assert key is not None
    assert key.parse(text) == value


@pytest.mark.parametrize(
    ("name", "given"),
    [
        *((name, BAD) for name in KEYS if KEYS[name].kind is not LINES),
        ("exclude", "one"),
        ("exclude", ["a\nb"]),
        ("exclude", ["a", 1]),
        ("exclude_caches", 1),
        ("exclude_caches", "true"),
        ("retention.keep", True),
        ("retention.keep", -1),
        ("retention.keep", 2.5),
        ("retention.max_age", 7),
        ("retention.max_age", "7 d"),
        ("retention_days", "7d"),
        ("max_file_size", True),
        ("max_file_size", "1.5G"),
        ("max_file_size", "auto"),
        ("compression", 20),
        ("compression", True),
        ("git", "exclude "),
        ("git", None),
    ],
)
def test_a_value_of_another_type_or_out_of_range_is_refused(name: str, given: object) -> None:
    key = key_of(name)
    assert key is not None
    with pytest.raises(BadValue, match=r"\w"):
        key.accept(given)


def test_the_defaults_come_to_the_default_policy() -> None:
    assert policy_of({name: key.default for name, key in KEYS.items()}, wait=10.0) == Policy()


OF_HOOKS = {"auto_checkpoint", "hook.auto_init", "hook.label", "hook.deadline"}
"""Keys that are no part of a policy: what a hook does is its own affair (tests/cli/test_hook.py)."""


def test_each_key_reaches_the_policy() -> None:
    other = {
        "exclude": ("a", "é"),
        "exclude_caches": False,
        "use_gitignore": True,
        "max_file_size": 7,
        "one_file_system": False,
        "git": "exclude",
        "sensitive.patterns": ("x",),
        "sensitive.policy": "skip",
        "sqlite_consistent": True,
        "retention.keep": None,
        "retention.max_age": 9,
        "retention.auto": True,
        "retention.keep_named": True,
        "min_free": 1,
        "gc.auto": False,
        "compression": 4,
    }
    assert other.keys() == KEYS.keys() - OF_HOOKS
    assert policy_of(other, wait=2) == Policy(
        min_free=1,
        compression=4,
        wait=2,
        selection=Selection("a\né".encode(), True, False, 7, False, False, Sensitive.SKIP, ("x",)),
        sqlite_consistent=True,
        retention=Retention(None, 9, True, True),
        auto_gc=False,
    )


def test_a_variable_is_named_like_its_key() -> None:
    assert KEYS["retention.max_age"].variable == "CASNAP_RETENTION_MAX_AGE"
    assert len({key.variable for key in KEYS.values()}) == len(KEYS)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("exclud", "exclude"),
        ("retention.kep", "retention.keep"),
        ("max-checkpoints", "max_checkpoints"),
        ("keep", "retention.keep"),
        ("patterns", "sensitive.patterns"),
        ("q", None),
    ],
)
def test_a_name_that_is_none_is_compared_with_those_that_are(name: str, near: str | None) -> None:
    assert key_of(name) is None
    assert similar_to(name) == near


def test_the_table_of_keys_in_the_documentation_is_that_of_the_keys() -> None:
    text = keys.PAGE.read_text("utf-8")
    assert text == keys.update(text), "run `make fmt`"


def test_an_alias_is_no_key_of_its_own() -> None:
    assert ALIASES.keys().isdisjoint(KEYS)
    assert {key.name for key in ALIASES.values()} <= KEYS.keys()


@pytest.mark.parametrize(
    ("name", "sensitive"),
    [
        (b".env", True),
        (b".env.local", True),
        (b"x.env", False),
        (b"a.pem", True),
        (b"id_rsa", True),
        (b"ID_RSA", False),
        (b"\xff.pem", True),
        (b"a.pem\n", False),
    ],
)
def test_a_name_is_sensitive_by_patterns_of_its_base_name(name: bytes, sensitive: bool) -> None:
    assert Selection().is_sensitive(name) is sensitive
    assert not Selection(sensitive_patterns=()).is_sensitive(name)
