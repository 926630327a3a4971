"""``casnap show``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click

from casnap.cli.as_json import checkpoint_record, entry_record, path_fields
from casnap.cli.options import flag, verb
from casnap.cli.output import printable
from casnap.cli.revisions import choose, find_typed
from casnap.cli.session import Session
from casnap.cli.text import block, counts_text, entry_line, moment, path_text, quantity, reason_text, size
from casnap.engine.recorded import entries
from casnap.model.checkpoint import Checkpoint, GitState
from casnap.model.tree import Omitted

_MARKS = ("head", "good", "safety", "automatic", "pinned", "deleted", "damaged")


@verb("show")
@click.argument("revision", metavar="[REV]", required=False)
@flag("--files", help="Every file and directory of it.")
def command(session: Session, revision: str | None, files: bool) -> int:
    """One checkpoint in full: head, or the one that REV names. Other name: info."""
    workspace = session.workspace()
    checkpoint = find_typed(session, workspace, choose(revision=revision), revision, "diff")
    tree = list(entries(session.context(), checkpoint)) if files or checkpoint.skipped else []
    omitted = [(path, entry) for path, entry in tree if isinstance(entry, Omitted)]
    if session.as_json:
        fields: dict[str, Any] = {
            "checkpoint": checkpoint_record(checkpoint),
            "skipped": [{**path_fields(path), **entry_record(entry)} for path, entry in omitted],
        }
        if files:
            fields["files"] = [{**path_fields(path), **entry_record(entry)} for path, entry in tree]
        session.document("show", workspace, **fields)
        return 0
    for line in _lines(checkpoint, omitted):
        session.output.data(line)
    if files:
        session.output.data("")
        for path, entry in tree:
            session.output.data(entry_line(path, entry))
    return 0


def _lines(checkpoint: Checkpoint, omitted: list[tuple[bytes, Omitted]]) -> Iterator[str]:
    yield f"checkpoint {checkpoint.id}"
    marks = [mark for mark in _MARKS if getattr(checkpoint, mark)]
    origin = checkpoint.origin
    who = [f"{field} {value}" for field in origin.__struct_fields__ if (value := getattr(origin, field))]
    fields = {
        "name": [checkpoint.name or ""],
        "step": [str(checkpoint.step or "")],
        "is": [", ".join(marks)],
        "created": [moment(checkpoint.created_ns)],
        "parent": [checkpoint.parent or ""],
        "digest": [checkpoint.digest],
        "changes": [counts_text(checkpoint.counts)],
        "new": [size(checkpoint.new_bytes)],
        "origin": [printable(", ".join(who))],
        "git": [_git_text(checkpoint.git)] if checkpoint.git else [],
        "metadata": [printable(json.dumps(checkpoint.metadata, ensure_ascii=False))] if checkpoint.metadata else [],
        "left out": [f"{path_text(path)} ({reason_text(entry.reason)})" for path, entry in omitted],
        "message": [printable(line) for line in checkpoint.message.splitlines()],
    }
    for title, values in fields.items():
        if any(values):
            yield from block(title, values)


def _git_text(git: GitState) -> str:
    text = f"{git.branch or '(detached)'} {git.commit or '(no commit yet)'}"
    return printable(text) + (f", {quantity(git.changed, 'changed path')}" if git.changed is not None else "")
