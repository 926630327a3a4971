"""``casnap undelete``."""

from __future__ import annotations

import click

from casnap.cli.as_json import checkpoint_record
from casnap.cli.options import verb
from casnap.cli.session import Session
from casnap.cli.text import tag
from casnap.engine.delete import undelete
from casnap.model.revision import parse_revision


@verb("undelete")
@click.argument("revision", metavar="REV")
def command(session: Session, revision: str) -> int:
    """Bring a deleted checkpoint back; when its name was taken meanwhile, without a name."""
    wanted = parse_revision(revision)
    workspace = session.workspace()
    checkpoint = session.checkpoint(workspace, wanted, deleted=True)
    report = undelete(session.context(), workspace, checkpoint)
    if session.as_json:
        record = checkpoint_record(report.checkpoint)
        session.document("undelete", workspace, checkpoint=record, name_lost=report.name_lost)
    else:
        session.output.data(f"undeleted {tag(report.checkpoint)}")
    if report.name_lost is not None:
        session.output.talk(f"note: the name {report.name_lost} was taken meanwhile; it is back without a name")
    return 0
