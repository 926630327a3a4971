"""Rows about what a store takes: the steps of an agent, near-copies of a tree, and one big file."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from bench.peer import Peer
from bench.process import Command, Failed, Run
from bench.results import Results
from bench.turns import Turns, whole_runs
from bench.workloads import Agent, edit_big

ROWS = ("steps", "copies", "big-first", "big-changed")


class StoreRows:
    """What the rows share: where results go, and the programs, each with an empty store."""

    def __init__(self, turns: Turns, results: Results, size: int, peers: Sequence[Peer]) -> None:
        self._turns, self._results, self._size = turns, results, size
        self._peers = list(peers)

    def steps(self, tree: Path, files: list[str], steps: int) -> None:
        """An agent's ``steps``, a checkpoint after each; the store before, after, and made as small as it can be."""
        agents, before = {}, {}
        for peer in list(self._peers):
            peer.fill(tree)
            agents[peer.name] = Agent(peer.workspace, files, "steps")
            if self._succeeds("steps", peer, peer.begin(), peer.checkpoint("v0")):
                before[peer.name] = peer.stored()

        def step(peer: Peer, turn: int) -> Run:
            agents[peer.name].step()
            return peer.run(peer.checkpoint(f"v{turn + 1}"))

        for peer in self._turns.measure("steps", self._peers, step, repeats=steps, warm=False):
            after = peer.stored()
            first = before[peer.name]
            self._add("steps", peer, growth=after.length - first.length, blocks=after.allocated - first.allocated)
            self._sized("steps", peer)

    def copies(self, workspaces: Sequence[Path]) -> None:
        """Each of the workspaces into the same store, and that made as small as it can be."""
        able = [peer for peer in self._peers if peer.record(workspaces[0], 0) is not None]
        for peer in able:
            peer.empty()  # what a program notes of the versions it makes begins anew
            peer.workspace = workspaces[0]
        able = [peer for peer in able if self._succeeds("copies", peer, peer.begin())]

        def record(peer: Peer, turn: int) -> Run:
            command = peer.record(workspaces[turn], turn)
            assert command is not None
            return peer.run(command)

        for peer in self._turns.measure("copies", able, record, repeats=len(workspaces), warm=False):
            self._sized("copies", peer)

    def big(self, workspace: Path, rows: Sequence[str], repeats: int) -> None:
        """One big file: into an empty store, and after an edit in its middle; all programs look at the same file."""
        for peer in self._peers:
            peer.workspace = workspace
        grown: dict[str, list[int]] = {peer.name: [] for peer in self._peers}

        def first(peer: Peer, turn: int) -> Run:
            peer.empty()
            if (begin := peer.begin()) is not None:
                peer.run(begin)
            peer.place.sync()
            return peer.run(peer.checkpoint(f"first{turn}"))

        edited = 0

        def changed(peer: Peer, turn: int) -> Run:
            nonlocal edited
            if edited == turn:
                edited += 1
                edit_big(workspace, str(turn))
            before = peer.stored()
            peer.place.sync()
            done = peer.run(peer.checkpoint(f"changed{turn}"))
            grown[peer.name].append(peer.stored().length - before.length)
            return done

        going = self._turns.measure("big-first", self._peers, first, repeats=whole_runs(repeats), warm=False)
        for peer in going:
            self._add("big-first", peer, store=peer.stored().length)
        if "big-changed" in rows:
            for peer in self._turns.measure("big-changed", going, changed, repeats=whole_runs(repeats), warm=False):
                self._add("big-changed", peer, growth=round(statistics.median(grown[peer.name])))

    def _sized(self, row: str, peer: Peer) -> None:
        self._add(row, peer, store=peer.stored().length)
        if (compact := peer.compact()) is not None and self._succeeds(row, peer, compact):
            self._add(row, peer, compacted=peer.stored().length)
        if result := self._results.get(row, self._size, peer.name):
            self._turns.keep(result)

    def _succeeds(self, row: str, peer: Peer, *commands: Command | None) -> bool:
        try:
            for command in commands:
                if command is not None:
                    peer.run(command)
        except Failed as failed:
            result = self._turns.result(row, peer.name)
            result.error = str(failed)
            self._turns.keep(result)
            self._peers = [one for one in self._peers if one is not peer]
            return False
        return True

    def _add(self, row: str, peer: Peer, **amounts: int) -> None:
        result = self._results.get(row, self._size, peer.name)
        assert result is not None
        result.bytes |= amounts
