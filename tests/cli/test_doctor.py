"""``casnap doctor`` finds what is wrong, and says what to do about it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from casnap.settings import health
from casnap.settings.health import is_faulty
from casnap.store.follower import MANY_ROWS
from support.cli import run


@pytest.fixture
def project(home: Path) -> Path:
    place = home / "project"
    (place / ".git").mkdir(parents=True)
    (place / "file").write_text("one\n")
    run("checkpoint", cwd=place, check=0)
    return place


def findings(check: int, **env: str) -> dict[tuple[str, str], dict[str, Any]]:
    """By subject and grade."""
    document = run("doctor", "--json", env=env, check=check).json()
    return {(one["subject"], one["grade"]): one for one in document["findings"]}


def test_where_all_is_well_nothing_is_to_be_done(project: Path) -> None:
    found = findings(0)
    assert {subject for subject, grade in found if grade == "bad"} == set()
    assert ("store", "good") in found
    assert found["workspaces", "good"]["said"] == "1 registered"
    assert sqlite3.sqlite_version in next(one["said"] for (subject, _), one in found.items() if subject == "SQLite")
    assert all(one["remedy"] for (_, grade), one in found.items() if grade == "bad")


def test_without_a_store_it_says_how_to_get_one(home: Path) -> None:
    assert findings(0)["store", "note"]["remedy"] == "casnap checkpoint makes one, and protects the current directory"
    assert not Path(os.environ["CASNAP_STORE"]).exists()


def test_a_store_that_cannot_be_opened_is_found(project: Path) -> None:
    shutil.rmtree(Path(os.environ["CASNAP_STORE"]) / "oplog")
    assert findings(1)["store", "bad"]["remedy"]


@pytest.mark.parametrize(
    ("directory", "said"), [("packs", "its directory packs is missing"), ("locks", "its directory locks is missing")]
)
def test_a_store_that_cannot_be_written_is_found(directory: str, said: str, project: Path) -> None:
    shutil.rmtree(Path(os.environ["CASNAP_STORE"]) / directory)
    assert said in findings(1)["store", "bad"]["said"]


def test_the_catalog_is_inspected(project: Path) -> None:
    behind = r"catalog-1\.db is behind by \d of 3 operations, and may be: .* once they are many"
    assert re.fullmatch(behind, findings(0)["catalog", "good"]["said"])
    (catalog,) = Path(os.environ["CASNAP_STORE"]).glob("catalog-*.db")
    with contextlib.closing(sqlite3.connect(catalog)) as connection:
        connection.execute("CREATE TABLE mine (a)")
        connection.execute("DROP INDEX checkpoints_to_free")
        connection.commit()
    found = findings(1)["catalog", "bad"]
    assert "CREATE TABLE mine (a)" in found["said"]
    assert "checkpoints_to_free" in found["said"]
    assert "casnap check --repair" in found["remedy"]


def test_a_catalog_that_has_all_says_how_many_checkpoints_there_are(home: Path) -> None:
    project = home / "project"
    project.mkdir()
    for number in range(MANY_ROWS + 1):  # so many that the catalog takes them at once
        (project / f"file{number}").write_text(f"content {number}\n")
    run("checkpoint", cwd=project, check=0)
    said = findings(0)["catalog", "good"]["said"]
    assert re.fullmatch(r"catalog-1\.db has all \d operations; checkpoints: 1", said)
    run("pin", "@", cwd=project, check=0)
    assert "is behind by 1 of " in findings(0)["catalog", "good"]["said"]


def test_a_workspace_that_is_gone_and_one_without_a_checkpoint_are_found(project: Path, home: Path) -> None:
    (home / "empty").mkdir()
    run("init", cwd=home / "empty", check=0)
    shutil.rmtree(project)
    found = findings(1)
    assert f"casnap forget -w {project}" in found[f"workspace {project}", "note"]["remedy"]
    assert found[f"workspace {home / 'empty'}", "bad"]["remedy"] == f"make one with: casnap checkpoint -w {home}/empty"


def test_a_configuration_that_makes_no_sense_is_found(project: Path, home: Path) -> None:
    file = home / ".config" / "casnap" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("zork = 1\n")
    assert "bad key 'zork'" in findings(1)["configuration", "bad"]["said"]
    file.unlink()
    assert "CASNAP_COMPRESSION" in findings(1, CASNAP_COMPRESSION="99")["configuration", "bad"]["said"]


def test_a_hook_that_fires_is_told_and_one_that_fails_is_found(project: Path) -> None:
    assert findings(0)["agents", "note"]["said"] == "none is found here that casnap can be set up for"
    run("hook", "--agent", "codex", said=json.dumps({"event": "prompt", "cwd": str(project)}).encode(), check=0)
    assert findings(0)["agent codex", "good"]["said"].startswith("its hook fired last at ")
    run("hook", "--agent", "codex", said=b"no json", cwd=project, check=0)
    assert "it is no JSON" in findings(1)[f"hook in {project}", "bad"]["said"]


def test_an_agent_that_is_here_is_found_and_whether_its_hooks_are_in_place_and_fire(project: Path, home: Path) -> None:
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text("{}")
    assert findings(0)["agent claude-code", "note"]["remedy"] == (
        "set it up with: casnap plugin install --runtime claude-code"
    )
    run("plugin", "install", check=0)
    assert findings(0)["agent claude-code", "note"]["said"] == "it is set up, and has run no hook yet"
    event = {"hook_event_name": "Stop", "cwd": str(project)}
    run("hook", "--agent", "claude-code", said=json.dumps(event).encode(), check=0)
    assert findings(0)["agent claude-code", "good"]["said"].startswith("its hook fired last at ")
    settings.write_text(settings.read_text().replace("casnap hook", "elsewhere/casnap hook"))
    assert "casnap plugin install" in findings(1)["agent claude-code", "bad"]["remedy"]
    settings.write_text("{")
    assert f"cannot change {settings}" in findings(1)["agent claude-code", "bad"]["said"]


def test_a_person_reads_each_finding_with_its_remedy_below_it(home: Path) -> None:
    lines = run("doctor", check=0).stdout.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("note  store: "))
    assert lines[at + 1] == "      casnap checkpoint makes one, and protects the current directory"


@pytest.mark.parametrize(
    ("version", "faulty"),
    [
        ((3, 6, 23), False),
        ((3, 7, 0), True),
        ((3, 40, 1), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 45, 0), True),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 54, 1), False),
    ],
)
def test_versions_of_sqlite_with_the_fault_are_known(version: tuple[int, int, int], faulty: bool) -> None:
    assert is_faulty(version) == faulty


def test_few_watches_are_found_and_a_system_without_limits_has_none(tmp_path: Path) -> None:
    (tmp_path / "max_user_watches").write_text("8192\n")
    (tmp_path / "max_user_instances").write_text("128\n")
    (few,) = health._inotify(tmp_path)
    assert (few.grade.value, few.remedy) == ("note", "raise it with: sysctl fs.inotify.max_user_watches=524288")
    (tmp_path / "max_user_watches").write_text("65536\n")
    assert [one.grade.value for one in health._inotify(tmp_path)] == ["good"]
    assert list(health._inotify(tmp_path / "none")) == []
