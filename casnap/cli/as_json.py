"""Nouns as JSON: the keys are the attributes in Python; fields are only ever added."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from casnap import __version__
from casnap.cli.text import aspect_words
from casnap.errors import CasnapError
from casnap.model.change import Change
from casnap.model.checkpoint import Checkpoint, Counts, Origin, format_instant
from casnap.model.paths import escape
from casnap.model.report import Interrupted, LogEntry, Problem, RollbackReport, Status, WorkspaceInfo
from casnap.model.tree import AnyEntry, Device, Directory, Fifo, File, OmitReason, Omitted, Symlink

Record = dict[str, Any]

CHANGE_WORDS = {"A": "added", "M": "changed", "D": "removed", "T": "retyped", "R": "renamed"}


def dump(value: object) -> bytes:
    """One JSON document as a line of UTF-8; what is no text in UTF-8 stays an escape of JSON."""
    return json.dumps(value, ensure_ascii=False, default=_other).encode("utf-8", "backslashreplace") + b"\n"


def _other(value: object) -> object:
    return escape(value) if isinstance(value, bytes) else str(value)


def document(verb: str, store: str | None, workspace: WorkspaceInfo | None, fields: Mapping[str, Any]) -> Record:
    """What a verb says with ``--json``."""
    return {
        "schema": f"casnap.{verb}/1",
        "casnap": __version__,
        "store": store,
        "workspace": None if workspace is None else workspace_record(workspace),
        **fields,
    }


def error_record(error: CasnapError) -> Record:
    """An error as a document of its own."""
    return {"schema": "casnap.error/1", "casnap": __version__, **_error_fields(error)}


def _error_fields(error: CasnapError) -> Record:
    return {
        "code": error.code,
        "exit": error.exit_status,
        "message": error.message,
        "hint": error.hint,
        "details": error.details,
    }


def failure_record(workspace: WorkspaceInfo, error: CasnapError) -> Record:
    """An error that befell one of several workspaces."""
    return {"workspace": workspace_record(workspace), "error": _error_fields(error)}


def workspace_record(workspace: WorkspaceInfo) -> Record:
    """A workspace's id and path."""
    return {"id": workspace.id, **path_fields(os.fsencode(workspace.path))}


def path_fields(path: bytes) -> Record:
    """A path as text; one that is not UTF-8 as escaped text and in base 64."""
    return _bytes_fields("path", path)


def _bytes_fields(key: str, value: bytes) -> Record:
    try:
        return {key: value.decode("utf-8")}
    except UnicodeDecodeError:
        return {key: escape(value), f"{key}_b64": base64.b64encode(value).decode("ascii")}


def checkpoint_record(checkpoint: Checkpoint) -> Record:
    """A checkpoint, all keys."""
    origin, git = checkpoint.origin, checkpoint.git
    return {
        "id": checkpoint.id,
        "name": checkpoint.name,
        "step": checkpoint.step,
        "parent": checkpoint.parent,
        "created": checkpoint.created,
        "message": checkpoint.message,
        "metadata": checkpoint.metadata,
        "pinned": checkpoint.pinned,
        "head": checkpoint.head,
        "safety": checkpoint.safety,
        "automatic": checkpoint.automatic,
        "deleted": checkpoint.deleted,
        "digest": checkpoint.digest,
        "origin": {field: getattr(origin, field) for field in origin.__struct_fields__},
        "git": None
        if git is None
        else {"branch": git.branch, "commit": git.commit, "detached": git.detached, "changed": git.changed},
        "counts": counts_record(checkpoint.counts),
        "skipped": checkpoint.skipped,
        "new_bytes": checkpoint.new_bytes,
        "damaged": checkpoint.damaged,
        "good": checkpoint.good,
    }


def optional_checkpoint(checkpoint: Checkpoint | None) -> Record | None:
    """A checkpoint, or null."""
    return None if checkpoint is None else checkpoint_record(checkpoint)


def counts_record(counts: Counts) -> Record:
    """How many paths differ."""
    return {"added": counts.added, "changed": counts.changed, "removed": counts.removed}


