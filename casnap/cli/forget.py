"""``casnap forget``."""

from __future__ import annotations

from casnap.cli.options import agreed, flag, verb
from casnap.cli.output import printable
from casnap.cli.session import Session
from casnap.engine.workspaces import forget


@verb("forget")
@flag("--drop", help="Give its checkpoints up: their space may be freed.")
@agreed
def command(session: Session, drop: bool, yes: bool) -> int:
    """Stop protecting a directory. Its files stay, and its checkpoints too unless --drop is given.

    `casnap init` on the same directory attaches them again. Other name: unregister.
    """
    workspace = session.workspace()
    place = printable(workspace.path)
    if drop:
        session.confirm(f"Forget {place} and give up all of its checkpoints?", yes=yes)
    forget(session.context(), workspace, drop=drop)
    if session.as_json:
        session.document("forget", workspace, dropped=drop)
    else:
        session.output.data(f"forgot {place}")
    if not drop:
        session.output.talk(f"hint: its checkpoints stay, `casnap init -w {place}` attaches them again")
    return 0
