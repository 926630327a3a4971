"""Changing the user's configuration file: what a person wrote there stays."""

from __future__ import annotations

import os
import stat
import threading
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casnap.errors import Busy, Usage
from casnap.fs.locks import try_flock
from casnap.model.config import KEYS, flat
from casnap.settings.layers import file_layer
from casnap.settings.user_file import edit, names

DAY = 86_400 * 10**9

WRITTEN = """# mine

compression = 5   # quick enough
"sensitive.policy" = "keep"

[retention]  # how long
# not too many
keep = 7
max_age = "30d"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config" / "casnap" / "config.toml"


@pytest.fixture
def written(path: Path) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text(WRITTEN)
    return path


def test_comments_and_order_stay(written: Path) -> None:
    assert edit(written, {"compression": 6, "retention.keep": None, "sensitive.policy": "skip"}, wait=1)
    text = written.read_text()
    assert text == (WRITTEN.replace("= 5", "= 6").replace("keep = 7", 'keep = "none"').replace('= "keep"', '= "skip"'))
    assert edit(written, {}, ("retention.max_age", "sensitive.policy"), wait=1)
    assert written.read_text() == text.replace('max_age = "30d"\n', "").replace('"sensitive.policy" = "skip"\n', "")
    assert not edit(written, {"compression": 6}, wait=1)


def test_a_new_key_outside_tables_does_not_land_in_one(written: Path) -> None:
    edit(
        written,
        {"git": "exclude", "exclude": ("*.o", 'a "b"'), "max_file_size": 1 << 30, "retention.auto": True},
        wait=1,
    )
    assert tomllib.loads(written.read_text()) == {
        "compression": 5,
        "sensitive.policy": "keep",
        "git": "exclude",
        "exclude": ["*.o", 'a "b"'],
        "max_file_size": "1G",
        "retention": {"keep": 7, "max_age": "30d", "auto": True},
    }
    assert all(line in written.read_text() for line in WRITTEN.splitlines())


def test_a_file_is_made_with_its_directories_for_its_owner_alone(path: Path) -> None:
    assert edit(path, {"retention.keep": 4}, wait=1)
    assert tomllib.loads(path.read_text()) == {"retention": {"keep": 4}}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert edit(path, {}, ("retention.keep",), wait=1)
    assert tomllib.loads(path.read_text()) == {}


def test_setting_a_key_takes_its_other_names_away(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("max_checkpoints = 3\nretention_days = 4\nauto_cleanup = true\n")
    edit(path, {"retention.keep": 5}, ("retention.max_age",), wait=1)
    assert tomllib.loads(path.read_text()) == {"auto_cleanup": True, "retention": {"keep": 5}}


def test_what_stands_in_the_place_of_a_table_is_replaced(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("retention = 5\nzork = 1\n")
    edit(path, {"retention.keep": 5}, ("zork",), wait=1)
    assert tomllib.loads(path.read_text()) == {"retention": {"keep": 5}}


def test_mode_and_link_stay_and_nothing_else_is_left_behind(written: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "casnap.toml"
    real.parent.mkdir()
    written.rename(real)
    written.symlink_to(real)
    real.chmod(0o664)
    assert edit(written, {"compression": 9}, wait=1)
    assert written.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o664
    assert tomllib.loads(real.read_text())["compression"] == 9
    assert (os.listdir(written.parent), os.listdir(real.parent)) == (["config.toml"], ["casnap.toml"])


@pytest.mark.parametrize("text", [b"compression = [", b"a = 1\na = 2", b"\xff = 1"])
def test_a_file_that_does_not_parse_is_refused_untouched(path: Path, text: bytes) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(text)
    with pytest.raises(Usage, match="cannot change"):
        edit(path, {"compression": 5}, wait=1)
    assert path.read_bytes() == text


def test_several_at_once_lose_nothing(path: Path) -> None:
    chosen = {"compression": 4, "git": "exclude", "retention.keep": 3, "retention.auto": True, "exclude": ("x",)}
    threads = [
        threading.Thread(target=edit, args=(path, {name: value}), kwargs={"wait": 10}) for name, value in chosen.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert names(path) == chosen.keys()


def test_whoever_waits_too_long_is_told(written: Path) -> None:
    fd = os.open(written.parent, os.O_RDONLY)
    assert try_flock(fd, 0)
    with pytest.raises(Busy, match="cannot change the configuration"):
        edit(written, {"compression": 5}, wait=0)
    os.close(fd)


SOME: dict[str, st.SearchStrategy[Any]] = {
    "exclude": st.lists(st.text(min_size=1).filter(lambda text: not set(text) & set("\n\0"))).map(tuple),
    "max_file_size": st.none() | st.integers(0, 1 << 40),
    "retention.max_age": st.none() | st.integers(0, 400).map(lambda days: days * DAY),
    "retention.keep": st.none() | st.integers(0, 99),
    "git": st.sampled_from(["include", "exclude"]),
    "sensitive.patterns": st.lists(st.sampled_from(["*.key", "a b", "é"])).map(tuple),
    "min_free": st.none() | st.integers(0, 1 << 40),
}
BEGINNINGS = (
    "",
    WRITTEN,
    "[retention]\nauto = true\n[sensitive]\n",
    "retention.auto = false\n\n[zork]\na = 1\n",
    "a={b=1}",
)


@given(
    start=st.sampled_from(BEGINNINGS),
    changes=st.fixed_dictionaries({}, optional=SOME),
    removals=st.lists(st.sampled_from([*KEYS, "zork.a", "a.b"]), unique=True),
)
def test_afterwards_the_file_says_what_was_asked_for_and_the_rest_as_before(
    tmp_path_factory: pytest.TempPathFactory, start: str, changes: dict[str, Any], removals: list[str]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any-config.toml"
    path.write_text(start)
    gone = {name for name in removals if name not in changes}
    edit(path, changes, tuple(gone), wait=1)
    before, after = dict(flat(tomllib.loads(start))), dict(flat(tomllib.loads(path.read_text())))
    untouched = {name: value for name, value in before.items() if name not in gone | changes.keys()}
    assert {name: value for name, value in after.items() if name not in changes and value != {}} == {
        name: value for name, value in untouched.items() if value != {}
    }
    layer = file_layer(path)
    assert {name: layer.values[name] for name in changes} == changes