def change_record(change: Change) -> Record:
    """A path that differs, with both of its entries."""
    origin = change.renamed_from
    renamed = {} if origin is None else {**_bytes_fields("renamed_from", origin), "similarity": change.similarity}
    return {
        **path_fields(change.path),
        **renamed,
        "kind": change.kind.value,
        "change": CHANGE_WORDS[change.kind.value],
        "aspects": aspect_words(change.aspects),
        "old": None if change.old is None else entry_record(change.old),
        "new": None if change.new is None else entry_record(change.new),
    }


def entry_record(entry: AnyEntry) -> Record:
    """An entry of a tree; what it is called is its path's affair."""
    if isinstance(entry, Omitted):
        return {"type": "omitted", "reason": OmitReason(entry.reason).name.lower()}
    common: Record = {
        "type": _type_word(entry),
        "mode": f"{entry.mode:04o}",
        "uid": entry.uid,
        "gid": entry.gid,
        "mtime_ns": entry.mtime_ns,  # a number: files may bear years that no calendar has
    }
    if entry.xattrs:
        pairs = entry.xattrs
        common["xattrs"] = [{**_bytes_fields("name", name), **_bytes_fields("value", value)} for name, value in pairs]
    return common | _own_fields(entry)


def _type_word(entry: AnyEntry) -> str:
    match entry:
        case Device():
            return "block device" if entry.block else "character device"
        case Fifo():
            return "fifo"
        case _:
            return type(entry).__name__.lower()


def _own_fields(entry: AnyEntry) -> Record:
    match entry:
        case File():
            return {"size": entry.size, "content": entry.content.hex()}
        case Directory():
            return {"digest": entry.digest.hex()}
        case Symlink():
            return _bytes_fields("target", entry.target)
        case Device():
            return {"major": entry.major, "minor": entry.minor}
        case _:
            return {}


def problem_records(problems: Iterable[Problem]) -> list[Record]:
    """Problems, each with its path."""
    return [{**path_fields(problem.path), "message": problem.message} for problem in problems]


def log_record(entry: LogEntry) -> Record:
    """One operation."""
    return {
        "seq": entry.seq,
        "time": format_instant(entry.time_ns),
        "operation": entry.operation,
        "workspace": None if entry.workspace is None else workspace_record(entry.workspace),
        "by": dict(zip(Origin.__struct_fields__, entry.by, strict=False)),
        "checkpoints": list(entry.checkpoints),
        "summary": entry.summary,
        "facts": entry.facts,
    }


def rollback_fields(report: RollbackReport) -> Record:
    """What a rollback, undo or recover did."""
    return {
        "verb": report.verb,
        "target": checkpoint_record(report.target),
        "preview": report.preview,
        "complete": report.complete,
        "counts": counts_record(report.counts),
        "changes": [change_record(change) for change in report.changes],
        "safety": optional_checkpoint(report.safety),
        "head": report.head,
        "left_alone": problem_records(report.left_alone),
        "kept": [path_fields(path) for path in report.kept],
        "git": [
            {**path_fields(move.path), "commits": move.commits, "returning": move.returning, "refs": move.refs}
            for move in report.git
        ],
        "notes": list(report.notes),
        "problems": problem_records(report.problems),
        "seconds": round(report.seconds, 3),
    }


def status_fields(status: Status) -> Record:
    """How a workspace stands."""
    return {
        "protected": status.protected,
        "reason": status.reason,
        "head": optional_checkpoint(status.head),
        "checkpoints": status.checkpoints,
        "safety_points": status.safety_points,
        "last_safety": optional_checkpoint(status.last_safety),
        "changes": None if status.changes is None else [change_record(change) for change in status.changes],
        "interrupted": None if status.interrupted is None else _interrupted_record(status.interrupted),
        "store_bytes": status.store_bytes,
        "store_free": status.store_free,
        "dead_bytes": status.upkeep.dead_bytes,
        "last_check": None if status.upkeep.checked_ns is None else format_instant(status.upkeep.checked_ns),
        "last_check_clean": None if status.upkeep.checked_ns is None else status.upkeep.clean,
        "last_gc": None if status.upkeep.collected_ns is None else format_instant(status.upkeep.collected_ns),
        "warnings": list(status.upkeep.warnings),
        "left_out": status.left_out,
        "problems": problem_records(status.problems),
        "notes": list(status.notes),
    }


def _interrupted_record(interrupted: Interrupted) -> Record:
    return {
        "verb": interrupted.verb,
        "target": interrupted.target,
        "safety": interrupted.safety,
        "began": format_instant(interrupted.began_ns),
    }
