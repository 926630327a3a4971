"""What agents write to a hook is read whatever it looks like, or refused in one way."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casnap.agents.credentials import HIDDEN
from casnap.agents.dialects import DIALECTS, understand
from casnap.agents.event import Event
from casnap.agents.labels import MOST, label_of
from casnap.agents.payload import BadPayload, parse

TEXTS = st.text(st.characters(codec=None, exclude_categories=()), max_size=20)  # halves of characters too
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)
FIELDS = sorted({name.partition(".")[0] for one in DIALECTS.values() for name in (*one.event, *one.places, *one.turn)})


def test_a_mark_of_byte_order_before_it_does_no_harm() -> None:
    assert parse(b'\xef\xbb\xbf{"a": "b"}').text("a") == "b"


@pytest.mark.parametrize("data", [b"", b"  \n", b"not json", b"[1]", b'"text"', b"5", b'{"a": ', b"[" * 100_000])
def test_what_is_no_object_is_refused(data: bytes) -> None:
    with pytest.raises(BadPayload, match="cannot read the event"):
        parse(data)


def test_ten_megabytes_of_conversation_are_passed_over() -> None:
    history = [{"role": "user", "content": "x" * 1000}] * 10_000
    payload = parse(json.dumps({"extra": {"conversation_history": history, "turn_id": "t1"}, "cwd": "/w"}).encode())
    assert (payload.text("extra.turn_id"), payload.text("cwd")) == ("t1", "/w")


def test_half_a_character_and_bytes_that_are_no_utf8_keep_nothing_from_being_read() -> None:
    assert parse(rb'{"prompt": "\ud83d", "cwd": "/w"}').text("cwd") == "/w"
    assert parse(b'{"prompt": "\xff", "cwd": "/w"}').text("cwd") == "/w"
    assert parse(rb'{"session_id": "a\ud83d"}').text("session_id") == "a?"


def test_a_number_is_as_good_as_a_text_and_long_ones_are_cut() -> None:
    payload = parse(json.dumps({"a": 5, "b": "x" * 5000, "c": True, "d": None}).encode())
    assert payload.text("a") == "5"
    assert len(payload.text("b")) == 200
    assert payload.text("c", "d", "a") == "5"


@given(st.dictionaries(st.sampled_from(FIELDS) | TEXTS, JSON), st.sampled_from([*DIALECTS, ""]))
def test_any_object_is_an_event_whose_texts_can_be_stored(fields: dict[str, object], agent: str) -> None:
    event = understand(parse(json.dumps(fields).encode()), agent, {})
    assert isinstance(event, Event)
    for text in (event.session, event.turn, event.tool, event.prompt):
        text.encode()


@given(st.binary())
def test_any_bytes_are_an_event_or_refused(data: bytes) -> None:
    with contextlib.suppress(BadPayload):
        understand(parse(data), "", {})


@pytest.mark.parametrize(
    ("prompt", "label"),
    [
        ("  fix the\n\tlogin  ", "fix the login"),
        ("", ""),
        ("\x1b[31mred", "[31mred"),
        ("修复登录", "修复登录"),
        ("x" * 61, "x" * 59 + "…"),
        ("use sk-abcdefgh12345678 here", f"use {HIDDEN} here"),
        ("AKIAABCDEFGHIJKLMNOP", HIDDEN),
        ("token ghp_abcdefghijklmnop", f"token {HIDDEN}"),
        ("PASSWORD = hunter2 now", f"PASSWORD = {HIDDEN} now"),
        ("密码：秘密", f"密码：{HIDDEN}"),
        ("https://bob:secret@host/x", f"https://{HIDDEN}@host/x"),
        ("commit 0123456789abcdef0123456789abcdef01234567", f"commit {HIDDEN}"),
        ("read src/some/long/path/without/any/digit/in/it.py", "read src/some/long/path/without/any/digit/in/it.py"),
    ],
)
def test_a_label_has_few_words_and_no_secret(prompt: str, label: str) -> None:
    assert label_of(prompt) == label


@given(st.text())
def test_a_label_is_one_short_line(prompt: str) -> None:
    label = label_of(prompt)
    assert len(label) <= MOST
    assert label.isprintable()
