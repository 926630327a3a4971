"""``casnap workspace``."""

from __future__ import annotations

import os
from typing import Any

import click

from casnap.cli.as_json import dump, workspace_record
from casnap.cli.options import verb
from casnap.cli.output import printable
from casnap.cli.session import Session
from casnap.cli.table import show_table
from casnap.engine.standing import move, standings
from casnap.errors import Usage
from casnap.model.report import WorkspaceStanding

_HEADINGS = ("ID", "CHECKPOINTS", "", "PATH")
_ACTIONS = "list, move OLD NEW, or gone"


@verb("workspace")
@click.argument("words", metavar="[list | move OLD NEW | gone]", nargs=-1)
def command(session: Session, words: tuple[str, ...]) -> int:
    """Protected directories: list them, find those that are gone, or follow one that was moved."""
    if words in ((), ("list",)):
        return _show(session, standings(session.context()))
    if words == ("gone",):
        return _show(session, [found for found in standings(session.context()) if found.gone])
    if words[0] != "move" or len(words) != 3:
        raise Usage(f"bad arguments: {' '.join(words)}", hint=f"say {_ACTIONS}")
    workspace = move(session.context(), *map(os.fsencode, words[1:]), home=session.settings.home)
    if session.as_json:
        moved = [_record(one) for one in standings(session.context()) if one.workspace.id == workspace.id]
        session.document("workspace", workspace, workspaces=moved)
    else:
        session.output.data(f"moved to {printable(workspace.path)} id={workspace.id}")
    return 0


def _record(one: WorkspaceStanding) -> dict[str, Any]:
    return {**workspace_record(one.workspace), "checkpoints": one.checkpoints, "gone": one.gone}


def _show(session: Session, found: list[WorkspaceStanding]) -> int:
    records = [_record(one) for one in found]
    if session.bare_array:
        session.output.bytes(dump(records))
    elif session.as_json:
        session.document("workspace", None, workspaces=records)
    elif found:
        rows = [
            (one.workspace.id, str(one.checkpoints), "gone" if one.gone else "", printable(one.workspace.path))
            for one in found
        ]
        show_table(session.output, _HEADINGS, rows)
        if any(one.gone for one in found):
            session.output.talk("hint: `casnap workspace move OLD NEW` follows one, `casnap forget -w OLD` lets it go")
    return 0
