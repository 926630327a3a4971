"""A file of more than 4 GiB: sizes and offsets beyond 32 bits, in little memory."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from support.cli import run

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
    run("checkpoint", "-w", workspace, "c1", check=0)
    run("restore-to", "-w", workspace, tmp_path / "out", check=0)
    restored = tmp_path / "out" / "huge"
    assert restored.stat().st_size == SIZE
    assert restored.stat().st_blocks <= 2 * blocks + 64
    with restored.open("rb") as file:
        for offset, data in MARKS.items():
            assert os.pread(file.fileno(), len(data), offset) == data
        assert os.pread(file.fileno(), 20, (4 << 30) + 20) == bytes(20)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 300 << 10
