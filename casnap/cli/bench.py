"""``casnap bench``."""

from __future__ import annotations

from typing import Any

import click

from casnap.cli.as_json import path_fields, problem_records
from casnap.cli.options import verb
from casnap.cli.output import printable
from casnap.cli.session import Session, one_of
from casnap.cli.table import show_table
from casnap.cli.text import path_text, problem_line, quantity, size
from casnap.errors import Usage
from casnap.model.mark import MarkReport, MarkStep

LOST, DAMAGED = 3, 15

_HEADINGS = ("WHAT", "SECONDS", "RUNS", "PER SECOND")


@verb("bench")
@click.argument("words", metavar="mark [DIRECTORY]", nargs=-1)
def command(session: Session, words: tuple[str, ...]) -> int:
    """How quick casnap is with a directory of yours, the current one by default.

    It makes a first checkpoint, five of the directory unchanged, restores it, and checks all that is stored: in a
    temporary store and directory on the store's disk. Neither the store nor the directory is written to.
    """
    if not words or words[0] != "mark" or len(words) > 2:
        raise Usage(f"bad arguments: {' '.join(words) or 'nothing to do'}", hint="say casnap bench mark [DIRECTORY]")
    from casnap.settings.mark import mark_directory  # it looks after whatever a store can be asked for

    typed = words[1] if len(words) == 2 else None
    given = one_of("the directory", ("DIRECTORY", typed), ("-w", session.options.workspace))
    report = mark_directory(session.settings, given, session.progress)
    session.progress.end()
    if session.as_json:
        session.document("bench", None, **_fields(report))
    else:
        _show(session, report)
    for problem in report.problems:
        session.output.warn(f"problem: {problem_line(problem)}")
    if not report.clean:
        return DAMAGED
    return LOST if report.problems else 0


def _show(session: Session, report: MarkReport) -> None:
    output = session.output
    output.talk(f"directory {path_text(report.directory)}, temporary store in {path_text(report.place)}")
    show_table(output, _HEADINGS, [_row(step) for step in report.steps])
    amount = f"{quantity(report.entries, 'entry', 'entries')}, {size(report.bytes)}"
    output.data(f"{amount}, stored in {size(report.stored)}")
    if not report.clean:
        output.warn(f"damage: what was stored in {path_text(report.place)} does not match its names")


def _row(step: MarkStep) -> tuple[str, ...]:
    rate = size(round(step.bytes / step.seconds)) if step.bytes and step.seconds else "-"
    return printable(step.name), f"{step.seconds:.3f}", str(len(step.runs)), rate


def _fields(report: MarkReport) -> dict[str, Any]:
    return {
        "directory": path_fields(report.directory),
        "place": path_fields(report.place),
        "entries": report.entries,
        "bytes": report.bytes,
        "stored": report.stored,
        "steps": [
            {
                "name": step.name,
                "seconds": round(step.seconds, 6),
                "runs": [round(run, 6) for run in step.runs],
                "bytes": step.bytes,
            }
            for step in report.steps
        ],
        "clean": report.clean,
        "problems": problem_records(report.problems),
    }
