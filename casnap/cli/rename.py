"""``casnap rename``."""

from __future__ import annotations

import click

from casnap.cli.as_json import checkpoint_record
from casnap.cli.options import verb
from casnap.cli.session import Session
from casnap.cli.text import tag
from casnap.engine.rename import rename
from casnap.model.revision import normalise_name, parse_revision


@verb("rename")
@click.argument("revision", metavar="REV")
@click.argument("name", metavar="[NEW]", required=False)
def command(session: Session, revision: str, name: str | None) -> int:
    """Name a checkpoint NEW; without NEW, take its name away."""
    wanted = parse_revision(revision)
    if name is not None:
        normalise_name(name)
    workspace = session.workspace()
    checkpoint = session.checkpoint(workspace, wanted)
    renamed = rename(session.context(), workspace, checkpoint, name)
    if session.as_json:
        session.document("rename", workspace, checkpoint=checkpoint_record(renamed), before=checkpoint.name)
    else:
        session.output.data(f"renamed {tag(renamed)}" + (f" was={checkpoint.name}" if checkpoint.name else ""))
    return 0
