"""How each agent tells what it is about to do: the names of its events, fields and tools.

The facts are those of the agents' own documentation and of events that they were seen to send; a fixture of each is in
the tests. Whatever is not known of an agent is read as something that is not told, never as a fault.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from msgspec import Struct

from casnap.agents.event import Event, Moment
from casnap.agents.payload import Payload

_PROMPT, _BEFORE_TOOL, _TURN_END = Moment.PROMPT, Moment.BEFORE_TOOL, Moment.TURN_END
_SESSION_END = Moment.SESSION_END


class Dialect(Struct, frozen=True):
    """One agent: names of its events, and of the fields that hold what is to be known; the first that is there counts.

    ``places`` are fields with directories; of them, and of the ``variables`` that the agent sets for its hooks, the
    first counts that is there. ``also`` are fields that count beside it. ``harmless`` are tools that change no file.
    """

    moments: dict[str, Moment]
    event: tuple[str, ...] = ("hook_event_name",)
    session: tuple[str, ...] = ("session_id",)
    turn: tuple[str, ...] = ()
    tool: tuple[str, ...] = ("tool_name",)
    places: tuple[str, ...] = ("cwd",)
    also: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    prompt: tuple[str, ...] = ("prompt",)
    harmless: frozenset[str] = frozenset()


_CLAUDE_MOMENTS = {
    "UserPromptSubmit": _PROMPT,
    "PreToolUse": _BEFORE_TOOL,
    "Stop": _TURN_END,
    "StopFailure": _TURN_END,
    "SessionEnd": _SESSION_END,
}

_OUR_MOMENTS = {
    "prompt": _PROMPT,
    "before_tool": _BEFORE_TOOL,
    "pre_tool": _BEFORE_TOOL,
    "after_tool": Moment.AFTER_TOOL,
    "turn_end": _TURN_END,
    "session_end": _SESSION_END,
}
"""What casnap's own plugins say, which run within an agent."""

_OURS = Dialect(
    _OUR_MOMENTS,
    event=("event",),
    session=("session", "session_id"),
    turn=("turn", "turn_id"),
    tool=("tool",),
    places=("workspaces", "cwd", "root"),
    harmless=frozenset({"read", "ls", "glob", "grep", "list", "webfetch", "skill", "todowrite", "todoread"}),
)

DIALECTS = {
    "claude-code": Dialect(
        _CLAUDE_MOMENTS,
        turn=("prompt_id",),
        variables=("CLAUDE_PROJECT_DIR",),
        also=("cwd",),
        harmless=frozenset(
            {
                "Read",
                "Glob",
                "Grep",
                "LS",
                "NotebookRead",
                "TodoWrite",
                "WebFetch",
                "WebSearch",
                "Skill",
                "ExitPlanMode",
            }
        ),
    ),
    "codex": Dialect(
        {**_CLAUDE_MOMENTS, "Interrupt": _TURN_END},
        turn=("turn_id",),
        harmless=frozenset({"view_image", "update_plan", "web_search"}),
    ),
    "cursor": Dialect(
        {
            **_CLAUDE_MOMENTS,
            "beforeSubmitPrompt": _PROMPT,
            "preToolUse": _BEFORE_TOOL,
            "beforeShellExecution": _BEFORE_TOOL,
            "beforeMCPExecution": _BEFORE_TOOL,
            "stop": _TURN_END,
            "sessionEnd": _SESSION_END,
        },
        session=("conversation_id", "session_id"),
        turn=("generation_id",),
        places=("workspace_roots", "cwd"),
        variables=("CURSOR_PROJECT_DIR",),
        harmless=frozenset({"Read", "Grep", "Glob", "LS", "SemanticSearch", "WebSearch"}),
    ),
    "gemini": Dialect(
        {
            "BeforeAgent": _PROMPT,
            "BeforeTool": _BEFORE_TOOL,
            "AfterAgent": _TURN_END,
            "SessionEnd": _SESSION_END,
        },
        variables=("GEMINI_PROJECT_DIR",),
        also=("cwd",),
        harmless=frozenset(
            {"read_file", "read_many_files", "grep_search", "glob", "list_directory", "google_web_search", "web_fetch"}
        ),
    ),
    "opencode": _OURS,
    "cline": Dialect(
        {
            "agent_start": _PROMPT,
            "tool_call": _BEFORE_TOOL,
            "agent_end": _TURN_END,
            "session_shutdown": _SESSION_END,
            "TaskStart": _PROMPT,
            "TaskResume": _PROMPT,
            "UserPromptSubmit": _PROMPT,
            "PreToolUse": _BEFORE_TOOL,
            "TaskComplete": _TURN_END,
            "TaskError": _TURN_END,
            "TaskCancel": _TURN_END,
            "SessionShutdown": _SESSION_END,
        },
        event=("hookName",),
        session=("sessionContext.rootSessionId", "taskId"),
        turn=("iteration",),
        tool=("tool_call.name", "preToolUse.toolName"),
        places=("workspaceRoots", "workspaceInfo.rootPath"),
        prompt=("userPromptSubmit.prompt",),
        harmless=frozenset({"read_files", "search_codebase", "read_file", "list_files", "search_files"}),
    ),
    "hermes": Dialect(
        {
            **_OUR_MOMENTS,
            "pre_llm_call": _PROMPT,
            "pre_tool_call": _BEFORE_TOOL,
            "on_session_end": _TURN_END,
            "on_session_finalize": _SESSION_END,
        },
        event=("hook_event_name", "event"),
        session=("session_id", "session"),
        turn=("extra.turn_id", "turn"),
        tool=("tool_name", "tool"),
        places=("workspaces", "cwd"),
        prompt=("extra.user_message", "prompt"),
        harmless=frozenset({"read_file", "search_files", "web_search", "web_extract", "todo", "memory"}),
    ),
    "openclaw": _OURS,
}
"""Agents by the names that ``--agent`` takes and checkpoints record."""

