"""What an agent writes to its hook: JSON of any shape, which becomes an event."""

from __future__ import annotations

from casnap.agents.dialects import DIALECTS, understand
from casnap.agents.event import Event
from casnap.agents.payload import MOST_TEXT, BadPayload, parse
from fuzz.law import Target


def _parse(data: bytes) -> Event:
    return understand(parse(data), "", {})


def _fault(event: Event, _data: bytes) -> str | None:
    """Each text can be stored, and is short; each directory is an absolute path."""
    for text in (event.session, event.turn, event.tool, event.prompt):
        if len(text) > MOST_TEXT or text != text.encode("utf-8", "replace").decode():
            return f"a text cannot be stored: {text!r}"
    if not all(place.startswith("/") for place in event.places):
        return f"a directory is no absolute path: {event.places}"
    return None if event.agent in DIALECTS else f"the agent is {event.agent!r}"


TARGET = Target(
    name="hook-event",
    parse=_parse,
    errors=(BadPayload,),
    fault=_fault,
    seeds=(
        b'{"session_id":"s","prompt_id":"p","hook_event_name":"UserPromptSubmit","cwd":"/w","prompt":"x"}',
        b'{"hook_event_name":"pre_tool_call","tool_name":"terminal","cwd":"/w","extra":{"turn_id":"t","task_id":7}}',
        b'{"cursor_version":"3","hook_event_name":"preToolUse","workspace_roots":["/w","/v"],"generation_id":"g"}',
        b'{"clineVersion":"","hookName":"tool_call","iteration":1,"tool_call":{"name":"editor"},"workspaceRoots":["/"]}',
    ),
    tokens=(b"[", b"{", b'":', b"\\ud83d", b"\xef\xbb\xbf", b"null", b"1e999", b'"event"', b'"timestamp"', b'"cwd"'),
)
