"""``casnap manifest``."""

from __future__ import annotations

import click

from casnap.cli.as_json import checkpoint_record, path_fields
from casnap.cli.options import flag, verb
from casnap.cli.revisions import choose
from casnap.cli.session import Session
from casnap.engine.cat import manifest
from casnap.errors import Usage

_ESCAPES = ((b"\\", b"\\\\"), (b"\n", b"\\n"), (b"\r", b"\\r"))


@verb("manifest")
@click.argument("revision", metavar="[REV]", required=False)
@flag("--sha256", help="Lines that `sha256sum -c` checks.")
@flag("--b3", help="Lines that `b3sum -c` checks; needs no reading (default).")
def command(session: Session, revision: str | None, sha256: bool, b3: bool) -> int:
    """A sum for every regular file of a checkpoint, one a line, paths relative to the workspace."""
    if sha256 and b3:
        raise Usage("bad options: --sha256 and --b3 are two sums", hint="give one of them")
    kind = "sha256" if sha256 else "b3"
    wanted = choose(revision=revision)
    workspace = session.workspace()
    checkpoint = session.checkpoint(workspace, wanted)
    sums = manifest(session.context(), checkpoint, kind)
    if session.as_json:
        files = [{**path_fields(path), kind: digest} for path, digest in sums]
        session.document("manifest", workspace, checkpoint=checkpoint_record(checkpoint), sum=kind, files=files)
        return 0
    for path, digest in sums:
        session.output.bytes(_line(path, digest))
        if session.output.is_closed:
            break
    return 0


def _line(path: bytes, digest: str) -> bytes:
    """A line as the tools of coreutils write it: a backslash in front says that the name is escaped."""
    escaped = b"./-" if path == b"-" else path  # a dash alone is standard input to them
    for plain, written in _ESCAPES:
        escaped = escaped.replace(plain, written)
    return (b"\\" if b"\\" in escaped else b"") + digest.encode() + b"  " + escaped + b"\n"
