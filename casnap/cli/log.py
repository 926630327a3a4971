"""``casnap log``."""

from __future__ import annotations

import click

from casnap.cli.as_json import checkpoint_record, dump, log_record
from casnap.cli.graph import graph_lines
from casnap.cli.options import flag, verb
from casnap.cli.output import printable
from casnap.cli.session import Session
from casnap.cli.table import show_table
from casnap.cli.text import checkpoint_mark, moment
from casnap.engine.history import list_checkpoints
from casnap.engine.log import log
from casnap.errors import Usage
from casnap.model.report import LogEntry, WorkspaceInfo
from casnap.settings import resolve_workspace, workspaces_in_view

_HEADINGS = ("SEQ", "TIME", "OPERATION", "BY", "WHAT")


@verb("log")
@flag("--all", "everywhere", help="Of all workspaces.")
@flag("--graph", help="The checkpoints of the workspace and what each descends from, as a graph.")
@click.option("-n", "--limit", type=click.IntRange(min=0), metavar="N", help="The newest N.")
def command(session: Session, everywhere: bool, graph: bool, limit: int | None) -> int:
    """What was done, newest first: of the workspace, or outside any, of all."""
    context = session.context()
    if graph:
        if everywhere:
            raise Usage("bad options: --graph is about one workspace", hint="leave --all out")
        return _show_graph(session, limit)
    view = () if everywhere else workspaces_in_view(session.settings, context, session.options.workspace)
    one = view if isinstance(view, WorkspaceInfo) else None
    if one is not None:
        session.echo(one)
    entries = log(context, one, limit=limit)
    if session.bare_array:
        session.output.bytes(dump([log_record(entry) for entry in entries]))
    elif session.as_json:
        session.document("log", one, operations=[log_record(entry) for entry in entries])
    else:
        show_table(session.output, _HEADINGS, [_row(entry, one) for entry in entries])
    return 0


def _row(entry: LogEntry, one: WorkspaceInfo | None) -> tuple[str, ...]:
    place = "" if one is not None or entry.workspace is None else f"{printable(entry.workspace.path)}: "
    by = next((name for name in (entry.by[3:4] or ("",)) if name), entry.by[0] if entry.by else "")
    return (str(entry.seq), moment(entry.time_ns), entry.operation, printable(by), place + printable(entry.summary))


def _show_graph(session: Session, limit: int | None) -> int:
    context = session.context()
    workspace = resolve_workspace(session.settings, context, session.options.workspace)
    session.echo(workspace)
    found = list_checkpoints(context, workspace, limit=limit)
    if session.as_json:
        records = [checkpoint_record(checkpoint) for checkpoint in found]
        if session.bare_array:
            session.output.bytes(dump(records))
        else:
            session.document("log", workspace, graph=records)
        return 0
    labels = [(checkpoint.id, checkpoint.parent, checkpoint_mark(checkpoint)) for checkpoint in found]
    for line in graph_lines(labels):
        session.output.data(line)
    return 0
