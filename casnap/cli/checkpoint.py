"""``casnap checkpoint``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from casnap.cli.output import printable
from casnap.cli.session import Session, one_of
from casnap.cli.text import checkpoint_line, left_out_text, path_text, problem_line, quantity, size, tag
from casnap.engine.checkpoint import described, make_checkpoint, require_free
from casnap.errors import CasnapError, Usage
from casnap.model.report import CheckpointReport, FirstLook, WorkspaceInfo
from casnap.settings import Protected

LOST = 3
"""Exit status: done, but something was lost from view that no rule excludes."""


def carry_out(
    session: Session,
    name: str | None,
    named: str | None,
    message: str | None,
    metadata: str | None,
    pin: bool,
    replace: bool,
    if_changed: bool,
    full: bool,
    yes: bool,
) -> int:
    """Record the workspace as it is now, under NAME or an automatic one.

    Other names: create, save, savepoint, snapshot. A directory that is not protected yet is from now on.
    With --yes it may take more than half of the free space.
    """
    wanted = one_of("the name", ("NAME", name), ("-s", named))
    if replace and wanted is None:
        raise Usage("bad arguments: --replace without a name", hint="name it: casnap checkpoint NAME --replace")
    if wanted is not None:  # what is wrong with the request is said before anything is registered
        from casnap.model.revision import normalise_name

        normalise_name(wanted)
    facts = _parse_metadata(metadata)
    text = _require_text("message", message or "")
    places = session.protect_all()
    if wanted is not None and len(places) > 1 and not (if_changed or replace):
        for place in places:  # all or none
            require_free(place.context, place.workspace, wanted)
    make = partial(
        make_checkpoint,
        name=wanted,
        message=text,
        metadata=facts,
        if_changed=if_changed,
        pin=pin,
        replace=replace,
        full=full,
        yes=yes,
    )
    if len(places) > 1:
        status = _make_several(session, places, make)
    else:
        report = make(places[0].context, places[0].workspace)
        _show(session, places[0].workspace, report)
        status = _status(session, report)
    session.free_space_if_due()
    return status


def _make_several(session: Session, places: list[Protected], make: Callable[..., CheckpointReport]) -> int:
    from casnap.cli.outcome import show_failures

    done: list[tuple[WorkspaceInfo, CheckpointReport]] = []
    failed: list[tuple[WorkspaceInfo, CasnapError]] = []
    for place in places:
        try:
            done.append((place.workspace, make(place.context, place.workspace)))
        except CasnapError as error:  # one workspace in trouble must not leave the others unprotected
            failed.append((place.workspace, error))
    if session.as_json:
        from casnap.cli.as_json import failure_record, workspace_record

        records = [{"workspace": workspace_record(place), **_fields(report)} for place, report in done]
        failures = [failure_record(place, error) for place, error in failed]
        session.document("checkpoint", None, workspaces=records, failed=failures)
    for workspace, report in done:
        if session.as_json:
            talk_about(session, report)
        else:
            _show(session, workspace, report)
    show_failures(session, failed)
    statuses = [error.exit_status for _, error in failed] + [_status(session, report) for _, report in done]
    return next(filter(None, statuses), 0)


def _status(session: Session, report: CheckpointReport) -> int:
    return LOST if report.problems or (session.options.strict and report.left_out) else 0


def _parse_metadata(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    import json  # here, since hardly any checkpoint has metadata

    try:
        facts = json.loads(_require_text("metadata", text))
    except (ValueError, RecursionError) as error:
        raise Usage(f"bad metadata: it is not JSON: {error}", code="bad-metadata", hint=_OBJECT) from None
    if not isinstance(facts, dict):
        raise Usage("bad metadata: it is not a JSON object", code="bad-metadata", hint=_OBJECT)
    _require_text("metadata", described(facts))
    return facts


_OBJECT = """write it as '{"key": "value"}'"""


def _require_text(what: str, text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise Usage(f"bad {what}: it is not UTF-8 text", code=f"bad-{what}", hint="write it in UTF-8") from None
    return text


def _show(session: Session, workspace: WorkspaceInfo, report: CheckpointReport) -> None:
    output, checkpoint = session.output, report.checkpoint
    if session.as_json:
        session.document("checkpoint", workspace, **_fields(report))
    elif session.options.quiet:
        output.data(checkpoint.id)
    elif report.created:
        output.data(checkpoint_line(checkpoint, report.seconds))
    else:
        output.data(f"unchanged {tag(checkpoint)}")
    talk_about(session, report)


def talk_about(session: Session, report: CheckpointReport) -> None:
    """What there is to know beside the checkpoint."""
    output = session.output
    if report.first_look is not None:
        _show_first_look(session, report.first_look)
    if report.left_out:
        output.talk(f"note: left out: {left_out_text(report.left_out)}; `casnap show` names them")
    for note in report.notes:
        output.talk(f"note: {printable(note)}")
    for problem in report.problems:
        output.warn(f"problem: {problem_line(problem)}")


def _show_first_look(session: Session, look: FirstLook) -> None:
    if look.largest:
        largest = ", ".join(f"{path_text(path)} ({size(length)})" for path, length in look.largest)
        session.output.talk(f"note: the largest directories are {largest}")
    if look.secrets:
        files = quantity(look.secrets, "file looks", "files look")
        session.output.talk(f"note: {files} like secrets; the store keeps what it is given")


def _fields(report: CheckpointReport) -> dict[str, Any]:
    from casnap.cli.as_json import checkpoint_record, path_fields, problem_records

    look = report.first_look
    return {
        "checkpoint": checkpoint_record(report.checkpoint),
        "created": report.created,
        "seconds": round(report.seconds, 3),
        "problems": problem_records(report.problems),
        "notes": list(report.notes),
        "left_out": report.left_out,
        "first_look": None
        if look is None
        else {
            "largest": [{**path_fields(path), "bytes": length} for path, length in look.largest],
            "secrets": look.secrets,
        },
    }
