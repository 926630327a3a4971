"""A file of more than 4 GiB: sizes and offsets beyond 32 bits, in little memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.cli import peak_memory

pytestmark = pytest.mark.slow

SIZE = (4 << 30) + (9 << 20)
MARKS = {0: b"begin", (4 << 30) - 3: b"across 4 GiB", SIZE - 3: b"end"}


def test_a_file_of_more_than_4_gib_comes_back_with_its_holes(tmp_path: Path) -> None:
    workspace, path = tmp_path / "workspace", tmp_path / "workspace" / "huge"
    workspace.mkdir()
    with path.open("wb") as file:
        file.truncate(SIZE)
        for offset, data in MARKS.items():
            os.pwrite(file.fileno(), data, offset)
    blocks = path.stat().st_blocks
    assert peak_memory("checkpoint", "-w", workspace, "c1") < 300 << 20
    assert peak_memory("restore-to", "-w", workspace, tmp_path / "out") < 300 << 20
    restored = tmp_path / "out" / "huge"
    assert restored.stat().st_size == SIZE
    assert restored.stat().st_blocks <= 2 * blocks + 64
    with restored.open("rb") as file:
        for offset, data in MARKS.items():
            assert os.pread(file.fileno(), len(data), offset) == data
        assert os.pread(file.fileno(), 20, (4 << 30) + 20) == bytes(20)
