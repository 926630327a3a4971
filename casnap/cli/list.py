"""``casnap list``."""

from __future__ import annotations

from typing import Any

from casnap.cli.output import printable
from casnap.cli.session import Session
from casnap.cli.table import show_table
from casnap.cli.text import counts_text, moment, quantity, size
from casnap.engine.history import count_safety, list_checkpoints
from casnap.engine.workspaces import all_workspaces
from casnap.model.checkpoint import Checkpoint
from casnap.model.ids import SHORT_ID
from casnap.model.report import WorkspaceInfo
from casnap.settings import workspaces_in_view

_HEADINGS = ("", "STEP", "NAME", "ID", "CREATED", "CHANGES", "NEW", "MESSAGE")
_MESSAGE_WIDTH = 60


def carry_out(session: Session, everywhere: bool, limit: int | None, safety: bool, reverse: bool) -> int:
    """The checkpoints of the workspace, newest first; outside any workspace, of all of them.

    Head is marked with *, what was found good with +. Other name: ls.
    """
    context = session.context()
    view: WorkspaceInfo | tuple[WorkspaceInfo, ...]
    if everywhere:
        view = tuple(all_workspaces(context))
    else:
        view = workspaces_in_view(session.settings, context, session.options.workspace)
    one = view if isinstance(view, WorkspaceInfo) else None
    listed = []
    hidden = 0
    for workspace in (view,) if isinstance(view, WorkspaceInfo) else view:
        found = list_checkpoints(context, workspace, limit=limit, safety=safety)
        listed.append((workspace, found[::-1] if reverse else found))
        hidden += 0 if safety else count_safety(context, workspace)
    if session.as_json:
        _show_json(session, one, listed, hidden)
    else:
        _show_text(session, listed, hidden)
    return 0


def _show_json(
    session: Session, one: WorkspaceInfo | None, listed: list[tuple[WorkspaceInfo, list[Checkpoint]]], hidden: int
) -> None:
    from casnap.cli.as_json import checkpoint_record, dump, workspace_record  # here, since most lists are for people

    records: list[dict[str, Any]] = [
        {**checkpoint_record(checkpoint), "workspace": workspace_record(workspace)}
        for workspace, checkpoints in listed
        for checkpoint in checkpoints
    ]
    if session.bare_array:
        session.output.bytes(dump(records))
    else:
        session.document("list", one, checkpoints=records, safety_not_shown=hidden)


def _show_text(session: Session, listed: list[tuple[WorkspaceInfo, list[Checkpoint]]], hidden: int) -> None:
    output = session.output
    if not listed:
        output.talk("no workspace is registered; `casnap init` protects the current directory")
    for number, (workspace, checkpoints) in enumerate(listed):
        if len(listed) > 1:
            output.data(f"{'' if number == 0 else chr(10)}workspace {printable(workspace.path)}")
        else:
            session.echo(workspace)
        if checkpoints:
            show_table(output, _HEADINGS, [_row(checkpoint) for checkpoint in checkpoints])
        else:
            output.talk("no checkpoints yet; `casnap checkpoint` makes one")
    if hidden:
        output.talk(f"{quantity(hidden, 'safety checkpoint is', 'safety checkpoints are')} not shown (--safety)")


def _row(checkpoint: Checkpoint) -> tuple[str, ...]:
    message = "(damaged: it cannot be read)" if checkpoint.damaged else printable(checkpoint.message)
    if len(message) > _MESSAGE_WIDTH:
        message = message[: _MESSAGE_WIDTH - 1] + "…"
    return (
        ("*" if checkpoint.head else "") + ("+" if checkpoint.good else ""),
        "-" if checkpoint.step is None else str(checkpoint.step),
        "(safety)" if checkpoint.safety else checkpoint.name or "",
        checkpoint.id[:SHORT_ID],
        moment(checkpoint.created_ns),
        counts_text(checkpoint.counts),
        size(checkpoint.new_bytes),
        message,
    )
