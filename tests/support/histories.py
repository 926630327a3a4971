"""Histories as other systems leave them on a disk, made from a description of their layouts alone."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from casnap import Checkpoint
from casnap.engine.importing.adopt import import_history
from casnap.engine.importing.recognise import open_history
from casnap.model.report import ImportReport
from casnap.settings import load_settings, protect

NOON = dt.datetime(2024, 5, 6, 12, 0, 0, tzinfo=dt.UTC)
"""When these histories begin; each entry comes a minute after the one before."""


def take_over(
    path: str | Path,
    *,
    workspace: str | Path | None = None,
    made: Callable[[Checkpoint, float], None] = lambda checkpoint, seconds: None,
    **options: Any,
) -> ImportReport:
    """Import what is at ``path`` as the command line does, in this process."""
    history = open_history(os.fspath(path), **options)
    given = os.fsdecode(history.workspace) if workspace is None and history.workspace else workspace
    try:
        protected = protect(load_settings(), None if given is None else os.fspath(given))
        try:
            return import_history(protected.context, protected.workspace, history, made=made)
        finally:
            protected.context.store.close()
    finally:
        history.source.close()


def nanoseconds(when: dt.datetime) -> int:
    return (int(when.timestamp()) * 1_000_000 + when.microsecond) * 1000


class Pitrrwnd:
    """``.pitr`` in a workspace: regular files with their modes, nothing else."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.state = workspace / ".pitr"
        for name in ("manifests", "snapshots"):
            (self.state / name).mkdir(parents=True)
        (self.state / "state.db").write_bytes(bytes(4096))
        (self.state / "redo.wal").write_bytes(b"")
        self.step = 0

    def manifest(self, step: int) -> Path:
        return self.state / "manifests" / f"{step:010}.json"

    def snapshot(self, step: int) -> Path:
        return self.state / "snapshots" / f"{step:010}"

    def time(self, step: int) -> dt.datetime:
        return NOON + dt.timedelta(minutes=step, microseconds=step)

    def savepoint(self, label: str, *, user: str = "alice", host: str = "box") -> int:
        self.step += 1
        files: dict[str, str] = {}
        copy = self.snapshot(self.step)
        copy.mkdir()
        root = os.fsencode(self.workspace)
        for directory, names, found in os.walk(root):
            if directory == root:
                names.remove(b".pitr")
            for name in found:
                path = os.path.join(directory, name)
                status = os.lstat(path)
                if not stat.S_ISREG(status.st_mode):
                    continue
                relative = os.path.relpath(path, root)
                target = os.path.join(os.fsencode(copy), relative)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.copyfile(path, target)
                os.chmod(target, stat.S_IMODE(status.st_mode))
                with open(target, "rb") as file:
                    files[_go_text(relative)] = hashlib.file_digest(file, "sha256").hexdigest()
        when = self.time(self.step).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        self.write_manifest(self.step, label=label, created_at=when, actor=user, files=files)
        self._audit("savepoint", label, when, hostname=host, user=user)
        return self.step

    def write_manifest(self, step: int, **facts: Any) -> None:
        """A manifest, its hash over the files made to fit."""
        lines = sorted(f"{path}\0{sha256}\n".encode() for path, sha256 in facts["files"].items())
        whole = hashlib.sha256(b"".join(lines)).hexdigest()
        self.manifest(step).write_text(json.dumps({"step": step, **facts, "working_set_sha256": whole}))

    def edit_manifest(self, step: int, change: Callable[[dict[str, Any]], None]) -> None:
        facts = json.loads(self.manifest(step).read_text())
        del facts["step"], facts["working_set_sha256"]
        change(facts)
        self.write_manifest(step, **facts)

    def _audit(self, op: str, label: str, when: str, **who: str) -> None:
        record = {"op": op, "step": self.step, "label": label, "working_set_sha256": "", "iso_ts": when, **who}
        with (self.state / "audit.jsonl").open("a") as file:
            file.write(json.dumps({**record, "result": "ok"}) + "\n")


def _go_text(path: bytes) -> str:
    """How a Go program's JSON spells a path: each byte that is no UTF-8 becomes U+FFFD."""
    text = path.decode("utf-8", "surrogateescape")
    return "".join("\ufffd" if 0xDC80 <= ord(character) <= 0xDCFF else character for character in text)


class OhMyCoder:
    """``.omc/checkpoints`` in a project: an index, and for each checkpoint a manifest and a full copy."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.checkpoints = project / ".omc" / "checkpoints"
        self.checkpoints.mkdir(parents=True)
        self.index: dict[str, dict[str, Any]] = {}
        self.serial = 0

    def time(self, serial: int) -> dt.datetime:
        """Without a zone: local time."""
        return NOON.replace(tzinfo=None) + dt.timedelta(minutes=serial)

    def create(self, task: str, description: str) -> str:
        self.serial += 1
        when = self.time(self.serial)
        id = f"{when:%Y%m%d-%H%M%S}-{self.serial}-{task}"
        place = self.place(id, task)
        place.mkdir(parents=True)
        shutil.copytree(self.project, place / "snapshot", symlinks=True, ignore=shutil.ignore_patterns(".omc"))
        files = [str(path.relative_to(place / "snapshot")) for path in (place / "snapshot").rglob("*")]
        self.index[id] = {
            "id": id,
            "task_id": task,
            "description": description,
            "created_at": f"{when:%Y-%m-%dT%H:%M:%S}.{self.serial}",
            "file_count": len(files),
            "total_size": 0,
            "working_dir": "/elsewhere",
            "path": "/etc",
        }
        (place / "manifest.json").write_text(json.dumps({**self.index[id], "files": files[:100]}))
        self.write_index()
        return id

    def place(self, id: str, task: str) -> Path:
        return self.checkpoints / task / id

    def write_index(self) -> None:
        (self.checkpoints / "index.json").write_text(json.dumps(self.index))


class WsCkpt:
    """Snapshots as plain trees below a data root, and an index of one workspace."""

    def __init__(self, data_root: Path, name: str, workspace: Path) -> None:
        self.workspace = workspace
        self.snapshots = data_root / "snapshots" / name
        self.index_file = data_root / "indexes" / name / "index.json"
        for directory in (self.snapshots, self.index_file.parent):
            directory.mkdir(parents=True)
        self.index: dict[str, Any] = {"workspace_path": str(workspace), "snapshots": {}}
        self.head: str | None = None
        self.count = 0

    def time(self, number: int) -> dt.datetime:
        return NOON + dt.timedelta(minutes=number, microseconds=number)

    def checkpoint(self, id: str, message: str | None = None, *, metadata: Any = None, pinned: bool = False) -> None:
        self.count += 1
        subprocess.run(["cp", "-a", f"{self.workspace}/.", self.snapshots / id], check=True)
        listed = self.index["snapshots"]
        listed[id] = {
            "message": message,
            "metadata": metadata,
            "pinned": pinned,
            "created_at": self.time(self.count).isoformat(),
            "missing": False,
            "parent_id": self.head,
            "child_ids": [],
        }
        if self.head is not None:
            listed[self.head]["child_ids"].append(id)
        self.go_to(id)

    def go_to(self, id: str) -> None:
        self.head = self.index["head"] = id
        self.write_index()

    def write_index(self) -> None:
        self.index_file.write_text(json.dumps(self.index))
