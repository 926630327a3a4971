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


def is_ours(line: object) -> bool:
    """Whether a command line runs ``casnap hook``, from wherever."""
    if not isinstance(line, str):
        return False
    try:
        words = shlex.split(line)
    except ValueError:
        return False
    before = dict(zip(words[1:], words, strict=False)).get("hook", "")
    return os.path.basename(before) == "casnap"


def requires(line: str) -> bool:
    """Whether a command line of ours keeps tools from running without a checkpoint, as the person wanted."""
    return "--require" in shlex.split(line)
