"""Hooks go into somebody's JSON and out of it again, and nothing else in it changes."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from typing import Any

import json5
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casnap.agents.installing.command import HookCommand, is_ours, is_standard
from casnap.agents.installing.json_hooks import is_strict, with_hooks, without_hooks
from casnap.errors import Usage

LINE = HookCommand(["/opt/my tools/casnap"]).line("claude-code")
HANDLER = {"type": "command", "command": LINE, "timeout": 20}
WANTED: dict[str, Any] = {
    "UserPromptSubmit": {"hooks": [HANDLER]},
    "PreToolUse": {"matcher": "Bash|mcp__.*", "hooks": [HANDLER]},
    "Stop": {"hooks": [HANDLER]},
}

TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('\u2028\u2029\ue000\\"/*'), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
OTHERS = ["lint", "casnap list", "/x/casnap-hook", "echo 'casnap hook'", "mycasnap hook"]

MADE_BY_HAND: list[dict[str, Any]] = [
    {"type": "command", "command": "casnap hook || true"},
    {"type": "command", "command": "/x/casnap", "args": ["hook", "--agent", "claude-code"]},
    {"type": "command", "command": "casnap --store X hook", "timeout": 20},
    {"type": "command", "command": LINE},
    {"type": "command", "command": LINE, "timeout": 9},
]
"""What runs ``casnap hook`` as well, and is the person's."""

OTHER_HANDLERS = st.sampled_from([*({"type": "command", "command": line} for line in OTHERS), *MADE_BY_HAND])
GROUPS = st.lists(OTHER_HANDLERS, min_size=1, max_size=2).flatmap(
    lambda handlers: st.sampled_from([{"hooks": handlers}, {"matcher": "Edit", "hooks": handlers}])
)
HOOKS = st.dictionaries(st.sampled_from([*WANTED, "Notification"]), st.lists(GROUPS, max_size=2), max_size=3)


@st.composite
def configurations(draw: st.DrawFn) -> dict[str, Any]:
    """What a person may have in their settings, hooks of others among it."""
    found: dict[str, Any] = draw(st.dictionaries(TEXTS.filter(lambda name: name != "hooks"), VALUES, max_size=4))
    if (hooks := draw(st.none() | HOOKS)) is not None:
        found["hooks"] = hooks
    return dict(draw(st.permutations(list(found.items()))))


few = settings(max_examples=25)
"""The parser takes a third of a millisecond for each value."""

INDENTS = st.sampled_from([None, 1, 2, 4, "\t"])


def written(value: Any, indent: Any, newline: str = "\n") -> bytes:
    return (json.dumps(value, indent=indent, ensure_ascii=False) + "\n").replace("\n", newline).encode()


def filled(value: dict[str, Any]) -> dict[str, Any]:
    """The same without what is empty among hooks: where nobody knows the first file, that goes with casnap's."""
    hooks = {event: groups for event, groups in value.get("hooks", {}).items() if groups}
    return {name: one for name, one in {**value, "hooks": hooks}.items() if name != "hooks" or one}


def merged(value: dict[str, Any]) -> dict[str, Any]:
    """What is to be there, by an oracle that knows nothing of text."""
    hooks = {event: list(groups) for event, groups in value.get("hooks", {}).items()}
    for event, group in WANTED.items():
        hooks.setdefault(event, []).append(group)
    return {**value, "hooks": hooks}


@few
@given(configurations(), INDENTS, st.sampled_from(["\n", "\r\n"]))
def test_what_goes_in_is_there_and_comes_out_again(value: dict[str, Any], indent: Any, newline: str) -> None:
    before = written(value, indent, newline)
    after = with_hooks(before, WANTED, "settings")
    assert json.loads(after) == merged(value)
    for first in (None, before):
        assert with_hooks(after, WANTED, "settings", first) == after
    assert without_hooks(after, "settings", before, WANTED) == before
    assert filled(json.loads(without_hooks(after, "settings"))) == filled(value)
    assert without_hooks(before, "settings") == before
    assert without_hooks(before, "settings", before, WANTED) == before


@few
@given(configurations(), INDENTS, configurations())
def test_what_others_change_meanwhile_stays(value: dict[str, Any], indent: Any, more: dict[str, Any]) -> None:
    before = written(value, indent)
    after = json.loads(with_hooks(before, WANTED, "settings"))
    hooks = {**after["hooks"]}
    for event, groups in [(event, groups) for event, groups in more.pop("hooks", {}).items() if groups]:
        hooks[event] = [*groups, *hooks.get(event, [])]
        value.setdefault("hooks", {})[event] = [*groups, *value.get("hooks", {}).get(event, [])]
    edited = written({**after, **more, "hooks": hooks}, indent)
    assert json.loads(without_hooks(edited, "settings", before, WANTED)) == {**value, **more}


@few
@given(configurations(), INDENTS)
def test_hooks_of_an_older_path_are_replaced(value: dict[str, Any], indent: Any) -> None:
    old = json.loads(json.dumps(WANTED).replace("/opt/my tools", "/old tools"))
    before = with_hooks(written(value, indent), old, "settings")
    assert json.loads(with_hooks(before, WANTED, "settings")) == merged(value)


