"""Taking the checkpoint that an event asks for. Apart from the hook, which often need not import all this."""

from __future__ import annotations

from msgspec.structs import replace

from casnap.agents.event import Event, Moment
from casnap.agents.notes import Turn
from casnap.agents.places import open_workspace
from casnap.engine.checkpoint import make_checkpoint
from casnap.engine.context import Context, workspace_row
from casnap.model.report import WorkspaceInfo
from casnap.settings import Settings, free_space_if_due, stored_layer


def take(settings: Settings, event: Event, directory: bytes, turn: Turn) -> str:
    """Make a checkpoint of the workspace around a directory if it has changed; the workspace's path.

    Raises:
        CasnapError: none could be made.
    """
    origin = replace(
        settings.origin, agent=event.agent, session=event.session, turn=event.turn or turn.id, tool=event.tool
    )
    settings = replace(settings, origin=origin)
    context, workspace = open_workspace(settings, directory)
    try:
        values = _values(settings, context, workspace)
        if values["auto_checkpoint"]:
            message = _message(event, with_label=bool(values["hook.label"]))
            make_checkpoint(context, workspace, message=message, if_changed=True)
            free_space_if_due(settings, context)
        return workspace.path
    finally:
        context.store.close()


def _values(settings: Settings, context: Context, workspace: WorkspaceInfo) -> dict[str, object]:
    row = workspace_row(context.store.state(), workspace)
    return {setting.key: setting.value for setting in settings.effective(stored_layer(row.settings))}


def _message(event: Event, *, with_label: bool) -> str:
    match event.moment:
        case Moment.PROMPT:
            said = "before the turn"
        case Moment.BEFORE_TOOL:
            said = f"before {event.tool or 'a tool'}"
        case Moment.AFTER_TOOL:
            said = f"after {event.tool or 'a tool'}"
        case Moment.TURN_END:
            said = "after the turn"
        case _:
            said = "at the end of the session"
    if with_label:
        from casnap.agents.labels import label_of  # here, since it is off until somebody asks for it

        label = label_of(event.prompt)
        return f"{said}: {label}" if label else said
    return said
