"""Real agents are large, and some are proprietary: they are fetched where somebody asks for it, and never shipped.

``CASNAP_REAL_CLIENTS=1`` asks, ``CASNAP_CLIENTS_CACHE`` is where they are kept.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from support.real_agents import Machine


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents and os.environ.get("CASNAP_REAL_CLIENTS") != "1":
            item.add_marker(pytest.mark.skip(reason="real agents are fetched with CASNAP_REAL_CLIENTS=1 only"))


@pytest.fixture(scope="session")
def cache() -> Path:
    place = Path(os.environ.get("CASNAP_CLIENTS_CACHE") or Path(tempfile.gettempdir()) / "casnap-clients")
    place.mkdir(parents=True, exist_ok=True)
    return place


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)