_OTHER_NAMES = {"claude": "claude-code", "claudecode": "claude-code", "gemini-cli": "gemini", "codex-cli": "codex"}

_TRANSCRIPTS = (("/.codex/", "codex"), ("/.gemini/", "gemini"), ("/.claude/", "claude-code"))


def understand(payload: Payload, named: str, environ: Mapping[str, str]) -> Event:
    """What a payload tells of; ``named`` is the agent that the hook was installed for, empty where nobody says."""
    agent = agent_of(payload, named)
    dialect = DIALECTS.get(agent, _OURS)
    if not payload.text(*dialect.event):  # a name that is known in another form, or of nobody
        dialect = DIALECTS[_by_shape(payload)]
    moment = dialect.moments.get(payload.text(*dialect.event), Moment.OTHER)
    tool = payload.text(*dialect.tool)
    return Event(
        agent=agent,
        moment=moment,
        session=payload.text(*dialect.session),
        turn=payload.text(*dialect.turn),
        tool=tool,
        places=_places(payload, dialect, environ),
        prompt=payload.text(*dialect.prompt) if moment is Moment.PROMPT else "",
        changes=moment not in (Moment.BEFORE_TOOL, Moment.AFTER_TOOL) or tool not in dialect.harmless,
    )


def agent_of(payload: Payload, named: str) -> str:
    """The agent that a payload comes from; Cursor runs hooks of others too, and says who it is."""
    if "cursor_version" in payload:
        return "cursor"
    if named:
        return _OTHER_NAMES.get(named.lower(), named)
    return _by_shape(payload)


def _by_shape(payload: Payload) -> str:
    event = payload.text("hook_event_name")
    transcript = payload.text("transcript_path", longest=4096)
    shown = next((agent for sign, agent in _TRANSCRIPTS if sign in transcript), "")
    match True:
        case _ if "cursor_version" in payload:
            return "cursor"
        case _ if "hookName" in payload and "clineVersion" in payload:
            return "cline"
        case _ if "extra" in payload and event == event.lower():
            return "hermes"
        case _ if "event" in payload and not event:
            return "opencode"
        case _ if shown:
            return shown
        case _ if event.startswith(("Before", "After")) or "timestamp" in payload:
            return "gemini"
        case _ if "turn_id" in payload or ("model" in payload and "prompt_id" not in payload):
            return "codex"
    return "claude-code"


def _places(payload: Payload, dialect: Dialect, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The directories, absolute ones only; of those that count beside the first only what is not in it."""
    told = [environ.get(variable, "") for variable in dialect.variables]
    chosen = next((tuple(place) for place in _candidates(payload, dialect, told) if place), ())
    found = list(dict.fromkeys(chosen))
    for name in dialect.also:
        found += [place for place in payload.texts(name) if _is_place(place) and not _is_within(place, found)]
    return tuple(found)


def _candidates(payload: Payload, dialect: Dialect, told: list[str]) -> list[list[str]]:
    named = [[place] for place in told]
    listed = [list(payload.texts(name)) for name in dialect.places]
    return [[place for place in places if _is_place(place)] for places in (*named, *listed)]


def _is_place(text: str) -> bool:
    """Whether a text can be the absolute path of anything."""
    try:
        return os.path.isabs(text) and b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:  # half of a character
        return False


def _is_within(place: str, others: list[str]) -> bool:
    return any(os.path.join(place, "").startswith(os.path.join(other, "")) for other in others)
