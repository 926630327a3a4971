"""What each key of the configuration does, set for one workspace or for all."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from casnap import CheckpointManager, StorageFailed, Usage
from casnap.engine.cleanup import rule_of
from casnap.engine.config import configure, configured
from casnap.engine.context import Context, workspace_row
from casnap.model.config import KEYS, Value
from casnap.model.policy import Sensitive
from casnap.model.report import WorkspaceInfo
from casnap.settings import load_settings, open_context, resolve_workspace
from casnap.store.session import WriteSession

TAG = "Signature: 8a477f597d28d172789f06886806bc55"
FILES = {"a.log": "x", "b.o": "x", "big": "x" * 1001, ".gitignore": "*.o\n", ".env": "K=v\n", "cache/CACHEDIR.TAG": TAG}


@contextmanager
def opened(workspace: Path) -> Iterator[tuple[Context, WorkspaceInfo]]:
    settings = load_settings()
    context = open_context(settings)
    try:
        yield context, resolve_workspace(settings, context, str(workspace))
    finally:
        context.store.close()


def put(workspace: Path, **values: Value) -> None:
    """Set keys for a workspace; a dot is written as two underscores."""
    texts = {name.replace("__", "."): value for name, value in values.items()}
    with opened(workspace) as (context, info):
        configure(
            context,
            info,
            {name: msgspec.json.encode(KEYS[name].plain(value)).decode() for name, value in texts.items()},
        )


@pytest.fixture
def filled(workspace: Path) -> Path:
    for name, text in FILES.items():
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text(text)
    subprocess.run(["git", "init", "-q", workspace], check=True)
    with CheckpointManager(workspace) as manager:
        manager.create("first")
    return workspace


def left_out(workspace: Path) -> dict[str, int]:
    with CheckpointManager(workspace) as manager:
        found = manager.status()
        assert manager.create().skipped == sum(found.left_out.values())
        return found.left_out


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, {"ignored": 1}),
        ({"exclude": ("*.log", "b.?")}, {"ignored": 3}),
        ({"exclude_caches": False}, {}),
        ({"use_gitignore": True}, {"ignored": 2}),
        ({"max_file_size": 1000}, {"ignored": 1, "too large": 1}),
        ({"max_file_size": 1001}, {"ignored": 1}),
        ({"git": "exclude"}, {"ignored": 2}),
        ({"sensitive__policy": "skip"}, {"ignored": 1, "sensitive": 1}),
        ({"sensitive__policy": "skip", "sensitive__patterns": ("b*",)}, {"ignored": 1, "sensitive": 2}),
        ({"sensitive__policy": "redact", "sensitive__patterns": (".env", "a.log")}, {"ignored": 1, "sensitive": 1}),
        ({"sensitive__policy": "keep", "sensitive__patterns": ("*",)}, {"ignored": 1}),
    ],
)
def test_a_key_that_is_set_for_a_workspace_takes_effect(
    filled: Path, values: dict[str, Any], expected: dict[str, int]
) -> None:
    if values:
        put(filled, **values)
    assert left_out(filled) == expected


def test_another_workspace_goes_its_own_way(filled: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.log").write_text("x")
    put(filled, exclude=("*.log",))
    with CheckpointManager(other) as manager:
        manager.create("c1")
    assert left_out(other) == {}
    assert left_out(filled) == {"ignored": 2}


def test_a_key_in_the_users_file_takes_effect_everywhere_and_a_variable_is_stronger(
    filled: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home / ".config" / "casnap" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text('exclude = ["*.log"]\n')
    assert left_out(filled) == {"ignored": 2}
    put(filled, exclude=())
    assert left_out(filled) == {"ignored": 1}
    monkeypatch.setenv("CASNAP_EXCLUDE", "*.log\n*.o\n")
    assert left_out(filled) == {"ignored": 3}


def test_every_git_at_any_depth_is_left_out_and_survives_a_rollback(filled: Path) -> None:
    (filled / "sub").mkdir()
    (filled / "sub" / ".git").write_text("gitdir: elsewhere\n")
    put(filled, git="exclude")
    with CheckpointManager(filled) as manager:
        manager.create("without")
        (filled / ".git" / "new").write_text("new")
        (filled / "sub" / ".git").write_text("gitdir: other\n")
        (filled / "a.log").write_text("changed")
        assert set(manager.rollback("without").kept) >= {b".git"}
        assert (filled / "a.log").read_text() == "x"
        assert (filled / ".git" / "new").read_text() == "new"
        assert (filled / "sub" / ".git").read_text() == "gitdir: other\n"
    put(filled, git="include")
    with CheckpointManager(filled) as manager:  # that the checkpoint left it out protects it still
        (filled / "deep").mkdir()
        (filled / "deep" / ".git").mkdir()
        assert b"deep/.git" in manager.rollback("without").kept


def test_the_rule_of_a_cleanup_is_the_one_that_is_configured(filled: Path) -> None:
    with opened(filled) as (context, info):
        assert rule_of(context, info).words == "keep 20"
    put(filled, retention__keep=None, retention__max_age=7 * 86_400 * 10**9, retention__keep_named=True)
    with opened(filled) as (context, info):
        rule = rule_of(context, info)
        assert (rule.keep, rule.older_than_ns, rule.keep_named) == (None, 7 * 86_400 * 10**9, True)
        assert rule_of(context, info, keep=3).words == "keep 3"


def test_policy_is_that_of_the_workspace_in_every_part(filled: Path) -> None:
    put(filled, one_file_system=False, sqlite_consistent=True, sensitive__policy="redact", retention__auto=True)
    with opened(filled) as (context, info):
        policy = context.policy_in(workspace_row(context.store.state(), info))
    assert not policy.selection.one_file_system
    assert policy.sqlite_consistent
    assert policy.selection.sensitive is Sensitive.REDACT
    assert policy.retention.auto
    assert context.policy.selection.sensitive is Sensitive.KEEP


def test_min_free_and_compression_in_the_users_file_are_the_stores(
    filled: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home / ".config" / "casnap" / "config.toml"
    file.parent.mkdir(parents=True)
    levels: list[int] = []
    real = WriteSession.__init__

    def note(self: WriteSession, *args: Any, **options: Any) -> None:
        levels.append(args[0].level)
        real(self, *args, **options)

    monkeypatch.setattr(WriteSession, "__init__", note)
    file.write_text("compression = 7\n")
    with CheckpointManager(filled) as manager:
        manager.create()
    assert set(levels) == {7}
    file.write_text('min_free = "900T"\n')
    with CheckpointManager(filled) as manager, pytest.raises(StorageFailed, match="the disk of the store at /"):
        manager.create()


def test_what_makes_no_sense_for_a_workspace_stops_its_verbs_until_it_is_repaired(filled: Path) -> None:
    with opened(filled) as (context, info):
        configure(context, info, {"zork": "1"})
    with CheckpointManager(filled) as manager:
        with pytest.raises(Usage, match="bad key 'zork' in the settings of the workspace"):
            manager.create()
        with pytest.raises(Usage, match="zork"):
            manager.rollback()
        assert manager.status().problems[0].message.startswith("bad key 'zork'")
    with opened(filled) as (context, info):
        configure(context, info, {"zork": ""})
    assert left_out(filled) == {"ignored": 1}


def test_two_that_set_different_keys_at_once_keep_both(filled: Path) -> None:
    children = []
    for name, text in (("exclude", '["a"]'), ("git", '"exclude"'), ("retention.keep", "5"), ("use_gitignore", "true")):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                with opened(filled) as (context, info):
                    configure(context, info, {name: text})
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    with opened(filled) as (context, info):
        assert dict(configured(context, info)) == {
            "exclude": '["a"]',
            "git": '"exclude"',
            "retention.keep": "5",
            "use_gitignore": "true",
        }
        seq = context.store.state().seq
        assert not configure(context, info, {"git": '"exclude"', "min_free": ""})  # nothing new: nothing recorded
        assert context.store.state().seq == seq


def test_settings_outlive_being_forgotten(filled: Path) -> None:
    put(filled, exclude=("*.log",))
    with CheckpointManager(filled) as manager:
        manager.forget()
        assert manager.create("again").skipped == 2
