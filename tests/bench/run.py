"""``make bench``: casnap beside other programs on the same work, with the goals, and the page about it."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from bench import tree_rows
from bench.copy_peers import Btrfs
from bench.goals import BOTH, KEEPERS, LARGE, SMALL, WORDS, verdicts
from bench.machine import machine, versions
from bench.own_rows import OwnRows
from bench.page import PAGE, RESULTS, write_page
from bench.peer import Peer
from bench.peers import AT_ANY_SIZE, PEERS
from bench.places import KINDS, Place, place
from bench.results import Results
from bench.store_rows import StoreRows
from bench.tables import goals, scaled, tables
from bench.tree_rows import TreeRows
from bench.turns import Turns
from bench.workloads import make_big, make_copies, make_tree

STEPS, CHECKPOINTS, BIG = 100, 1_000, 1 << 30
"""At 10,000 files and above; fewer and smaller in proportion below."""

COPIES = 10

REPEATS, FEWER_REPEATS = 5, 2
"""Runs of each beside the warm-up, at 10,000 files and below that."""


def main() -> None:
    """Measure what is asked for, print it, and write the results and the page."""
    options = _options()
    peers = [peer for peer in PEERS if peer.name in options.peers and peer.installed()]
    absent = sorted({peer.name for peer in PEERS if not peer.installed()} & set(options.peers))
    if absent:
        print(f"not installed, and so left out: {', '.join(absent)}", file=sys.stderr)
    results = Results(machine(), versions(peers))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what is mounted is unmounted
    for size in options.size:
        for name in _chosen(options.rows, size):
            with contextlib.ExitStack() as stack:
                here = stack.enter_context(place(options.place, options.scratch))
                needed = Btrfs in peers and size < LARGE and name in _WITH_BTRFS
                other = stack.enter_context(place("btrfs", options.scratch)) if needed else None
                repeats = options.repeats or (REPEATS if size >= SMALL else FEWER_REPEATS)
                _Bench(results, size, repeats, peers, here, other).measure(name, options.rows)
            _write(options, results)  # each time: a run takes long, and may be stopped
        print(f"\n{size:,} files\n\n{tables(results, size)}\n\n{goals(verdicts(results, size))}\n{scaled(size)}")
    if _recorded(options):
        print(f"\nwritten: {os.path.relpath(PAGE)}, {os.path.relpath(RESULTS)}")


_GROUPS = {
    "tree": tree_rows.ROWS,
    "steps": ("steps",),
    "copies": ("copies",),
    "big": ("big-first", "big-changed"),
    "start": ("version", "list"),
    "in-process": ("in-process",),
    "cost-files": ("cost-files",),
    "cost-checkpoints": ("cost-checkpoints",),
}
"""Rows that are measured in one place, one after the other."""

_WITH_BTRFS = ("tree", "steps")


def _chosen(rows: Sequence[str], size: int) -> list[str]:
    """The groups that are wanted; on large trees only the first, if nothing was named."""
    wanted = rows or (tree_rows.ROWS if size >= LARGE else tuple(WORDS))
    return [name for name, members in _GROUPS.items() if set(members) & set(wanted)]


class _Bench:
    """One group of rows at one size."""

    def __init__(
        self, results: Results, size: int, repeats: int, peers: Sequence[type[Peer]], here: Place, btrfs: Place | None
    ) -> None:
        self._results, self._size, self._repeats = results, size, repeats
        self._kinds, self._here, self._btrfs = peers, here, btrfs
        self._turns = Turns(results, size, here.kind)

    def measure(self, group: str, rows: Sequence[str]) -> None:
        """Measure the rows of a group, those that are wanted; none named: all."""
        wanted = [row for row in _GROUPS[group] if not rows or row in rows]
        tree = self._here.root / "tree"
        files = [] if group == "big" else make_tree(tree, self._size)
        if files:
            self._results.trees[str(self._size)] = sum((tree / file).stat().st_size for file in files)
        own = OwnRows(self._turns, self._here, self._repeats)
        match group:
            case "tree":
                TreeRows(self._turns, self._peers(), tree, files, self._repeats).measure(wanted)
            case "steps":
                self._store_rows(inside=True).steps(tree, files, self._fewer(STEPS))
            case "copies":
                self._store_rows().copies(make_copies(self._here.root / "copies", tree, files, COPIES))
            case "big":
                workspace = self._here.root / "big"
                make_big(workspace, self._fewer(BIG))
                self._store_rows(KEEPERS).big(workspace, wanted, self._repeats)
            case "start":
                own.start(wanted, tree, files)
            case "in-process":
                own.in_process(tree, files)
            case "cost-files":
                larger = self._here.root / "larger"
                own.cost_of_files((larger, make_tree(larger, 10 * self._size)), (tree, files))
            case "cost-checkpoints":
                own.cost_of_checkpoints(tree, files, self._fewer(CHECKPOINTS))

    def _store_rows(self, others: Sequence[str] = (), *, inside: bool = False) -> StoreRows:
        """The rows with the programs that fit them: ``others`` only, if any are named; not those bound to a place."""
        peers = [peer for peer in self._peers() if not peer.whole and (not others or peer.name in ("casnap", *others))]
        if not inside:
            peers = [peer for peer in peers if not peer.inside]
        return StoreRows(self._turns, self._results, self._size, peers)

    def _peers(self) -> list[Peer]:
        kinds = [kind for kind in self._kinds if self._size < LARGE or kind.name in AT_ANY_SIZE]
        places = [(kind, self._btrfs if kind is Btrfs else self._here) for kind in kinds]
        return [kind(place, kind.name) for kind, place in places if place is not None]

    def _fewer(self, full: int) -> int:
        return full * min(self._size, SMALL) // SMALL


def _write(options: argparse.Namespace, results: Results) -> None:
    if options.json is not None:
        results.save(options.json)
    if _recorded(options):
        results.with_earlier(RESULTS).save(RESULTS)
        write_page()


def _recorded(options: argparse.Namespace) -> bool:
    """Whether the page is about this: its goals are for certain sizes."""
    return bool(options.page) and all(size in BOTH for size in options.size)


def _options() -> argparse.Namespace:
    every = [peer.name for peer in PEERS]
    parser = argparse.ArgumentParser(prog="python -m bench.run", description=__doc__)
    parser.add_argument("--size", type=_numbers, default=[SMALL], metavar="N,…", help="files in the tree (10000)")
    parser.add_argument("--rows", type=_words, default=[], metavar="ROW,…", help=", ".join(WORDS))
    parser.add_argument("--peers", type=_words, default=every, metavar="PEER,…", help=", ".join(every))
    parser.add_argument("--repeats", type=int, help="runs of each, beside the warm-up (5; 2 on small trees)")
    parser.add_argument("--place", choices=KINDS, default=KINDS[0], help="where all lies: /dev/shm, or a loop image")
    parser.add_argument("--scratch", type=Path, help="where loop images are made")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured to this file too")
    parser.add_argument("--no-page", dest="page", action="store_false", help="leave the page as it is")
    options = parser.parse_args()
    for given, known in ((options.rows, list(WORDS)), (options.peers, every)):
        if unknown := sorted(set(given) - set(known)):
            parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(known)}")
    if "casnap" not in options.peers:
        options.peers.insert(0, "casnap")
    return options


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _numbers(text: str) -> list[int]:
    return [int(word.replace("_", "")) for word in _words(text)]


if __name__ == "__main__":
    main()
