"""Whatever was deleted, rolled back, freed, interrupted and made anew: what is listed restores, byte for byte."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from casnap import Checkpoint, CheckpointManager, NotFound
from casnap.engine.context import Context
from casnap.engine.gc import collect
from casnap.engine.gc_terms import REPACKING, Terms
from casnap.store import packs
from support.stores import noise

NAMES = st.sampled_from(["a", "b", "d/a", "d/e/f"])
CONTENTS = st.tuples(st.integers(0, 5), st.sampled_from([0, 10, 3000, 9000]))
WHICH = st.integers(0, 20)


def tree(root: Path) -> dict[str, bytes]:
    """Every file and its bytes; independent of the code under test."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


class Upkeep(RuleBasedStateMachine):
    """A store with two workspaces; ``recorded`` has the tree of each checkpoint when it was made."""

    @initialize()
    def begin(self) -> None:
        self.directory = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
        self.places = [self.directory / name for name in ("one", "two")]
        for place in self.places:
            place.mkdir()
        self.recorded: dict[str, dict[str, bytes]] = {}
        self.freed: set[str] = set()
        self.pack_size, packs.PACK_SIZE = packs.PACK_SIZE, 20_000
        self.open()

    def open(self) -> None:
        self.managers = [CheckpointManager(place, store=self.directory / "store") for place in self.places]

    def close(self) -> None:
        for manager in self.managers:
            manager.close()

    def teardown(self) -> None:
        self.close()
        packs.PACK_SIZE = self.pack_size
        shutil.rmtree(self.directory)

    def listed(self, at: int) -> list[Checkpoint]:
        try:
            return self.managers[at].list(safety=True)
        except NotFound:
            return []

    @rule(at=st.integers(0, 1), name=NAMES, content=CONTENTS)
    def write(self, at: int, name: str, content: tuple[int, int]) -> None:
        path = self.places[at] / name
        path.parent.mkdir(parents=True, exist_ok=True)
        seed, size = content
        path.write_bytes(noise(seed, size) + bytes(size))

    @rule(at=st.integers(0, 1), name=NAMES)
    def remove(self, at: int, name: str) -> None:
        (self.places[at] / name).unlink(missing_ok=True)

    @rule(at=st.integers(0, 1))
    def checkpoint(self, at: int) -> None:
        made = self.managers[at].create()
        self.recorded[made.id] = tree(self.places[at])

    @rule(at=st.integers(0, 1), which=WHICH)
    def roll_back(self, at: int, which: int) -> None:
        if listed := [one for one in self.listed(at) if not one.safety]:
            before = tree(self.places[at])
            report = self.managers[at].rollback(listed[which % len(listed)].id)
            assert tree(self.places[at]) == self.recorded[report.target.id]
            if report.safety is not None:
                self.recorded[report.safety.id] = before

    @rule(at=st.integers(0, 1))
    def undo(self, at: int) -> None:
        try:
            before = tree(self.places[at])
            report = self.managers[at].undo()
        except NotFound:
            return
        assert tree(self.places[at]) == self.recorded[report.target.id]
        if report.safety is not None:
            self.recorded[report.safety.id] = before

    @rule(at=st.integers(0, 1), which=WHICH)
    def delete(self, at: int, which: int) -> None:
        if listed := self.listed(at):
            self.managers[at].delete(listed[which % len(listed)].id)

    @rule(at=st.integers(0, 1), keep=st.integers(0, 3))
    def clean(self, at: int, keep: int) -> None:
        if self.listed(at):
            self.managers[at].clean(keep)

    @rule(at=st.integers(0, 1), which=WHICH)
    def undelete(self, at: int, which: int) -> None:
        known = {one.id for one in self.listed(at)}
        gone = sorted(self.recorded.keys() - known)
        if not gone:
            return
        id = gone[which % len(gone)]
        try:
            self.managers[at].undelete(id)
        except NotFound:
            return  # it is the other workspace's, or freed
        assert id not in self.freed

    @precondition(lambda self: bool(self.recorded))
    @rule(share=st.sampled_from([0.0, 0.05, 0.5]), grace=st.sampled_from([0, 0, 0, 10**12]))
    def collect(self, share: float, grace: int) -> None:
        context = self.context()
        terms = Terms(grace, share)
        before = self.stored()
        told = collect(context, terms, dry_run=True)
        assert self.stored() == before
        report = collect(context, terms)
        assert (report.freed_bytes, report.checkpoints) == (told.freed_bytes, told.checkpoints)
        assert sum(before.values()) - sum(self.stored().values()) == report.freed_bytes
        assert report.store_bytes == sum(self.stored().values()) == told.store_bytes
        self.freed |= {freed.id for freed in report.checkpoints}
        if share == 0.0 and grace == 0:
            again = collect(context, terms)
            assert (again.freed_bytes, again.rewritten, again.checkpoints) == (0, 0, ())

    @precondition(lambda self: bool(self.recorded))
    @rule()
    def repack(self) -> None:
        context = self.context()
        before = self.stored()
        told = collect(context, REPACKING, dry_run=True)
        assert self.stored() == before
        report = collect(context, REPACKING)
        assert (report.freed_bytes, report.checkpoints) == (told.freed_bytes, told.checkpoints)
        assert sum(before.values()) - sum(self.stored().values()) == report.freed_bytes
        assert report.store_bytes == sum(self.stored().values()) == told.store_bytes
        self.freed |= {freed.id for freed in report.checkpoints}

    def context(self) -> Context:
        for manager in self.managers:
            with contextlib.suppress(NotFound):
                return manager._find()[0]
        raise AssertionError("no workspace is registered")

    @rule()
    def reopen(self) -> None:
        self.close()
        self.open()

    @rule()
    def lose_the_catalog(self) -> None:
        self.close()
        for file in (self.directory / "store").glob("catalog-*"):
            file.unlink()
        self.open()

    def stored(self) -> dict[str, int]:
        return {path.name: path.stat().st_size for path in (self.directory / "store" / "packs").iterdir()}

    @invariant()
    def what_is_listed_restores(self) -> None:
        for at in (0, 1):
            listed = self.listed(at)
            assert self.freed.isdisjoint(one.id for one in listed)
            if not listed:
                continue
            manager = self.managers[at]
            for number, one in enumerate(listed):
                target = self.directory / f"out-{number}"
                manager.restore_to(target, one.id)
                assert tree(target) == self.recorded[one.id]
                shutil.rmtree(target)


TestUpkeep = Upkeep.TestCase
TestUpkeep.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)
