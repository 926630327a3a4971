"""``casnap pin`` and, as :mod:`casnap.cli.unpin`, its opposite."""

from __future__ import annotations

import click

from casnap.cli.as_json import checkpoint_record
from casnap.cli.options import Verb, verb
from casnap.cli.session import Session
from casnap.cli.text import tag
from casnap.engine.pin import set_pinned
from casnap.errors import Usage
from casnap.model.revision import parse_revision


def declare(name: str, purpose: str, *, pinned: bool) -> Verb:
    """The verb that sets the pin, or the one that takes it away."""

    @verb(name)
    @click.argument("revisions", metavar="REV...", nargs=-1)
    @click.option("-s", "--snapshot", "snapshots", metavar="REV", multiple=True, help="A checkpoint, as an option.")
    def command(session: Session, revisions: tuple[str, ...], snapshots: tuple[str, ...]) -> int:
        wanted = [parse_revision(text) for text in (*revisions, *snapshots)]
        if not wanted:
            raise Usage(f"bad arguments: no checkpoint to {name}", hint=f"name one: casnap {name} REV")
        workspace = session.workspace()
        chosen = [session.checkpoint(workspace, revision) for revision in wanted]
        found = set_pinned(session.context(), workspace, chosen, pinned=pinned)
        if session.as_json:
            session.document(name, workspace, checkpoints=[checkpoint_record(checkpoint) for checkpoint in found])
        for checkpoint in found if not session.as_json else ():
            session.output.data(f"{name}ned {tag(checkpoint)}")
        return 0

    command.help = purpose
    return command


command = declare("pin", "Keep checkpoints from being deleted, by hand or by a cleanup, until unpin.", pinned=True)
