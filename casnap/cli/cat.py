"""``casnap cat``."""

from __future__ import annotations

import click

from casnap.cli.options import verb
from casnap.cli.session import Session
from casnap.engine.cat import cat
from casnap.errors import Usage
from casnap.model.revision import parse_revision


@verb("cat")
@click.argument("revision", metavar="REV")
@click.argument("path", metavar="PATH")
def command(session: Session, revision: str, path: str) -> int:
    """Write the bytes of a file as a checkpoint has it to standard output; of a symbolic link, its target."""
    if session.as_json:
        raise Usage("bad options: cat writes bytes, not JSON", hint="see what a checkpoint holds: casnap show --files")
    wanted = parse_revision(revision)
    workspace = session.workspace()
    checkpoint = session.checkpoint(workspace, wanted)
    for piece in cat(session.context(), checkpoint, session.path(workspace, path)):
        session.output.bytes(piece)
    return 0
