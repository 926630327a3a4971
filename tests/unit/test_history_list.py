"""Long lists of checkpoints: read together, and the same as one by one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from casnap import CheckpointManager
from casnap.engine import history
from casnap.model.checkpoint import Checkpoint
from casnap.store.state import State
from casnap.store.tables import Tables


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    path = tmp_path / "workspace"
    path.mkdir()
    return path


@pytest.fixture
def manager(workspace: Path) -> CheckpointManager:
    manager = CheckpointManager(workspace, store=workspace.with_name("store"))
    for number in range(23):
        (workspace / "file").write_text(f"{number}\n")
        manager.create(f"c{number}", f"message {number}", metadata={"number": number})
    manager.rollback("c5")
    (workspace / "file").write_text("after\n")
    manager.create("after")
    for gone in ("c7", "c8", "c12", "c22"):
        manager.delete(gone)
    return manager


def listed(workspace: Path, monkeypatch: pytest.MonkeyPatch, many: int) -> list[Checkpoint]:
    monkeypatch.setattr(history, "MANY", many)
    return CheckpointManager(workspace, store=workspace.with_name("store")).list()


def damage(workspace: Path, checkpoint: str) -> None:
    """Make the record of a checkpoint's object bad."""
    (pack,) = (workspace.with_name("store") / "packs").iterdir()
    data = bytearray(pack.read_bytes())
    at = data.find(f"message {checkpoint}".encode())
    assert at > 0
    data[at] ^= 1
    pack.write_bytes(data)


@pytest.mark.usefixtures("manager")
def test_what_is_read_together_is_as_what_is_read_alone(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damage(workspace, "10")
    alone = listed(workspace, monkeypatch, 1_000)
    assert [checkpoint.name for checkpoint in alone if checkpoint.damaged] == ["c10"]
    for many in (1, 4, 7, len(alone)):
        assert listed(workspace, monkeypatch, many) == alone


@pytest.mark.usefixtures("manager")
def test_a_long_list_asks_few_questions(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    ask = State._ask

    def counted(self: State, question: Callable[[Tables], object]) -> object:
        asked.append(question)
        return ask(self, question)

    monkeypatch.setattr(State, "_ask", counted)
    counts = {}
    for many in (10, 1_000):
        asked.clear()
        assert len(listed(workspace, monkeypatch, many)) == 20
        counts[many] = len(asked)
    assert counts[10] < 20
    assert counts[1_000] > 40  # as is to be seen where each is asked for by itself
