"""``casnap diff``."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from casnap.cli.as_json import change_record, checkpoint_record, path_fields, problem_records
from casnap.cli.options import flag, once, verb
from casnap.cli.output import printable
from casnap.cli.pager import Pager
from casnap.cli.revisions import find_typed
from casnap.cli.session import Session, one_of
from casnap.cli.text import problem_line
from casnap.engine.diff import Wanted, diff
from casnap.engine.diffing.patch import Style
from casnap.engine.diffing.summary import name_status_lines, stat_lines
from casnap.errors import Usage
from casnap.model.checkpoint import Checkpoint
from casnap.model.report import Diff, WorkspaceInfo
from casnap.model.revision import HEAD, parse_revision

LOST, DIFFERS = 3, 4
CONTEXT = 3
"""Unchanged lines around a change, as everywhere."""

_COLOURS = (("+++", None), ("---", None), ("+", "green"), ("-", "red"), ("@@", "cyan"))


@verb("diff", takes_paths=True)
@click.argument("revisions", metavar="[A [B]]", nargs=-1)
@once("-f", "--from", "old", metavar="A", help="The older side (head).")
@once("-t", "--to", "new", metavar="B", help="The newer side (the workspace as it is now).")
@flag("--name-status", help="A, M, D, T or R and the path, one a line.")
@flag("--stat", help="How many lines, path by path.")
@click.option(
    "-U", "--unified", "lines", type=click.IntRange(min=0), default=CONTEXT, metavar="N", help="Lines around (3)."
)
@flag("--binary", help="Binary and large files in the patch, too, for `git apply`.")
@flag("--exit-code", help="Exit 4 when they differ.")
@flag("--no-renames", help="A renamed file is one that is gone and one that is new.")
def command(
    session: Session,
    revisions: tuple[str, ...],
    old: str | None,
    new: str | None,
    name_status: bool,
    stat: bool,
    lines: int,
    binary: bool,
    exit_code: bool,
    no_renames: bool,
) -> int:
    """What differs between A and B, as a patch: A is head and B the workspace as it is now, unless named.

    Paths after -- limit it.
    """
    if name_status and stat:
        raise Usage("bad options: --name-status and --stat are two formats", hint="give one of them")
    form = name_status_lines if name_status else stat_lines if stat else None
    workspace, left, right = _sides(session, revisions, old, new)
    wanted = Wanted(
        paths=session.paths(workspace) or (),
        contents=not name_status,
        renames=not no_renames,
        style=Style(context=lines, binary=binary),
    )
    found = _shown(session, workspace, left, right, wanted, form)
    for problem in found.problems:
        session.output.warn(f"problem: {problem_line(problem)}")
    for note in found.notes:
        session.output.talk(f"note: {printable(note)}")
    if found.cut and not binary:
        session.output.talk("hint: --binary makes the patch exact")
    if exit_code and found:
        return DIFFERS
    return LOST if found.problems else 0


def _sides(
    session: Session, revisions: tuple[str, ...], old: str | None, new: str | None
) -> tuple[WorkspaceInfo, Checkpoint, Checkpoint | None]:
    """What is to be compared with what; None is the workspace as it is now."""
    if len(revisions) > 2:
        raise Usage("bad arguments: more than two checkpoints", hint="paths follow after --")
    first, second = (*revisions, None, None)[:2]
    old = one_of("the older side", ("A", first), ("-f", old))
    new = one_of("the newer side", ("B", second), ("-t", new))
    workspace = session.workspace()
    left = find_typed(session, workspace, HEAD if old is None else parse_revision(old), old, "diff")
    right = None if new is None else find_typed(session, workspace, parse_revision(new), new, "diff")
    return workspace, left, right


def _shown(
    session: Session,
    workspace: WorkspaceInfo,
    left: Checkpoint,
    right: Checkpoint | None,
    wanted: Wanted,
    form: Callable[[Diff], str] | None,
) -> Diff:
    """The differences, after they were shown; a patch is shown while it is made."""
    if session.as_json:
        found = diff(session.context(), workspace, left, right, wanted)
        session.document("diff", workspace, **_fields(found, left, right, as_patch=form is None))
        return found
    with Pager(session) as pager:
        emit = _emitter(session, pager) if form is None else _discard
        found = diff(session.context(), workspace, left, right, replace(wanted, emit=emit))
        if form is not None and found:
            pager.write(form(found).encode("utf-8", "surrogateescape"))
    return found


def _discard(_patch: bytes) -> None:
    """For counting lines a patch is made all the same."""


def _emitter(session: Session, pager: Pager) -> Callable[[bytes], None]:
    """On a terminal without control codes of the files' own; elsewhere byte for byte, for programs to apply."""
    if not session.output.on_terminal:
        return pager.write

    def emit(patch: bytes) -> None:
        for line in patch.decode("utf-8", "surrogateescape").split("\n")[:-1]:
            text = "\t".join(printable(cell) for cell in line.split("\t"))
            colour = next((colour for mark, colour in _COLOURS if line.startswith(mark)), None)
            pager.text((click.style(text, fg=colour) if session.output.colour and colour else text) + "\n")

    return emit


def _fields(found: Diff, left: Checkpoint, right: Checkpoint | None, *, as_patch: bool) -> dict[str, Any]:
    changes = [change_record(change) for change in found]
    for record, count in zip(changes, found.lines, strict=False):  # there are none unless contents were compared
        record["lines"] = {"added": count.added, "removed": count.removed, "shown": count.shown}
    fields: dict[str, Any] = {
        "from": checkpoint_record(left),
        "to": None if right is None else checkpoint_record(right),
        "changes": changes,
        "problems": problem_records(found.problems),
        "cut": [path_fields(path) for path in found.cut],
        "notes": list(found.notes),
    }
    if as_patch:
        data = found.patch.encode("utf-8", "surrogateescape")
        fields["patch"] = data.decode("utf-8", "replace")
        if fields["patch"] != found.patch:
            fields["patch_b64"] = base64.b64encode(data).decode("ascii")
    return fields
