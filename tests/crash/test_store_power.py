"""Power loss: only what was forced out survives, and of the rest any part or none."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.stores import WORKSPACE, chunk, commit_chunks, make_store, noise, open_store


class Disk:
    """Watches a directory tree and knows what of it would be left after a power loss.

    A file's bytes survive as they were at its last sync, a name when its directory was synced after it was
    made. ``torn`` adds what a real disk may add: a part of the bytes that were appended since.
    """

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.names: dict[Path, dict[str, int]] = {}
        self.contents: dict[int, bytes] = {}
        self.moments: list[dict[Path, tuple[bytes, bytes]]] = []
        for which in ("fsync", "fdatasync"):
            monkeypatch.setattr(os, which, self._watch(getattr(os, which)))

    def sync_all(self) -> None:
        for directory in [self.root, *(path for path in self.root.rglob("*") if path.is_dir())]:
            self._keep(directory)
        for file in self.root.rglob("*"):
            if file.is_file():
                self._keep(file)

    def _watch(self, real):  # type: ignore[no-untyped-def]
        def sync(fd: int) -> None:
            self.moments.append(self.after_power_loss())  # just before: the worst moment
            real(fd)
            self._keep(Path(os.readlink(f"/proc/self/fd/{fd}")))
            self.moments.append(self.after_power_loss())

        return sync

    def _keep(self, path: Path) -> None:
        if path.is_dir():
            entries = {
                entry.name: entry.stat().st_ino for entry in path.iterdir() if not entry.name.startswith("catalog")
            }
            self.names[path] = entries
        else:
            self.contents[path.stat().st_ino] = path.read_bytes()

    def after_power_loss(self) -> dict[Path, tuple[bytes, bytes]]:
        """Each file whose name survives: its bytes for certain, and those that may be there or not."""
        left = {}
        for directory, entries in self.names.items():
            for name, inode in entries.items():
                path = directory / name
                if path.is_file() and path.stat().st_ino == inode:
                    sure, now = self.contents.get(inode, b""), path.read_bytes()
                    left[path] = (sure, now[len(sure) :] if now.startswith(sure) else b"")
        return left


def _restore(files: dict[Path, tuple[bytes, bytes]], root: Path, target: Path, torn: random.Random | None) -> None:
    for directory in ("packs", "oplog", "locks", "cache"):
        (target / directory).mkdir(parents=True)
    for path, (sure, maybe) in files.items():
        part = b""
        if torn is not None and maybe:
            part = maybe[: torn.randrange(len(maybe) + 1)]
            if torn.random() < 0.3 and part:  # the length was written, some of the bytes were not
                hole = torn.randrange(len(part))
                part = part[:hole] + bytes(len(part) - hole)
        (target / path.relative_to(root)).write_bytes(sure + part)


@pytest.fixture
def memory() -> Iterator[Path]:
    import shutil
    import tempfile

    directory = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    yield directory
    shutil.rmtree(directory)


@pytest.mark.parametrize("torn", [False, True])
def test_case_090_what_was_reported_survives_a_power_loss_at_any_moment(
    memory: Path, monkeypatch: pytest.MonkeyPatch, torn: bool
) -> None:
    monkeypatch.setattr("casnap.store.packs.PACK_SIZE", 30_000)
    monkeypatch.setattr("casnap.store.oplog.SEGMENT_SIZE", 1500)
    root = memory / "store"
    store = make_store(root)
    disk = Disk(root, monkeypatch)
    disk.sync_all()
    reported = []
    for number in range(10):
        name = f"c{number}"
        commit_chunks(store, *(noise((name, part), 4000) for part in range(3)), name=name)
        reported.append((len(disk.moments), name))
    moments = list(disk.moments)
    monkeypatch.undo()
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(os, "fdatasync", lambda _: None)
    for moment, files in enumerate(moments):
        target = memory / f"lost-{moment}"
        _restore(files, root, target, random.Random(moment) if torn else None)
        expected = [name for when, name in reported if when <= moment + 1]
        survivor = open_store(target)
        names = [row.name for row in reversed(survivor.state().history(WORKSPACE))]
        assert names[: len(expected)] == expected
        commit_chunks(survivor, noise(("next", moment)), name="next")
        for name in names:
            for part in range(3):
                assert survivor.read(chunk(noise((name, part), 4000))) == noise((name, part), 4000)
        survivor.close()
    assert len(moments) > 40
