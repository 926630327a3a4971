"""docs/design/performance.md: its figures are made from the results, what is said about them is written by hand.

``python -m bench.page`` makes them anew from the results that are kept beside it.
"""

from __future__ import annotations

from pathlib import Path

from bench.goals import missed, verdicts
from bench.peers import PEERS
from bench.results import Results, load
from bench.tables import goals, tables

PAGE = Path(__file__).resolve().parents[2] / "docs" / "design" / "performance.md"
RESULTS = PAGE.with_suffix(".json")

BEGIN = "<!-- made by `make bench`: begin -->"
END = "<!-- made by `make bench`: end -->"


def update(page: str, results: Results) -> str:
    """``page`` with its figures made anew."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{render(results)}\n\n{END}{after}"


def write_page() -> None:
    """Make the figures of the page anew from the results that are kept beside it."""
    PAGE.write_text(update(PAGE.read_text("utf-8"), load(RESULTS)), "utf-8")


def render(results: Results) -> str:
    """The machine, the programs, and for each size the goals and all that was measured."""
    parts = ["## Where", _where(results), "## Programs", _programs(results)]
    for size in results.sizes():
        found = verdicts(results, size)
        met = len(found) - len(missed(found))
        parts += [f"## {size:,} files", _when(results, size), f"Goals met: {met} of {len(found)}."]
        parts += [goals(found), tables(results, size)]
    return "\n\n".join(part for part in parts if part)


def _where(results: Results) -> str:
    facts = results.machine
    return (
        f"{facts['cores']} cores of {facts['processor']}, {facts['memory']}, Linux {facts['kernel']}, "
        f"Python {facts['python']}."
    )


def _programs(results: Results) -> str:
    rows = ["| | version | how it is run |", "|---|---|---|"]
    for peer in PEERS:
        if peer.name in results.versions:
            rows.append(f"| {peer.name} | {results.versions[peer.name]} | {peer.note} |")
    absent = [peer.name for peer in PEERS if peer.name not in results.versions]
    return "\n".join(rows) + (f"\n\nNot installed, and so left out: {', '.join(absent)}." if absent else "")


_PLACES = {"memory": "a tmpfs", "ext4": "an ext4 with a journal on a loop image"}


def _when(results: Results, size: int) -> str:
    all_of_it = [one for one in results.all() if one.size == size]
    places = " and ".join(sorted({_PLACES[one.place] for one in all_of_it}))
    dates = sorted({one.date for one in all_of_it})
    load = sorted(one.load for one in all_of_it)
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    tree = f"{results.trees[str(size)] / 1e6:,.0f} MB. " if str(size) in results.trees else ""
    busy = " **Other work ran on the machine.**" if load[-1] > int(results.machine["cores"]) + 1 else ""
    facts = f"Stores and workspaces on {places}; {when}; load before each row {load[0]:.1f} to {load[-1]:.1f}."
    return tree + facts + busy


if __name__ == "__main__":
    write_page()
