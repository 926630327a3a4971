"""Stands for OpenClaw where a real one would take seconds: ``python openclaw.py HOME plugins install …``.

As OpenClaw 2026.9.6 does, it asks for consent before it links, writes its configuration anew without comments, and
leaves something of a plugin in it that was taken out. What it is told is a line in ``HOME/told``.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any


def main(home: Path, words: list[str]) -> int:
    with (home / "told").open("a") as told:
        told.write(" ".join(words) + "\n")
    path = home / ".openclaw" / "openclaw.json"
    settings: dict[str, Any] = json.loads(re.sub(r"//.*", "", path.read_text()))
    plugins = settings.setdefault("plugins", {})
    entries, load = plugins.setdefault("entries", {}), plugins.setdefault("load", {})
    if words[1] == "install":
        if "--accept-capabilities" not in words:
            sys.stderr.write('Plugin "casnap" requires capability consent.\n')
            return 1
        load["paths"] = [*load.get("paths", []), words[words.index("--link") + 1]]
        entries["casnap"] = {"enabled": True}
    elif words[1] == "enable":
        entries["casnap"] = {**entries.get("casnap", {}), "enabled": True}
    else:
        plugins.pop("load")
        entries["casnap"] = {"enabled": False}
    settings["meta"] = {"lastTouchedVersion": "2026.9.6"}
    path.write_text(json.dumps(settings, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
