"""``casnap delete``."""

from __future__ import annotations

import click

from casnap.cli.as_json import checkpoint_record
from casnap.cli.options import agreed, verb
from casnap.cli.output import printable
from casnap.cli.session import Session
from casnap.cli.text import quantity, tag
from casnap.engine.delete import delete
from casnap.errors import Usage
from casnap.model.ids import SHORT_ID
from casnap.model.revision import parse_revision


@verb("delete")
@click.argument("revisions", metavar="REV...", nargs=-1)
@click.option("-s", "--snapshot", "snapshots", metavar="REV", multiple=True, help="A checkpoint, as an option.")
@agreed
def command(session: Session, revisions: tuple[str, ...], snapshots: tuple[str, ...], yes: bool) -> int:
    """Delete checkpoints; the files in the workspace stay. `casnap undelete` brings one back.

    When head goes, the nearest ancestor that is left becomes head. Other name: rm.
    """
    wanted = [parse_revision(text) for text in (*revisions, *snapshots)]
    if not wanted:
        raise Usage("bad arguments: no checkpoint to delete", hint="name one: casnap delete REV")
    workspace = session.workspace()
    named = [session.checkpoint(workspace, revision) for revision in wanted]
    chosen = list({checkpoint.id: checkpoint for checkpoint in named}.values())
    which = ", ".join(tag(checkpoint) for checkpoint in chosen)
    session.confirm(f"Delete {quantity(len(chosen), 'checkpoint')} of {printable(workspace.path)} ({which})?", yes=yes)
    report = delete(session.context(), workspace, chosen)
    if session.as_json:
        deleted = [checkpoint_record(checkpoint) for checkpoint in report.deleted]
        session.document("delete", workspace, deleted=deleted, head=report.head)
    else:
        for checkpoint in report.deleted:
            session.output.data(f"deleted {tag(checkpoint)}")
    if any(checkpoint.head for checkpoint in chosen):
        session.output.talk(f"note: head is now {report.head[:SHORT_ID] if report.head else 'none'}")
    session.output.talk(f"hint: `casnap undelete {chosen[-1].id[:SHORT_ID]}` brings it back")
    return 0
