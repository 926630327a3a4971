"""``casnap cat``."""

from __future__ import annotations

import click

from casnap.cli.options import verb
from casnap.cli.session import Session
from casnap.engine.cat import cat
from casnap.errors import Usage
from casnap.model.revision import parse_revision


@verb("cat", takes_paths=True)
@click.argument("revision", metavar="REV")
@click.argument("path", metavar="PATH", required=False)
def command(session: Session, revision: str, path: str | None) -> int:
    """Write the bytes of a file as a checkpoint has it to standard output; of a symbolic link, its target.

    PATH may stand behind --, as one must that begins with a dash.
    """
    if session.as_json:
        raise Usage("bad options: cat writes bytes, not JSON", hint="see what a checkpoint holds: casnap show --files")
    paths = [*([] if path is None else [path]), *(session.raw_paths or ())]
    if len(paths) != 1:
        raise Usage("bad arguments: cat writes one file", hint="name it: casnap cat REV PATH")
    wanted = parse_revision(revision)
    workspace = session.workspace()
    checkpoint = session.checkpoint(workspace, wanted)
    for piece in cat(session.context(), checkpoint, session.path(workspace, paths[0])):
        session.output.bytes(piece)
        if session.output.is_closed:
            break
    return 0
