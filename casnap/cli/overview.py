"""``casnap`` alone: five lines about the workspace that one stands in."""

from __future__ import annotations

from casnap.cli.hook_notes import HookNotes
from casnap.cli.output import printable
from casnap.cli.session import Session
from casnap.cli.status import changed_text, interrupted_text, protection_text, show_no_store, show_status
from casnap.cli.text import block, moment, quantity, tag
from casnap.engine.status import status
from casnap.engine.workspaces import all_workspaces
from casnap.errors import NoStore
from casnap.model.report import Status, WorkspaceInfo
from casnap.settings import workspaces_in_view


def overview(session: Session) -> int:
    """Say where one is, what head is, what changed, how to get back, and what to type next."""
    try:
        context = session.context()
    except NoStore as error:
        show_no_store(session, error)
        return 0
    view = workspaces_in_view(session.settings, context, session.options.workspace)
    if not isinstance(view, WorkspaceInfo):
        return _elsewhere(session, len(all_workspaces(context)))
    found = status(context, view)
    if session.as_json:
        show_status(session, found)
        return 0
    for line in _five(found):
        session.output.data(line)
    return 0


def _elsewhere(session: Session, workspaces: int) -> int:
    if session.as_json:
        fields = {"protected": False, "reason": "no workspace here", "head": None, "checkpoints": 0}
        session.document("status", None, **fields, hooks=HookNotes(session, None).records())
        return 0
    session.output.data(f"workspace  none here, {quantity(workspaces, 'is', 'are')} registered elsewhere")
    session.output.data("next       `casnap checkpoint` protects this directory, `casnap status` shows the others")
    return 0


def _five(found: Status) -> list[str]:
    head, safety = found.head, found.last_safety
    fields = {
        "workspace": f"{printable(found.workspace.path)}  protected: {protection_text(found)}",
        "head": "none yet" if head is None else f"{tag(head)}  {moment(head.created_ns)}",
        "changed": changed_text(found),
        "safety": "none yet" if safety is None else f"{tag(safety)}  {moment(safety.created_ns)}",
        "next": _next(found),
    }
    return [line for title, text in fields.items() for line in block(title, [text])]


def _next(found: Status) -> str:
    if found.interrupted is not None:
        return interrupted_text(found)
    if found.head is None:
        return "`casnap checkpoint` makes the first one"
    if found.changes:
        return "`casnap checkpoint` keeps the changes, `casnap rollback` drops them"
    return "`casnap checkpoint NAME` before the next risky step"
