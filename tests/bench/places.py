"""Where stores, workspaces and restored trees lie while they are measured."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY = Path("/dev/shm")
KINDS = ("memory", "ext4")

IMAGE_SIZE = 64 << 30
"""Bytes of a loop image; it is sparse, and takes what is written to it."""


class Place:
    """A directory to work in, on a file system of a known kind."""

    def __init__(self, root: Path, kind: str) -> None:
        self.root, self.kind = root, kind
        self._aside = 0

    def sync(self) -> None:
        """Write out what is due, so that no program pays for what was done before it."""
        if self.kind != "memory":
            subprocess.run(["sync", "-f", str(self.root)], check=True)

    def discard(self, path: Path) -> None:
        """Take a tree away; on a disk only move it: ext4 creates files slowly for minutes after many were deleted."""
        if not path.exists():
            return
        if self.kind == "memory":
            shutil.rmtree(path)
            return
        self._aside += 1
        (self.root / "aside").mkdir(exist_ok=True)
        path.rename(self.root / "aside" / str(self._aside))


@contextmanager
def place(kind: str, scratch: Path | None) -> Iterator[Place]:
    """A place of this kind: ``memory``, ``ext4`` or ``btrfs``; all of it goes with the end of the block.

    ``scratch`` is where images are made, the directory for temporary files by default. The two on an image need root.
    """
    if kind == "memory":
        with tempfile.TemporaryDirectory(prefix="casnap-bench-", dir=MEMORY, ignore_cleanup_errors=True) as root:
            yield Place(Path(root), kind)
        return
    with (
        tempfile.TemporaryDirectory(prefix="casnap-bench-", dir=scratch, ignore_cleanup_errors=True) as root,
        _mounted(Path(root), kind) as mounted,
    ):
        yield Place(mounted, kind)


@contextmanager
def _mounted(directory: Path, kind: str) -> Iterator[Path]:
    image, point = directory / "image", directory / "mounted"
    with image.open("wb") as file:
        file.truncate(IMAGE_SIZE)
    subprocess.run([f"mkfs.{kind}", "-q", str(image)], check=True, capture_output=True)
    point.mkdir()
    subprocess.run(["mount", "-o", "loop,noatime", str(image), str(point)], check=True)
    try:
        yield point
    finally:
        subprocess.run(["umount", str(point)], check=True)
