"""What all tests share: how Hypothesis searches, and that no test sees the store of the person who runs it."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("dev", deadline=None)
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

_KEPT = (
    "CASNAP_CASE_MB",
    "CASNAP_CASE_ROUNDS",
    "CASNAP_CASE_SECONDS",
    "CASNAP_CLIENTS_CACHE",
    "CASNAP_CRASH_FILES",
    "CASNAP_CRASH_ROUNDS",
    "CASNAP_DIFF_FIRST",
    "CASNAP_DIFF_PAIRS",
    "CASNAP_IGNORE_REPOS",
    "CASNAP_REAL_CLIENTS",
    "CASNAP_TREE_FILES",
)
_HOME = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """Point all that settings look at away from the person's own files, also for fixtures of a wide scope."""
    for variable in list(os.environ):
        if variable.startswith(("CASNAP_", "XDG_")) and variable not in _KEPT:
            del os.environ[variable]
    config.stash[_HOME] = home = tempfile.mkdtemp(prefix="casnap-tests-")
    os.environ |= {"HOME": home, "CASNAP_STORE": f"{home}/store", "CASNAP_NO_INPUT": "1"}


def pytest_unconfigure(config: pytest.Config) -> None:
    """Take the home away again."""
    shutil.rmtree(config.stash[_HOME], ignore_errors=True)


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home directory, and a store below it that does not exist yet, for each test."""
    directory = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(directory))
    monkeypatch.setenv("CASNAP_STORE", str(directory / "store"))
    return directory