def between(chance: random.Random) -> str:
    """What may stand between any two signs of a file that has comments."""
    pieces = [" ", "\n", "\t", "\n  ", "\n\n", f"/*~{chance.random()}*/", f"//~{chance.random()}\n"]
    return "".join(chance.choices(pieces, k=chance.choice([0, 0, 1, 2])))


def scrawled(value: Any, chance: random.Random) -> str:
    """The value as somebody may have written it."""

    def space() -> str:
        return between(chance)

    if isinstance(value, dict):
        members = [(scrawled(key, chance), scrawled(one, chance)) for key, one in value.items()]
        parts = [f"{space()}{key}{space()}:{space()}{one}" for key, one in members]
    elif isinstance(value, list):
        parts = [space() + scrawled(one, chance) for one in value]
    else:
        return json.dumps(value, ensure_ascii=False)
    inside = (space() + ",").join(parts) + (space() + "," if parts and chance.random() < 0.3 else "") + space()
    return f"{{{inside}}}" if isinstance(value, dict) else f"[{inside}]"


@few
@given(configurations(), st.randoms(use_true_random=False))
def test_wherever_comments_stand_they_stay_and_what_comes_out_is_json(value: dict[str, Any], chance: Any) -> None:
    before = between(chance) + scrawled(value, chance) + between(chance)
    after = with_hooks(before.encode(), WANTED, "settings")
    back = without_hooks(after, "settings", before.encode()).decode()
    assert with_hooks(after, WANTED, "settings") == after
    comments = sorted(re.findall(r"~[\d.e-]+", before))
    for text in (after.decode(), back):
        assert sorted(re.findall(r"~[\d.e-]+", text)) == comments
    assert json5.loads(back) == json5.loads(before)
    assert json5.loads(after.decode()) == merged(value)


COMMENTED = """// of mine
{
    // the model
    "model": "x", /* as told */

    "hooks": { // all of them
        "Stop": [
            {"hooks": [{"type": "command", "command": "lint"}]} // first
        ], // after
        /* last */
    },
    "env": {} // none
    // the end
}
// really
"""


def test_comments_and_everything_else_stay_where_they_are() -> None:
    after = with_hooks(COMMENTED.encode(), WANTED, "settings").decode()
    comments = ["of mine", "the model", "as told", "all of them", "first", "after", "last", "none", "the end", "really"]
    assert [after.count(comment) for comment in comments] == [1] * len(comments)
    assert [after.find(comment) for comment in comments] == sorted(after.find(comment) for comment in comments)
    back = without_hooks(after.encode(), "settings").decode()
    assert [back.count(comment) for comment in comments] == [1] * len(comments)
    assert '{"hooks": [{"type": "command", "command": "lint"}]}' in back
    assert "casnap" not in back


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "{ }",
        "{}\n",
        "{\n}",
        "{ // only\n}",
        '{\n  "a": 1 // c\n}\n',
        '{"a": 1}',
        '// top\n{\n\t"a": 1\n}\n// end',
    ],
)
def test_of_files_without_hooks_all_but_white_space_comes_back(text: str) -> None:
    after = with_hooks(text.encode(), WANTED, "settings")
    assert json5.loads(after.decode())["hooks"] == {event: [group] for event, group in WANTED.items()}
    assert "".join(without_hooks(after, "settings").decode().split()) == "".join(text.split())


def test_a_mark_of_byte_order_and_the_indentation_stay() -> None:
    after = with_hooks(b'\xef\xbb\xbf{\r\n\t"a": 1\r\n}\r\n', WANTED, "settings")
    assert after.startswith(b'\xef\xbb\xbf{\r\n\t"a": 1,\r\n\t"hooks": {\r\n\t\t"UserPromptSubmit": [\r\n\t\t\t{')
    assert after.count(b"\n") == after.count(b"\r\n")


def test_an_empty_file_is_an_empty_object() -> None:
    for text in (b"", b" \n"):
        assert json.loads(with_hooks(text, WANTED, "settings")) == merged({})


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b"{", "it is no JSON"),
        (b'{"a": 1}}', "it is no JSON"),
        (b'{"a" 1}', "it is no JSON"),
        (b"\xff{}", "it is not UTF-8"),
        (b"[]", "it is no object"),
        (b'"text"', "it is no object"),
        (b'{"hooks": []}', '"hooks" is no object'),
        (b'{"hooks": {"Stop": {}}}', 'an event in "hooks" has no list'),
    ],
)
def test_what_cannot_be_understood_is_refused(text: bytes, fault: str) -> None:
    for act in (lambda: with_hooks(text, WANTED, "/x/settings"), lambda: without_hooks(text, "/x/settings")):
        with pytest.raises(Usage, match="cannot change /x/settings") as caught:
            act()
        assert fault in caught.value.message


