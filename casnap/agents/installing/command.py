"""The command that is written into the configuration of an agent, and how it is known again."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

_PASSING = (
    "/archive-v0/",
    "/environments-v2/",
    "/builds-v0/",
    "/.cache/uv/",
    "/pipx/.cache/",
    "/pip-ephem-wheel-cache-",
)
"""Pieces of paths at which programs are that somebody runs once."""

_WITH_VALUE = {"--store", "-w", "--workspace", "-C", "--root", "-p", "--format", "--wait"}
"""Options that may stand before ``hook`` and have their value in the next word."""

PATIENCE, PATIENCE_AT_THE_END = 20, 5
"""Seconds after which an agent is told to end a hook: more than the hook takes by itself."""


class HookCommand:
    """``casnap`` by an absolute path, as the person calls it: a link stays one, so that an upgrade changes nothing."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)

    def line(self, agent: str, *, require: bool = False) -> str:
        """For the shell: many agents read the hooks of others, and only this form is understood by all of them."""
        return shlex.join([*self.words, "hook", "--agent", agent, *(["--require"] if require else [])])

    @property
    def is_passing(self) -> bool:
        """Whether it will be gone some day, as what `uvx` runs."""
        return any(piece in os.path.join(word, "") for word in self.words for piece in _PASSING)


def is_ours(handler: object) -> bool:
    """Whether a hook runs ``casnap hook``: from wherever, with whatever options, in one line or in words."""
    words = _words(handler)
    return any(os.path.basename(word) == "casnap" and _verb(words[at + 1 :]) == "hook" for at, word in enumerate(words))


def is_standard(handler: object) -> bool:
    """Whether a hook has just the form that casnap writes, with :meth:`HookCommand.line`, and people by hand do not."""
    if not isinstance(handler, dict) or set(handler) != {"type", "command", "timeout"} or not is_ours(handler):
        return False
    if handler["type"] != "command" or handler["timeout"] not in (PATIENCE, PATIENCE_AT_THE_END):
        return False
    line, words = handler["command"], _words(handler)
    end = words.index("hook")
    program, rest = words[:end], words[end + 1 :]
    return (
        shlex.join(words) == line
        and os.path.isabs(program[0])
        and program[1:] in ([], ["-m", "casnap"])
        and rest[:1] == ["--agent"]
        and rest[2:] in ([], ["--require"])
    )


def requires(handler: object) -> bool:
    """Whether a hook of ours keeps tools from running without a checkpoint, as the person wanted."""
    return "--require" in _words(handler)


def _words(handler: object) -> list[str]:
    """What is run, signs of the shell as words of their own; nothing where that cannot be told."""
    if not isinstance(handler, dict) or not isinstance(line := handler.get("command"), str):
        return []
    if isinstance(words := handler.get("args"), list):
        return [line, *(word for word in words if isinstance(word, str))]
    signs = shlex.shlex(line, posix=True, punctuation_chars=True)
    signs.whitespace_split, signs.commenters = True, ""
    try:
        return list(signs)
    except ValueError:
        return []


def _verb(words: Sequence[str]) -> str | None:
    """The first word that is no option, nor the value of one."""
    rest = iter(words)
    for word in rest:
        if word in _WITH_VALUE:
            next(rest, None)
        elif not word.startswith("-"):
            return word
    return None
