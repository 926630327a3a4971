"""What is kept of a prompt, where that is wanted: few words, and nothing that looks like a secret."""

from __future__ import annotations

import re

MOST = 60
"""Characters."""

HIDDEN = "[hidden]"

_TOKEN = re.compile(
    r"""(?x) (?<![A-Za-z0-9_-]) (?:
        (?: sk | pk | rk | gh[opsur] | github_pat | glpat | xox[abprs] | hf | npm | pypi ) [-_] [A-Za-z0-9_-]{8,}
      | A[KS]IA [A-Z0-9]{12,}
      | AIza [A-Za-z0-9_-]{20,}
      | eyJ [A-Za-z0-9_-]{8,} (?: \. [A-Za-z0-9_-]+ )*
      | (?= [A-Za-z+/_-]* [0-9] ) [A-Za-z0-9+/_-]{32,} ={0,2}
    ) | (?<= :// ) [^\s/@:]+ : [^\s/@]+ (?= @ )"""
)
"""Words that are secrets by their form: keys of well-known services, long random ones, and passwords in addresses."""

_ASSIGNED = re.compile(r"(?i)(pass(?:word|wd|phrase)|secret|token|api[_-]?key|密码|口令)(\s*[:=：]\s*)\S+")
"""What is said to be one."""


def label_of(prompt: str) -> str:
    """The first words of a prompt in one line; empty where there are none."""
    words = " ".join("".join(each if each.isprintable() else " " for each in prompt[: MOST * 20]).split())
    shown = _TOKEN.sub(HIDDEN, _ASSIGNED.sub(rf"\1\2{HIDDEN}", words))
    return shown if len(shown) <= MOST else shown[: MOST - 1].rstrip() + "…"
