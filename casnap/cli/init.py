"""``casnap init``."""

from __future__ import annotations

from casnap.cli.options import flag, verb
from casnap.cli.output import printable
from casnap.cli.session import Session


@verb("init")
@flag("--allow-home", help="Protect the home directory itself.")
def command(session: Session, allow_home: bool) -> int:
    """Protect a directory from now on. Harmless when it is protected already.

    Without -w: the nearest protected directory around, else the git work tree, else the current directory.
    """
    protected = session.protect(allow_home=allow_home)
    workspace = protected.workspace
    if session.as_json:
        session.document("init", workspace, new=protected.new, notes=list(protected.notes))
        return 0
    session.output.data(
        f"{'protected' if protected.new else 'already protected'} {printable(workspace.path)} id={workspace.id}"
    )
    return 0
