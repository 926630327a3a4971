"""A plugin for Hermes that runs ``casnap hook`` at each turn.

It runs in the environment of Hermes: so it needs nothing but Python itself, and nothing that goes wrong here may reach
Hermes. ``casnap.json`` beside it says how casnap is run.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

PATIENCE = 10
"""Seconds after which a hook is given up: more than it takes by itself."""

NO_CHECKPOINT = 2
"""The exit status of ``casnap hook --require`` when there is no checkpoint."""

READS_ONLY = frozenset({"read_file", "search_files", "web_search", "web_extract", "todo", "memory", "vision_analyze"})
"""Tools that are not worth running casnap for."""


def register(ctx: Any) -> None:
    """What Hermes calls when it loads the plugin."""
    for name, act in (
        ("pre_llm_call", _at_prompt),
        ("pre_tool_call", _before_tool),
        ("on_session_end", _at_turn_end),  # which is that of each turn
        ("on_session_finalize", _at_session_end),
    ):
        ctx.register_hook(name, act)


def _at_prompt(session_id: str = "", turn_id: str = "", task_id: str = "", user_message: Any = "", **_: Any) -> None:
    prompt = user_message if isinstance(user_message, str) else ""
    _tell("prompt", task_id, session=session_id, turn=turn_id, prompt=prompt)


def _before_tool(
    tool_name: str = "", session_id: str = "", turn_id: str = "", task_id: str = "", tool_call_id: str = "", **_: Any
) -> dict[str, str] | None:
    if tool_name in READS_ONLY:
        return None
    missed = _tell("before_tool", task_id, session=session_id, turn=turn_id, tool=tool_name, call=tool_call_id)
    return {"action": "block", "message": missed} if missed else None


def _at_turn_end(session_id: str = "", turn_id: str = "", task_id: str = "", **_: Any) -> None:
    _tell("turn_end", task_id, session=session_id, turn=turn_id)


def _at_session_end(session_id: str = "", **_: Any) -> None:
    _tell("session_end", session_id, session=session_id)  # editors' sessions have tasks of the same name


def _tell(event: str, task: str, **more: str) -> str:
    """Run ``casnap hook``; why the agent must not go on, which is never so unless a checkpoint is required.

    Then whatever keeps casnap from saying in time that there is one counts: also that it is gone, or fails.
    """
    settings = _settings()
    if settings.get("autoCheckpoint", True) is False:
        return ""
    requires = settings.get("require") is True
    try:
        missed = _missed(_run(settings, event, task, more, requires=requires))
    except subprocess.TimeoutExpired:
        missed = "casnap has taken no checkpoint in time: try again, or run `casnap status`"
    except Exception as error:  # whatever it is: the agent goes on, and `casnap doctor` tells that no hook fires
        missed = f"casnap cannot be run, and a checkpoint is required: run `casnap plugin install` ({error})"
    return missed if requires else ""


def _missed(status: int) -> str:
    """Why there is no checkpoint; empty where there is."""
    if status == NO_CHECKPOINT:
        return "casnap could take no checkpoint: run `casnap status` to see why"
    return f"casnap failed ({status}), and a checkpoint is required: run `casnap doctor`" if status else ""


def _run(settings: dict[str, Any], event: str, task: str, more: dict[str, str], *, requires: bool) -> int:
    """The exit status of ``casnap hook``."""
    payload = {
        "event": event,
        "workspaces": _configured(settings) or _directories(task),
        **{key: str(text) for key, text in more.items()},
    }
    return subprocess.run(
        [*_command(), "hook", "--agent", "hermes", *(["--require"] if requires else [])],
        input=json.dumps(payload).encode("utf-8"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=PATIENCE,
        check=False,
    ).returncode


def _settings() -> dict[str, Any]:
    """What is below ``plugins.entries.casnap`` in the configuration of Hermes."""
    try:
        from hermes_cli.config import load_config  # type: ignore[import-not-found]  # Hermes' own

        found = ((load_config() or {}).get("plugins") or {}).get("entries") or {}
        entry = found.get("casnap") or {}
        return {**entry, **(entry.get("config") or {})}
    except Exception:
        return {}


def _configured(settings: dict[str, Any]) -> list[str]:
    named = settings.get("workspace")
    listed = named if isinstance(named, list) else [named]
    return [os.path.expanduser(place) for place in listed if isinstance(place, str) and place]


def _directories(task: str) -> list[str]:
    """Where Hermes works: the directory that the session was begun for, and where its shell has gone from there.

    A process may have many sessions, each in a project of its own, as editors have.
    """
    begun, gone = _of_session(task)
    terminal = os.path.expanduser(os.environ.get("TERMINAL_CWD") or "")  # may be "." or "auto", where nothing is set
    first = begun or (terminal if os.path.isabs(terminal) else os.getcwd())
    return [first, gone] if gone and not _is_within(gone, first) else [first]


def _of_session(task: str) -> tuple[str, str]:
    """What Hermes itself knows of a session, if anything; of containers nothing, where paths mean something else."""
    shells = sys.modules.get("tools.terminal_tool")
    if shells is None or os.environ.get("TERMINAL_ENV", "local") != "local":
        return "", ""
    try:
        found = (shells.resolve_task_overrides(task).get("cwd"), shells.get_session_cwd(task))
    except Exception:  # another version of Hermes may keep it elsewhere
        return "", ""
    begun, gone = (place if isinstance(place, str) and os.path.isdir(place) else "" for place in found)
    return begun, gone


def _is_within(place: str, directory: str) -> bool:
    return os.path.join(place, "").startswith(os.path.join(directory, ""))


def _command() -> list[str]:
    try:
        said = json.loads((Path(__file__).parent / "casnap.json").read_text("utf-8"))
        return [str(word) for word in said["command"]]
    except (OSError, ValueError, KeyError, TypeError):  # installed by pip, in the environment of Hermes
        found = shutil.which("casnap")
        return [found] if found else [sys.executable, "-m", "casnap"]
