"""Layers of configuration: which is stronger, what each value's origin is, and what is wrong is named."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

import casnap.settings.layers as layers_module
from casnap import CheckpointManager
from casnap.errors import Usage
from casnap.model.config import KEYS, Value
from casnap.settings import Settings, load_settings, stored_layer
from casnap.settings.layers import lines_of

DAY = 86_400 * 10**9

FOUR: Mapping[str, tuple[Value, Value, Value, Value]] = {
    "exclude": (("a",), ("b", "b2"), ("c",), ("d", "d2")),
    "exclude_caches": (False, True, False, True),
    "use_gitignore": (True, False, True, False),
    "max_file_size": (1, None, 3 << 20, 4),
    "one_file_system": (False, True, False, True),
    "git": ("exclude", "include", "exclude", "include"),
    "sensitive.patterns": (("a",), (), ("c",), ("d", "e")),
    "sensitive.policy": ("skip", "redact", "keep", "skip"),
    "sqlite_consistent": (True, False, True, False),
    "retention.keep": (1, None, 3, 4),
    "retention.max_age": (DAY, 2 * DAY, None, 4 * DAY),
    "retention.auto": (True, False, True, False),
    "retention.keep_named": (True, False, True, False),
    "min_free": (1, None, None, 4),
    "auto_checkpoint": (False, True, False, True),
    "hook.auto_init": ("always", "never", "always", "never"),
    "hook.label": (True, False, True, False),
    "hook.deadline": (1, 2, 3, 4),
    "gc.auto": (False, True, True, False),
    "compression": (4, 5, 5, 7),
}
"""For each key what the system's file, the user's, the workspace and the variable say, the weakest first."""


@pytest.fixture
def system_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "etc" / "config.toml"
    path.parent.mkdir()
    monkeypatch.setattr(layers_module, "SYSTEM_FILE", path)
    return path


@pytest.fixture
def user_file(home: Path) -> Path:
    path = home / ".config" / "casnap" / "config.toml"
    path.parent.mkdir(parents=True)
    return path


def toml(name: str, value: Value) -> str:
    key = KEYS[name]
    plain = key.plain(value)
    return f"{name} = {msgspec.json.encode(key.nothing if plain is None else plain).decode()}\n"


def stored(name: str, value: Value) -> tuple[tuple[str, str], ...]:
    return ((name, msgspec.json.encode(KEYS[name].plain(value)).decode()),)


def in_force(settings: Settings, name: str, given: tuple[tuple[str, str], ...] = ()) -> tuple[Value, str]:
    (found,) = (one for one in settings.effective(stored_layer(given)) if one.key == name)
    assert found.default == KEYS[name].default
    return found.value, found.origin


def test_there_is_a_case_for_each_key() -> None:
    assert FOUR.keys() == KEYS.keys()


@pytest.mark.parametrize("name", FOUR)
def test_each_layer_is_stronger_than_the_one_before(name: str, system_file: Path, user_file: Path) -> None:
    system, user, workspace, variable = FOUR[name]
    environ = dict(os.environ)
    assert in_force(load_settings(environ), name) == (KEYS[name].default, "default")
    system_file.write_text(toml(name, system))
    assert in_force(load_settings(environ), name) == (system, str(system_file))
    user_file.write_text(toml(name, user))
    assert in_force(load_settings(environ), name) == (user, str(user_file))
    given = () if KEYS[name].common_to else stored(name, workspace)
    if given:
        assert in_force(load_settings(environ), name, given) == (workspace, "workspace")
        assert in_force(load_settings(environ), name) == (user, str(user_file))
    environ[KEYS[name].variable] = KEYS[name].text(variable)
    assert in_force(load_settings(environ), name, given) == (variable, KEYS[name].variable)


COMMON = {
    "min_free": "the whole store",
    "gc.auto": "the whole store",
    "compression": "the whole store",
    "hook.auto_init": "all hooks",
    "hook.deadline": "all hooks",
}
"""What no workspace has a value of its own for, and what shares it."""


def test_every_key_that_no_workspace_may_have_is_known() -> None:
    assert {name: key.common_to for name, key in KEYS.items() if key.common_to} == COMMON


@pytest.mark.parametrize("name", COMMON)
def test_what_is_common_to_all_cannot_be_set_for_one_workspace(name: str) -> None:
    (fault,) = stored_layer(((name, "5"),)).faults
    assert fault.message == f"bad {name} 5 in the settings of the workspace: it is for {COMMON[name]}"
    assert fault.hint == "set it for all workspaces with -g"
    assert not stored_layer(((name, "5"),)).values


def test_the_policy_is_that_of_the_workspace(user_file: Path) -> None:
    user_file.write_text('git = "exclude"\nretention = { keep = 3 }\n')
    settings = load_settings()
    assert settings.policy.retention.keep == 3
    policy = settings.policy_of((("retention.keep", "4"), ("retention.max_age", '"1d"')))
    assert (policy.retention.keep, policy.retention.max_age_ns) == (4, DAY)
    assert not policy.selection.include_git


def test_tables_dotted_names_and_aliases_are_all_read(user_file: Path) -> None:
    user_file.write_text(
        'max_checkpoints = 7\nretention_days = 2\nsensitive.policy = "skip"\n[retention]\nauto = true\n'
    )
    retention = load_settings().policy.retention
    assert (retention.keep, retention.max_age_ns, retention.auto) == (7, 2 * DAY, True)


def test_the_users_file_is_where_xdg_says(home: Path, tmp_path: Path) -> None:
    environ, place = {"HOME": str(home), "CASNAP_STORE": "/s"}, Path("casnap", "config.toml")
    assert load_settings({**environ, "XDG_CONFIG_HOME": str(tmp_path)}).user_file == tmp_path / place
    assert load_settings({**environ, "XDG_CONFIG_HOME": "relative"}).user_file == home / ".config" / place


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "\n[retention]\nkeep = 'x'\n",
            "bad retention.keep 'x' in {file}, line 3: not a whole number",
            "write a number",
        ),
        ("retention.kep = 4", "bad key 'retention.kep' in {file}, line 1: there is no such key", "retention.keep?"),
        ("q = 4", "bad key 'q' in {file}, line 1: there is no such key", "casnap config list"),
        ("git = 5", "bad git 5 in {file}, line 1: none of include, exclude", "include or exclude"),
        ("\nexclude = '*.o'", "bad exclude '*.o' in {file}, line 2: not a list of patterns", "a list of texts"),
        ("max_checkpoints = 1\nretention.keep = 2", "{file}, line 2: retention.keep is set twice", "once"),
        ("exclude = [", "cannot read {file}: ", "editor"),
        (b"\xff", "cannot read {file}: it is not UTF-8", "editor"),
        ("a" + ".a" * 3000 + " = 1", "", ""),
        ("git = '" + "x" * 500 + "'", "…", "include"),
    ],
)
def test_what_is_wrong_in_a_file_is_an_error_that_names_it(
    text: str | bytes, message: str, hint: str, user_file: Path
) -> None:
    user_file.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(Usage) as caught:
        load_settings()
    assert message.format(file=user_file) in caught.value.message
    assert hint in (caught.value.hint or "")
    assert len(caught.value.message) < 400 or "a.a" in caught.value.message
    tolerated = load_settings(tolerant=True)
    assert [fault.message for fault in tolerated.faults] == [caught.value.message]


def test_a_wrong_variable_is_named_with_its_value() -> None:
    with pytest.raises(Usage, match=r"bad CASNAP_RETENTION_KEEP 'many': not a whole number"):
        load_settings({**os.environ, "CASNAP_RETENTION_KEEP": "many"})


@pytest.mark.parametrize("text", ["{", '"x"', "\ud800", "true"])
def test_what_is_wrong_for_a_workspace_is_an_error_that_says_so(text: str) -> None:
    with pytest.raises(Usage, match=r"bad retention.keep .* in the settings of the workspace"):
        load_settings().policy_of((("retention.keep", text),))


def test_a_file_that_cannot_be_reached_is_none_and_one_that_cannot_be_read_is_an_error(
    user_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user_file.mkdir()
    with pytest.raises(Usage, match=r"cannot read .*config.toml: Is a directory"):
        load_settings()
    user_file.rmdir()
    user_file.parent.rmdir()
    user_file.parent.write_text("no directory")
    assert load_settings().files[-1].values == {}

    def forbidden(*_: object, **__: object) -> os.stat_result:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "lstat", forbidden)
    assert load_settings().files[-1].values == {}


def test_the_line_of_each_key_is_found_whatever_stands_around() -> None:
    text = '# a = 1\na = 1\n  "b" . c = 2 # d = 3\n\n[t.u]\ne = """\nf = 1\n"""\n[[g]]\n'
    assert lines_of(text) == {"a": 2, "b.c": 3, "t.u.e": 6, "t.u.f": 7}


def test_a_broken_file_stops_a_manager_too(user_file: Path, tmp_path: Path) -> None:
    user_file.write_text("exclude = 5")
    with pytest.raises(Usage, match=r"bad exclude 5 in .*, line 1"):
        CheckpointManager(tmp_path)
