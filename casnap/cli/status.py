"""``casnap status``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from casnap.cli.hook_notes import HookNotes
from casnap.cli.output import printable
from casnap.cli.session import Session
from casnap.cli.text import block, counts_text, left_out_text, moment, problem_line, quantity, size, tag
from casnap.engine.status import status
from casnap.errors import NoStore
from casnap.model.report import Status, WorkspaceInfo, count_changes
from casnap.model.upkeep import UpkeepStatus
from casnap.settings import workspaces_in_view

LEFT_OUT = 3
"""Exit status with ``--strict``: a rule leaves something out."""


def carry_out(session: Session) -> int:
    """How the workspace stands; outside any workspace, how all of them do. Other name: stats."""
    try:
        context = session.context()
    except NoStore as error:
        show_no_store(session, error)
        return 0
    view = workspaces_in_view(session.settings, context, session.options.workspace)
    if isinstance(view, WorkspaceInfo):
        session.echo(view)
        found = status(context, view)
        show_status(session, found)
        return _exit_status(session, [found])
    all_of_them = [status(context, workspace) for workspace in view]
    _show_all(session, all_of_them)
    return _exit_status(session, all_of_them)


def _show_all(session: Session, found: list[Status]) -> None:
    if session.as_json:
        from casnap.cli.as_json import status_fields, workspace_record

        workspaces = [{"workspace": workspace_record(one.workspace), **status_fields(one)} for one in found]
        session.document("status", None, workspaces=workspaces, hooks=HookNotes(session, None).records())
        return
    if not found:
        session.output.data("no workspace is registered; `casnap init` protects the current directory")
    for number, one in enumerate(found):
        if number:
            session.output.data("")
        for line in _lines(session, one):
            session.output.data(line)
    for warning in dict.fromkeys(warning for one in found for warning in one.upkeep.warnings):
        session.output.warn(f"warning: {printable(warning)}")
    _warn_of_hooks(session, HookNotes(session, None))


def _exit_status(session: Session, found: list[Status]) -> int:
    return LEFT_OUT if session.options.strict and any(one.left_out for one in found) else 0


def show_no_store(session: Session, error: NoStore) -> None:
    """Say that nothing is protected, since there is no store."""
    if session.as_json:
        from casnap.cli.as_json import document, dump

        fields: dict[str, Any] = {"protected": False, "reason": error.message, "head": None, "checkpoints": 0}
        fields["hooks"] = HookNotes(session, None).records()
        session.output.bytes(dump(document("status", None, None, fields)))
        return
    session.output.data(f"protected  no: {printable(error.message)}")
    session.output.talk("hint: `casnap checkpoint` makes a store and protects the current directory")
    _warn_of_hooks(session, HookNotes(session, None))


def show_status(session: Session, found: Status) -> None:
    """One workspace in full."""
    hooks = HookNotes(session, found.workspace)
    if session.as_json:
        from casnap.cli.as_json import status_fields

        session.document("status", found.workspace, **status_fields(found), hooks=hooks.records())
        return
    for line in (*_lines(session, found), *block("hooks", list(hooks.lines()))):
        session.output.data(line)
    _talk_about(session, found)
    _warn_of_hooks(session, hooks)


def _warn_of_hooks(session: Session, hooks: HookNotes) -> None:
    for refusal in hooks.refusals():
        session.output.talk(f"note: {printable(refusal)}")
    for warning in hooks.warnings():
        session.output.warn(f"warning: {printable(warning)}")


def _talk_about(session: Session, found: Status) -> None:
    for note in found.notes:
        session.output.talk(f"note: {printable(note)}")
    for warning in found.upkeep.warnings:
        session.output.warn(f"warning: {printable(warning)}")
    for problem in found.problems:
        session.output.warn(f"problem: {problem_line(problem)}")


def _lines(session: Session, found: Status) -> Iterator[str]:
    safety = found.last_safety
    store = f"{session.store_path} ({size(found.store_bytes)} used, {size(found.store_free)} free)"
    fields = {
        "workspace": printable(found.workspace.path),
        "protected": protection_text(found),
        "head": "none yet" if found.head is None else f"{tag(found.head)}  {moment(found.head.created_ns)}",
        "changed": changed_text(found),
        "history": f"{quantity(found.checkpoints, 'checkpoint')}, {quantity(found.safety_points, 'safety checkpoint')}",
        "left out": left_out_text(found.left_out),
        "safety": "none yet" if safety is None else f"{tag(safety)}  {moment(safety.created_ns)}",
        "open": interrupted_text(found),
        "store": store,
        "dead": f"up to {size(found.upkeep.dead_bytes)}: `casnap gc` gives it back" if found.upkeep.dead_bytes else "",
        "checked": _checked_text(found.upkeep),
    }
    for title, text in fields.items():
        if text:
            yield from block(title, [text])


def _checked_text(upkeep: UpkeepStatus) -> str:
    if upkeep.checked_ns is None:
        return "never: `casnap check` looks through the store"
    return f"{moment(upkeep.checked_ns)}  {'clean' if upkeep.clean else 'damage was found'}"


def protection_text(found: Status) -> str:
    """Whether the workspace is protected, and why not."""
    answer = "yes" if found.protected else "no"
    return f"{answer}: {printable(found.reason)}" if found.reason else answer


def changed_text(found: Status) -> str:
    """What changed since head."""
    if found.changes is None:
        return "unknown"
    counts = count_changes(found.changes)
    return counts_text(counts) if any((counts.added, counts.changed, counts.removed)) else "nothing"


def interrupted_text(found: Status) -> str:
    """A rollback that has no outcome, empty when there is none."""
    stuck = found.interrupted
    return "" if stuck is None else f"{stuck.verb} of {moment(stuck.began_ns)} was interrupted: run `casnap recover`"
