"""The table of keys in docs/reference/configuration.md, made from the model itself.

``python -m support.keys`` (part of ``make fmt``) writes it; a test compares.
"""

from __future__ import annotations

from casnap.model.config import ALIASES, KEYS, Key
from support.source import CHECKOUT

PAGE = CHECKOUT / "docs" / "reference" / "configuration.md"
BEGIN = "<!-- made by `make fmt`: begin -->"
END = "<!-- made by `make fmt`: end -->"


def render() -> str:
    """A row for each key."""
    rows = ["| key | type | default | |", "|---|---|---|---|"]
    for key in KEYS.values():
        rows.append(f"| `{key.name}` | {key.kind.words} | {_default(key)} | {_about(key)} |")
    return "\n".join(rows)


def update(page: str) -> str:
    """``page`` with its table made anew."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{render()}\n\n{END}{after}"


def _default(key: Key) -> str:
    if isinstance(key.default, tuple):
        return ", ".join(f"`{one}`" for one in key.default) or "empty"
    return f"`{key.text(key.default)}`"


def _about(key: Key) -> str:
    aliases = [f"`{name}`" for name, one in ALIASES.items() if one.name == key.name]
    also = f"; also called {', '.join(aliases)}" if aliases else ""
    return key.about + also + (f"; for {key.common_to}" if key.common_to else "")


if __name__ == "__main__":
    PAGE.write_text(update(PAGE.read_text("utf-8")), "utf-8")
