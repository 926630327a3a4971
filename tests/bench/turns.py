"""Programs take turns: one run of each, then one more of each; so that what disturbs the machine hits all of them."""

from __future__ import annotations

import datetime
import os
import sys
from collections.abc import Callable, Sequence

from bench.peer import Peer
from bench.process import Failed, Run
from bench.results import Result, Results

SLOW = 10.0
"""Seconds; what takes longer is run once, and its warm-up is the measurement."""

LARGE = 20_000
"""Files above which what writes a whole tree is run once."""

Act = Callable[[Peer, int], Run]
"""What a program does in a turn, prepared as the turn needs it; the run is what counts."""


def whole_runs(repeats: int, files: int = 0) -> int:
    """How often to run what reads or writes all there is, where other things are run ``repeats`` times."""
    return 1 if files > LARGE or repeats < 3 else 3


class Turns:
    """The runs of one row. ``peers`` loses those that fail."""

    def __init__(self, results: Results, size: int, place: str) -> None:
        self._results, self._size, self._place = results, size, place

    def measure(self, row: str, peers: Sequence[Peer], act: Act, *, repeats: int, warm: bool = True) -> list[Peer]:
        """Let each of ``peers`` act ``repeats`` times, after one warm-up; those that did not fail."""
        found = {peer.name: self.result(row, peer.name) for peer in peers}
        going = list(peers)
        for turn in range(repeats + warm):
            for peer in list(going):
                result = found[peer.name]
                try:
                    done = act(peer, turn)
                except Failed as failed:
                    result.error = str(failed)
                    going.remove(peer)
                    continue
                if warm and turn == 0 and done.seconds <= SLOW:
                    continue
                result.seconds.append(done.seconds)
                result.cpu.append(done.cpu)
                if done.seconds > SLOW:
                    going.remove(peer)
        for result in found.values():
            self.keep(result)
        return [peer for peer in peers if not found[peer.name].error]

    def result(self, row: str, peer: str) -> Result:
        """An empty result for one program, to be filled and kept."""
        date = datetime.datetime.now(tz=datetime.UTC).strftime("%Y-%m-%d")
        load = round(os.getloadavg()[0], 2)
        return Result(row, self._size, peer, place=self._place, date=date, load=load)

    def keep(self, result: Result) -> None:
        """Put a result where the others are, and tell who waits."""
        self._results.put(result)
        time = result.figure("time")
        told = result.error or ("" if time is None else f"{1000 * time:10.1f} ms of {len(result.seconds)}")
        if result.bytes:
            told += "  " + ", ".join(f"{what} {amount / 1e6:.2f} MB" for what, amount in result.bytes.items())
        print(f"  {self._size:>7} {result.row:<18} {result.peer:<14} {told}", file=sys.stderr, flush=True)
