"""A stat cache in two files is what one file would have been, whatever was edited, saved, lost and read."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from hypothesis import event, given, settings
from hypothesis import strategies as st

from casnap.engine.scanning import _saved_cache, save_cache
from casnap.model.tree import NANOSECONDS
from casnap.store.cache_directory import CacheDirectory
from casnap.workspace import cache_patch, cache_saving
from casnap.workspace.cache import StatCache
from casnap.workspace.cache_file import PATCH_SUFFIX, CacheFile, load_cache
from casnap.workspace.cache_patch import MergedFile
from casnap.workspace.cache_saving import encode_cache
from support.scanning import MemoryStore, SystemClock, settle, take

DIRECTORIES = st.sampled_from(["", "a", "a/b", "a/b/c", "a/d", "e", "e/f", "g"])
NAMES = st.sampled_from(["f", "g", "h.log"])
ACTS = st.one_of(
    st.tuples(st.just("write"), DIRECTORIES, NAMES, st.integers(0, 3)),
    st.tuples(st.just("make"), DIRECTORIES),
    st.tuples(st.just("remove"), DIRECTORIES, NAMES),
    st.tuples(st.just("link"), DIRECTORIES, NAMES, DIRECTORIES),
    st.tuples(st.just("clear"), DIRECTORIES),
    st.tuples(st.just("move"), DIRECTORIES, DIRECTORIES),
    st.tuples(st.just("rules"), DIRECTORIES, st.sampled_from(["*.log\n", "b/\n", ""])),
)
EVENTS = st.one_of(
    st.just(("boot",)),
    st.just(("process",)),  # another: nothing is remembered
    st.tuples(st.just("lose"), st.sampled_from([".stat", PATCH_SUFFIX])),
    st.tuples(st.just("wait"), st.integers(1, 150)),
)
FAULTS = st.sampled_from(["", "", "base fails", "patch fails", "killed between"])
SMALL = st.sampled_from([0, 0, 1 << 30])
STEPS = st.tuples(st.lists(ACTS, max_size=3), st.one_of(st.none(), st.none(), st.none(), EVENTS), FAULTS, SMALL)


class LateClock(SystemClock):
    """Goes before the real one by so many seconds: what was changed just now seems to be as old."""

    def __init__(self, ahead: int) -> None:
        super().__init__()
        self.ahead = ahead

    def now(self) -> int:
        return super().now() + self.ahead * NANOSECONDS


class Failing:
    """A cache directory in which some things do not come about."""

    def __init__(self, place: Path) -> None:
        self.real = CacheDirectory(place, None)
        self.path = place
        self.fault = ""

    def file(self, name: str) -> Path:
        return self.real.file(name)

    def keep(self, name: str, data: bytes) -> bool:
        kind = "patch fails" if name.endswith(PATCH_SUFFIX) else "base fails"
        return self.fault != kind and self.real.keep(name, data)

    def drop(self, name: str) -> None:
        if self.fault != "killed between":
            self.real.drop(name)


class Life:
    """A workspace, the two files of its cache, and what each save would have written as one."""

    def __init__(self, place: Path) -> None:
        self.root = place / "workspace"
        self.row = SimpleNamespace(id="w", path=os.fsencode(self.root))
        self.files = Failing(place / "cache")
        self.objects = MemoryStore()
        self.boot, self.ahead = 0, 0
        self.wholes: dict[bytes, bytes] = {}
        self.process()
        for directory in ("a/b/c", "a/d", "e/f", "g"):
            (self.root / directory).mkdir(parents=True)
            (self.root / directory / "f").write_text(directory)

    def process(self) -> None:
        self.caches: dict[str, Any] = {}

    def perform(self, verb: str, *rest: Any) -> None:
        place = self.root / rest[0] if rest else self.root
        match verb:
            case "write":
                place.mkdir(parents=True, exist_ok=True)
                (place / rest[1]).write_text(f"{rest[2]}")
            case "make":
                place.mkdir(parents=True)
            case "remove":
                (place / rest[1]).unlink()
            case "link":
                os.link(place / rest[1], self.root / rest[2] / "linked")
            case "clear" if rest[0]:
                shutil.rmtree(place)
            case "move" if rest[0] and rest[1]:
                os.rename(place, self.root / rest[1])
            case "rules":
                (place / ".casnapignore").write_text(rest[1])

    def happen(self, verb: str, *rest: Any) -> None:
        match verb:
            case "boot":
                self.boot += 1
                self.process()
            case "process":
                self.process()
            case "lose":
                self.files.file(f"w{rest[0]}").unlink(missing_ok=True)
            case "wait":
                self.ahead += rest[0]

    def names(self) -> dict[str, Any]:
        return {"store": "s", "workspace": "w", "boot": f"{self.boot}"}

    def load(self) -> StatCache | None:
        """What is found, which is what one file would have held: the newest, unless that was lost."""
        store = SimpleNamespace(cache=self.files, id="s")
        context = SimpleNamespace(store=store, boot=f"{self.boot}", caches=self.caches)
        found = _saved_cache(context, self.row)  # type: ignore[arg-type]
        if found is None:
            return None
        path = self.files.path / "whole"
        path.write_bytes(self.wholes[found.checkpoint])
        other = load_cache(path, **self.names())
        path.unlink()
        assert other is not None
        assert isinstance(found.directories, CacheFile)
        assert isinstance(other.directories, CacheFile)
        assert found.directories.data == other.directories.data
        assert found.directories.row_paths == other.directories.row_paths
        assert (found.written, found.whole) == (other.written, other.whole)
        event("a merged file" if isinstance(found.directories, MergedFile) else "a file alone")
        return found

    def save(self, fault: str = "", small: int = 0) -> None:
        settle(self.root)
        cache = self.load()
        found = take(self.root, self.objects, cache=cache, clock=LateClock(self.ahead))
        assert (found.root, found.links) == ((fresh := take(self.root)).root, fresh.links)
        assert (found.skipped, found.entries) == (fresh.skipped, fresh.entries)
        live = SimpleNamespace(news=found.cache.differs, found=found)
        if not live.news:
            return
        checkpoint = b"%032d" % len(self.wholes)
        self.wholes[checkpoint] = encode_cache(found.cache, **self.names(), checkpoint=checkpoint)
        store = SimpleNamespace(cache=self.files, id="s")
        context = SimpleNamespace(store=store, boot=f"{self.boot}")
        self.files.fault = fault
        with patch.object(cache_saving, "SMALL", small), patch.object(cache_patch, "LARGEST", 0):
            save_cache(context, self.row, live, mirrors=checkpoint)  # type: ignore[arg-type]
        self.files.fault = ""
        now = self.load()
        if "fails" not in fault:
            assert now is not None
            assert now.checkpoint == checkpoint


@contextlib.contextmanager
def a_life() -> Iterator[Life]:
    with tempfile.TemporaryDirectory() as above:
        yield Life(Path(above))


@settings(max_examples=40, deadline=None)
@given(st.lists(STEPS, min_size=3, max_size=12))
def test_two_files_say_what_one_would_have_said(steps: list[tuple[Any, ...]]) -> None:
    with a_life() as life:
        life.save()
        for acts, happening, fault, small in steps:
            for act in acts:
                with contextlib.suppress(OSError):
                    life.perform(*act)
            if happening is not None:
                life.happen(*happening)
                life.load()
            life.save(fault, small)
        life.save()