@pytest.mark.parametrize(
    ("line", "ours"),
    [
        ("casnap hook", True),
        ("/usr/bin/casnap hook --agent x", True),
        (LINE, True),
        ("/usr/bin/python3 -m casnap hook", True),
        ("nice casnap hook", True),
        ("casnap --store X hook", True),
        ("casnap --store=X -q --wait 3 hook --agent x", True),
        ("casnap hook; true", True),
        ("casnap hook>/dev/null||true", True),
        ('"/my tools/casnap" "hook"', True),
        ("FOO=1 casnap hook &", True),
        ("casnap -w hook list", False),
        ("casnap --json checkpoint hook", False),
        ("casnap list", False),
        ("casnap checkpoint hook", False),
        ("mycasnap hook", False),
        ("echo 'casnap hook'", False),
        ("casnap 'hook", False),
        (None, False),
        (5, False),
    ],
)
def test_a_command_of_casnap_is_known_from_whatever_place(line: object, ours: bool) -> None:
    assert is_ours({"type": "command", "command": line}) == ours


@pytest.mark.parametrize(
    ("handler", "ours"),
    [
        ({"type": "command", "command": "/x/casnap", "args": ["hook", "--agent", "x"]}, True),
        ({"type": "command", "command": "/my tools/casnap", "args": ["--store", "X", "hook"]}, True),
        ({"type": "command", "command": "/usr/bin/python3", "args": ["-m", "casnap", "hook"]}, True),
        ({"type": "command", "command": "/x/casnap", "args": ["list"]}, False),
        ({"type": "command", "command": "/x/casnap", "args": [5, None, "hook"]}, True),
        ({"type": "command", "command": "echo", "args": ["casnap hook"]}, False),
        ({"type": "prompt", "prompt": "casnap hook"}, False),
        ("casnap hook", False),
    ],
)
def test_a_command_of_words_is_known_as_well(handler: object, ours: bool) -> None:
    assert is_ours(handler) == ours


@given(st.text(st.characters(exclude_characters="\0/"), min_size=1), st.booleans(), st.booleans())
def test_what_casnap_writes_has_its_own_form_wherever_it_is(directory: str, module: bool, require: bool) -> None:
    words = [f"/{directory}/python", "-m", "casnap"] if module else [f"/{directory}/casnap"]
    line = HookCommand(words).line("claude-code", require=require)
    assert is_standard({"type": "command", "command": line, "timeout": 20})


@pytest.mark.parametrize("handler", MADE_BY_HAND)
def test_what_a_person_writes_has_not(handler: object) -> None:
    assert is_ours(handler)
    assert not is_standard(handler)


def test_what_a_person_made_of_casnap_s_own_goes_with_it_where_casnap_had_put_it() -> None:
    edited = json.dumps(
        {"hooks": {event: [{"hooks": [MADE_BY_HAND[0]]}] for event in ("Stop", "Notification")}}
    ).encode()
    after = without_hooks(edited, "settings", b"{}", WANTED)
    assert json.loads(after) == {"hooks": {"Notification": [{"hooks": [MADE_BY_HAND[0]]}]}}
    assert without_hooks(edited, "settings") == edited


ODD = [
    '{"a\u2028": "x\u2028y\u2029"}',
    '{"a": "\\\\\u2028", /* \u2029 */ "b": 1}',
    '{"a": "\ue000\u2028"}',
    '{"a": 1}\u2028',
    r'{"a": "\ud800", "b": "\u0000\u2028"}',
    '{"a": 1, "a": 2}',
    '{"hooks": {"Stop": []}, "hooks": {"Stop": []}}',
    '{"hooks": {"Stop": [], "Stop": []}}',
    r'{"\u0068ooks": {"Stop": []}}',
    '\ufeff{"a": 1}',
    '{\r\n\t"a":\t1\r\n}',
    "{}",
    '{"a": 1,}',
    "{a: 'b'}",
]


@pytest.mark.parametrize("text", ODD)
def test_each_sign_of_odd_json_stays(text: str) -> None:
    before = text.encode()
    after = with_hooks(before, WANTED, "settings")
    assert with_hooks(after, WANTED, "settings") == after
    assert after.decode().startswith(text.rstrip("\u2028\r\n }]"))
    assert without_hooks(after, "settings", before, WANTED) == before


@pytest.mark.parametrize(
    ("text", "strict"),
    [
        ("{}", True),
        ("", True),
        ('\ufeff{"a": "\u2028"}', True),
        ("{} // c", False),
        ('{"a": 1,}', False),
        ("{a: 1}", False),
        ("{'a': 1}", False),
        ('{"a": NaN}', False),
        ('{"a": 0x1}', False),
    ],
)
def test_what_only_json5_allows_is_known(text: str, strict: bool) -> None:
    assert is_strict(text.encode()) == strict


def test_what_is_nested_deeper_than_can_be_followed_is_refused() -> None:
    program = f"""
import sys
from casnap.agents.installing.json_hooks import with_hooks
from casnap.errors import Usage
sys.setrecursionlimit(400)
try:
    with_hooks(b'{{"a": ' + b"[" * 300 + b"]" * 300 + b"}}", {WANTED!r}, "settings")
except Usage as error:
    print(error.message)
"""
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "cannot change settings: it is nested too deep\n"
