"""Results as tables of Markdown: what each program took, and how that stands to the goals."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.goals import BOTH, FIGURES, MIB, SMALL, WORDS, Verdict
from bench.own_rows import ROWS as OWN_ROWS
from bench.results import Result, Results

ORDER = ("casnap", "git", "git-manyfiles", "jj", "restic", "borg", "bup", "casync", "rsync", "cp", "btrfs")


def tables(results: Results, size: int) -> str:
    """All tables of one size, and what went wrong."""
    parts = [_times(results, size), _bytes(results, size), _own(results, size), _errors(results, size)]
    return "\n\n".join(part for part in parts if part)


def goals(found: Sequence[Verdict]) -> str:
    """The goals, each with what was measured and whether it is met."""
    lines = []
    for verdict in found:
        aim = "1 MiB" if not verdict.goal.others else f"{verdict.goal.factor:g} × {_names(verdict.goal.others)}"
        show = seconds if verdict.goal.figure == "time" else megabytes
        against = f"{verdict.other} {show(verdict.theirs)}" if verdict.other else f"{verdict.goal.factor / MIB:g} MiB"
        fate = "met" if verdict.met else f"**missed by {100 * (verdict.ratio / verdict.bound - 1):.0f} %**"
        what = f"{WORDS[verdict.goal.row]}: {FIGURES[verdict.goal.figure]}"
        cpu = "–" if verdict.cpu is None else f"{verdict.cpu:.2f}"
        lines.append((what, f"≤ {aim}", show(verdict.ours), against, f"{verdict.ratio:.2f}", cpu, fate))
    return _table(("work", "goal", "casnap", "beside", "ratio", "processor", ""), lines) if lines else ""


def _names(others: Sequence[str]) -> str:
    return others[0] if len(others) == 1 else f"the best of {', '.join(others[:-1])} and {others[-1]}"


def seconds(value: float) -> str:
    """A time, as people read it."""
    return f"{value:.1f} s" if value >= 10 else f"{1000 * value:,.0f} ms" if value >= 0.1 else f"{1000 * value:.1f} ms"


def megabytes(value: float) -> str:
    """Bytes, in millions."""
    return f"{value / 1e6:,.1f} MB" if abs(value) >= 1e6 else f"{value / 1e6:.3f} MB"


def _times(results: Results, size: int) -> str:
    rows = [(row, "time") for row in WORDS if row not in OWN_ROWS]
    return _comparison(results, size, "Median times; in brackets: how much of it casnap takes.", rows, seconds)


def _bytes(results: Results, size: int) -> str:
    rows = [(row, figure) for row in WORDS for figure in FIGURES if figure != "time"]
    return _comparison(results, size, "Bytes; in brackets: how much of them casnap takes.", rows, megabytes)


def _comparison(
    results: Results, size: int, title: str, rows: Sequence[tuple[str, str]], show: Callable[[float], str]
) -> str:
    measured = [(row, what) for row, what in rows if any(_figure(one, what) for one in results.of(row, size))]
    peers = [peer for peer in ORDER if any(results.get(row, size, peer) for row, _ in measured)]
    if not measured:
        return ""
    lines = []
    for row, what in measured:
        cells = [_cell(results, row, size, peer, what, show) for peer in peers]
        lines.append((WORDS[row] + ("" if what == "time" else f": {FIGURES[what]}"), *cells))
    return f"{title}\n\n{_table(('', *peers), lines)}"


def _cell(results: Results, row: str, size: int, peer: str, what: str, show: Callable[[float], str]) -> str:
    theirs, ours = _figure(results.get(row, size, peer), what), _figure(results.get(row, size, "casnap"), what)
    if theirs is None:
        return "–"
    return show(theirs) if peer == "casnap" or not (ours and theirs) else f"{show(theirs)} ({ours / theirs:.2f})"


def _figure(result: Result | None, what: str) -> float | None:
    return None if result is None else result.figure(what)


def _own(results: Results, size: int) -> str:
    lines = []
    for row in OWN_ROWS:
        ours = _figure(results.get(row, size, "casnap"), "time")
        for other in results.of(row, size):
            theirs = other.figure("time")
            if other.peer != "casnap" and ours is not None and theirs:
                lines.append((WORDS[row], seconds(ours), f"{other.peer}: {seconds(theirs)}", f"{ours / theirs:.2f}"))
    return _table(("", "casnap", "beside", "ratio"), lines) if lines else ""


def _errors(results: Results, size: int) -> str:
    failed = [one for row in WORDS for one in results.of(row, size) if one.error]
    return "\n".join(f"- {one.peer} failed: {WORDS[one.row]}" for one in failed)


def _table(heading: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rule = "|".join(["---", *["--:"] * (len(heading) - 1)])
    return "\n".join([f"| {' | '.join(heading)} |", f"|{rule}|", *(f"| {' | '.join(line)} |" for line in lines)])


def scaled(size: int) -> str:
    """What is to be said of goals that are judged at another size than theirs; empty where it is theirs."""
    return "" if size in BOTH else f"The goals are for {SMALL:,} and {10 * SMALL:,} files; here they only hint."
