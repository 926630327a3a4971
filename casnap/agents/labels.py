"""What is kept of a prompt, where that is wanted: few words, and nothing that looks like a secret."""

from __future__ import annotations

from casnap.agents.credentials import hide
from casnap.agents.payload import MOST_TEXT

MOST = 60
"""Characters."""


def label_of(prompt: str) -> str:
    """The first words of a prompt in one line; empty where there are none."""
    words = "".join(each if each.isprintable() else " " for each in prompt[:MOST_TEXT]).split()
    if len(prompt) >= MOST_TEXT and len(words) > 1:
        words.pop()  # it may be the beginning of a secret, too short to look like one
    shown = hide(" ".join(words))
    return shown if len(shown) <= MOST else shown[: MOST - 1].rstrip() + "…"
