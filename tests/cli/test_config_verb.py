"""``casnap config`` as people and scripts type it."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from casnap.model.config import KEYS
from support.cli import Result, run


def user_file(home: Path) -> Path:
    return home / ".config" / "casnap" / "config.toml"


def settings(result: Result) -> dict[str, Any]:
    return {record["key"]: (record["value"], record["origin"]) for record in result.json()["settings"]}


def test_alone_it_lists_every_key_with_its_value_and_where_that_is_from(protected: Path, home: Path, call: Any) -> None:
    call("config", "set", "exclude", "*.o", "build/", cwd=protected, check=0)
    call("config", "set", "-g", "max_file_size", "100M", cwd=protected, check=0)
    lines = call("config", cwd=protected, check=0).stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["KEY", *KEYS]
    assert lines[1].split() == ["exclude", "*.o,", "build/", "workspace"]
    assert lines[2].split() == ["exclude_caches", "true", "default"]
    assert call("config", "list", cwd=protected, check=0).stdout.splitlines() == lines
    document = call("config", "--json", cwd=protected, check=0).json()
    assert document["schema"] == "casnap.config/1"
    assert document["workspace"]["path"] == str(protected)
    records = {record["key"]: record for record in document["settings"]}
    assert records["exclude"] == {"key": "exclude", "value": ["*.o", "build/"], "origin": "workspace", "default": []}
    assert records["max_file_size"] == {
        "key": "max_file_size",
        "value": 100 << 20,
        "origin": str(user_file(home)),
        "default": None,
    }
    assert json.loads(call("config", "list", "--format", "json", cwd=protected, check=0).stdout) == document["settings"]
    everywhere = call("config", "-g", "list", "--json", check=0)
    assert settings(everywhere)["exclude"] == ([], "default")
    assert everywhere.json()["workspace"] is None


def test_add_keeps_what_is_there_and_puts_the_new_at_the_end(
    protected: Path, home: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("config", "set", "-g", "exclude", "*.o", check=0)
    call("config", "add", "exclude", "build/", 'it\'s "odd"/', cwd=protected, check=0)
    assert call("config", "get", "exclude", cwd=protected).stdout == '*.o\nbuild/\nit\'s "odd"/\n'
    monkeypatch.setenv("CASNAP_EXCLUDE", "of the shell")
    told = call("config", "add", "exclude", "*.o", "--out", cwd=protected, check=0)
    assert "CASNAP_EXCLUDE is stronger" in told.stderr
    monkeypatch.delenv("CASNAP_EXCLUDE")
    assert call("config", "get", "exclude", cwd=protected).stdout == 'build/\nit\'s "odd"/\n*.o\n--out\n'
    call("config", "add", "-g", "exclude", "*.a", check=0)
    assert tomllib.loads(user_file(home).read_text())["exclude"] == ["*.o", "*.a"]
    for args in (("exclude",), ("git", "exclude"), ("nonsense", "1"), ("exclude", "two\nlines")):
        call("config", "add", *args, cwd=protected, check=2)


def test_get_prints_the_value_alone(protected: Path, call: Any) -> None:
    assert call("config", "get", "retention.keep", cwd=protected, check=0).stdout == "20\n"
    assert call("config", "get", "max_checkpoints", cwd=protected, check=0).stdout == "20\n"
    assert call("config", "get", "max_file_size", cwd=protected, check=0).stdout == "none\n"
    assert call("config", "get", "sensitive.patterns", cwd=protected, check=0).stdout == ".env\n.env.*\n*.pem\nid_*\n"
    assert call("config", "get", "exclude", cwd=protected, check=0).stdout == ""
    one = call("config", "get", "git", "--json", cwd=protected, check=0)
    assert settings(one) == {"git": ("include", "default")}


def test_set_and_unset_for_a_workspace_and_for_all(protected: Path, home: Path, call: Any) -> None:
    result = call("config", "set", "retention.max_age", "7d", cwd=protected, check=0)
    assert result.stdout == "retention.max_age = 7d (workspace)\n"
    assert not user_file(home).exists()
    call("config", "set", "retention_days", "30", "-w", protected, check=0)
    assert call("config", "get", "retention.max_age", cwd=protected).stdout == "30d\n"
    call("config", "set", "-g", "retention.max_age", "1d", check=0)
    weaker = call("config", "set", "-g", "git", "exclude", cwd=protected, check=0)
    assert weaker.stdout == f"git = exclude ({user_file(home)})\n"
    assert tomllib.loads(user_file(home).read_text()) == {"retention": {"max_age": "1d"}, "git": "exclude"}
    assert call("config", "unset", "retention_days", cwd=protected, check=0).stdout == (
        f"retention.max_age = 1d ({user_file(home)})\n"
    )
    call("config", "unset", "-g", "retention.max_age", "git", check=0)
    assert tomllib.loads(user_file(home).read_text()) == {}
    again = call("config", "unset", "-g", "git", check=0)
    assert "as it was" in again.stderr


def test_what_is_set_but_overruled_is_said(protected: Path, call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASNAP_GIT", "include")
    result = call("config", "set", "git", "exclude", cwd=protected, check=0)
    assert result.stdout == "git = include (CASNAP_GIT)\n"
    assert "note: git is include all the same: CASNAP_GIT is stronger" in result.stderr


@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        ("7d", {"retention.keep": None, "retention.max_age": "7d"}),
        ("36h", {"retention.keep": None, "retention.max_age": "36h"}),
        ("20", {"retention.keep": 20, "retention.max_age": None}),
    ],
)
def test_the_options_of_ws_ckpt_set_an_age_or_a_number_never_both(
    protected: Path, home: Path, keep: str, expected: dict[str, Any], call: Any
) -> None:
    call("config", "set", "retention.keep", "3", cwd=protected)
    call("config", "set", "retention.max_age", "3d", cwd=protected)
    result = call("config", "--enable-auto-cleanup", "--auto-cleanup-keep", keep, "--json", cwd=protected, check=0)
    found = settings(result)
    assert {key: value for key, (value, _) in found.items()} == {**expected, "retention.auto": True}
    assert {origin for _, origin in found.values()} == {"workspace"}
    call("config", "-g", "--disable-auto-cleanup", "--auto-cleanup-keep", keep, check=0)
    retention = tomllib.loads(user_file(home).read_text())["retention"]
    assert retention["auto"] is False
    assert {f"retention.{key}" for key in retention} == {*expected, "retention.auto"}


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("set", "retention.kep", "4"), 2, "bad key 'retention.kep': there is no such key"),
        (("set", "retention.keep", "many"), 2, "bad retention.keep 'many': not a whole number"),
        (("set", "retention.keep"), 2, "retention.keep takes one value"),
        (("set", "retention.keep", "1", "2"), 2, "retention.keep takes one value"),
        (("set", "exclude", "a\nb"), 2, "a pattern is more than one line"),
        (("set", "exclude", b"\xff"), 2, "it is not UTF-8 text"),
        (("set", "min_free", "1G"), 2, "it is for the whole store"),
        (("set", "hook.auto_init", "always"), 2, "casnap config set -g hook.auto_init VALUE"),
        (("set", "hook.deadline", "5"), 2, "bad key hook.deadline: it is for all hooks, not for one workspace"),
        (("unset", "hook.deadline"), 2, "it is for all hooks"),
        (("set", "hook.auto_init", "often"), 2, "none of project, always, never"),
        (("get", "zork"), 2, "bad key 'zork'"),
        (("unset", "zork"), 2, "bad key 'zork'"),
        (("unset", "-g", "zork"), 2, "bad key 'zork'"),
        (("unset",), 2, "bad arguments"),
        (("frobnicate",), 2, "bad arguments: frobnicate"),
        (("list", "more"), 2, "bad arguments"),
        (("list", "--enable-auto-cleanup"), 2, "beside --auto-cleanup options"),
        (("--enable-auto-cleanup", "--disable-auto-cleanup"), 2, "--enable-auto-cleanup and --disable-auto-cleanup"),
        (("--auto-cleanup-keep", "7 days"), 2, "bad --auto-cleanup-keep '7 days': not an age"),
        (("-g", "-w", "."), 2, "-g is for all workspaces"),
        (("import", "no-such.yaml"), 2, "cannot read no-such.yaml"),
    ],
)
def test_a_slip_is_an_error_that_names_it_and_changes_nothing(
    protected: Path, home: Path, words: tuple[str, ...], status: int, said: str, call: Any
) -> None:
    before = call("config", "--json", cwd=protected).stdout
    result = call("config", *words, cwd=protected, check=status)
    assert said in result.stderr
    assert call("config", "--json", cwd=protected).stdout == before
    assert not user_file(home).exists()


def test_outside_a_workspace_it_asks_which_one_is_meant(protected: Path, tmp_path: Path, call: Any) -> None:
    for words in ((), ("set", "git", "exclude"), ("get", "git")):
        result = call("config", *words, cwd=tmp_path, check=13)
        assert "name a workspace with -w DIR, or say -g" in result.stderr
    assert call("config", "-g", "get", "git", cwd=tmp_path, check=0).stdout == "include\n"


def test_without_a_store_the_users_file_can_be_written_all_the_same(tmp_path: Path, home: Path, call: Any) -> None:
    call("config", cwd=tmp_path, check=13)
    call("config", "-g", "set", "git", "exclude", cwd=tmp_path, check=0)
    assert not (home / "store").exists()


def test_a_broken_file_stops_every_verb_but_the_one_that_repairs_it(protected: Path, home: Path, call: Any) -> None:
    file = user_file(home)
    file.parent.mkdir(parents=True)
    file.write_text('# mine\nexclude = ["*.o"]\nzork = 1\ngit = 5\n')
    for verb in ("checkpoint", "status", "list", "rollback"):
        result = call(verb, cwd=protected, check=2)
        assert f"error: bad key 'zork' in {file}, line 3: there is no such key" in result.stderr
    listed = call("config", "list", cwd=protected, check=2)
    assert listed.stdout.splitlines()[1].split()[:2] == ["exclude", "*.o"]
    assert [line for line in listed.stderr.splitlines() if line.startswith("problem:")] == [
        f"problem: bad key 'zork' in {file}, line 3: there is no such key",
        f"problem: bad git 5 in {file}, line 4: none of include, exclude",
    ]
    problems = call("config", "--json", cwd=protected, check=2).json()["problems"]
    assert len(problems) == 2
    call("config", "get", "exclude", cwd=protected, check=2)
    call("config", "unset", "-g", "zork", check=0)
    call("config", "set", "-g", "git", "include", check=0)
    call("status", cwd=protected, check=0)
    assert file.read_text() == '# mine\nexclude = ["*.o"]\ngit = "include"\n'


def test_what_oh_my_coder_has_is_imported(protected: Path, home: Path, tmp_path: Path, call: Any) -> None:
    pytest.importorskip("yaml")
    (protected / ".omc").mkdir()
    (protected / ".omc" / "checkpoint.yaml").write_text(
        "retention_days: 7\nmax_checkpoints: 50\nauto_checkpoint: false\nother: 1\n"
        "exclude:\n  - '*.log'\n  - node_modules\n"
    )
    result = call("config", "import", ".omc/checkpoint.yaml", "--json", cwd=protected, check=0)
    assert settings(result) == {
        "exclude": (["*.log", "node_modules"], "workspace"),
        "auto_checkpoint": (False, "workspace"),
        "retention.keep": (50, "workspace"),
        "retention.max_age": ("7d", "workspace"),
    }
    assert len(result.json()["notes"]) == 2
    call("config", "-g", "import", ".omc/checkpoint.yaml", cwd=protected, check=0)
    assert tomllib.loads(user_file(home).read_text())["exclude"] == ["*.log", "node_modules"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("retention_days: often", "bad retention_days 'often' in bad.yaml: not a whole number"),
        ("exclude: '*'", "not a list of patterns"),
        ("- 1\n- 2", "it is not a list of keys and values"),
        ("a: [", "cannot read bad.yaml"),
        ("a: !!python/object/apply:os.system ['true']", "cannot read bad.yaml"),
        ("[" * 1_200, "cannot read bad.yaml"),
    ],
)
def test_a_yaml_file_that_makes_no_sense_changes_nothing(protected: Path, text: str, said: str, call: Any) -> None:
    pytest.importorskip("yaml")
    (protected / "bad.yaml").write_text(text)
    before = call("config", "--json", cwd=protected).stdout
    assert said in call("config", "import", "bad.yaml", cwd=protected, check=2).stderr
    assert call("config", "--json", cwd=protected).stdout == before


def test_without_a_yaml_library_it_says_how_to_get_one(
    protected: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    result = call("config", "import", "x.yaml", cwd=protected, check=1)
    assert "pip install 'casnap[yaml]'" in result.stderr


def test_libraries_for_writing_are_loaded_only_to_write(protected: Path) -> None:
    run("checkpoint", cwd=protected, check=0)
    traced = run("status", cwd=protected, env={"PYTHONPROFILEIMPORTTIME": "1"}, check=0).stderr
    assert "casnap.settings.layers" in traced
    assert not {"tomlkit", "tomllib", "yaml"} & {line.split("|")[-1].strip() for line in traced.splitlines()}


def test_a_file_that_may_not_be_written_is_left_as_it_is(protected: Path, home: Path, call: Any) -> None:
    if os.geteuid() == 0:
        user_file(home).parent.parent.mkdir(parents=True)
        user_file(home).parent.write_text("in the way")
    else:
        home.chmod(0o500)
    try:
        assert (
            "cannot create directory" in call("config", "-g", "set", "git", "exclude", cwd=protected, check=17).stderr
        )
    finally:
        home.chmod(0o700)
