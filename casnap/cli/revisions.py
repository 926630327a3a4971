"""Which checkpoint is meant: the ways of saying it on the command line, and what to say when it is none."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from casnap.cli.output import printable
from casnap.errors import NotFound, Usage
from casnap.model.revision import HEAD, At, Head, Revision, Step, parse_instant, parse_revision

if TYPE_CHECKING:
    from casnap.cli.session import Session
    from casnap.model.checkpoint import Checkpoint
    from casnap.model.report import WorkspaceInfo

_INTEGER = re.compile(r"[+-]?\d{1,1000}", re.ASCII)


def choose(
    *,
    revision: str | None = None,
    snapshot: str | None = None,
    back: str | None = None,
    step: str | None = None,
    instant: str | None = None,
) -> Revision:
    """The revision that at most one of these ways of naming it gives; head when none does.

    Raises:
        Usage: more than one was given, or it cannot be read.
    """
    ways = {"REV": revision, "-s": snapshot, "-n": back, "--step": step, "--to": instant}
    given = [way for way, value in ways.items() if value is not None]
    if len(given) > 1:
        raise Usage(f"bad arguments: {' and '.join(given)} each name a checkpoint", hint="give one of them")
    if back is not None:
        return Revision(Head(), _integer("-n", back, least=0))
    if step is not None:
        return step_revision("--step", step)
    if instant is not None:
        return Revision(At(parse_instant(instant)))
    named = revision if revision is not None else snapshot
    return HEAD if named is None else parse_revision(named)


def step_revision(option: str, text: str) -> Revision:
    """The checkpoint with exactly this step."""
    return Revision(Step(_integer(option, text, least=1)))


def _integer(option: str, text: str, *, least: int) -> int:
    if not _INTEGER.fullmatch(text):
        raise Usage(f"bad {option} {text!r}: not an integer", hint=f"give a number from {least} on")
    if (number := int(text)) < least:
        raise Usage(f"bad {option} {number}: less than {least}", hint=f"give a number from {least} on")
    return number


def find_typed(
    session: Session, workspace: WorkspaceInfo, revision: Revision, typed: str | None, verb: str
) -> Checkpoint:
    """The checkpoint that somebody typed; when there is none but a path is called so, say how to name paths.

    Raises:
        NotFound: there is no such checkpoint, or more than one.
    """
    try:
        return session.checkpoint(workspace, revision)
    except NotFound as error:
        if typed is None or error.code == "ambiguous" or not _is_path(session, workspace, typed):
            raise
        message = f"{error.message}, but there is a path of that name"
        hint = f"casnap {verb} -- {printable(typed)}"
        raise NotFound(message, hint=hint, code=error.code, details=error.details) from error


def _is_path(session: Session, workspace: WorkspaceInfo, typed: str) -> bool:
    from casnap.settings import paths_within, workspace_path

    try:
        (path,) = paths_within(session.settings, workspace, [typed], exact=session.options.workspace is not None)
    except Usage:
        return False
    return os.path.lexists(os.path.join(workspace_path(workspace), path))
