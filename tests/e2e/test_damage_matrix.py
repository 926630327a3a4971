"""Whatever is damaged, and however: each verb does what it says or says why not, and a repair mends what it can."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from casnap.cli.app import VERBS
from casnap.codec.records import RecordKind
from casnap.store.inspection import Inspection
from support.cases import as_ordinary_user, remove, run_here
from support.cli import Result
from support.oracle import Snapshot, difference, snapshot
from support.stores import chunk, noise

HARMS = ("delete", "truncate", "flip", "zero", "junk", "unreadable")
TARGETS = (
    "pack",
    "header",
    "payload",
    "group header",
    "group payload",
    "line",
    "tail",
    "catalog",
    "wal",
    "cache",
    "format",
)
LOOKED_AT = ("list", "checkpoint", "rollback", "verify", "check", "gc")
CALLS = {
    "list": ("list",),
    "checkpoint": ("checkpoint", "next"),
    "rollback": ("rollback", "c1"),
    "verify": ("verify", "c3"),
    "check": ("check", "--read-data"),
    "gc": ("gc",),
}
NAMES = ("c1", "c2", "c3")

IN_GROUP = {"group header", "group payload"}
"""Of the record that a repack makes of all chunks."""

IN_PACKS = {"pack", "header", "payload"} | IN_GROUP
IN_LOG = {"line", "tail"}
HARMLESS = {"cache", "wal", "catalog"}
"""What is made anew from the rest, or done without."""


@dataclass
class Field:
    """A store and a workspace that can be put back as they were, and what the checkpoints hold."""

    place: Path
    holds: dict[str, Snapshot]

    @property
    def store(self) -> Path:
        return self.place / "store"

    @property
    def workspace(self) -> Path:
        return self.place / "workspace"

    def run(self, *args: str | Path) -> Result:
        where = () if args[0] in ("check", "gc") else ("-w", self.workspace)
        return run_here(args[0], "--store", self.store, *where, *args[1:])

    def reset(self) -> None:
        for name in ("store", "workspace"):
            if (self.place / name).exists():
                remove(self.place / name)
            shutil.copytree(self.place / f"{name}-kept", self.place / name)

    def restorable(self) -> set[str]:
        """Names of the checkpoints that restore exactly; one that restores to anything else is a lie."""
        found = set()
        for name in self.holds:
            out = self.place / "out"
            if self.run("restore-to", "-q", out, name).status == 0:
                assert difference(self.holds[name], snapshot(out)) == []
                found.add(name)
            if out.exists():
                remove(out)
        return found


def make(place: Path, *, repack: bool) -> Field:
    """Three checkpoints; the workspace is as the last holds it, and the catalog has seen all of it."""
    field = Field(place, {})
    (field.workspace / "dir").mkdir(parents=True)
    for number, name in enumerate(NAMES):
        (field.workspace / "changing").write_bytes(noise(("changing", number), 600))
        (field.workspace / "dir" / f"f{number}").write_bytes(noise(("file", number), 900))
        assert field.run("checkpoint", name).status == 0
        field.holds[name] = snapshot(field.workspace)
    if repack:
        assert "1 repacked" in field.run("gc", "--repack").stdout
    for name in ("store", "workspace"):
        shutil.copytree(place / name, place / f"{name}-kept")
    field.reset()
    return field


def aim(field: Field, target: str) -> tuple[Path, int, int]:
    """The file that is harmed, and the bytes in it; the object is one that all checkpoints and the workspace share."""
    store = field.store
    if target in IN_PACKS:
        (pack,) = (store / "packs").iterdir()
        data = noise(("file", 0), 900)
    if target in IN_GROUP:
        inspection = Inspection(store)
        inspection.load_places()
        (place,) = inspection.places.places(chunk(data))
        header = inspection.files.header(place.pack, place.offset)
        inspection.close()
        assert header.kind is RecordKind.GROUP
        at = place.offset + header.payload_offset
        return pack, *{"group header": (place.offset, at), "group payload": (at, at + header.payload_size)}[target]
    if target in IN_PACKS:
        at = pack.read_bytes().index(data)
        return pack, *{"pack": (0, pack.stat().st_size), "header": (at - 40, at), "payload": (at, at + 900)}[target]
    if target in IN_LOG:
        log = store / "oplog" / "0000000001.jsonl"
        lines = log.read_bytes().splitlines(keepends=True)
        number = 2 if target == "line" else len(lines) - 1
        start = sum(map(len, lines[:number]))
        return log, start, start + len(lines[number])
    path = {
        "catalog": max(store.glob("catalog-*.db")),
        "wal": max(store.glob("catalog-*.db")).with_suffix(".db-wal"),
        "cache": next((store / "cache").glob("*.stat")),
        "format": store / "casnap-store.json",
    }[target]
    if target == "wal":
        make_wal(path)
    return path, 0, path.stat().st_size


def make_wal(path: Path) -> None:
    """Leave the log of a process that wrote to the catalog and was killed."""
    catalog = path.with_suffix(".db")
    before = catalog.read_bytes()
    connection = sqlite3.connect(catalog)
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    for step in (1, -1):
        connection.execute("UPDATE position SET checked_at = checked_at + ?", (step,))
        connection.commit()
    wal = path.read_bytes()
    connection.close()
    catalog.write_bytes(before)
    path.write_bytes(wal)


def harm(path: Path, start: int, end: int, how: str) -> None:
    data = path.read_bytes()
    whole = (start, end) == (0, len(data))
    middle = bytearray(data[start:end])
    if how == "unreadable":
        path.chmod(0)
        return
    if how == "delete" and whole:
        path.unlink()
        return
    if how == "flip":
        middle[len(middle) // 2] ^= 0x10
    replacement = {
        "delete": b"",
        "truncate": b"" if not whole else data[: len(data) // 2],
        "flip": bytes(middle),
        "zero": bytes(end - start),
        "junk": random.Random("junk").randbytes(end - start),
    }[how]
    path.write_bytes(data[:start] + replacement + (b"" if how == "truncate" else data[end:]))


@contextmanager
def harmed(field: Field, target: str, how: str) -> Iterator[None]:
    field.reset()
    path, start, end = aim(field, target)
    harm(path, start, end, how)
    yield
    if how == "unreadable" and path.exists():
        path.chmod(0o600)


def whole_after_repair(target: str, how: str) -> bool:
    """Whether nothing is lost for good: the bytes are in the workspace, and what holds them together is left."""
    if target in IN_GROUP:  # with it goes what is in no workspace
        return how == "unreadable"
    if target == "pack":
        return how == "flip" or how == "unreadable"
    return target not in IN_PACKS or how in ("flip", "zero", "junk", "unreadable")


def allowed(target: str, how: str, verb: str) -> set[int]:
    """Exit statuses that are right."""
    if target == "cache" or (target in HARMLESS and verb != "check"):
        return {0}
    if how == "unreadable":
        if target in IN_PACKS:  # of which only what is needed is opened
            return {17} if verb == "check" else {0, 15, 17}
        return {0} if target in HARMLESS else {17}
    if target == "format":
        return {15} if verb == "check" else {0}  # the first line of the log repeats it
    if target in HARMLESS:
        return {0, 15}
    if verb == "check":
        return {15}
    if target in IN_LOG:  # a checkpoint may not be listed that a line speaks of which is gone
        return {0, 13, 15} if verb in ("rollback", "verify") else {0, 15}
    # What a verb does not need does not keep it from its work.
    return {0, 15}


def require_truth(field: Field, target: str, how: str, verb: str, before: Snapshot) -> None:
    done = field.run(*CALLS[verb])
    said = done.stdout + done.stderr
    cell = f"{target}, {how}, {verb}: exit {done.status}\n{said}"
    assert done.status in allowed(target, how, verb), cell
    assert "Traceback" not in said, cell
    assert "unexpected" not in said, cell
    if done.status:
        assert "next: " in said or "error: " in said, cell
    if target in IN_LOG and (done.status == 15 or (done.status and how != "unreadable")):
        assert "casnap check" in said, cell
    if verb == "rollback" and done.status == 0:
        assert difference(field.holds["c1"], snapshot(field.workspace)) == [], cell
    else:
        assert difference(before, snapshot(field.workspace)) == [], cell
    if verb == "checkpoint" and done.status == 0:
        out = field.place / "out"
        assert field.run("restore-to", "-q", out, "next").status == 0, cell
        assert difference(before, snapshot(out)) == [], cell
        remove(out)
    if verb == "check":
        require_named(target, how, said, cell)
    if verb == "list" and done.status == 0 and target not in IN_LOG:
        assert [name for name in NAMES if f" {name} " in done.stdout] == list(NAMES), cell


def require_named(target: str, how: str, said: str, cell: str) -> None:
    """Whom it hurts, or that it hurts nobody."""
    if target in IN_PACKS - {"pack"} and how in ("flip", "zero", "junk"):
        assert said.count(": dir/f0") == len(NAMES), cell
        assert all(f"name={name} " in said for name in NAMES), cell
    if target == "cache" and how not in ("delete", "unreadable"):
        assert "note: cache/" in said, cell
    if target == "format" and how != "unreadable":
        assert "damage: casnap-store.json" in said, cell
    if target == "line" and how not in ("truncate", "unreadable"):
        assert "damage: oplog/0000000001.jsonl at byte " in said, cell


def require_mended(field: Field, target: str, how: str, note: str = "") -> None:
    """What a repair comes to, and that everything that it does not name is as it was."""
    cell = f"{target}, {how}{note}"
    done = field.run("check", "--repair", "--json")
    assert "Traceback" not in done.stderr, cell
    if how == "unreadable":
        assert done.status in (0, 17), cell
        return
    document = done.json()
    named = {hit["name"] for finding in document["findings"] for hit in finding["checkpoints"]}
    assert done.status == (15 if document["findings"] else 0), cell
    restorable = field.restorable()
    if whole_after_repair(target, how):
        assert (done.status, restorable) == (0, set(NAMES)), (cell, document)
    assert restorable == set(NAMES) - named, (cell, done.stdout)
    checked = field.run("check", "--read-data", "--json")
    assert checked.status == done.status, (cell, checked.stdout)
    assert field.run("checkpoint", "after").status == 0, cell
    out = field.place / "out"
    assert field.run("restore-to", "-q", out, "after").status == 0, cell
    assert difference(snapshot(field.workspace), snapshot(out)) == [], cell
    remove(out)


def cells(place: Path, target: str, how: str) -> None:
    field = make(place, repack=target in IN_GROUP)
    before = snapshot(field.workspace)
    for verb in (verb for verb in LOOKED_AT if verb in VERBS):
        with harmed(field, target, how):
            before = snapshot(field.workspace)
            require_truth(field, target, how, verb, before)
        if verb == "gc" and how != "unreadable":
            require_mended(field, target, how, " after a gc")
    with harmed(field, target, how):
        require_mended(field, target, how)
    if how == "unreadable":
        assert field.run("check", "--read-data").status == 0
        assert field.restorable() == set(NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("how", HARMS)
@pytest.mark.parametrize("target", TARGETS)
def test_whatever_is_damaged(target: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("casnap.store.follower.LONG_TAIL", 0)
    if how == "unreadable":
        if os.geteuid() == 0:
            run_here("check", "--store", tmp_path / "none")  # what an ordinary user may be unable to import
        as_ordinary_user(lambda place: cells(place, target, how))
    else:
        cells(tmp_path, target, how)
