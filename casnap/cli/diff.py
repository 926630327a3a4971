"""``casnap diff``."""

from __future__ import annotations

import base64
from typing import Any

import click

from casnap.cli.as_json import change_record, checkpoint_record, problem_records
from casnap.cli.options import flag, once, one_of, verb
from casnap.cli.output import Output, printable
from casnap.cli.revisions import find_typed
from casnap.cli.session import Session
from casnap.cli.text import problem_line
from casnap.engine.diff import diff
from casnap.engine.patch import name_status_lines, stat_lines
from casnap.errors import Usage
from casnap.model.checkpoint import Checkpoint
from casnap.model.report import Diff
from casnap.model.revision import HEAD, parse_revision

LOST, DIFFERS = 3, 4
CONTEXT = 3
"""Unchanged lines around a change, as everywhere."""

_COLOURS = (("+++", None), ("---", None), ("+", "green"), ("-", "red"), ("@@", "cyan"))


@verb("diff", takes_paths=True)
@click.argument("revisions", metavar="[A [B]]", nargs=-1)
@once("-f", "--from", "old", metavar="A", help="The older side (head).")
@once("-t", "--to", "new", metavar="B", help="The newer side (the workspace as it is now).")
@flag("--name-status", help="A, M, D or T and the path, one a line.")
@flag("--stat", help="How many lines, path by path.")
@click.option(
    "-U", "--unified", "lines", type=click.IntRange(min=0), default=CONTEXT, metavar="N", help="Lines around (3)."
)
@flag("--exit-code", help="Exit 4 when they differ.")
def command(
    session: Session,
    revisions: tuple[str, ...],
    old: str | None,
    new: str | None,
    name_status: bool,
    stat: bool,
    lines: int,
    exit_code: bool,
) -> int:
    """What differs between A and B, as a patch: A is head and B the workspace as it is now, unless named.

    Paths after -- limit it.
    """
    if len(revisions) > 2:
        raise Usage("bad arguments: more than two checkpoints", hint="paths follow after --")
    if name_status and stat:
        raise Usage("bad options: --name-status and --stat are two formats", hint="give one of them")
    first, second = (*revisions, None, None)[:2]
    old = one_of("the older side", ("A", first), ("-f", old))
    new = one_of("the newer side", ("B", second), ("-t", new))
    workspace = session.workspace()
    left = find_typed(session, workspace, HEAD if old is None else parse_revision(old), old, "diff")
    right = None if new is None else find_typed(session, workspace, parse_revision(new), new, "diff")
    paths = session.paths(workspace) or ()
    as_patch = not (name_status or stat)
    found = diff(session.context(), workspace, left, right, paths=paths, context_lines=lines, patch=not name_status)
    if session.as_json:
        session.document("diff", workspace, **_fields(found, left, right, as_patch))
    elif as_patch:
        _show_patch(session.output, found.patch)
    else:
        text = stat_lines(found) if stat else name_status_lines(found)
        session.output.bytes(text.encode("utf-8", "surrogateescape"))
    for problem in found.problems:
        session.output.warn(f"problem: {problem_line(problem)}")
    if exit_code and found:
        return DIFFERS
    return LOST if found.problems else 0


def _show_patch(output: Output, patch: str) -> None:
    """On a terminal without control codes of the files' own; elsewhere byte for byte, for programs to apply."""
    if not output.on_terminal:
        output.bytes(patch.encode("utf-8", "surrogateescape"))
        return
    for line in patch.split("\n")[:-1]:
        text = "\t".join(printable(cell) for cell in line.split("\t"))
        colour = next((colour for mark, colour in _COLOURS if line.startswith(mark)), None)
        output.data(click.style(text, fg=colour) if output.colour and colour else text)


def _fields(found: Diff, left: Checkpoint, right: Checkpoint | None, as_patch: bool) -> dict[str, Any]:
    changes = [change_record(change) for change in found]
    for record, count in zip(changes, found.lines, strict=False):  # there are none unless contents were compared
        record["lines"] = {"added": count.added, "removed": count.removed, "shown": count.shown}
    fields: dict[str, Any] = {
        "from": checkpoint_record(left),
        "to": None if right is None else checkpoint_record(right),
        "changes": changes,
        "problems": problem_records(found.problems),
    }
    if as_patch:
        data = found.patch.encode("utf-8", "surrogateescape")
        fields["patch"] = data.decode("utf-8", "replace")
        if fields["patch"] != found.patch:
            fields["patch_b64"] = base64.b64encode(data).decode("ascii")
    return fields
